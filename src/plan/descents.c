#include "plan/descents.h"

#include "base/alloc.h"
#include "base/format.h"
#include "dev/host/machine.h"
#include "dev/host/pool.h"
#include "dev/ranks.h"

enum { THREADS_MOST = 12, COUNT_MOST = 16 };

struct ah_descents {
    struct ah_pool *pool;
    int threads;
    struct ah_predictor predictors[THREADS_MOST]; /* a simulated device for each thread */
};

void ah__descents_free(struct ah_descents *descents)
{
    if (!descents)
        return;
    ah__pool_free(descents->pool);
    for (int i = 0; i < descents->threads; i++)
        ah__predictor_fini(&descents->predictors[i]);
    ah__free(descents);
}

static int descents_init(struct ah_descents *descents, const struct ah_predictor *predictor)
{
    int cores = ah__ranks_cores(ah__comm(), ah__host_cores(NULL));
    int threads = cores < THREADS_MOST ? cores : THREADS_MOST;
    for (; descents->threads < threads; descents->threads++) {
        struct ah_predictor *own = &descents->predictors[descents->threads];
        struct ah_dev *sim;
        AH_TRY(ah__dev_sim_open(&sim, &predictor->costs.lanes));
        *own = *predictor;
        own->sim = sim;
    }
    int status = ah__pool_new(&descents->pool, threads, -1);
    /* The same plans are found where the system has no more threads to give, only later. */
    return status == AH_EDEVICE ? ah__pool_new(&descents->pool, 1, -1) : status;
}

int ah__descents_new(struct ah_descents **out, const struct ah_predictor *predictor)
{
    struct ah_descents *descents;
    AH_TRY(ah__new(&descents, 1, sizeof *descents));
    int status = descents_init(descents, predictor);
    if (status != AH_OK) {
        ah__descents_free(descents);
        return status;
    }
    *out = descents;
    return AH_OK;
}

/* Work of one index. */
struct share {
    struct ah_trials trials;
    int status;
    char message[512]; /* of a failure, which belongs to the thread that had it */
};

struct shares {
    struct ah_descents *descents;
    int (*work)(void *context, int index, struct ah_trials *own);
    void *context;
    struct share share[COUNT_MOST];
};

static void go(void *context, int index, int worker)
{
    struct shares *shares = context;
    struct share *share = &shares->share[index];
    share->trials.predictor = &shares->descents->predictors[worker];
    share->status = shares->work(shares->context, index, &share->trials);
    if (share->status != AH_OK)
        ah__snprintf(share->message, sizeof share->message, "%s", ah_error());
}

/* The first failure, or all that was learned. */
static int gather(struct ah_trials *trials, const struct shares *shares, int count)
{
    for (int i = 0; i < count; i++) {
        if (shares->share[i].status != AH_OK)
            return ah__fail(shares->share[i].status, "%s", shares->share[i].message);
        AH_TRY(ah__trials_add(trials, &shares->share[i].trials));
    }
    return AH_OK;
}

int ah__descents_each(struct ah_descents *descents, int (*work)(void *context, int index, struct ah_trials *own),
                      void *context, int count, struct ah_trials *trials)
{
    struct shares shares = {.descents = descents, .work = work, .context = context};
    if (count > COUNT_MOST)
        return ah__fail(AH_EINTERNAL, "%d plans at once, expected at most %d", count, COUNT_MOST);
    for (int i = 0; i < count; i++)
        shares.share[i].trials = (struct ah_trials){.budget = trials->budget, .known = trials};
    ah__pool_run(descents->pool, go, count, &shares);
    int status = gather(trials, &shares, count);
    for (int i = 0; i < count; i++)
        ah__trials_fini(&shares.share[i].trials);
    return status;
}

struct ways {
    struct ah_plan *plans;
    const struct ah_predictor *predictor;
    int64_t floor_ns;
    const struct ah_effort *effort;
};

static int go_down(void *context, int index, struct ah_trials *own)
{
    const struct ways *ways = context;
    struct ah_effort effort = *ways->effort;
    effort.stream += (uint64_t)index;
    return ah__plan_improve(&ways->plans[index], own, ways->predictor, ways->floor_ns, &effort);
}

int ah__descents_run(struct ah_descents *descents, struct ah_plan *plans, int count, struct ah_trials *trials,
                     const struct ah_predictor *predictor, int64_t floor_ns, const struct ah_effort *effort)
{
    struct ways ways = {.plans = plans, .predictor = predictor, .floor_ns = floor_ns, .effort = effort};
    return ah__descents_each(descents, go_down, &ways, count, trials);
}
