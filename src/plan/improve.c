#include "plan/improve.h"

#include <limits.h>

#include "base/hash.h"
#include "plan/fit.h"
#include "plan/levels.h"
#include "sched/switches.h"

enum { STRIDE_MOST = 8, TILES_MOST = 8 };

struct descent {
    struct ah_plan *best;
    struct ah_trials *trials;
    int64_t most; /* items simulated, where it ends */
    const struct ah_predictor *predictor;
    const struct ah_budget *budget;
    struct ah_levels levels;
    uint64_t stream, drawn;
};

/* As many buffers as asked for, where they fit; fewer where not, never too few. False: nothing fits. */
static bool fit(struct ah_plan *plan, const struct descent *descent)
{
    struct ah_switches *switches = &plan->switches;
    int wanted = switches->buffers;
    switches->shadows = switches->unsharded = 0; /* fitting gives what there is room for */
    if (!ah__switches_valid(switches) || !ah__plan_fit(plan, descent->predictor, descent->budget))
        return false;
    int most = switches->buffers;
    switches->buffers = ah__plan_min_buffers(switches, descent->predictor);
    switches->buffers = wanted > most ? most : wanted > switches->buffers ? wanted : switches->buffers;
    switches->out_of_order = switches->out_of_order > switches->buffers ? switches->buffers : switches->out_of_order;
    ah__plan_fill(plan, descent->predictor, descent->budget);
    return true;
}

/* Sets the least recomputation with which so many buffers fit, or all of it; its step. */
static int least_recomputation(struct ah_plan *plan, const struct descent *descent, const struct ah_levels *levels,
                               int buffers)
{
    struct ah_switches *switches = &plan->switches;
    int low = 0, high = levels->last, least = ah__plan_min_buffers(switches, descent->predictor);
    switches->shadows = switches->unsharded = 0;
    switches->buffers = buffers > least ? buffers : least;
    while (low < high) {
        int step = (low + high) / 2;
        ah__levels_set(switches, levels, step);
        ah__plan_measure(plan, descent->predictor);
        if (ah__plan_within(plan, descent->budget))
            high = step;
        else
            low = step + 1;
    }
    ah__levels_set(switches, levels, high);
    return high;
}

/* A plan that fits. */
static int try_fitted(struct descent *descent, struct ah_plan *plan)
{
    bool below;
    int64_t below_ns = ah__trial_below_ns(plan, ah__trial_score_ns(descent->best));
    if (descent->trials->items >= descent->most)
        return AH_OK;
    ah__plan_bound(plan, descent->predictor);
    if (ah__plan_policy_bound(plan, descent->predictor) >= below_ns)
        return AH_OK;
    AH_TRY(ah__trial(&below, &plan->step_ns, descent->trials, plan, below_ns));
    if (below)
        *descent->best = *plan;
    return AH_OK;
}

static int try_plan(struct descent *descent, struct ah_plan plan)
{
    const struct ah_switches *switches = &plan.switches;
    bool beyond = switches->chunks > 1 || switches->embedding_on_host || switches->head_on_host;
    if (descent->predictor->policy->uses == AH_USE_PAPER && beyond)
        return AH_OK;
    return fit(&plan, descent) ? try_fitted(descent, &plan) : AH_OK;
}

/* A step beyond what there is goes as far as there is: all blocks, or all of those on the host. */
static void settle_places(struct ah_switches *switches)
{
    int *const values[] = {&switches->offload_optimizer, &switches->offload_params};
    int most = switches->layers;
    for (size_t i = 0; i < AH_LENGTH(values); i++) {
        *values[i] = *values[i] < 0 ? 0 : *values[i] > most ? most : *values[i];
        most = *values[i];
    }
}

/* What recomputes whole no longer does so selectively; nothing does where the policy knows no such thing. */
static void settle_selective(struct ah_switches *switches, const struct descent *descent)
{
    int most =
        ah__policy_uses(descent->predictor->policy, AH_SWITCH_selective) ? switches->layers - switches->checkpoint : 0;
    switches->selective = switches->selective > most ? most : switches->selective;
    switches->selective = switches->selective < 0 ? 0 : switches->selective;
}

/* Only what is on the host streams, and only where the policy knows that. */
static void settle_streamed(struct ah_switches *switches, const struct descent *descent)
{
    int most = ah__predictor_stages(descent->predictor) ? switches->offload_optimizer : 0;
    switches->staged = switches->staged > most ? most : switches->staged;
    switches->staged = switches->staged < 0 ? 0 : switches->staged;
}

static void settle_activations(struct ah_switches *switches, const struct descent *descent)
{
    int most = ah__plan_most_leaving(descent->predictor);
    switches->offload_activations = switches->offload_activations > most ? most : switches->offload_activations;
    switches->offload_activations = switches->offload_activations < 0 ? 0 : switches->offload_activations;
}

static void settle_ends(struct ah_switches *switches)
{
    switches->share_embedding_head = switches->share_embedding_head && ah__may_share_ends(switches);
}

/* As early as can be where the best plan fetches so, else as early as that one does. */
static void settle_ahead(struct ah_switches *switches, const struct descent *descent)
{
    const struct ah_switches *best = &descent->best->switches;
    int farthest = ah__plan_farthest_refetch(switches), ahead = best->prefetch_distance;
    bool keeps = ahead < farthest && ahead < ah__plan_farthest_refetch(best);
    switches->prefetch_distance = keeps ? ahead : farthest;
}

/* Other places with as much recomputation as they then need, and, where activations leave, with more, so that less
 * travels; where even all of it does not make them fit, as many blocks as they need give their parameters back. */
static int try_refitted(struct descent *descent, struct ah_plan plan, int buffers)
{
    struct ah_switches *switches = &plan.switches;
    settle_places(switches);
    settle_streamed(switches, descent);
    settle_activations(switches, descent);
    settle_ends(switches);
    switches->shadows = switches->unsharded = 0;
    if (!ah__switches_valid(switches))
        return AH_OK;
    int level = least_recomputation(&plan, descent, &descent->levels, buffers);
    while (switches->offload_params < switches->offload_optimizer) {
        struct ah_plan fitted = plan;
        if (ah__plan_fit(&fitted, descent->predictor, descent->budget))
            break;
        switches->offload_params++;
    }
    switches->buffers = buffers;
    settle_ahead(switches, descent);
    AH_TRY(try_plan(descent, plan));
    int halfway = (level + descent->levels.last) / 2;
    if (switches->offload_activations == 0 || halfway == level)
        return AH_OK;
    ah__levels_set(switches, &descent->levels, halfway);
    switches->buffers = buffers;
    return try_plan(descent, plan);
}

/* p, o, buffers and places of embedding and head, alone and together: what they free or take is less or more
 * recomputation. */
static int try_exchanges(struct descent *descent, const struct ah_plan *from)
{
    static const int moves[][2] = {{0, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}, {1, 0}, {-1, 0}},
                     buffers[] = {0, 1, -1, 2};
    for (int places = 0; places < 4; places++)
        for (size_t i = 0; i < AH_LENGTH(moves) * AH_LENGTH(buffers); i++) {
            const int *move = moves[i % AH_LENGTH(moves)];
            int more = buffers[i / AH_LENGTH(moves)];
            for (int stride = 1; stride <= (places || more ? 1 : STRIDE_MOST); stride *= 2) {
                struct ah_plan plan = *from;
                plan.switches.offload_params += stride * move[0];
                plan.switches.offload_optimizer += stride * move[1];
                plan.switches.embedding_on_host ^= (places & 1) != 0;
                plan.switches.head_on_host ^= (places & 2) != 0;
                AH_TRY(try_refitted(descent, plan, from->switches.buffers + more));
            }
        }
    return AH_OK;
}

/* c, p, o, selective, staged and a, alone and against each other, with the most buffers that then fit. */
static int try_blocks(struct descent *descent, const struct ah_plan *from)
{
    static const int moves[][6] = {
        {1, 0, 0, 0, 0, 0},   {-1, 0, 0, 0, 0, 0},  {0, 1, 0, 0, 0, 0},   {0, -1, 0, 0, 0, 0}, {0, 0, 1, 0, 0, 0},
        {0, 0, -1, 0, 0, 0},  {0, 1, 1, 0, 0, 0},   {0, -1, -1, 0, 0, 0}, {1, 0, -1, 0, 0, 0}, {-1, 0, 1, 0, 0, 0},
        {1, -1, -1, 0, 0, 0}, {-1, 1, 1, 0, 0, 0},  {1, -1, 0, 0, 0, 0},  {-1, 1, 0, 0, 0, 0}, {0, 0, 0, 1, 0, 0},
        {0, 0, 0, -1, 0, 0},  {-1, 0, 0, 1, 0, 0},  {-1, 0, 0, 2, 0, 0},  {1, 0, 0, -2, 0, 0}, {0, 0, -1, 2, 0, 0},
        {0, 0, 1, -2, 0, 0},  {0, -1, -1, 4, 0, 0}, {0, 1, 1, -4, 0, 0},  {0, 0, 0, 0, 1, 0},  {0, 0, 0, 0, -1, 0},
        {0, 0, 1, 0, 1, 0},   {0, 0, -1, 0, -1, 0}, {0, 1, 1, 0, 1, 0},   {-1, 0, 1, 0, 1, 0}, {-1, 1, 1, 0, 1, 0},
        {0, 0, 0, 0, 0, 1},   {0, 0, 0, 0, 0, -1},  {-1, 0, 0, 0, 0, 1},  {1, 0, 0, 0, 0, -1}, {-2, 0, 0, 0, 0, 1},
        {0, 0, 0, -1, 0, 1},  {0, 0, 0, -2, 0, 1},  {0, 0, 0, 2, 0, -1},
    };
    bool overtakes_all = from->switches.out_of_order == from->switches.buffers;
    for (size_t i = 0; i < AH_LENGTH(moves); i++)
        for (int stride = 1; stride <= STRIDE_MOST; stride *= 2) {
            struct ah_plan plan = *from;
            struct ah_switches *switches = &plan.switches;
            if (moves[i][3] && !ah__policy_uses(descent->predictor->policy, AH_SWITCH_selective))
                break;
            if (moves[i][4] && !ah__predictor_stages(descent->predictor))
                break;
            if (moves[i][5] && !ah__plan_most_leaving(descent->predictor))
                break;
            switches->checkpoint += stride * moves[i][0];
            switches->selective += stride * moves[i][3];
            settle_selective(switches, descent);
            switches->offload_params += stride * moves[i][1];
            switches->offload_optimizer += stride * moves[i][2];
            settle_places(switches);
            switches->staged += stride * moves[i][4];
            settle_streamed(switches, descent);
            switches->offload_activations += stride * moves[i][5];
            settle_activations(switches, descent);
            switches->buffers = INT_MAX;
            settle_ahead(switches, descent);
            switches->out_of_order = overtakes_all ? INT_MAX : switches->out_of_order;
            AH_TRY(try_plan(descent, plan));
        }
    return AH_OK;
}

/* The same memory freed by fewer blocks that all recompute whole, or by more of them, or the other way round: of some
 * of each nothing may be gained. */
static int try_levels(struct descent *descent, const struct ah_plan *from)
{
    enum { MORE = 3 };
    struct ah_levels other = descent->levels;
    if (!other.selective)
        return AH_OK;
    other.selective = from->switches.selective == 0;
    other.last = other.selective ? 2 * other.layers : other.layers;
    struct ah_plan plan = *from;
    int level = least_recomputation(&plan, descent, &other, from->switches.buffers);
    for (int more = 0; more <= MORE && level + more <= other.last; more++) {
        ah__levels_set(&plan.switches, &other, level + more);
        AH_TRY(try_plan(descent, plan));
    }
    return AH_OK;
}

/* A part of what is on the host streams, in small pieces: with some more buffers, one more block there, fetches
 * out_of_order each other or not, and as much recomputation as that leaves room for. */
static int try_streams(struct descent *descent, const struct ah_plan *from)
{
    enum { PARTS = 8, PARTS_MOST = 6, WAYS = 8, MORE_SLOTS = 2 };
    for (int chunks = TILES_MOST / 2; ah__predictor_stages(descent->predictor) && chunks <= TILES_MOST; chunks *= 2)
        for (int i = 0; i < PARTS_MOST * WAYS; i++) {
            struct ah_plan plan = *from;
            int part = 1 + i / WAYS, buffers = from->switches.buffers + (i & 1) * MORE_SLOTS;
            if (i & 4 && plan.switches.offload_optimizer < plan.switches.layers)
                plan.switches.offload_optimizer++;
            plan.switches.staged = (plan.switches.offload_optimizer * part + PARTS / 2) / PARTS;
            plan.switches.chunks = chunks;
            plan.switches.out_of_order = i & 2 ? buffers : 0;
            if (plan.switches.staged > 0)
                AH_TRY(try_refitted(descent, plan, buffers));
        }
    return AH_OK;
}

/* Activations of a part of the blocks wait on the host, and so much less is recomputed; with some more buffers, whole
 * or in pieces. */
static int try_activations(struct descent *descent, const struct ah_plan *from)
{
    enum { PARTS = 8, WAYS = 8, MORE_SLOTS = 2 };
    int most = ah__plan_most_leaving(descent->predictor);
    for (int i = 0; most > 0 && i < PARTS * WAYS; i++) {
        struct ah_plan plan = *from;
        plan.switches.offload_activations = (most * (1 + i / WAYS) + PARTS - 1) / PARTS;
        plan.switches.chunks = i & 2 ? TILES_MOST / 2 : from->switches.chunks;
        if (i & 4) { /* what that frees is a block that need not be on the host */
            plan.switches.offload_optimizer--;
            plan.switches.staged -= plan.switches.staged > 0;
            plan.switches.offload_params -= plan.switches.offload_params > 0;
        }
        AH_TRY(try_refitted(descent, plan, from->switches.buffers + (i & 1) * MORE_SLOTS));
    }
    return AH_OK;
}

static int try_places(struct descent *descent, const struct ah_plan *from)
{
    for (int flips = 1; flips < (ah__plan_shares_ends(descent->predictor) ? 8 : 4); flips++) {
        struct ah_plan plan = *from;
        plan.switches.embedding_on_host ^= (flips & 1) != 0;
        plan.switches.head_on_host ^= (flips & 2) != 0;
        plan.switches.share_embedding_head ^= (flips & 4) != 0;
        settle_ends(&plan.switches);
        plan.switches.buffers = INT_MAX;
        AH_TRY(try_plan(descent, plan));
        for (int more = -2; more <= 2; more++) { /* what that frees or takes is worth a block or two */
            struct ah_plan other = plan;
            other.switches.offload_optimizer += more;
            settle_streamed(&other.switches, descent);
            settle_ahead(&other.switches, descent);
            if (more)
                AH_TRY(try_plan(descent, other));
        }
    }
    return AH_OK;
}

/* Pieces, how far a ready fetch may overtake, when a gradient that has begun to leave goes first, how early parameters
 * come back, and fewer buffers: more room can make a list schedule longer. */
static int try_order(struct descent *descent, const struct ah_plan *from)
{
    for (int chunks = 1; chunks <= TILES_MOST && chunks <= AH_SCHED_MOST_CHUNKS; chunks *= 2) {
        struct ah_plan plan = *from;
        plan.switches.chunks = chunks;
        AH_TRY(try_plan(descent, plan));
    }
    for (int buffers = 2 * from->switches.buffers; descent->predictor->policy->overtakes && buffers > 0; buffers /= 2) {
        struct ah_plan plan = *from;
        plan.switches.out_of_order = buffers / 2; /* all, half of them, ..., none */
        AH_TRY(try_plan(descent, plan));
    }
    for (int more = -1; descent->predictor->policy->overtakes && more <= 1; more += 2) {
        struct ah_plan plan = *from;
        plan.switches.out_of_order += more;
        if (plan.switches.out_of_order >= 0)
            AH_TRY(try_plan(descent, plan));
    }
    for (int ahead = 2 * ah__plan_farthest_refetch(&from->switches); ahead > 1; ahead /= 2) {
        struct ah_plan plan = *from;
        plan.switches.prefetch_distance = ahead / 2; /* as early as can be, half of that, ..., one step */
        AH_TRY(try_plan(descent, plan));
    }
    for (int fewer = 1; fewer <= STRIDE_MOST; fewer *= 2) {
        struct ah_plan plan = *from;
        plan.switches.buffers -= fewer;
        AH_TRY(try_plan(descent, plan));
    }
    return AH_OK;
}

/* Fewer shadow states: an update that must wait for the norm may leave the lane to one that is needed earlier. */
static int try_spares(struct descent *descent, const struct ah_plan *from)
{
    for (int fewer = 1; fewer <= STRIDE_MOST && fewer <= from->switches.shadows; fewer *= 2) {
        struct ah_plan plan = *from;
        plan.switches.shadows -= fewer;
        ah__plan_measure(&plan, descent->predictor);
        AH_TRY(try_fitted(descent, &plan));
    }
    return AH_OK;
}

static int draw(struct descent *descent, int low, int high)
{
    return low + (int)(ah__random_bits(descent->stream, descent->drawn++) % (uint64_t)(high - low + 1));
}

/* Several switches at once, as no single step would change them: out of what is lowest only nearby. */
static struct ah_plan leap(struct descent *descent)
{
    struct ah_plan plan = *descent->best;
    struct ah_switches *switches = &plan.switches;
    int *const blocks[] = {&switches->checkpoint, &switches->offload_params, &switches->offload_optimizer};
    for (size_t i = 0; i < AH_LENGTH(blocks); i++)
        if (draw(descent, 0, 2))
            *blocks[i] += draw(descent, -3, 3);
    if (!draw(descent, 0, 3))
        switches->chunks = 1 << draw(descent, 0, 3);
    if (!draw(descent, 0, 7))
        switches->head_on_host = !switches->head_on_host;
    if (!draw(descent, 0, 7))
        switches->embedding_on_host = !switches->embedding_on_host;
    if (ah__plan_shares_ends(descent->predictor) && !draw(descent, 0, 3))
        switches->share_embedding_head = !switches->share_embedding_head;
    settle_ends(switches);
    if (ah__policy_uses(descent->predictor->policy, AH_SWITCH_selective) && draw(descent, 0, 1))
        switches->selective += draw(descent, -4, 4);
    if (ah__predictor_stages(descent->predictor) && draw(descent, 0, 1))
        switches->staged += draw(descent, -4, 4);
    if (ah__plan_most_leaving(descent->predictor) && draw(descent, 0, 1))
        switches->offload_activations += draw(descent, -4, 4);
    settle_selective(switches, descent);
    settle_streamed(switches, descent);
    settle_activations(switches, descent);
    switches->buffers = draw(descent, 0, 1) ? INT_MAX : switches->buffers + draw(descent, -2, 2);
    if (!draw(descent, 0, 2) && descent->predictor->policy->overtakes)
        switches->out_of_order = draw(descent, 0, 1) ? INT_MAX : draw(descent, 0, 8);
    settle_ahead(switches, descent);
    return plan;
}

/* The same blocks in another order, by the switches that make one: pieces (of any number), buffers, out_of_order,
 * refetches and shadow states depend on each other, so that several of them at once may be faster where none
 * alone is. */
static int try_reordered(struct descent *descent)
{
    enum { MORE_SLOTS = 2, MORE_SPARES = 2 };
    struct ah_plan plan = *descent->best;
    struct ah_switches *switches = &plan.switches;
    int shadows = switches->shadows, out_of_order = switches->out_of_order;
    if (draw(descent, 0, 1) && descent->predictor->policy->uses != AH_USE_PAPER)
        switches->chunks = draw(descent, 1, TILES_MOST);
    if (draw(descent, 0, 1))
        switches->buffers += draw(descent, -MORE_SLOTS, MORE_SLOTS);
    if (draw(descent, 0, 1) && descent->predictor->policy->overtakes)
        out_of_order = draw(descent, 0, 1) ? draw(descent, 0, TILES_MOST) : out_of_order + draw(descent, -1, 1);
    if (!draw(descent, 0, 3) && switches->offload_params)
        switches->prefetch_distance = draw(descent, 1, draw(descent, 1, ah__plan_farthest_refetch(switches)));
    switches->out_of_order = out_of_order > 0 ? out_of_order : 0;
    if (!fit(&plan, descent))
        return AH_OK;
    if (draw(descent, 0, 1)) {
        int most = switches->shadows;
        shadows = draw(descent, 0, 1) ? draw(descent, 0, most) : shadows + draw(descent, -MORE_SPARES, MORE_SPARES);
        switches->shadows = shadows < 0 ? 0 : shadows < most ? shadows : most;
        ah__plan_measure(&plan, descent->predictor);
    }
    return try_fitted(descent, &plan);
}

/* One switch after the other, or some together, as far as it helps: steps grow while they do and shrink while they do
 * not. What that frees or takes is less or more recomputation. */
static int try_lines(struct descent *descent)
{
    enum { PARTS = 2 };
    static const struct {
        int offload_params, offload_optimizer, staged, buffers, activations;
    } lines[] = {{0, 0, 1, 0, 0}, {1, 0, 0, 0, 0},  {0, 1, 0, 0, 0}, {1, 1, 0, 0, 0}, {0, 0, 0, 1, 0},
                 {0, 1, 1, 0, 0}, {1, 0, 0, -1, 0}, {0, 1, 0, 1, 0}, {0, 0, 0, 0, 1}};
    struct ah_plan *best = descent->best;
    for (size_t i = 0; i < 2 * AH_LENGTH(lines); i++) {
        int sign = i % 2 ? -1 : 1;
        size_t line = i / 2;
        if (lines[line].staged && !ah__predictor_stages(descent->predictor))
            continue;
        if (lines[line].activations && ah__plan_most_leaving(descent->predictor) == 0)
            continue;
        for (int stride = 1 + best->switches.layers / PARTS; stride > 0;) {
            struct ah_plan plan = *best;
            int64_t before = ah__trial_score_ns(best);
            plan.switches.offload_params += sign * stride * lines[line].offload_params;
            plan.switches.offload_optimizer += sign * stride * lines[line].offload_optimizer;
            plan.switches.staged += sign * stride * lines[line].staged;
            plan.switches.offload_activations += sign * stride * lines[line].activations;
            AH_TRY(try_refitted(descent, plan, best->switches.buffers + sign * stride * lines[line].buffers));
            stride = ah__trial_score_ns(best) < before ? 2 * stride : stride / 2;
        }
    }
    return AH_OK;
}

/* Where the way down ends soonest: lines, places, and the order of fetches. */
static int descend_quickly(struct descent *descent)
{
    int64_t before;
    do {
        before = ah__trial_score_ns(descent->best);
        AH_TRY(try_lines(descent));
        struct ah_plan from = *descent->best;
        AH_TRY(try_order(descent, &from));
        from = *descent->best;
        AH_TRY(try_spares(descent, &from));
    } while (ah__trial_score_ns(descent->best) < before && descent->trials->items < descent->most);
    return AH_OK;
}

static int descend(struct descent *descent)
{
    struct ah_plan *best = descent->best;
    int64_t before;
    do {
        before = ah__trial_score_ns(best);
        struct ah_plan from = *best;
        AH_TRY(try_order(descent, &from));
        from = *best;
        AH_TRY(try_blocks(descent, &from));
        from = *best;
        AH_TRY(try_levels(descent, &from));
        from = *best;
        AH_TRY(try_exchanges(descent, &from));
        from = *best;
        AH_TRY(try_streams(descent, &from));
        from = *best;
        AH_TRY(try_activations(descent, &from));
        from = *best;
        AH_TRY(try_places(descent, &from));
    } while (ah__trial_score_ns(best) < before && descent->trials->items < descent->most);
    return AH_OK;
}

/* Blocks lead further than order, so that a better order begins no new descent. */
static int try_leap(struct descent *descent)
{
    int64_t before = ah__trial_score_ns(descent->best);
    if (draw(descent, 0, 1))
        return try_reordered(descent);
    struct ah_plan plan = leap(descent);
    if (draw(descent, 0, 2))
        AH_TRY(try_refitted(descent, plan, descent->best->switches.buffers + draw(descent, -1, 2)));
    else
        AH_TRY(try_plan(descent, plan));
    return ah__trial_score_ns(descent->best) < before ? descend(descent) : AH_OK;
}

int ah__plan_improve(struct ah_plan *best, struct ah_trials *trials, const struct ah_predictor *predictor,
                     int64_t floor_ns, const struct ah_effort *effort)
{
    enum { MUST_GAIN = 2000, STREAMED_TIMES = 2 };
    int64_t items = effort->items * (best->switches.staged > 0 ? STREAMED_TIMES : 1);
    int64_t enough_ns = floor_ns + floor_ns / MUST_GAIN;
    struct descent descent = {.best = best,
                              .trials = trials,
                              .most = trials->items + items,
                              .predictor = predictor,
                              .budget = trials->budget,
                              .stream = effort->stream};
    ah__levels_init(&descent.levels, predictor);
    if (best->step_ns > enough_ns)
        AH_TRY(descend_quickly(&descent));
    if (best->step_ns > enough_ns)
        AH_TRY(descend(&descent));
    for (int in_vain = 0; in_vain < effort->leaps && best->step_ns > enough_ns && trials->items < descent.most;) {
        int64_t before = ah__trial_score_ns(best);
        AH_TRY(try_leap(&descent));
        in_vain = ah__trial_score_ns(best) < before ? 0 : in_vain + 1;
    }
    return AH_OK;
}
