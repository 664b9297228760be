#include <string.h>

#include "base/buf.h"
#include "base/format.h"
#include "dev/dev.h"
#include "plan/plan_internal.h"
#include "sched/switches.h"

/* The contents of a table line for one stage: the embedding, a block or the head. */
struct line {
    bool block, recompute, selective, on_host, on_disk, released, unsharded, frozen, forward_only;
};

/* Returns the partition as which one is shown. Blocks with offloaded activations are shown as their neighbours are,
 * since a line below the table describes them. */
static int shown_as(const struct ah_switches *switches, int partition)
{
    int block = partition;
    while (ah__passes(switches, block) && block < switches->layers)
        block++;
    while (ah__passes(switches, block) && block > switches->frozen_blocks + 1)
        block--;
    return ah__passes(switches, block) ? partition : block;
}

static bool is_frozen(const struct ah_plan *plan, int partition)
{
    return ah__is_frozen(&plan->switches, partition) ? true
           : partition == 0                          ? plan->embedding_frozen
           : partition > plan->switches.layers       ? plan->head_frozen
                                                     : plan->blocks_frozen;
}

static struct line line_of(const struct ah_plan *plan, int partition)
{
    const struct ah_switches *switches = &plan->switches;
    return (struct line){
        .block = ah__is_block(switches, partition),
        .recompute = ah__recomputes(switches, shown_as(switches, partition)),
        .selective = ah__recomputes_selectively(switches, shown_as(switches, partition)),
        .on_host = ah__on_host(switches, partition),
        .on_disk = ah__on_disk(switches, partition),
        .released = ah__refetches(switches, partition),
        .unsharded = ah__unsharded(switches, partition),
        .frozen = is_frozen(plan, partition),
        .forward_only = ah__is_frozen(switches, partition),
    };
}

static bool line_equal(struct line a, struct line b)
{
    return a.block == b.block && a.recompute == b.recompute && a.selective == b.selective && a.on_host == b.on_host &&
           a.on_disk == b.on_disk && a.released == b.released && a.unsharded == b.unsharded &&
           a.forward_only == b.forward_only;
}

static void print_line(struct ah_buf *buf, const char *name, struct line line)
{
    const char *checkpoint = !line.block || line.forward_only ? "-"
                             : line.recompute                 ? "recompute"
                             : line.selective                 ? "selective"
                                                              : "keep";
    const char *parameters = line.released    ? "fetched twice"
                             : line.on_host   ? "fetched once"
                             : line.unsharded ? "unsharded"
                                              : "on device";
    const char *optimizer = line.on_disk ? "disk" : line.frozen ? "frozen" : line.on_host ? "host" : "device";
    const char *gradient = line.frozen ? "none" : line.on_disk ? "to disk" : line.on_host ? "to host" : "on device";
    ah__buf_printf(buf, "  %-16s  %-10s  %-13s  %-9s  %s\n", name, checkpoint, parameters, optimizer, gradient);
}

/* Formats "block 2" or "blocks 2-5" with the words `one` and `several`. */
static const char *range_name(char *text, size_t size, const char *one, const char *several, int first, int last)
{
    if (first == last)
        snprintf(text, size, "%s %d", one, first);
    else
        snprintf(text, size, "%s %d-%d", several, first, last);
    return text;
}

/* Prints the table of stages. */
static void print_groups(struct ah_buf *buf, const struct ah_plan *plan)
{
    char name[40];
    const struct ah_switches *switches = &plan->switches;
    ah__buf_printf(buf, "  %-16s  %-10s  %-13s  %-9s  %s\n", "stage", "checkpoint", "parameters", "optimizer",
                   "gradient");
    print_line(buf, "embedding", line_of(plan, 0));
    for (int first = 1, last; first <= switches->layers; first = last + 1) {
        struct line line = line_of(plan, first);
        for (last = first; last < switches->layers && line_equal(line, line_of(plan, last + 1));)
            last++;
        print_line(buf, range_name(name, sizeof name, "block", "blocks", first, last), line);
    }
    print_line(buf, "head", line_of(plan, switches->layers + 1));
}

static void print_memory(struct ah_buf *buf, const char *name, int64_t peak, int64_t budget)
{
    char used[32], all[32];
    ah_size_format(used, sizeof used, peak);
    if (budget > 0)
        ah__buf_printf(buf, "  %-14s  %s of %s (%.1f%%)\n", name, used, ah_size_format(all, sizeof all, budget),
                       100.0 * (double)peak / (double)budget);
    else
        ah__buf_printf(buf, "  %-14s  %s, no limit\n", name, used);
}

static const char *format_ns(char *text, size_t size, int64_t ns)
{
    double value = (double)ns;
    if (value < 1e3)
        ah__snprintf(text, size, "%.0f ns", value);
    else if (value < 1e6)
        ah__snprintf(text, size, "%.1f us", value / 1e3);
    else if (value < 1e9)
        ah__snprintf(text, size, "%.1f ms", value / 1e6);
    else
        ah__snprintf(text, size, "%.2f s", value / 1e9);
    return text;
}

/* Prints how many blocks have offloaded activations, and which activations these blocks save. */
static void print_activations(struct ah_buf *buf, const struct ah_switches *switches)
{
    static const char *const names[AH_KEEPING_COUNT] = {"only the input", "products and attention", "all"};
    int passing = ah__passing_blocks(switches), kinds = 0;
    if (passing == 0)
        return;
    ah__buf_printf(buf, "  %-14s  of %d blocks offloaded; %d blocks use the %d staging buffers\n", "activations",
                   switches->offload_activations, passing, AH_ACTIVATION_BUFFERS);
    ah__buf_printf(buf, "  %-14s  and save", "");
    for (int keeping = AH_KEEPING_COUNT - 1; keeping >= 0; keeping--) {
        int count = ah__keeping_count(switches, (enum ah_keeping)keeping, false, passing);
        if (count == passing)
            ah__buf_printf(buf, " %s", names[keeping]);
        else if (count)
            ah__buf_printf(buf, "%s %s (%d)", kinds++ ? "," : "", names[keeping], count);
    }
    ah__buf_printf(buf, "\n");
}

static void print_buffers(struct ah_buf *buf, const struct ah_switches *switches)
{
    if (switches->buffers > 0)
        ah__buf_printf(buf, "  %-14s  %d, %s large as one block's parameters\n", "buffers", switches->buffers,
                       switches->buffers == 1 ? "as" : "each as");
    else
        ah__buf_printf(buf, "  %-14s  none: all blocks are used where they stay\n", "buffers");
    if (switches->staged > 0)
        ah__buf_printf(buf, "  %-14s  %d of the %d offloaded blocks are updated on the device\n", "staged",
                       switches->staged, ah__trained_on_host(switches));
    print_activations(buf, switches);
    if (switches->passes > 1)
        ah__buf_printf(buf, "  %-14s  %d rounds over the model, each of a part of the micro-batches\n", "passes",
                       switches->passes);
    if (switches->passes > 1 && switches->device_sums > 0)
        ah__buf_printf(buf, "  %-14s  of the first %d block%s with a backward stay on the device between passes\n",
                       "sums", switches->device_sums, switches->device_sums == 1 ? "" : "s");
    if (switches->share_embedding_head)
        ah__buf_printf(buf, "  %-14s  embedding and head use one device buffer in turn\n", "shared");
    if (switches->offload_params > 0)
        ah__buf_printf(buf, "  %-14s  up to %d backward step%s early\n", "re-fetch", switches->prefetch_distance,
                       switches->prefetch_distance == 1 ? "" : "s");
}

int64_t ah_plan_day_bytes(const struct ah_plan *plan, int64_t step_ns)
{
    static const double day_ns = 86400e9, most = 9e18;
    double bytes = step_ns > 0 ? (double)plan->disk_written_bytes * day_ns / (double)step_ns : 0;
    return (int64_t)(bytes < most ? bytes : most);
}

const char *ah_plan_wear(char *text, size_t size, const struct ah_plan *plan, int64_t step_ns)
{
    char day[32];
    int64_t bytes = ah_plan_day_bytes(plan, step_ns);
    double endurance = (double)plan->disk_endurance_bytes;
    *text = 0;
    if (bytes == 0)
        return text;
    ah_size_format(day, sizeof day, bytes);
    if (endurance > 0)
        ah__snprintf(text, size, "a day of such steps writes %s, %.2g%% of the drive's %.4g TBW", day,
                     100 * (double)bytes / endurance, endurance / 1e12);
    else
        ah__snprintf(text, size, "a day of such steps writes %s", day);
    return text;
}

/* Prints what a step moves, and what that makes of a day. */
static void print_disk(struct ah_buf *buf, const struct ah_plan *plan)
{
    char read[32], written[32], wear[96];
    const struct ah_switches *switches = &plan->switches;
    if (switches->disk_blocks == 0)
        return;
    ah_size_format(read, sizeof read, plan->disk_read_bytes);
    ah_size_format(written, sizeof written, plan->disk_written_bytes);
    ah__buf_printf(buf, "  %-14s  %d block%s, through %d host buffers; a step reads %s and writes %s\n", "disk",
                   switches->disk_blocks, switches->disk_blocks == 1 ? "" : "s", ah__disk_slots(switches), read,
                   written);
    if (*ah_plan_wear(wear, sizeof wear, plan, plan->step_ns))
        ah__buf_printf(buf, "  %-14s  %s\n", "", wear);
}

static void print_time(struct ah_buf *buf, const struct ah_plan *plan)
{
    char step[32], lane[32], cycle[32];
    format_ns(step, sizeof step, plan->step_ns);
    format_ns(lane, sizeof lane, plan->bound_lane_ns);
    format_ns(cycle, sizeof cycle, plan->bound_cycle_ns);
    if (plan->step_ns <= 0 || plan->bound_ns <= 0)
        return;
    ah__buf_printf(buf, "  %-14s  %s predicted, %.3f x the lower bound:\n", "step time", step,
                   (double)plan->step_ns / (double)plan->bound_ns);
    const char *name = ah_lane_name(plan->bound_lane);
    if (plan->bound_lane_ns >= plan->bound_cycle_ns)
        ah__buf_printf(buf, "  %-14s  %s, the %s lane (longest cycle %s)\n", "", lane, name, cycle);
    else
        ah__buf_printf(buf, "  %-14s  %s, the longest cycle (%s lane %s)\n", "", cycle, name, lane);
}

static void print_resident(struct ah_buf *buf, const struct ah_plan *plan)
{
    char text[32];
    if (plan->resident_ns > plan->step_ns && plan->step_ns > 0)
        ah__buf_printf(buf, "  %-14s  although all of it would fit: %.0f%% faster than %s\n", "offloaded",
                       100.0 * (double)(plan->resident_ns - plan->step_ns) / (double)plan->step_ns,
                       format_ns(text, sizeof text, plan->resident_ns));
    else if (plan->resident_ns > 0)
        ah__buf_printf(buf, "  %-14s  although all of it would fit: as fast, with less device memory\n", "offloaded");
}

/* Explains the table's words. */
static void print_legend(struct ah_buf *buf, const struct ah_plan *plan)
{
    const struct ah_switches *switches = &plan->switches;
    if (switches->checkpoint > 0)
        ah__buf_printf(buf, "  recompute: saves only its input, recomputes the rest in backward\n");
    if (switches->selective > 0)
        ah__buf_printf(buf, "  selective: saves matrix products and attention, recomputes the rest\n");
    if (switches->offload_params > 0)
        ah__buf_printf(buf, "  fetched twice: releases its parameters after forward, re-fetches them\n");
    if (switches->unsharded > 0)
        ah__buf_printf(buf, "  unsharded: parameters stay on the device, all-gathered once in a step\n");
    if (plan->blocks_adapted)
        ah__buf_printf(buf, "  optimizer and gradient of a block are of its trained part alone\n");
    if (switches->frozen_blocks > 0)
        ah__buf_printf(buf, "  frozen blocks without checkpoint run forward alone; c, p and a count those above\n");
    ah__buf_printf(buf,
                   "  lanes work at once: compute (c), host to device (h2d), device to host (d2h),\n"
                   "  host optimizer (host)%s\n",
                   switches->disk_blocks > 0 ? ", disk" : "");
}

static void print_all(struct ah_buf *buf, const struct ah_plan *plan, const struct ah_budget *budget)
{
    char text[AH_SWITCHES_TEXT];
    ah__switches_text(text, &plan->switches, ' ', false);
    char *others = strstr(text, " o=") + 1; /* the switches after c, p and o */
    others += strcspn(others, " ");
    bool more = *others;
    *others = 0;
    ah__buf_printf(buf, "plan: %s of %d blocks, policy %s\n", text, plan->switches.layers,
                   plan->policy[0] ? plan->policy : "not chosen");
    if (more)
        ah__buf_printf(buf, "  %-14s  %s\n", "switches", others + 1);
    print_groups(buf, plan);
    print_memory(buf, "device memory", plan->device_peak_bytes, budget ? budget->device_bytes : 0);
    print_memory(buf, "host memory", plan->host_peak_bytes, budget ? budget->host_bytes : 0);
    if (plan->disk_peak_bytes > 0)
        print_memory(buf, "disk space", plan->disk_peak_bytes, budget ? budget->disk_bytes : 0);
    print_buffers(buf, &plan->switches);
    print_disk(buf, plan);
    print_time(buf, plan);
    print_resident(buf, plan);
    print_legend(buf, plan);
}

int ah_plan_print(const struct ah_plan *plan, const struct ah_budget *budget, FILE *to)
{
    struct ah_buf buf = {0};
    print_all(&buf, plan, budget);
    int status = buf.status;
    if (status == AH_OK && (fputs(buf.text, to) < 0 || ferror(to)))
        status = ah__fail(AH_EIO, "plan: writing failed");
    ah__buf_free(&buf);
    return status;
}
