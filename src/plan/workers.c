#include "plan/workers.h"

#include "base/alloc.h"
#include "base/format.h"
#include "dev/host/machine.h"
#include "dev/host/pool.h"
#include "dev/ranks.h"

enum { THREADS_MOST = 12 };

struct ah_workers {
    struct ah_pool *pool;
    int threads;
    struct ah_predictor predictors[THREADS_MOST]; /* with a simulated device for each thread */
};

void ah__workers_free(struct ah_workers *workers)
{
    if (!workers)
        return;
    ah__pool_free(workers->pool);
    for (int i = 0; i < workers->threads; i++)
        ah__predictor_fini(&workers->predictors[i]);
    ah__free(workers);
}

static int workers_init(struct ah_workers *workers, const struct ah_predictor *predictor)
{
    int cores = ah__ranks_cores(ah__comm(), ah__host_cores(NULL));
    int threads = cores < THREADS_MOST ? cores : THREADS_MOST;
    for (; workers->threads < threads; workers->threads++) {
        struct ah_predictor *own = &workers->predictors[workers->threads];
        struct ah_dev *sim;
        AH_TRY(ah__dev_sim_open(&sim, &predictor->costs.lanes));
        *own = *predictor;
        own->sim = sim;
    }
    int status = ah__pool_new(&workers->pool, threads, -1);
    /* If the system has no more threads, one thread finds the same plans, only later. */
    return status == AH_EDEVICE ? ah__pool_new(&workers->pool, 1, -1) : status;
}

int ah__workers_new(struct ah_workers **out, const struct ah_predictor *predictor)
{
    struct ah_workers *workers;
    AH_TRY(ah__new(&workers, 1, sizeof *workers));
    int status = workers_init(workers, predictor);
    if (status != AH_OK) {
        ah__workers_free(workers);
        return status;
    }
    *out = workers;
    return AH_OK;
}

/* The work of one index. */
struct share {
    struct ah_trials trials;
    int status;
    char message[512]; /* message of a failure, copied since messages belong to threads */
};

struct shares {
    struct ah_workers *workers;
    int (*work)(void *context, int index, struct ah_trials *own);
    void *context;
    struct share *share;
};

static void go(void *context, int index, int worker)
{
    struct shares *shares = context;
    struct share *share = &shares->share[index];
    share->trials.predictor = &shares->workers->predictors[worker];
    share->status = shares->work(shares->context, index, &share->trials);
    if (share->status != AH_OK)
        ah__snprintf(share->message, sizeof share->message, "%s", ah_error());
}

/* Returns the first failure, or adds all times to `trials`. */
static int gather(struct ah_trials *trials, const struct shares *shares, int count)
{
    for (int i = 0; i < count; i++) {
        if (shares->share[i].status != AH_OK)
            return ah__fail(shares->share[i].status, "%s", shares->share[i].message);
        AH_TRY(ah__trials_add(trials, &shares->share[i].trials));
    }
    return AH_OK;
}

int ah__workers_each(struct ah_workers *workers, int (*work)(void *context, int index, struct ah_trials *own),
                     void *context, int count, struct ah_trials *trials)
{
    struct shares shares = {.workers = workers, .work = work, .context = context};
    AH_TRY(ah__new(&shares.share, (size_t)count, sizeof *shares.share));
    for (int i = 0; i < count; i++)
        shares.share[i].trials = (struct ah_trials){.budget = trials->budget, .known = trials};
    ah__pool_run(workers->pool, go, count, &shares);
    int status = gather(trials, &shares, count);
    for (int i = 0; i < count; i++)
        ah__trials_fini(&shares.share[i].trials);
    ah__free(shares.share);
    return status;
}
