#include <stdlib.h>

#include "profile/workload.h"

/* Limits on the number of rounds of a kind. */
enum { ROUNDS_LEAST = 5, ROUNDS_LEAST_SLOW = 3, ROUNDS_MOST = 60, AHEAD = 12 };
static const int64_t slow_ns = 600000000;

static int ns_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t ah__samples_median(struct ah_samples *samples)
{
    int count = samples->count < AH_SAMPLES_MOST ? samples->count : AH_SAMPLES_MOST;
    if (count == 0)
        return 0;
    qsort(samples->ns, (size_t)count, sizeof samples->ns[0], ns_compare);
    return (samples->ns[count / 2] + samples->ns[(count - 1) / 2]) / 2;
}

void ah__samples_add(struct ah_samples *samples, int64_t ns)
{
    if (samples->count < AH_SAMPLES_MOST)
        samples->ns[samples->count++] = ns;
}

/* ---- one round */

/* Items in flight: they are submitted a few ahead, so that the lane never waits for this thread. */
struct burst {
    struct ah_workload *workload;
    struct ah_in_flight in_flight;
    bool timed;
    int64_t last_end_ns; /* 0 before the first completion; a burst stays on one lane */
};

/* Returns the samples of an item. Kinds of blocks differ only in their programs. */
static struct ah_samples *samples_of(struct ah_workload *workload, const struct ah_item *item)
{
    int class = workload->place[item->partition].class;
    if (item->recompute)
        return &workload->recomputed[class];
    if (item->selective)
        return &workload->selective[class];
    bool programs = item->kind == AH_ITEM_FORWARD || item->kind == AH_ITEM_BACKWARD;
    return &workload->samples[item->kind][programs ? class : ah__class_alike(class)];
}

static int burst_wait(struct burst *burst)
{
    struct ah_workload *workload = burst->workload;
    struct ah_done done;
    AH_TRY(workload->dev->ops->wait_any(workload->dev, &done));
    struct ah_item item = ah__in_flight_pop(&burst->in_flight, &done).item;
    AH_TRY(done.status);
    if (burst->timed && burst->last_end_ns)
        ah__samples_add(&workload->gaps[done.lane], done.start_ns - burst->last_end_ns);
    burst->last_end_ns = done.end_ns;
    if (burst->timed)
        ah__samples_add(samples_of(workload, &item), done.end_ns - done.start_ns);
    return AH_OK;
}

static int burst_submit_item(struct burst *burst, const struct ah_item *item)
{
    struct ah_work work;
    struct ah_event event;
    if (burst->in_flight.count == AHEAD)
        AH_TRY(burst_wait(burst));
    AH_TRY(ah__workload_work(&work, burst->workload, item));
    AH_TRY(burst->workload->dev->ops->submit(burst->workload->dev, &work, &event));
    return ah__in_flight_push(&burst->in_flight, work.lane, item);
}

static int burst_submit(struct burst *burst, enum ah_item_kind kind, int place)
{
    struct ah_item item = {.kind = kind, .partition = place, .param_buffer = -1, .grad_buffer = -1};
    return burst_submit_item(burst, &item);
}

/* Kinds of backward: of three backward items of a block one recomputes fully and one selectively, so that all kinds see
 * the same state of the machine. */
enum { KINDS = 3 };

static int burst_backward(struct burst *burst, int place, int round)
{
    const struct ah_workload *workload = burst->workload;
    bool has_recompute = workload->partition->code[AH_CLASS_BLOCK].program[AH_PROGRAM_RECOMPUTE].count > 0;
    int kind = ah__class_is_block(workload->place[place].class) && has_recompute ? (place + round) % KINDS : 0;
    struct ah_item item = {.kind = AH_ITEM_BACKWARD,
                           .partition = place,
                           .recompute = kind == 1,
                           .selective = kind == 2,
                           .param_buffer = -1,
                           .grad_buffer = -1};
    return burst_submit_item(burst, &item);
}

/* Returns the number of kinds of blocks that are timed. */
static int block_kinds(const struct ah_workload *workload)
{
    const struct ah_partition *partition = workload->partition;
    int kinds = 1;
    for (int class = AH_CLASS_COUNT; class < partition->class_count; class ++)
        kinds += partition->like[class] == class;
    return kinds;
}

/* Sets the kind of each copy: every kind in turn, for as many rounds as there are kinds of backward. */
static void kinds_choose(struct ah_workload *workload, int round)
{
    for (int i = 1; i <= workload->copies; i++) {
        int kind = (i + round) / KINDS % block_kinds(workload);
        workload->place[i].class = kind == 0 ? AH_CLASS_BLOCK : AH_CLASS_COUNT + kind - 1;
    }
}

/* Runs a step of the small model, with everything on the device. */
static int round_compute(struct burst *burst, int round)
{
    struct ah_workload *workload = burst->workload;
    kinds_choose(workload, round);
    for (int i = 0; i < workload->places; i++) {
        if (workload->place[i].param != workload->place[i].state[0])
            AH_TRY(burst_submit(burst, AH_ITEM_CAST, i));
        AH_TRY(burst_submit(burst, AH_ITEM_FORWARD, i));
    }
    for (int i = workload->places - 1; i >= 0; i--) {
        AH_TRY(burst_backward(burst, i, round));
        AH_TRY(burst_submit(burst, AH_ITEM_UPDATE_DEVICE, i));
    }
    return AH_OK;
}

static int round_offload(struct burst *burst, int round)
{
    (void)round;
    AH_TRY(burst_submit(burst, AH_ITEM_RESULT, 0));
    for (int i = burst->workload->places - 1; i >= 0; i--)
        AH_TRY(burst_submit(burst, AH_ITEM_OFFLOAD, i));
    for (int i = burst->workload->copies; i > 0; i--)
        AH_TRY(burst_submit(burst, AH_ITEM_UPDATE_STAGED, i));
    return AH_OK;
}

static int round_host(struct burst *burst, int round)
{
    (void)round;
    for (int i = burst->workload->places - 1; i >= 0; i--)
        AH_TRY(burst_submit(burst, AH_ITEM_UPDATE_HOST, i));
    for (int i = burst->workload->copies; i > 0; i--)
        AH_TRY(burst_submit(burst, AH_ITEM_UPDATE_SPECULATIVE, i));
    return AH_OK;
}

static int round_prefetch(struct burst *burst, int round)
{
    (void)round;
    AH_TRY(burst_submit(burst, AH_ITEM_INPUT, 0));
    for (int i = 0; i < burst->workload->places; i++)
        AH_TRY(burst_submit(burst, AH_ITEM_PREFETCH, i));
    for (int i = 1; i <= burst->workload->copies; i++)
        AH_TRY(burst_submit(burst, AH_ITEM_STATES_IN, i));
    return AH_OK;
}

/* Runs collectives, one of each class. The first waits for the slowest rank and is not timed. */
static int round_together(struct burst *burst, int round)
{
    (void)round;
    const int places[] = {0, 1, burst->workload->places - 1};
    for (size_t i = 0; i < AH_LENGTH(places); i++)
        AH_TRY(burst_submit(burst, AH_ITEM_GATHER, places[i]));
    for (size_t i = AH_LENGTH(places); i > 0; i--)
        AH_TRY(burst_submit(burst, AH_ITEM_REDUCE, places[i - 1]));
    return AH_OK;
}

enum { ROUND_COMPUTE, ROUND_OFFLOAD, ROUND_HOST, ROUND_PREFETCH };

static const struct round_row {
    int (*run)(struct burst *burst, int round);
    int64_t budget_ns; /* repeated until this time has passed */
} round_table[] = {
    [ROUND_COMPUTE] = {round_compute, 400000000},
    [ROUND_OFFLOAD] = {round_offload, 120000000},
    [ROUND_HOST] = {round_host, 120000000},
    [ROUND_PREFETCH] = {round_prefetch, 120000000},
};

static int round_once(struct ah_workload *workload, const struct round_row *row, int round, bool timed)
{
    struct burst burst = {.workload = workload, .timed = timed};
    AH_TRY(row->run(&burst, round));
    while (burst.in_flight.count)
        AH_TRY(burst_wait(&burst));
    return AH_OK;
}

static int rounds_run(struct ah_workload *workload, const struct round_row *row)
{
    AH_TRY(round_once(workload, row, 0, false)); /* warms up */
    int64_t start_ns = workload->dev->ops->now_ns(workload->dev);
    int all = KINDS * block_kinds(workload);
    int kinds = (all + workload->copies - 1) / workload->copies; /* rounds until a copy has been of each kind */
    for (int round = 0; round < ROUNDS_MOST; round++) {
        int64_t elapsed_ns = workload->dev->ops->now_ns(workload->dev) - start_ns;
        int least = kinds * (elapsed_ns < slow_ns ? ROUNDS_LEAST : ROUNDS_LEAST_SLOW);
        if (round >= least && elapsed_ns >= row->budget_ns)
            return AH_OK;
        AH_TRY(round_once(workload, row, round, true));
    }
    return AH_OK;
}

/* ---- all rounds */

static int64_t at_least_one(int64_t ns)
{
    return ns > 0 ? ns : 1;
}

/* Extrapolates a time measured with a few micro-batches to all of the step; once_ns of it is for all micro-batches
 * together. */
static int64_t of_all(int64_t ns, int64_t once_ns, const struct ah_workload *workload)
{
    int64_t each_ns = ns > once_ns ? ns - once_ns : 0;
    return once_ns + each_ns * ah__micro_batches(workload->partition) / workload->micro_batches;
}

/* Measures how long a block's codes take to decode; 0 without codes. */
static int widening_measure(int64_t *out_ns, struct ah_workload *workload)
{
    enum { TIMES = 9 };
    struct ah_samples samples = {0};
    struct ah_work work;
    AH_TRY(ah__workload_widening(&work, workload));
    for (int i = 0; i <= TIMES && work.tasks > 0; i++) {
        struct ah_done done;
        AH_TRY(ah__dev_run(workload->dev, &work, &done));
        if (i > 0) /* the first is for warming up */
            ah__samples_add(&samples, done.end_ns - done.start_ns);
    }
    *out_ns = ah__samples_median(&samples);
    return AH_OK;
}

/* Returns by how much recomputation lengthens backward; 0 if no backward recomputed. */
static int64_t again_ns(const struct ah_workload *workload, struct ah_samples *samples, int64_t once_ns,
                        int64_t backward_ns)
{
    return samples->count ? at_least_one(of_all(ah__samples_median(samples), once_ns, workload) - backward_ns) : 0;
}

static int64_t program_ns(const struct ah_workload *workload, struct ah_samples *samples, int64_t once_ns)
{
    return at_least_one(of_all(ah__samples_median(samples), once_ns, workload));
}

/* Fills the times that depend on the size of a micro-batch. */
static void programs_fill(struct ah_workload *workload, struct ah_costs *costs)
{
    static const enum ah_item_kind kinds[] = {AH_ITEM_FORWARD, AH_ITEM_BACKWARD};
    for (int class = 0; class < workload->partition->class_count; class ++) {
        int like = workload->partition->like[class];
        int64_t once_ns = ah__class_is_block(class) ? costs->widen_ns : 0;
        costs->ns[AH_ITEM_FORWARD][class] = costs->ns[AH_ITEM_FORWARD][like];
        if (like != class) /* it has no backward */
            continue;
        for (size_t i = 0; i < AH_LENGTH(kinds); i++)
            costs->ns[kinds[i]][class] = program_ns(workload, &workload->samples[kinds[i]][class], once_ns);
        int64_t backward_ns = costs->ns[AH_ITEM_BACKWARD][class];
        costs->recompute_ns[class] = again_ns(workload, &workload->recomputed[class], once_ns, backward_ns);
        costs->selective_ns[class] = again_ns(workload, &workload->selective[class], once_ns, backward_ns);
    }
}

static int64_t median_ns(struct ah_workload *workload, int kind, int class)
{
    return at_least_one(ah__samples_median(&workload->samples[kind][class]));
}

static void host_fill(struct ah_workload *workload, struct ah_costs *costs)
{
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        /* Only blocks have shadow states. */
        int ahead = class == AH_CLASS_BLOCK ? AH_ITEM_UPDATE_SPECULATIVE : AH_ITEM_UPDATE_HOST;
        costs->ns[AH_ITEM_UPDATE_HOST][class] = median_ns(workload, AH_ITEM_UPDATE_HOST, class);
        costs->ns[AH_ITEM_UPDATE_SPECULATIVE][class] = median_ns(workload, ahead, class);
    }
}

static void costs_fill(struct ah_workload *workload, struct ah_costs *costs)
{
    static const int per_class[] = {AH_ITEM_UPDATE_DEVICE, AH_ITEM_PREFETCH, AH_ITEM_OFFLOAD};
    programs_fill(workload, costs);
    host_fill(workload, costs);
    for (int class = 0; class < AH_CLASS_COUNT; class ++) {
        for (size_t i = 0; i < AH_LENGTH(per_class); i++)
            costs->ns[per_class[i]][class] = median_ns(workload, per_class[i], class);
        /* Only blocks are staged. */
        for (int kind = AH_ITEM_STATES_IN; kind <= AH_ITEM_UPDATE_STAGED; kind++)
            if (workload->samples[kind][class].count)
                costs->ns[kind][class] = median_ns(workload, kind, class);
        if (workload->samples[AH_ITEM_CAST][class].count)
            costs->ns[AH_ITEM_CAST][class] = median_ns(workload, AH_ITEM_CAST, class);
        costs->ns[AH_ITEM_REFETCH][class] = costs->ns[AH_ITEM_PREFETCH][class];
        costs->ns[AH_ITEM_INPUT][class] = median_ns(workload, AH_ITEM_INPUT, 0);
        costs->ns[AH_ITEM_RESULT][class] = median_ns(workload, AH_ITEM_RESULT, 0);
    }
}

int ah__profile_rounds_host(struct ah_workload *workload, struct ah_costs *costs)
{
    AH_TRY(ah__workload_agree(workload, rounds_run(workload, &round_table[ROUND_HOST])));
    host_fill(workload, costs);
    costs->lanes.launch_ns[AH_LANE_HOST] = ah__samples_median(&workload->gaps[AH_LANE_HOST]);
    return AH_OK;
}

int ah__profile_rounds_programs(struct ah_workload *workload, struct ah_costs *costs)
{
    AH_TRY(ah__workload_agree(workload, rounds_run(workload, &round_table[ROUND_COMPUTE])));
    AH_TRY(ah__workload_agree(workload, widening_measure(&costs->widen_ns, workload)));
    programs_fill(workload, costs);
    return AH_OK;
}

int ah__profile_rounds_together(struct ah_workload *workload, struct ah_costs *costs)
{
    static const struct round_row row = {round_together, 120000000};
    static const enum ah_item_kind kinds[] = {AH_ITEM_GATHER, AH_ITEM_REDUCE};
    int64_t start_ns = workload->dev->ops->now_ns(workload->dev), passed_ns = 0;
    for (int round = 0; round < ROUNDS_MOST && (round <= ROUNDS_LEAST || passed_ns < row.budget_ns); round++) {
        AH_TRY(ah__workload_agree(workload, round_once(workload, &row, round, round > 0)));
        AH_TRY(ah__workload_elapsed(&passed_ns, workload, start_ns));
    }
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        for (size_t i = 0; i < AH_LENGTH(kinds); i++)
            costs->ns[kinds[i]][class] = at_least_one(ah__samples_median(&workload->samples[kinds[i]][class]));
    costs->lanes.launch_ns[AH_LANE_COMM] = ah__samples_median(&workload->gaps[AH_LANE_COMM]);
    return AH_OK;
}

int ah__profile_rounds(struct ah_workload *workload, struct ah_costs *costs)
{
    for (size_t i = 0; i < AH_LENGTH(round_table); i++)
        AH_TRY(ah__workload_agree(workload, rounds_run(workload, &round_table[i])));
    AH_TRY(ah__workload_agree(workload, widening_measure(&costs->widen_ns, workload)));
    costs_fill(workload, costs);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        costs->lanes.launch_ns[lane] = ah__samples_median(&workload->gaps[lane]);
    return AH_OK;
}
