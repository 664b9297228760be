#include <string.h>

#include "base/buf.h"
#include "base/format.h"
#include "profile/profile.h"

/* The unit of an item's rate. */
enum rate_kind { RATE_NONE, RATE_PARAMS, RATE_FLOPS };

/* Further rows of the table: recomputation is not an item kind. */
enum { ROW_RECOMPUTE = AH_ITEM_COUNT, ROW_SELECTIVE };
static const struct print_row {
    int item;
    const char *name;
    enum rate_kind rate;
    size_t flops; /* offset of the flops per class */
} print_table[] = {
    {AH_ITEM_FORWARD, "forward", RATE_FLOPS, offsetof(struct ah_profile, forward_flops)},
    {AH_ITEM_BACKWARD, "backward", RATE_FLOPS, offsetof(struct ah_profile, backward_flops)},
    {ROW_RECOMPUTE, "recompute", RATE_FLOPS, offsetof(struct ah_profile, recompute_flops)},
    {ROW_SELECTIVE, "selective", RATE_NONE, 0},
    {AH_ITEM_UPDATE_DEVICE, "update, device", RATE_PARAMS, 0},
    {AH_ITEM_UPDATE_HOST, "update, host", RATE_PARAMS, 0},
    {AH_ITEM_UPDATE_STAGED, "update, staged", RATE_PARAMS, 0},
    {AH_ITEM_STATES_IN, "states in", RATE_NONE, 0},
    {AH_ITEM_CAST, "cast", RATE_PARAMS, 0},
    {AH_ITEM_PREFETCH, "prefetch", RATE_NONE, 0},
    {AH_ITEM_REFETCH, "refetch", RATE_NONE, 0},
    {AH_ITEM_OFFLOAD, "offload", RATE_NONE, 0},
    {AH_ITEM_INPUT, "input", RATE_NONE, 0},
    {AH_ITEM_RESULT, "result", RATE_NONE, 0},
    {AH_ITEM_GATHER, "all-gather", RATE_NONE, 0},
    {AH_ITEM_REDUCE, "reduce-scatter", RATE_NONE, 0},
};

static void cell(struct ah_buf *buf, const struct ah_profile *profile, const struct print_row *row, int class)
{
    const struct ah_costs *costs = &profile->costs;
    int64_t ns = row->item == ROW_RECOMPUTE   ? costs->recompute_ns[class]
                 : row->item == ROW_SELECTIVE ? costs->selective_ns[class]
                                              : costs->ns[row->item][class];
    if (ns <= 0) {
        ah__buf_printf(buf, " %10s %16s", "-", "");
        return;
    }
    const double *flops = (const double *)(const void *)((const char *)profile + row->flops);
    double part = (double)profile->trained[class] / (profile->world_size > 1 ? profile->world_size : 1);
    double work = row->rate == RATE_FLOPS ? flops[class] : row->rate == RATE_PARAMS ? part : 0;
    ah__buf_printf(buf, " %10.4f", (double)ns * 1e-6);
    if (work > 0) /* per nanosecond: giga per second */
        ah__buf_printf(buf, " %7.2f %-8s", work / (double)ns, row->rate == RATE_FLOPS ? "GFLOP/s" : "Gparam/s");
    else
        ah__buf_printf(buf, " %16s", "");
}

/* Returns true for rows without times: collectives of a single device. */
static bool row_is_empty(const struct ah_profile *profile, int item)
{
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        if (item >= AH_ITEM_COUNT || profile->costs.ns[item][class] > 0)
            return false;
    return item == AH_ITEM_GATHER || item == AH_ITEM_REDUCE;
}

static void times_print(struct ah_buf *buf, const struct ah_profile *profile)
{
    ah__buf_printf(buf, "%-16s", "ms");
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        ah__buf_printf(buf, " %10s %16s", ah__class_names[class], "");
    ah__buf_printf(buf, "\n");
    for (size_t i = 0; i < AH_LENGTH(print_table); i++) {
        if (row_is_empty(profile, print_table[i].item))
            continue;
        ah__buf_printf(buf, "%-16s", print_table[i].name);
        for (int class = 0; class < AH_CLASS_COUNT; class ++)
            cell(buf, profile, &print_table[i], class);
        ah__buf_printf(buf, "\n");
    }
}

static void link_print(struct ah_buf *buf, const struct ah_profile *profile)
{
    ah__buf_printf(buf, "\nlink        alone   both directions (GB/s)\n");
    ah__buf_printf(buf, "h2d      %8.2f   %8.2f\n", (double)profile->h2d_bytes_per_s * 1e-9,
                   (double)profile->h2d_both_bytes_per_s * 1e-9);
    ah__buf_printf(buf, "d2h      %8.2f   %8.2f\n", (double)profile->d2h_bytes_per_s * 1e-9,
                   (double)profile->d2h_both_bytes_per_s * 1e-9);
    if (profile->drive.read_bytes_per_s)
        ah__buf_printf(buf, "disk     %8.2f read, %.2f written; a small read takes %.0f us\n",
                       (double)profile->drive.read_bytes_per_s * 1e-9, (double)profile->drive.write_bytes_per_s * 1e-9,
                       (double)profile->drive.latency_ns * 1e-3);
}

/* Prints slowdowns: the factor by which the row's lane takes longer while the column's is busy. */
static void lanes_print(struct ah_buf *buf, const struct ah_profile *profile)
{
    int lanes = profile->world_size > 1 ? AH_LANE_DISK : AH_LANE_COMM; /* a disk slows nothing */
    ah__buf_printf(buf, "\nslowdown of   while");
    for (int b = 0; b < lanes; b++)
        ah__buf_printf(buf, " %8s", ah_lane_name((enum ah_lane)b));
    ah__buf_printf(buf, "   launch us\n");
    for (int a = 0; a < lanes; a++) {
        ah__buf_printf(buf, "%-19s", ah_lane_name((enum ah_lane)a));
        for (int b = 0; b < lanes; b++)
            if (a == b)
                ah__buf_printf(buf, " %8s", "-");
            else
                ah__buf_printf(buf, " %8.2f", profile->costs.lanes.slowdown[a][b]);
        ah__buf_printf(buf, "    %8.1f\n", (double)profile->costs.lanes.launch_ns[a] * 1e-3);
    }
    ah__buf_printf(buf, "completion to next submit: %.1f us\n", (double)profile->costs.lanes.notify_ns * 1e-3);
}

int ah_profile_print(const struct ah_profile *profile, FILE *to)
{
    struct ah_buf buf = {0};
    char link[32] = "not throttled", ranks[32] = "";
    if (profile->link_bytes_per_s)
        ah__snprintf(link, sizeof link, "%.2f GB/s", (double)profile->link_bytes_per_s * 1e-9);
    if (profile->world_size > 1)
        snprintf(ranks, sizeof ranks, ", one of %d ranks", profile->world_size);
    const char *units = strncmp(profile->device, "cuda", 4) == 0 ? "multiprocessors" : "threads";
    ah__buf_printf(&buf, "device %s%s, %d %s, %d for the host optimizer, link %s, %d layers\n\n", profile->device,
                   ranks, profile->threads, units, profile->host_threads, link, profile->costs.layers);
    times_print(&buf, profile);
    link_print(&buf, profile);
    lanes_print(&buf, profile);
    int status = buf.status;
    if (status == AH_OK && fwrite(buf.text, 1, buf.length, to) != buf.length)
        status = ah__fail(AH_EIO, "profile: writing the table failed");
    ah__buf_free(&buf);
    return status;
}
