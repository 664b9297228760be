/* A run's state, shared by run.c (driving), addresses.c (where everything lies) and state.c (loading, saving,
 * evaluating). */
#ifndef AH_RUN_INTERNAL_H
#define AH_RUN_INTERNAL_H

#include <pthread.h>

#include "base/alloc.h"
#include "bind/bind.h"
#include "run/run.h"

/* Of Adam's constants as many are kept: an iteration's updates end before the result of the one behind it comes, so
 * that those of two iterations in flight and of the one before may be asked for. */
enum { AH_RUN_ADAMS = AH_RUN_IN_FLIGHT + 1 };

/* What the caller's thread and the run's share, all of it guarded by the mutex. While `busy`, scheduler, device and
 * everything else in struct ah_run are the run's thread's, else the caller's. */
struct ah_run_queue {
    pthread_mutex_t mutex;
    pthread_cond_t wake;    /* the run's thread: begun has grown, or quit */
    pthread_cond_t changed; /* the caller: a result has come, or nothing is in flight any more */
    int64_t begun;          /* iterations, evaluations included: what the scheduler counts */
    int64_t results, given; /* training results that have come, and that the caller was given */
    struct ah_run_result result[AH_RUN_IN_FLIGHT];
    bool busy, quit;
    int status; /* the run's failure, with its message */
    char message[512];
};

struct ah_run {
    const struct ah_partition *partition;
    struct ah_plan plan;
    struct ah_dev *dev;
    struct ah_comm *comm; /* the ranks that train together */
    double clip;
    struct ah_bound_programs programs;
    const struct ah_partition *decoder; /* of the same parameters, one token at a time; or null */
    struct ah_bound_programs decoder_programs;
    bool decodes;      /* the running evaluation is the decoder's */
    bool prefills;     /* the running evaluation ends before the head */
    bool infers;       /* the running evaluation ends at the logits */
    bool evaluates;    /* what runs is an evaluation */
    int64_t evaluated; /* evaluations that have run */
    double loss;       /* of the last */
    struct ah_layout *layout;
    struct ah_sched *sched;
    struct ah_timeline *timeline;
    char *device, *host; /* bases of the region and of host memory */
    struct ah_adam adam[AH_RUN_ADAMS];
    bool drained;        /* the next iteration begins a segment */
    bool masters_loaded; /* copies of parameters beside their states are not yet those of the new ones */
    _Atomic int64_t busy_ns[AH_LANE_COUNT]; /* the caller may look while lanes work */
    struct ah_run_queue queue;
    bool has_queue; /* mutex and conditions are initialised */
    bool has_thread;
    pthread_t thread;
};

/* Whose programs run now. */
static inline const struct ah_partition *ah__run_partition(const struct ah_run *run)
{
    return run->decodes ? run->decoder : run->partition;
}

/* Where an item's operands lie. */
void ah__run_addresses(struct ah_addresses *at, const struct ah_run *run, const struct ah_item *item);

/* Where an iteration's tokens wait to be copied to the device. */
char *ah__run_tokens(const struct ah_run *run, int64_t iteration);
/* What has arrived on the host: an iteration's loss, that of its micro-batches added up in their order, and its squared
 * gradient norms (layers + 2 doubles). */
double ah__run_loss(const struct ah_run *run, int64_t iteration);
const double *ah__run_norms(const struct ah_run *run, int64_t iteration);
/* Several ranks: how many of them set each flag. */
const float *ah__run_flag_counts(const struct ah_run *run, int64_t iteration);
/* Where updates on the host read the factor of an iteration. */
float *ah__run_scale(const struct ah_run *run, int64_t iteration);
/* p of a group's states wherever they live; the others follow, see ah__state_at. */
char *ah__run_states(const struct ah_run *run, int group);
/* The trained elements [*first, *first + result) of a group that this rank has. */
int64_t ah__run_part(int64_t *first, const struct ah_run *run, int group);

/* run.c: writes the tokens of iteration `queue.begun` where they are copied from. */
void ah__run_input(struct ah_run *run, const struct ah_batch *batch, unsigned flags);

/* queue.c: the run's thread, and what the caller tells it. */
int ah__run_queue_init(struct ah_run *run);
/* Waits for what is in flight and ends the thread. */
void ah__run_queue_fini(struct ah_run *run);
/* Iterations begun, evaluations included. */
int64_t ah__run_begun(struct ah_run *run);
/* The tokens of iteration `queue.begun` are written: lets it begin. */
void ah__run_post(struct ah_run *run);
/* Hands a result to the caller; on the run's thread. */
void ah__run_result_put(struct ah_run *run, const struct ah_run_result *result);

/* drive.c: on the run's thread. Runs all that has begun, also what begins meanwhile. */
int ah__run_drive(struct ah_run *run);

#endif
