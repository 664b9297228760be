/* How often more is worse: the planner's step on random machines against its step on the same machine with a tenth
 * more of one thing (device memory, host memory, speed of the link, of the host's optimizer, of the device). The search
 * is no exhaustive one and lists of work have anomalies, so that a larger budget or a faster part may lead to a slower
 * plan. Which of the two it was is told by the plan of the lesser machine on the better one ("kept"): where that is as
 * fast as it was, the search has missed it; where it is slower too, its schedule has an anomaly. Wherever the search
 * was slower it searches once more, and is told that plan: then anomalies alone may be left. With --known the search
 * on the better machine knows that plan from the start, as in a sweep; since it ends with none that
 * is slower, it only takes place where that plan is. With more memory of either kind it never is, as no time changes:
 * such machines are passed over then. With --seconds a random search that begins with the lesser machine's plan looks
 * for one on the better machine that the planner missed.
 *     monotone [--machines N] [--from N] [--known] [--one] [--seconds S] [--model FILE | --layers N] [--seq N] */
#include "bench.h"

#include <math.h>

#include "base/hash.h"
#include "plan/config.h"
#include "plan/search.h"
#include "random_plans.h"

enum { PARTS = 5, MEMORIES = 2, BATCH = 4, MACHINES_MOST = 10000, LAYERS_MOST = 48 };
static const char *const parts[PARTS] = {"device memory", "host memory", "link", "host optimizer", "device"};
static const double worse_by = 0.001;

/* A model on a real machine. */
struct subject {
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
};

struct machine {
    struct ah_profile *profile; /* of a real one: its times are scaled */
    const struct ah_partition *partition;
    double speed[PARTS]; /* of link, host optimizer and device against the profile's; memories: of the least there is */
    int64_t least_device, least_host;
    int number; /* of those drawn: --from N --machines 1 is this one alone */
};

static uint64_t drawn;

/* From 0 to 1. */
static double draw_unit(void)
{
    return (double)(ah__random_bits(5, drawn++) >> 11) / (double)(INT64_C(1) << 53);
}

/* Memories from what just fits to several times that, speeds from a tenth to ten times, even in their logarithms. */
static void draw_machine(struct machine *machine)
{
    const double memory_most = 4, speed_most = 10;
    for (int part = 0; part < PARTS; part++)
        machine->speed[part] =
            part < MEMORIES ? exp(draw_unit() * log(memory_most)) : exp((2 * draw_unit() - 1) * log(speed_most));
}

static void scale(int64_t ns[AH_CLASS_COUNT], double speed)
{
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        ns[class] = ns[class] ? 1 + (int64_t)((double)ns[class] / speed) : 0;
}

/* A machine that can be planned for. */
struct ready {
    struct ah_profile profile;
    struct ah_predictor predictor;
    struct ah_budget budget;
};

/* In place, as the predictor borrows the profile; ah__predictor_fini() afterwards. */
static void ready_make(struct ready *ready, const struct machine *machine)
{
    static const enum ah_item_kind of_link[] = {AH_ITEM_PREFETCH, AH_ITEM_REFETCH,   AH_ITEM_OFFLOAD,
                                                AH_ITEM_EVICT,    AH_ITEM_STATES_IN, AH_ITEM_UPDATE_STAGED};
    static const enum ah_item_kind of_host[] = {AH_ITEM_UPDATE_HOST, AH_ITEM_UPDATE_SPECULATIVE};
    static const enum ah_item_kind of_device[] = {AH_ITEM_FORWARD, AH_ITEM_BACKWARD, AH_ITEM_UPDATE_DEVICE,
                                                  AH_ITEM_CAST};
    struct ah_costs *costs = &ready->profile.costs;
    ready->profile = *machine->profile;
    for (size_t i = 0; i < AH_LENGTH(of_link); i++)
        scale(costs->ns[of_link[i]], machine->speed[2]);
    for (size_t i = 0; i < AH_LENGTH(of_host); i++)
        scale(costs->ns[of_host[i]], machine->speed[3]);
    for (size_t i = 0; i < AH_LENGTH(of_device); i++)
        scale(costs->ns[of_device[i]], machine->speed[4]);
    scale(costs->recompute_ns, machine->speed[4]);
    scale(costs->selective_ns, machine->speed[4]);
    BENCH(ah__predictor_init(&ready->predictor, machine->partition, &ready->profile, "autohete"));
    ready->budget = (struct ah_budget){
        .device_bytes = (int64_t)((double)machine->least_device * machine->speed[0]),
        .host_bytes = (int64_t)((double)machine->least_host * machine->speed[1]),
    };
}

/* What a plan takes on another machine. */
static int64_t step_on(const struct machine *machine, const struct ah_plan *plan)
{
    struct ready ready;
    struct ah_plan again = *plan;
    ready_make(&ready, machine);
    BENCH(ah__plan_predict(&again, &ready.predictor));
    ah__predictor_fini(&ready.predictor);
    return again.step_ns;
}

/* What the search finds that knows a plan (null: none). step_ns 0: nothing fits. */
static struct ah_plan planned(const struct machine *machine, const struct ah_plan *known)
{
    const struct ah_search_options options = {.warm_start = known};
    struct ready ready;
    struct ah_search_report report;
    struct ah_plan plan = {.step_ns = 0};
    ready_make(&ready, machine);
    int status = ah__plan_search_with(&plan, &report, &ready.predictor, &ready.budget, &options);
    if (status != AH_EBUDGET)
        bench_check(status, "planning");
    ah__predictor_fini(&ready.predictor);
    if (status != AH_OK)
        plan.step_ns = 0;
    return plan;
}

/* What a random search of so many seconds finds that begins with a plan which fits. */
static int64_t drawn_ns(const struct machine *machine, const struct ah_plan *from, int seconds)
{
    struct ready ready;
    int64_t count;
    ready_make(&ready, machine);
    struct ah_plan best = random_plans_search(&ready.predictor, &ready.budget, from, seconds, &count);
    ah__predictor_fini(&ready.predictor);
    return best.step_ns;
}

/* What the smallest plan takes of either memory. */
static void least_find(struct machine *machine)
{
    int layers = machine->partition->layers;
    struct ah_switches on_host = {.layers = layers,
                                  .checkpoint = layers,
                                  .offload_params = layers - 1,
                                  .offload_optimizer = layers,
                                  .embedding_on_host = true,
                                  .head_on_host = true,
                                  .chunks = 1};
    struct ah_sched_config config;
    ah__sched_config_of(&config, &on_host, machine->partition, &ah__policy_autohete);
    on_host.buffers = ah__sched_min_buffers(&config);
    ah__layout_bytes(&machine->least_device, &machine->least_host, machine->partition, &on_host, 0);
}

struct tally {
    int tried[PARTS], worse[PARTS], anomalies[PARTS], told[PARTS], searched[PARTS];
    double worst[PARTS], worst_told[PARTS];
};

static void violation_print(int number, const char *part, const struct ah_plan *before, const struct ah_plan *after,
                            int64_t kept_ns, int64_t told_ns, int64_t random_ns)
{
    const struct ah_plan *plans[] = {before, after};
    printf("%5d %-15s", number, part);
    for (int i = 0; i < 2; i++) {
        char text[AH_SWITCHES_TEXT];
        ah__switches_text(text, &plans[i]->switches, ',', true);
        printf("  %.3f ms %s", (double)plans[i]->step_ns / 1e6, text);
    }
    printf("  %d blocks, kept %.3f ms, told %.3f ms", before->switches.layers, (double)kept_ns / 1e6,
           (double)told_ns / 1e6);
    if (random_ns)
        printf(", drawn %.3f ms", (double)random_ns / 1e6);
    printf("\n");
    fflush(stdout);
}

static double slower(int64_t step_ns, const struct ah_plan *than)
{
    return (double)step_ns / (double)than->step_ns - 1;
}

/* The search on the better machine was slower. */
static void look_closer(struct tally *tally, const struct machine *more, int part, const struct ah_plan *before,
                        const struct ah_plan *after, int seconds)
{
    int64_t kept_ns = step_on(more, before), told_ns = planned(more, before).step_ns;
    double ratio = slower(told_ns, before);
    int64_t random_ns = seconds ? drawn_ns(more, before, seconds) : 0;
    violation_print(more->number, parts[part], before, after, kept_ns, told_ns, random_ns);
    tally->worse[part]++;
    tally->anomalies[part] += slower(kept_ns, before) > worse_by;
    tally->told[part] += ratio > worse_by;
    tally->worst_told[part] = ratio > tally->worst_told[part] ? ratio : tally->worst_told[part];
}

/* With a tenth more of each part, or only of one of them (-1: of each). */
static void compare(struct tally *tally, struct machine *machine, int only, bool known, int seconds)
{
    int part = only < 0 ? 0 : only, end = only < 0 ? PARTS : only + 1;
    part = known && part < MEMORIES ? MEMORIES : part;
    if (part >= end)
        return;
    struct ah_plan before = planned(machine, NULL);
    for (; part < end && before.step_ns > 0; part++) {
        struct machine more = *machine;
        more.speed[part] *= 1.1;
        tally->tried[part]++;
        if (known && slower(step_on(&more, &before), &before) <= worse_by)
            continue;
        struct ah_plan after = planned(&more, known ? &before : NULL);
        double ratio = slower(after.step_ns, &before);
        if (ratio > worse_by)
            look_closer(tally, &more, part, &before, &after, seconds);
        tally->searched[part]++;
        tally->worst[part] = ratio > tally->worst[part] ? ratio : tally->worst[part];
    }
}

static void subject_make(struct subject *subject, const char *path, int layers, int seq,
                         const struct ah_hardware *hardware)
{
    struct ah_step_options step = {.clips = true};
    struct ah_estimate_options estimate = {.world_size = 1};
    if (layers) {
        struct bench bench = {.layers = layers, .width = 768, .heads = 12, .vocab = 50257, .seq = 1024};
        bench_model_open(&bench);
        subject->model = bench.model;
    } else {
        BENCH(ah_model_load(&subject->model, path));
    }
    BENCH(ah_model_record(&subject->graph, subject->model,
                          &(struct ah_record_options){.batch = BATCH, .seq = seq, .compute = AH_BF16}));
    BENCH(ah_partition_new(&subject->partition, subject->graph, &step));
    BENCH(ah_profile_estimate(&subject->profile, subject->partition, hardware, &estimate));
}

static void subject_free(struct subject *subject)
{
    ah_profile_free(subject->profile);
    ah_partition_free(subject->partition);
    ah_graph_free(subject->graph);
    ah_model_free(subject->model);
}

static void machine_of(struct machine *machine, const struct subject *subject)
{
    machine->profile = subject->profile;
    machine->partition = subject->partition;
    least_find(machine);
    draw_machine(machine);
}

int main(int argc, char **argv)
{
    const char *path = "models/gpt2-124m.json";
    int machines = 100, first = 1, seq = 512, layers = 0, seconds = 0;
    bool known = false, one = false;
    struct tally tally = {.tried = {0}};
    struct machine machine = {.profile = NULL};
    struct subject subjects[LAYERS_MOST + 1] = {{.model = NULL}};
    struct ah_hardware *hardware;
    const struct bench_option options[] = {
        {"machines", BENCH_COUNT, &machines, "drawn at random"},
        {"from", BENCH_COUNT, &first, "the first of them: so many, less one, are drawn and not tried"},
        {"known", BENCH_FLAG, &known, "the search knows the plan of the lesser machine; speeds alone"},
        {"one", BENCH_FLAG, &one, "more of one thing for each machine, of each in turn"},
        {"seconds", BENCH_COUNT, &seconds, "of random search where the better machine is slower"},
        {"model", BENCH_TEXT, &path, "its shape"},
        {"layers", BENCH_COUNT, &layers, "instead models of 1 to so many blocks, in turn"},
        {"seq", BENCH_COUNT, &seq, "tokens in a sequence"},
    };
    BENCH_OPTIONS(argc, argv, "How often a tenth more of something leads to a slower plan.", options);
    BENCH(ah_hardware_load(&hardware, "a100-40g"));
    machines = bench_least(machines, MACHINES_MOST);
    layers = layers < LAYERS_MOST ? layers : LAYERS_MOST;
    for (int i = 0; i <= layers; i++)
        if (layers == 0 || i > 0)
            subject_make(&subjects[i], path, i, seq, hardware);
    for (int i = 1; i < first + machines; i++) {
        machine.number = i;
        machine_of(&machine, &subjects[layers ? 1 + (i - 1) / PARTS % layers : 0]);
        if (i >= first)
            compare(&tally, &machine, one ? (i - 1) % PARTS : -1, known, seconds);
    }
    if (layers)
        printf("1 to %d blocks of width 768", layers);
    else
        printf("%s", path);
    printf(", batch %d of %d tokens, clipping; %sa tenth more of:\n", BATCH, seq,
           known ? "the plan of the lesser machine is known; " : "");
    for (int part = known ? MEMORIES : 0; part < PARTS; part++)
        printf("%-15s %5d machines, %4d searched, slower by more than 0.1%%: %4d, %d of them anomalies, at most "
               "%+.2f%%; of these told: %d, at most %+.2f%%\n",
               parts[part], tally.tried[part], tally.searched[part], tally.worse[part], tally.anomalies[part],
               100 * tally.worst[part], tally.told[part], 100 * tally.worst_told[part]);
    for (int i = 0; i <= layers; i++)
        subject_free(&subjects[i]);
    ah_hardware_free(hardware);
    return 0;
}
