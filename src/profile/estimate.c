/* Estimates profiles from a machine's figures, as docs/hardware.md describes, in the same order. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "profile/drive.h"
#include "profile/hardware.h"
#include "profile/profile.h"
#include "profile/roofline.h"

enum { FLOAT_BYTES = 4 };

/* Returns the bytes that AdamW moves per parameter: states are read and written. The gradient, which is read, is not
 * included. */
static double state_bytes(const struct ah_partition *partition)
{
    return 2 * ah__states_each(partition);
}

struct estimate {
    struct ah_profile *profile;
    const struct ah_partition *partition;
    const struct ah_hardware *hardware;
    struct ah_roofline roofline;
    double most_flops_per_s; /* limit of a program as a whole; 0: unknown */
    bool recomputes_whole;   /* recomputation runs all of forward, as PyTorch's checkpoints do, not only what backward
                              * needs */
    double world_size;
    double dtype_bytes;                                /* of the compute dtype */
    double dram_bytes_per_s;                           /* achieved by the host's memory, all ranks together */
    double adam_params_per_s;                          /* of the host, all ranks together */
    double adam_bytes_per_s;                           /* share of dram_bytes_per_s that Adam uses */
    double h2d_bytes_per_s, d2h_bytes_per_s;           /* of one rank while all ranks copy alike */
    double h2d_both_bytes_per_s, d2h_both_bytes_per_s; /* while both directions run */
};

static double figure(const struct estimate *estimate, enum ah_figure id)
{
    return estimate->hardware->figure[id];
}

/* ---- sharing the host's memory */

/* Divides `room` between two users who want *a and *b: each gets up to half, and more if the other leaves it (max-min
 * fairness). */
static void share(double *a, double *b, double room)
{
    double half = room / 2, want_a = *a, want_b = *b;
    if (want_a + want_b <= room)
        return;
    *a = want_a <= half ? want_a : fmax(half, room - want_b);
    *b = want_b <= half ? want_b : fmax(half, room - want_a);
}

/* The system whose rates are assumed. */
enum rates { RATES_AUTOHETE, RATES_DEEPSPEED, RATES_PYTORCH, RATES_COUNT };
static const char *const rates_names[RATES_COUNT] = {"autohete", "deepspeed", "pytorch"};

static void host_init(struct estimate *estimate, enum rates rates)
{
    const enum ah_figure published[RATES_COUNT] = {
        [RATES_DEEPSPEED] = AH_FIGURE_DEEPSPEED_ADAM, [RATES_PYTORCH] = AH_FIGURE_PYTORCH_ADAM};
    /* Other systems write a half-precision copy beside a single-precision master. */
    bool copies = rates != RATES_AUTOHETE && ah__has_rest(estimate->partition);
    double bytes = state_bytes(estimate->partition) + estimate->dtype_bytes * (copies ? 2 : 1);
    estimate->dram_bytes_per_s = figure(estimate, AH_FIGURE_DRAM) * figure(estimate, AH_FIGURE_DRAM_EFFICIENCY);
    double fastest = estimate->dram_bytes_per_s / bytes;
    estimate->adam_params_per_s = fastest;
    if (rates != RATES_AUTOHETE)
        estimate->adam_params_per_s = fmin(figure(estimate, published[rates]), fastest);
    estimate->adam_bytes_per_s = estimate->adam_params_per_s * bytes;
}

/* Sets the rate that training as a whole is known to reach, with products and everything between them: published in
 * half precision as a fraction of the peak. For PyTorch systems in single precision the same fraction of the rates of
 * its products is assumed. */
static void device_init(struct estimate *estimate, enum rates rates)
{
    estimate->recomputes_whole = rates == RATES_PYTORCH;
    bool pytorch = rates == RATES_PYTORCH, single = estimate->dtype_bytes >= FLOAT_BYTES;
    double most = figure(estimate, pytorch ? AH_FIGURE_PYTORCH_TRAINING : AH_FIGURE_TRAINING_MOST);
    if (single && !pytorch)
        return;
    double half = ah__curve_best(&estimate->hardware->gemm), dtype = ah__curve_best(estimate->roofline.curve);
    estimate->most_flops_per_s = most * figure(estimate, AH_FIGURE_PEAK) * dtype / half;
}

/* Sets the link's rates. Each rank has its own link; all read and write one host memory. */
static void link_init(struct estimate *estimate)
{
    double room = estimate->dram_bytes_per_s / estimate->world_size;
    estimate->h2d_bytes_per_s = fmin(figure(estimate, AH_FIGURE_H2D), room);
    estimate->d2h_bytes_per_s = fmin(figure(estimate, AH_FIGURE_D2H), room);
    estimate->h2d_both_bytes_per_s = figure(estimate, AH_FIGURE_H2D_BOTH);
    estimate->d2h_both_bytes_per_s = figure(estimate, AH_FIGURE_D2H_BOTH);
    share(&estimate->h2d_both_bytes_per_s, &estimate->d2h_both_bytes_per_s, room);
}

/* ---- work items */

static int64_t at_least_1ns(double ns)
{
    return ns < 1 ? 1 : llround(ns);
}

static void set(struct estimate *estimate, enum ah_item_kind kind, int class, double ns)
{
    estimate->profile->costs.ns[kind][class] = at_least_1ns(ns);
}

static void set_device_bytes(struct estimate *estimate, enum ah_item_kind kind, int class, double bytes)
{
    struct ah_roofline_time time = {0};
    ah__roofline_add_bytes(&time, &estimate->roofline, bytes);
    set(estimate, kind, class, time.ns);
}

/* Adds the time of a program for every micro-batch; all but the first run `adding` if that program exists. */
static void add_programs(struct ah_roofline_time *time, const struct estimate *estimate, const struct ah_code *code,
                         enum ah_program_kind kind, enum ah_program_kind adding)
{
    const struct ah_program *first = &code->program[kind], *later = &code->program[adding];
    ah__roofline_add(time, &estimate->roofline, first);
    for (int i = 1; i < ah__micro_batches(estimate->partition); i++)
        ah__roofline_add(time, &estimate->roofline, later->count ? later : first);
}

/* Returns the time of a program, which is at least its flops at the rate of training as a whole. */
static double program_ns(const struct estimate *estimate, double ns, double flops)
{
    return estimate->most_flops_per_s > 0 ? fmax(ns, flops / estimate->most_flops_per_s * 1e9) : ns;
}

/* Sets the times of a class's programs. Returns the share of their time that waits for device memory. */
static double set_programs(struct estimate *estimate, int class)
{
    const struct ah_code *code = &estimate->partition->code[class];
    struct ah_costs *costs = &estimate->profile->costs;
    int alike = ah__class_alike(class);
    int representative = ah__class_representative((enum ah_class)alike, estimate->partition->layers);
    const struct ah_group *group = &estimate->partition->groups[representative];
    int64_t params = ah__frozen_count(group) > 0 ? group->trained : estimate->profile->params[alike];
    double widened = ah__is_widened(group) ? (double)(group->count + group->placed) * estimate->dtype_bytes : 0;
    struct ah_roofline_time forward = {0}, backward = {0}, recompute = {0}, selective = {0};
    double times = ah__micro_batches(estimate->partition);
    add_programs(&forward, estimate, code, AH_PROGRAM_FORWARD, AH_PROGRAM_FORWARD_ADD);
    add_programs(&backward, estimate, code, AH_PROGRAM_BACKWARD, AH_PROGRAM_BACKWARD_ADD);
    add_programs(&recompute, estimate, code, AH_PROGRAM_RECOMPUTE, AH_PROGRAM_RECOMPUTE);
    add_programs(&selective, estimate, code, AH_PROGRAM_RECOMPUTE_SELECTIVE, AH_PROGRAM_RECOMPUTE_SELECTIVE);
    if (widened > 0) { /* codes are read and decoded once for all micro-batches */
        struct ah_roofline_time once = {0};
        ah__roofline_add_bytes(&once, &estimate->roofline, widened);
        ah__roofline_add_bytes(&forward, &estimate->roofline, widened);
        ah__roofline_add_bytes(&backward, &estimate->roofline, widened);
        costs->widen_ns = llround(once.ns);
    }
    /* The gradient is rounded, unless it is F32, and its norm is computed right after it. */
    if (params > 0 && estimate->dtype_bytes < FLOAT_BYTES)
        ah__roofline_add_bytes(&backward, &estimate->roofline, (double)params * (FLOAT_BYTES + estimate->dtype_bytes));
    if (params > 0)
        ah__roofline_add_bytes(&backward, &estimate->roofline, (double)params * estimate->dtype_bytes);
    const struct ah_program *program = code->program;
    int64_t *forward_ns = &costs->ns[AH_ITEM_FORWARD][class], *backward_ns = &costs->ns[AH_ITEM_BACKWARD][class];
    *forward_ns = at_least_1ns(program_ns(estimate, forward.ns, times * program[AH_PROGRAM_FORWARD].flops));
    *backward_ns = at_least_1ns(program_ns(estimate, backward.ns, times * program[AH_PROGRAM_BACKWARD].flops));
    costs->recompute_ns[class] =
        estimate->recomputes_whole && recompute.ns > 0
            ? *forward_ns
            : llround(program_ns(estimate, recompute.ns, times * program[AH_PROGRAM_RECOMPUTE].flops));
    costs->selective_ns[class] = llround(selective.ns);
    return (forward.memory_ns + backward.memory_ns) / (forward.ns + backward.ns);
}

static void set_flops(struct ah_profile *profile, const struct ah_partition *partition, int class)
{
    const struct ah_program *program = partition->code[class].program;
    double times = ah__micro_batches(partition);
    profile->forward_flops[class] = times * program[AH_PROGRAM_FORWARD].flops;
    profile->backward_flops[class] = times * program[AH_PROGRAM_BACKWARD].flops;
    profile->recompute_flops[class] = times * program[AH_PROGRAM_RECOMPUTE].flops;
}

/* Sets the times of staged updates: states and gradient are copied in, the device updates, states are copied back. */
static void set_streamed(struct estimate *estimate, double shard)
{
    double states = state_bytes(estimate->partition) / 2.0;
    double in = shard * (states + estimate->dtype_bytes), out = shard * states;
    double update_ns = (double)estimate->profile->costs.ns[AH_ITEM_UPDATE_DEVICE][AH_CLASS_BLOCK];
    set(estimate, AH_ITEM_STATES_IN, AH_CLASS_BLOCK, in / estimate->h2d_bytes_per_s * 1e9);
    set(estimate, AH_ITEM_UPDATE_STAGED, AH_CLASS_BLOCK, update_ns + out / estimate->d2h_bytes_per_s * 1e9);
}

static void set_group(struct estimate *estimate, int class)
{
    const struct ah_partition *partition = estimate->partition;
    int group = ah__class_representative((enum ah_class) class, partition->layers);
    double params = (double)estimate->profile->params[class], bytes = params * estimate->dtype_bytes;
    double shard = (double)partition->groups[group].trained / estimate->world_size;
    double shard_bytes = bytes / estimate->world_size;
    set_device_bytes(estimate, AH_ITEM_UPDATE_DEVICE, class,
                     shard * (state_bytes(estimate->partition) + estimate->dtype_bytes));
    if (estimate->world_size > 1)
        set_device_bytes(estimate, AH_ITEM_CAST, class, 2 * shard_bytes);
    set(estimate, AH_ITEM_PREFETCH, class, shard_bytes / estimate->h2d_bytes_per_s * 1e9);
    set(estimate, AH_ITEM_REFETCH, class, shard_bytes / estimate->h2d_bytes_per_s * 1e9);
    set(estimate, AH_ITEM_OFFLOAD, class, shard * estimate->dtype_bytes / estimate->d2h_bytes_per_s * 1e9);
    set(estimate, AH_ITEM_UPDATE_HOST, class, shard / (estimate->adam_params_per_s / estimate->world_size) * 1e9);
    /* A speculative update writes elsewhere but moves the same bytes: stores past the caches need no read first. */
    set(estimate, AH_ITEM_UPDATE_SPECULATIVE, class,
        shard / (estimate->adam_params_per_s / estimate->world_size) * 1e9);
    if (class == AH_CLASS_BLOCK)
        set_streamed(estimate, shard);
    if (estimate->world_size < 2)
        return;
    double others = (estimate->world_size - 1) / estimate->world_size;
    const struct ah_group *of = &partition->groups[group];
    int gathers = of->trained > 0 && of->trained < of->count ? 2 : 1; /* frozen elements apart */
    double ns =
        others * bytes / figure(estimate, AH_FIGURE_BUS) * 1e9 + gathers * figure(estimate, AH_FIGURE_COLLECTIVE);
    set(estimate, AH_ITEM_GATHER, class, ns);
    if (partition->frozen)
        ns = others * shard * estimate->world_size * estimate->dtype_bytes / figure(estimate, AH_FIGURE_BUS) * 1e9 +
             figure(estimate, AH_FIGURE_COLLECTIVE);
    set(estimate, AH_ITEM_REDUCE, class, ns);
}

static void set_small_copies(struct estimate *estimate, int class)
{
    const struct ah_partition *partition = estimate->partition;
    double tokens = (double)ah__step_tokens(partition) * 2 * 4; /* ids and targets, int32 */
    double copy_ns = figure(estimate, AH_FIGURE_COPY);
    set(estimate, AH_ITEM_INPUT, class, copy_ns + tokens / estimate->h2d_bytes_per_s * 1e9);
    set(estimate, AH_ITEM_RESULT, class, copy_ns);
}

/* ---- lanes against each other */

static void set_slowdown(struct estimate *estimate, enum ah_lane lane, enum ah_lane other, double factor)
{
    estimate->profile->costs.lanes.slowdown[lane][other] = fmax(1, factor);
}

/* Sets the slowdown of host optimizer and copies in one direction, or a disk: both use the host's memory. */
static void host_against(struct estimate *estimate, enum ah_lane lane, double bytes_per_s)
{
    if (bytes_per_s <= 0)
        return;
    double adam = estimate->adam_bytes_per_s, copies = estimate->world_size * bytes_per_s, adam_got = adam,
           copies_got = copies;
    share(&adam_got, &copies_got, estimate->dram_bytes_per_s);
    set_slowdown(estimate, AH_LANE_HOST, lane, adam / adam_got);
    set_slowdown(estimate, lane, AH_LANE_HOST, copies / copies_got);
}

/* Returns the part by which device arithmetic takes longer while other engines use some of the device's memory
 * bandwidth: only the share of its time that waits for memory (`waiting`) is stretched. */
static double memory_stretch(const struct estimate *estimate, double waiting, double taken_bytes_per_s)
{
    double left = estimate->roofline.bytes_per_s - taken_bytes_per_s;
    return waiting * (estimate->roofline.bytes_per_s / fmax(left, estimate->roofline.bytes_per_s / 2) - 1);
}

static void set_contention(struct estimate *estimate, double waiting)
{
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            set_slowdown(estimate, (enum ah_lane)a, (enum ah_lane)b, 1);
    double h2d = estimate->h2d_bytes_per_s, d2h = estimate->d2h_bytes_per_s;
    set_slowdown(estimate, AH_LANE_H2D, AH_LANE_D2H, h2d / estimate->h2d_both_bytes_per_s);
    set_slowdown(estimate, AH_LANE_D2H, AH_LANE_H2D, d2h / estimate->d2h_both_bytes_per_s);
    host_against(estimate, AH_LANE_H2D, h2d);
    host_against(estimate, AH_LANE_D2H, d2h);
    host_against(estimate, AH_LANE_DISK, (double)estimate->profile->drive.read_bytes_per_s);
    set_slowdown(estimate, AH_LANE_COMPUTE, AH_LANE_H2D, 1 + memory_stretch(estimate, waiting, h2d));
    set_slowdown(estimate, AH_LANE_COMPUTE, AH_LANE_D2H, 1 + memory_stretch(estimate, waiting, d2h));
    if (estimate->world_size < 2)
        return;
    /* A collective reads what it sends, writes what it receives, and its kernels occupy some of the multiprocessors. */
    double taken = figure(estimate, AH_FIGURE_COLLECTIVE_SHARE);
    set_slowdown(estimate, AH_LANE_COMPUTE, AH_LANE_COMM,
                 1 + (1 - waiting) * (1 / fmax(1 - taken, 0.5) - 1) +
                     memory_stretch(estimate, waiting, 2 * figure(estimate, AH_FIGURE_BUS)));
}

/* ---- the profile */

static int64_t workspace_of(const struct ah_roofline *roofline, const struct ah_partition *partition)
{
    int64_t most = 0;
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        for (int kind = 0; kind < AH_PROGRAM_COUNT; kind++) {
            int64_t bytes = ah__roofline_workspace(roofline, &partition->code[class].program[kind]);
            most = bytes > most ? bytes : most;
        }
    return most;
}

int ah__estimate_workspace(int64_t *bytes, const struct ah_partition *partition, const struct ah_hardware *hardware)
{
    struct ah_roofline roofline;
    AH_TRY(ah__roofline_init(&roofline, hardware, partition->compute));
    *bytes = workspace_of(&roofline, partition);
    return AH_OK;
}

static void profile_head(struct estimate *estimate, const char *optimizer)
{
    struct ah_profile *profile = estimate->profile;
    const struct ah_partition *partition = estimate->partition;
    snprintf(profile->device, sizeof profile->device, "%s", estimate->hardware->name);
    profile->world_size = (int)estimate->world_size;
    profile->threads = 1;
    profile->host_threads = (int)figure(estimate, AH_FIGURE_CORES);
    profile->costs.layers = partition->layers;
    profile->costs.class_count = partition->class_count;
    profile->costs.lanes.notify_ns = llround(figure(estimate, AH_FIGURE_NOTIFY));
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        profile->costs.lanes.launch_ns[lane] = llround(figure(estimate, AH_FIGURE_LAUNCH));
    profile->h2d_bytes_per_s = llround(estimate->h2d_bytes_per_s);
    profile->d2h_bytes_per_s = llround(estimate->d2h_bytes_per_s);
    profile->h2d_both_bytes_per_s = llround(estimate->h2d_both_bytes_per_s);
    profile->d2h_both_bytes_per_s = llround(estimate->d2h_both_bytes_per_s);
    profile->partition_signature = partition->signature;
    profile->device_signature =
        ah__hash_text(optimizer, ah__hash_int((uint64_t)profile->world_size, estimate->hardware->hash));
}

static void profile_fill(struct estimate *estimate)
{
    const struct ah_partition *partition = estimate->partition;
    double waiting = 0;
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        int group = ah__class_representative((enum ah_class) class, partition->layers);
        estimate->profile->params[class] = partition->groups[group].count;
        estimate->profile->trained[class] = partition->groups[group].trained;
        double share_of_memory = set_programs(estimate, class);
        set_flops(estimate->profile, partition, class);
        if (class == AH_CLASS_BLOCK)
            waiting = share_of_memory;
        set_group(estimate, class);
        set_small_copies(estimate, class);
    }
    int64_t *forward_ns = estimate->profile->costs.ns[AH_ITEM_FORWARD];
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        if (partition->like[class] == class)
            set_programs(estimate, class);
        else /* it has no backward */
            forward_ns[class] = forward_ns[partition->like[class]];
    set_contention(estimate, waiting);
}

static int rates_find(enum rates *out, const struct ah_hardware *hardware, const char *optimizer)
{
    int rates = 0;
    while (rates < RATES_COUNT && strcmp(optimizer, rates_names[rates]) != 0)
        rates++;
    if (rates == RATES_COUNT)
        return ah__fail(AH_EINPUT, "optimizer: found '%.40s', expected autohete, deepspeed or pytorch", optimizer);
    if (rates == RATES_PYTORCH &&
        (hardware->figure[AH_FIGURE_PYTORCH_TRAINING] <= 0 || hardware->figure[AH_FIGURE_PYTORCH_ADAM] <= 0))
        return ah__fail(AH_EINPUT,
                        "optimizer: found 'pytorch', but %s lacks 'device.pytorch_training' or "
                        "'host.pytorch_adam'",
                        hardware->name);
    *out = (enum rates)rates;
    return AH_OK;
}

static int options_check(enum rates *rates, const struct ah_hardware *hardware, int ranks, const char *optimizer)
{
    int devices = (int)hardware->figure[AH_FIGURE_DEVICES];
    if (ranks < 1 || ranks > devices)
        return ah__fail(AH_EINPUT, "ranks: found %d, expected 1 to %d, the devices of %s", ranks, devices,
                        hardware->name);
    return rates_find(rates, hardware, optimizer);
}

int ah_profile_estimate(struct ah_profile **out, const struct ah_partition *partition,
                        const struct ah_hardware *hardware, const struct ah_estimate_options *options)
{
    const char *optimizer = options && options->optimizer ? options->optimizer : "autohete";
    int ranks = options ? options->world_size : 1;
    struct estimate estimate = {.partition = partition, .hardware = hardware, .world_size = ranks};
    enum rates rates;
    struct ah_profile_drive drive = {0};
    AH_TRY(options_check(&rates, hardware, ranks, optimizer));
    if (options && options->disk)
        AH_TRY(ah__drive_load(&drive, options->disk, ranks));
    AH_TRY(ah__roofline_init(&estimate.roofline, hardware, partition->compute));
    AH_TRY(ah__new(&estimate.profile, 1, sizeof *estimate.profile));
    estimate.profile->drive = drive;
    estimate.profile->workspace_bytes = workspace_of(&estimate.roofline, partition);
    estimate.dtype_bytes = (double)ah__dtype_bytes(partition->compute);
    host_init(&estimate, rates);
    device_init(&estimate, rates);
    link_init(&estimate);
    profile_head(&estimate, optimizer);
    profile_fill(&estimate);
    *out = estimate.profile;
    return AH_OK;
}
