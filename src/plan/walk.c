#include "plan/walk.h"

#include <math.h>

#include "base/hash.h"
#include "plan/fit.h"
#include "plan/space.h"

enum { STRIDE_MOST = 8, ALLOWED_PARTS = 200 };

struct walk {
    struct ah_plan *best;
    struct ah_trials *trials;
    int64_t most_items, enough_ns;
    uint64_t stream, drawn;
    bool by_cost;
    int64_t allowed_ns; /* a plan slower by up to this is also accepted */
};

static bool ends(const struct walk *walk)
{
    return walk->trials->items >= walk->most_items || walk->best->step_ns <= walk->enough_ns;
}

static int64_t score(const struct walk *walk)
{
    return ah__trial_score_ns(walk->best);
}

/* Returns the best plan, in which switches at their highest value are marked so that they stay the highest after a
 * change. */
static struct ah_plan from_best(const struct walk *walk)
{
    struct ah_plan plan = *walk->best;
    struct ah_switches *switches = &plan.switches;
    if (switches->out_of_order == switches->buffers)
        switches->out_of_order = AH_AS_FAR_AS_IT_GOES;
    if (switches->prefetch_distance == ah__plan_farthest_refetch(switches))
        switches->prefetch_distance = AH_AS_FAR_AS_IT_GOES;
    return plan;
}

int64_t ah__walk_cost_ns(struct ah_plan *plan, const struct ah_predictor *predictor)
{
    enum { WAITS_PARTS = 16 };
    double lane_ns[AH_LANE_COUNT], work_ns = 0, longest_ns;
    ah__plan_bound(plan, predictor);
    longest_ns = (double)ah__plan_policy_bound(plan, predictor);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        work_ns += lane_ns[lane] = (double)ah__plan_lane_ns(&plan->switches, predictor, (enum ah_lane)lane);
    for (int a = 0; a < AH_LANE_COUNT; a++) {
        double ns = lane_ns[a];
        for (int b = 0; b < AH_LANE_COUNT; b++)
            if (a != b)
                ns += (predictor->costs.lanes.slowdown[a][b] - 1) * fmin(lane_ns[a], lane_ns[b]);
        longest_ns = fmax(longest_ns, ns);
    }
    return (int64_t)(longest_ns + work_ns / WAITS_PARTS);
}

static void try_cost(struct walk *walk, struct ah_plan *plan)
{
    plan->step_ns = ah__walk_cost_ns(plan, walk->trials->predictor);
    walk->trials->items++;
    if (ah__trial_score_ns(plan) < score(walk))
        *walk->best = *plan;
}

/* Tries a plan that fits the budget. */
static int try_fitting(struct walk *walk, struct ah_plan *plan)
{
    bool below;
    struct ah_trials *trials = walk->trials;
    int64_t below_ns = ah__trial_below_ns(plan, score(walk) + walk->allowed_ns);
    if (ends(walk) || !ah__fixed_holds(&trials->predictor->fixed, &plan->switches))
        return AH_OK;
    if (walk->by_cost) {
        try_cost(walk, plan);
        return AH_OK;
    }
    ah__plan_bound(plan, trials->predictor);
    if (ah__plan_policy_bound(plan, trials->predictor) >= below_ns) {
        trials->bounded++;
        return AH_OK;
    }
    AH_TRY(ah__trial(&below, &plan->step_ns, trials, plan, below_ns));
    if (below)
        *walk->best = *plan;
    return AH_OK;
}

static int try_plan(struct walk *walk, struct ah_plan *plan, enum ah_completion completion)
{
    bool fits = ah__space_complete(plan, completion, walk->trials->predictor, walk->trials->budget);
    return fits ? try_fitting(walk, plan) : AH_OK;
}

/* ---- moves ------------------------------------------------------------------------------------------------------- */

/* A change of one row, or of two at once, up or down; a flag is inverted. */
struct move {
    const struct ah_row *row[2]; /* the second may be null */
    int sign[2];
    enum ah_completion completion;
};

static bool moves_row(const struct move *move, int at)
{
    return move->row[0]->at == at || (move->row[1] && move->row[1]->at == at);
}

/* Changes a switch. One that is marked as the highest is not raised. */
static void apply(struct ah_switches *switches, const struct ah_row *row, int change)
{
    int value = ah__switch_get(switches, row->at);
    int moved = value >= AH_AS_FAR_AS_IT_GOES && change > 0 ? value : value + change;
    ah__switch_set(switches, row->at, row->role == AH_ROLE_FLAG ? !value : moved);
}

/* Tries a move with strides of 1, 2, 4, ..., and with twice as long ones for as long as they gain. */
static int try_move(struct walk *walk, const struct move *move, int stride_most)
{
    bool recompute = moves_row(move, AH_SWITCH_checkpoint) || moves_row(move, AH_SWITCH_selective);
    if (recompute && move->completion == AH_COMPLETES_RECOMPUTATION)
        return AH_OK; /* completion decides recomputation itself */
    for (int stride = 1; stride <= stride_most && !ends(walk);) {
        int64_t before = score(walk);
        struct ah_plan plan = from_best(walk);
        for (int i = 0; i < 2 && move->row[i]; i++)
            apply(&plan.switches, move->row[i], stride * move->sign[i]);
        if (move->completion == AH_COMPLETES_BUFFERS && !moves_row(move, AH_SWITCH_buffers))
            plan.switches.buffers = AH_AS_FAR_AS_IT_GOES;
        AH_TRY(try_plan(walk, &plan, move->completion));
        bool gained = score(walk) < before;
        stride_most =
            gained && stride == stride_most && stride <= walk->best->switches.layers ? 2 * stride_most : stride_most;
        stride *= 2;
    }
    return AH_OK;
}

static bool is_place(const struct ah_row *row)
{
    return row->role == AH_ROLE_PLACE || row->role == AH_ROLE_FLAG;
}

static int try_both(struct walk *walk, struct move *move, int stride_most)
{
    for (int completion = 0; completion < 2; completion++) {
        move->completion = (enum ah_completion)completion;
        AH_TRY(try_move(walk, move, stride_most));
    }
    return AH_OK;
}

/* Tries moves of one row. A flag has one direction and one stride. */
static int try_row(struct walk *walk, const struct ah_row *row)
{
    bool flag = row->role == AH_ROLE_FLAG;
    for (int sign = 1; sign >= (flag ? 1 : -1); sign -= 2) {
        struct move move = {.row = {row}, .sign = {sign}};
        AH_TRY(try_both(walk, &move, flag ? 1 : STRIDE_MOST));
    }
    return AH_OK;
}

static int try_pair(struct walk *walk, const struct ah_row *a, const struct ah_row *b)
{
    enum { PAIR_STRIDE_MOST = 2 };
    for (int signs = 0; signs < 4; signs++) {
        struct move move = {.row = {a, b}, .sign = {signs & 1 ? -1 : 1, signs & 2 ? -1 : 1}};
        if ((signs & 1 && a->role == AH_ROLE_FLAG) || (signs & 2 && b->role == AH_ROLE_FLAG))
            continue;
        AH_TRY(try_both(walk, &move, b->role == AH_ROLE_FLAG ? 1 : PAIR_STRIDE_MOST));
    }
    return AH_OK;
}

/* Tries values of a switch that moves no memory: half and twice, one less and one more, the least and the most. */
static int try_order(struct walk *walk, const struct ah_row *row)
{
    int value = ah__switch_get(&walk->best->switches, row->at);
    const int values[] = {
        ah__switch_table[row->at].low, AH_AS_FAR_AS_IT_GOES, value / 2, 2 * value, value - 1, value + 1};
    for (size_t i = 0; i < AH_LENGTH(values); i++) {
        struct ah_plan plan = from_best(walk);
        ah__switch_set(&plan.switches, row->at, values[i]);
        AH_TRY(try_plan(walk, &plan, AH_COMPLETES_BUFFERS));
    }
    return AH_OK;
}

/* Tries a plan with lower switches of AH_ROLE_REST. With fewer unsharded blocks more buffers may be needed, which then
 * must fit. */
static int try_less(struct walk *walk, struct ah_plan *plan)
{
    const struct ah_trials *trials = walk->trials;
    if (plan->switches.buffers < ah__plan_min_buffers(&plan->switches, trials->predictor))
        ah__plan_buffers_fit(plan, trials->predictor, trials->budget);
    else
        ah__plan_measure(plan, trials->predictor);
    return ah__plan_within(plan, trials->budget) ? try_fitting(walk, plan) : AH_OK;
}

/* Tries lower values of a switch that takes the memory that is left: with fewer of them, work that is needed earlier
 * may get a lane sooner. */
static int try_fewer(struct walk *walk, const struct ah_row *row)
{
    for (int stride = 1; stride <= STRIDE_MOST; stride *= 2) {
        struct ah_plan plan = *walk->best;
        apply(&plan.switches, row, -stride);
        if (ah__switch_get(&plan.switches, row->at) < ah__switch_table[row->at].low)
            break;
        AH_TRY(try_less(walk, &plan));
    }
    return AH_OK;
}

static int try_singles(struct walk *walk)
{
    for (int i = 0; i < ah__row_count(walk->trials->predictor); i++) {
        const struct ah_row *row = &ah__rows[i];
        AH_TRY(is_place(row)                ? try_row(walk, row)
               : row->role == AH_ROLE_ORDER ? try_order(walk, row)
                                            : try_fewer(walk, row));
    }
    return AH_OK;
}

static int try_pairs(struct walk *walk)
{
    for (int i = 0; i < ah__row_count(walk->trials->predictor); i++)
        for (int j = i + 1; j < ah__row_count(walk->trials->predictor); j++)
            if (is_place(&ah__rows[i]) && is_place(&ah__rows[j]))
                AH_TRY(try_pair(walk, &ah__rows[i], &ah__rows[j]));
    return AH_OK;
}

/* Changes no flags, so that a plan stays of its kind. */
int ah__walk_by_cost(struct ah_plan *best, struct ah_trials *trials, int most)
{
    struct ah_trials none = {.predictor = trials->predictor, .budget = trials->budget};
    struct walk walk = {.best = best, .trials = &none, .most_items = most, .by_cost = true};
    int64_t before;
    best->step_ns = ah__walk_cost_ns(best, trials->predictor);
    do {
        before = score(&walk);
        for (int i = 0; i < ah__row_count(trials->predictor); i++)
            if (ah__rows[i].role == AH_ROLE_PLACE && ah__rows[i].at != AH_SWITCH_buffers)
                AH_TRY(try_row(&walk, &ah__rows[i]));
        for (int i = 0; i < ah__row_count(trials->predictor); i++)
            for (int j = i + 1; j < ah__row_count(trials->predictor); j++)
                if (ah__rows[i].role == AH_ROLE_PLACE && ah__rows[j].role == AH_ROLE_PLACE)
                    AH_TRY(try_pair(&walk, &ah__rows[i], &ah__rows[j]));
    } while (score(&walk) < before && !ends(&walk));
    return AH_OK;
}

static int descend(struct walk *walk)
{
    int64_t before;
    do {
        before = score(walk);
        AH_TRY(try_singles(walk));
        if (score(walk) == before)
            AH_TRY(try_pairs(walk));
    } while (score(walk) < before && !ends(walk));
    return AH_OK;
}

/* ---- perturbations ----------------------------------------------------------------------------------------------- */

static int draw(struct walk *walk, int low, int high)
{
    return high <= low ? low : low + (int)(ah__random_bits(walk->stream, walk->drawn++) % (uint64_t)(high - low + 1));
}

static void perturb(struct walk *walk, struct ah_switches *switches, const struct ah_row *row)
{
    enum { NEAR = 3, FAR_PARTS = 6 };
    int near = draw(walk, 0, 3) ? NEAR : 1 + switches->layers / FAR_PARTS;
    int most = row->most(switches, walk->trials->predictor);
    if (row->role == AH_ROLE_ORDER && draw(walk, 0, 1))
        ah__switch_set(switches, row->at,
                       draw(walk, 0, 2) ? draw(walk, ah__switch_table[row->at].low, most) : AH_AS_FAR_AS_IT_GOES);
    else if (row->role != AH_ROLE_FLAG || draw(walk, 0, 1))
        apply(switches, row, draw(walk, -near, near));
}

/* Changes several switches at once, as no single move does. */
static int try_perturbed(struct walk *walk)
{
    enum { ROWS_MOST = 5 };
    struct ah_plan plan = from_best(walk);
    enum ah_completion completion = draw(walk, 0, 1) ? AH_COMPLETES_BUFFERS : AH_COMPLETES_RECOMPUTATION;
    for (int count = draw(walk, 1, ROWS_MOST); count > 0; count--)
        perturb(walk, &plan.switches, &ah__rows[draw(walk, 0, ah__row_count(walk->trials->predictor) - 1)]);
    if (completion == AH_COMPLETES_BUFFERS && draw(walk, 0, 1))
        plan.switches.buffers = AH_AS_FAR_AS_IT_GOES;
    if (!ah__space_complete(&plan, completion, walk->trials->predictor, walk->trials->budget))
        return AH_OK;
    for (int i = 0; i < ah__row_count(walk->trials->predictor); i++)
        if (ah__rows[i].role == AH_ROLE_REST && !draw(walk, 0, 2))
            ah__switch_set(&plan.switches, ah__rows[i].at,
                           draw(walk, 0, ah__switch_get(&plan.switches, ah__rows[i].at)));
    return try_less(walk, &plan);
}

int ah__walk(struct ah_plan *best, struct ah_trials *trials, const struct ah_walk_options *options)
{
    struct walk walk = {.best = best,
                        .trials = trials,
                        .most_items = trials->items + options->items,
                        .enough_ns = options->enough_ns,
                        .stream = options->stream};
    AH_TRY(descend(&walk));
    struct ah_plan current = *best;
    walk.best = &current;
    for (int in_vain = 0; in_vain < options->in_vain && !ends(&walk); in_vain++) {
        int64_t left = walk.most_items - trials->items;
        walk.allowed_ns = (int64_t)((double)best->step_ns / ALLOWED_PARTS * (double)left / (double)options->items);
        AH_TRY(try_perturbed(&walk));
        walk.allowed_ns = 0;
        if (score(&walk) >= ah__trial_score_ns(best))
            continue;
        AH_TRY(try_singles(&walk));
        *best = current;
        in_vain = 0;
    }
    return AH_OK;
}
