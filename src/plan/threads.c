/* How the cores are shared by device and host: the planner predicts a step under each of a few splits and takes the
 * fastest. No bit depends on it. */
#include "plan/threads.h"

#include "dev/host/machine.h"
#include "dev/ranks.h"
#include "plan/search.h"
#include "profile/profile.h"

int ah__threads_attempts(int cores, int host_threads,
                         int (*attempt)(bool *faster, int threads, int host_threads, void *context), void *context)
{
    int best = host_threads ? host_threads : 1;
    bool faster;
    AH_TRY(attempt(&faster, cores, best, context));
    for (int host = 2; !host_threads && faster && host <= cores; host *= 2) {
        AH_TRY(attempt(&faster, cores, host, context));
        if (faster)
            best = host;
    }
    if (best == cores && !host_threads)
        best /= 2; /* so that a core is left to compute with */
    return best > 0 && best < cores ? attempt(&faster, cores - best, best, context) : AH_OK;
}

struct choice {
    const struct ah_threads_options *options;
    struct ah_comm *comm;      /* of those that try together */
    struct ah_threads best;    /* without a profile: none yet */
    int threads, host_threads; /* tried last */
};

static int split_open(struct ah_dev **dev, const struct ah_threads_options *options, int threads, int host_threads)
{
    struct ah_dev_options own = options->dev;
    own.threads = threads;
    own.host_threads = host_threads;
    int status = ah_dev_open(dev, options->device, &own);
    return status == AH_EINPUT ? ah__fail_prefix(status, "threads: auto") : status;
}

/* Rank 0's, for all of them. */
static int plan_for(struct ah_threads *split, const struct choice *choice)
{
    const struct ah_threads_options *options = choice->options;
    struct ah_comm *comm = choice->comm;
    const struct ah_search_options kept = {.cache = options->profile.cache, .renew = options->profile.renew};
    struct ah_budget budget = options->budget;
    if (!budget.device_bytes)
        budget.device_bytes = ah__dev_region_bytes(split->dev);
    AH_TRY(ah__comm_agree(comm, comm->rank ? AH_OK
                                           : ah__plan_make(&split->plan, options->plan, options->partition,
                                                           split->profile, &budget, options->policy, &kept)));
    return comm->ops->move(comm, &split->plan, sizeof split->plan, 0, AH_ALL_RANKS);
}

/* As many compute threads do alone what they did: what differs is then not the machine's noise. */
static const struct ah_profile *profile_like(const struct ah_threads *split, const struct ah_threads *best)
{
    return split->threads == best->threads ? best->profile : NULL;
}

/* Of several ranks each has the same status. */
static int split_judge(struct ah_threads *split, const struct choice *choice)
{
    const struct ah_threads_options *options = choice->options;
    const struct ah_profile *like = profile_like(split, &choice->best);
    AH_TRY(ah__comm_agree(choice->comm, split_open(&split->dev, options, split->threads, split->host_threads)));
    AH_TRY(ah__comm_agree(choice->comm,
                          ah__profile_measure_kept(&split->profile, &split->profile_kept_s, options->partition,
                                                   split->dev, like, &options->profile)));
    return plan_for(split, choice);
}

/* One device is open at a time: none disturbs what is measured on another. */
static int attempt(bool *faster, int threads, int host_threads, void *context)
{
    struct choice *choice = context;
    struct ah_threads split = {.threads = threads, .host_threads = host_threads, .tried = choice->best.tried + 1};
    choice->threads = threads;
    choice->host_threads = host_threads;
    int status = split_judge(&split, choice);
    ah_dev_close(split.dev);
    split.dev = NULL;
    *faster = status == AH_OK && (!choice->best.profile || split.plan.step_ns < choice->best.plan.step_ns);
    choice->best.tried = split.tried;
    ah_profile_free(*faster ? choice->best.profile : split.profile);
    if (*faster)
        choice->best = split;
    return status == AH_EBUDGET ? AH_OK : status;
}

/* The cores that a device counts, and what is given: rank 0's. */
static int numbers_find(int *cores, int *host_threads, const struct choice *choice)
{
    struct ah_comm *comm = choice->comm;
    int numbers[] = {ah__ranks_cores(ah__comm(), ah__host_cores(NULL)), choice->options->dev.host_threads};
    AH_TRY(comm->ops->move(comm, numbers, sizeof numbers, 0, AH_ALL_RANKS));
    *cores = numbers[0];
    *host_threads = numbers[1];
    return AH_OK;
}

int ah_threads_choose(struct ah_threads *out, const struct ah_threads_options *options)
{
    int cores, host_threads;
    struct choice choice = {.options = options,
                            .comm = ah__step_ranks(options->partition) > 1 ? ah__comm() : ah__comm_self()};
    AH_TRY(numbers_find(&cores, &host_threads, &choice));
    int status = ah__threads_attempts(cores, host_threads, attempt, &choice);
    struct ah_threads *best = &choice.best;
    if (status == AH_OK && !best->profile) {
        *out = (struct ah_threads){.threads = choice.threads, .host_threads = choice.host_threads};
        return AH_EBUDGET; /* the last one's message stands */
    }
    if (status == AH_OK)
        status = ah__comm_agree(choice.comm, split_open(&best->dev, options, best->threads, best->host_threads));
    if (status != AH_OK) {
        ah_dev_close(best->dev);
        ah_profile_free(best->profile);
        return status;
    }
    *out = *best;
    return AH_OK;
}
