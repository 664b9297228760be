#include "plan/trial.h"

#include "base/alloc.h"
#include "sched/switch_table.h"

enum { TILES_PARTS = 4000 };

void ah__trials_fini(struct ah_trials *trials)
{
    ah__free(trials->tried);
    *trials = (struct ah_trials){.predictor = trials->predictor, .budget = trials->budget, .known = trials->known};
}

/* Adds to a step the gain that each doubling of the chunks must bring: one part of TILES_PARTS. */
static int64_t with_pieces(int64_t step_ns, int doublings)
{
    return step_ns + step_ns / TILES_PARTS * doublings;
}

static int doublings(const struct ah_plan *plan)
{
    int count = 0;
    for (int chunks = ah__chunks(&plan->switches); chunks > 1; chunks /= 2)
        count++;
    return count;
}

int64_t ah__trial_score_ns(const struct ah_plan *plan)
{
    return with_pieces(plan->step_ns, doublings(plan));
}

int64_t ah__trial_below_ns(const struct ah_plan *plan, int64_t score_ns)
{
    int count = doublings(plan);
    int64_t below_ns = score_ns - score_ns / (TILES_PARTS + count) * count;
    while (with_pieces(below_ns - 1, count) >= score_ns)
        below_ns--;
    return below_ns;
}

static uint64_t key_of(const struct ah_switches *switches)
{
    uint64_t key = ah__switches_hash(switches, 0);
    return key ? key : 1;
}

static struct ah_tried *find(const struct ah_trials *trials, uint64_t key)
{
    size_t at = (size_t)key & (trials->capacity - 1);
    while (trials->tried[at].key && trials->tried[at].key != key)
        at = (at + 1) & (trials->capacity - 1);
    return &trials->tried[at];
}

static int grow(struct ah_trials *trials)
{
    enum { LEAST = 64 };
    struct ah_trials larger = {.capacity = trials->capacity ? 2 * trials->capacity : LEAST};
    AH_TRY(ah__new(&larger.tried, larger.capacity, sizeof *larger.tried));
    for (size_t i = 0; i < trials->capacity; i++)
        if (trials->tried[i].key)
            *find(&larger, trials->tried[i].key) = trials->tried[i];
    ah__free(trials->tried);
    trials->tried = larger.tried;
    trials->capacity = larger.capacity;
    return AH_OK;
}

static int room_for_one(struct ah_trials *trials)
{
    return 2 * (trials->count + 1) > trials->capacity ? grow(trials) : AH_OK;
}

/* Stores a known time, or the higher of two lower bounds. */
static void learn(struct ah_trials *trials, struct ah_tried *tried, const struct ah_tried *learned)
{
    if (tried->key && (tried->exact || (!learned->exact && learned->step_ns <= tried->step_ns)))
        return;
    trials->count += !tried->key;
    *tried = *learned;
}

int ah__trials_add(struct ah_trials *trials, const struct ah_trials *other)
{
    for (size_t i = 0; i < other->capacity; i++) {
        const struct ah_tried *learned = &other->tried[i];
        if (!learned->key)
            continue;
        AH_TRY(room_for_one(trials));
        learn(trials, find(trials, learned->key), learned);
    }
    trials->simulated += other->simulated;
    trials->bounded += other->bounded;
    trials->items += other->items;
    return AH_OK;
}

/* Returns true if the known time or bound of a plan decides whether its step is below below_ns. */
static bool says(const struct ah_tried *tried, int64_t below_ns)
{
    return tried->key && (tried->exact || tried->step_ns >= below_ns);
}

/* Finds the entry of other trials, if it decides whether the step is below below_ns, else the own entry. */
static int look_up(struct ah_tried **out, struct ah_trials *trials, uint64_t key, int64_t below_ns)
{
    const struct ah_trials *known = trials->known;
    if (known && known->capacity) {
        *out = find(known, key);
        if (says(*out, below_ns))
            return AH_OK;
    }
    AH_TRY(room_for_one(trials));
    *out = find(trials, key);
    return AH_OK;
}

int ah__trial(bool *below, int64_t *step_ns, struct ah_trials *trials, const struct ah_plan *plan, int64_t below_ns)
{
    struct ah_tried *tried;
    uint64_t key = key_of(&plan->switches);
    AH_TRY(look_up(&tried, trials, key, below_ns));
    if (!says(tried, below_ns)) {
        int64_t simulated_ns;
        AH_TRY(ah__plan_step_below(&simulated_ns, &trials->items, plan, trials->predictor, below_ns));
        trials->simulated++;
        learn(trials, tried, &(struct ah_tried){key, simulated_ns, simulated_ns < below_ns});
    }
    *below = tried->step_ns < below_ns;
    if (*below)
        *step_ns = tried->step_ns;
    return AH_OK;
}
