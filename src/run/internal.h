/* A run's state, shared by run.c (driving), addresses.c (where everything lies) and state.c (loading, saving,
 * evaluating). */
#ifndef AH_RUN_INTERNAL_H
#define AH_RUN_INTERNAL_H

#include "base/alloc.h"
#include "bind/bind.h"
#include "run/run.h"

struct ah_run {
    const struct ah_partition *partition;
    struct ah_plan plan;
    struct ah_dev *dev;
    struct ah_comm *comm; /* the ranks that train together */
    struct ah_run_hooks hooks;
    struct ah_bound_programs programs;
    const struct ah_partition *decoder; /* of the same parameters, one token at a time; or null */
    struct ah_bound_programs decoder_programs;
    bool decodes;  /* the running evaluation is the decoder's */
    bool prefills; /* the running evaluation ends before the head */
    struct ah_layout *layout;
    struct ah_sched *sched;
    struct ah_timeline *timeline;
    char *device, *host;         /* bases of the region and of host memory */
    int64_t iteration;           /* iterations completed, evaluations included: what the scheduler counts */
    int64_t trained;             /* training iterations completed: what hooks count */
    struct ah_batch all;         /* several ranks: of one step of all of them; else null */
    const struct ah_batch *eval; /* of a running evaluation, else null */
    int64_t input_iteration;     /* the last whose batch was asked for, as the scheduler counts */
    bool infer;                  /* the running evaluation ends at the logits */
    bool masters_loaded;         /* what is made of the masters in the compute dtype is not yet that of the new ones */
    int64_t busy_ns[AH_LANE_COUNT];
    double loss; /* of the last completed evaluation */
};

/* Whose programs run now. */
static inline const struct ah_partition *ah__run_partition(const struct ah_run *run)
{
    return run->decodes ? run->decoder : run->partition;
}

/* Where an item's operands lie. */
void ah__run_addresses(struct ah_addresses *at, const struct ah_run *run, const struct ah_item *item);

/* The training iteration (as hooks count) of a scheduler iteration. */
int64_t ah__run_training_iteration(const struct ah_run *run, int64_t iteration);
/* What has arrived on the host: an iteration's loss, that of its micro-batches added up in their order, and its squared
 * gradient norms (layers + 2 doubles). */
double ah__run_loss(const struct ah_run *run, int64_t iteration);
const double *ah__run_norms(const struct ah_run *run, int64_t iteration);
/* Several ranks: the sums of their words, which say whether to stop. */
const float *ah__run_words(const struct ah_run *run, int64_t iteration);
/* Where updates on the host read the factor of an iteration. */
float *ah__run_scale(const struct ah_run *run, int64_t iteration);
/* p of a group's fp32 states wherever they live; m and v follow at layout->groups[g].state_bytes each. */
char *ah__run_states(const struct ah_run *run, int group);
/* The elements [*first, *first + result) of a group's states that this rank has. */
int64_t ah__run_part(int64_t *first, const struct ah_run *run, int group);
/* Drives the scheduler to `limit`; first, after masters were loaded, makes what is fetched and used of them. */
int ah__run_drive(struct ah_run *run, int64_t limit, bool forward_only, struct ah_timeline *timeline);

#endif
