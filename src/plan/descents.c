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

/* One way down. */
struct way {
    struct ah_plan *plan;
    struct ah_trials trials;
    struct ah_effort effort;
    int status;
    char message[512]; /* of a failure, which belongs to the thread that had it */
};

struct ways {
    struct ah_descents *descents;
    const struct ah_predictor *predictor;
    int64_t floor_ns;
    struct way way[COUNT_MOST];
};

static void go(void *context, int index, int worker)
{
    struct ways *ways = context;
    struct way *way = &ways->way[index];
    way->trials.predictor = &ways->descents->predictors[worker];
    way->status = ah__plan_improve(way->plan, &way->trials, ways->predictor, ways->floor_ns, &way->effort);
    if (way->status != AH_OK)
        ah__snprintf(way->message, sizeof way->message, "%s", ah_error());
}

/* The first failure, or all that was learned. */
static int gather(struct ah_trials *trials, const struct ways *ways, int count)
{
    for (int i = 0; i < count; i++) {
        if (ways->way[i].status != AH_OK)
            return ah__fail(ways->way[i].status, "%s", ways->way[i].message);
        AH_TRY(ah__trials_add(trials, &ways->way[i].trials));
    }
    return AH_OK;
}

int ah__descents_run(struct ah_descents *descents, struct ah_plan *plans, int count, struct ah_trials *trials,
                     const struct ah_predictor *predictor, int64_t floor_ns, const struct ah_effort *effort)
{
    struct ways ways = {.descents = descents, .predictor = predictor, .floor_ns = floor_ns};
    if (count > COUNT_MOST)
        return ah__fail(AH_EINTERNAL, "%d ways down at once, expected at most %d", count, COUNT_MOST);
    for (int i = 0; i < count; i++) {
        ways.way[i] = (struct way){.plan = &plans[i], .effort = *effort};
        ways.way[i].trials = (struct ah_trials){.budget = trials->budget, .known = trials};
        ways.way[i].effort.stream += (uint64_t)i;
    }
    ah__pool_run(descents->pool, go, count, &ways);
    int status = gather(trials, &ways, count);
    for (int i = 0; i < count; i++)
        ah__trials_fini(&ways.way[i].trials);
    return status;
}
