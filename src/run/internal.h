/* A run's state, shared by run.c (making, freeing), input.c (tokens), queue.c (between two threads), drive.c (the
 * run's thread), results.c (what came of it), state.c and disk.c (loading, saving)
 * and evaluate.c. */
#ifndef AH_RUN_INTERNAL_H
#define AH_RUN_INTERNAL_H

#include <pthread.h>

#include "base/alloc.h"
#include "layout/addresses.h"
#include "run/run.h"

/* Number of Adam's constants that are kept. An iteration's updates end before the next iteration's result comes, so
 * constants may be needed of the two iterations in flight and of the one before. */
enum { AH_RUN_ADAMS = AH_RUN_IN_FLIGHT + 1 };

/* State shared by the caller's thread and the run's, guarded by the mutex. While `busy`, scheduler, device and
 * everything else in struct ah_run belong to the run's thread, else to the caller. */
struct ah_run_queue {
    pthread_mutex_t mutex;
    pthread_cond_t wake;    /* the run's thread: begun has grown, or quit */
    pthread_cond_t changed; /* the caller: a result has come, or nothing is in flight any more */
    int64_t begun;          /* iterations begun, evaluations included, as the scheduler counts them */
    int64_t results, given; /* training results that have come; results that the caller has got */
    struct ah_run_result result[AH_RUN_IN_FLIGHT];
    bool busy, quit;
    int status; /* the run's failure, with its message */
    char message[512];
};

/* Parts of a chunk on disk: states as ah__state_at counts them, then frozen parameters. */
enum { AH_RUN_FROZEN_PART = AH_STATE_COUNT, AH_RUN_PARTS };

/* A part of a chunk of a block on disk that is in a host buffer while nothing is in flight. */
struct ah_run_piece {
    int group, chunk;
    bool valid, changed; /* changed: not written yet */
};

struct ah_run {
    const struct ah_partition *partition;
    struct ah_plan plan;
    struct ah_dev *dev;
    struct ah_comm *comm; /* the ranks that train together */
    double clip;
    struct ah_bound_programs programs;
    const struct ah_partition *decoder; /* a partition with the same parameters for one token at a time; or null */
    struct ah_bound_programs decoder_programs;
    bool decodes;      /* the running evaluation is the decoder's */
    bool prefills;     /* the running evaluation ends before the head */
    bool infers;       /* the running evaluation ends at the logits */
    bool evaluates;    /* an evaluation is running */
    int64_t evaluated; /* evaluations that have run */
    double loss;       /* loss of the last evaluation */
    struct ah_layout *layout;
    struct ah_sched *sched;
    struct ah_timeline *timeline;
    struct ah_memory memory;
    struct ah_adam adam[AH_RUN_ADAMS];
    struct ah_run_piece piece[AH_RUN_PARTS];
    bool drained;        /* the next iteration begins a segment */
    bool masters_loaded; /* states were loaded; copies of parameters apart from their states are stale */
    _Atomic int64_t busy_ns[AH_LANE_COUNT]; /* the caller may look while lanes work */
    struct ah_run_queue queue;
    bool has_queue; /* mutex and conditions are initialised */
    bool has_thread;
    pthread_t thread;
};

/* Returns the partition whose programs run now. */
static inline const struct ah_partition *ah__run_partition(const struct ah_run *run)
{
    return run->decodes ? run->decoder : run->partition;
}

/* Return results of an iteration that have arrived on the host: its loss, which is the sum over micro-batches in their
 * order, and its squared gradient norms (layers + 2 doubles). */
double ah__run_loss(const struct ah_run *run, int64_t iteration);
const double *ah__run_norms(const struct ah_run *run, int64_t iteration);
/* Returns for each flag how many ranks set it. Only with several ranks. */
const float *ah__run_flag_counts(const struct ah_run *run, int64_t iteration);
/* Returns where host updates read an iteration's gradient factor. */
float *ah__run_scale(const struct ah_run *run, int64_t iteration);
/* Returns the address of p of a group's states, on device or host; the other states follow, see ah__state_at. */
static inline char *ah__run_states(const struct ah_run *run, int group)
{
    return ah__states_of(&run->memory, group, ah__sched_set(run->sched, group));
}
/* Returns this rank's share of a group's trained elements: [*first, *first + result). */
static inline int64_t ah__run_part(int64_t *first, const struct ah_run *run, int group)
{
    return ah__part_range(first, run->partition->groups[group].trained, run->comm->rank, run->comm->world_size);
}

/* state.c: copies through a lane and waits for the end of the copy. */
int ah__run_copy(struct ah_run *run, enum ah_lane lane, void *to, const void *from, int64_t bytes);

/* disk.c: makes the scratch space of blocks on disk. */
int ah__run_disk_open(struct ah_run *run);
/* Brings element `first` of this rank's part of a block's state or frozen parameters (`part`) into a host buffer.
 * Lowers *count to the elements that follow each other there from it on. `changes`: they will be written. Only while
 * drained, as the next. */
int ah__run_disk_at(char **at, int64_t *count, struct ah_run *run, int group, int part, int64_t first, bool changes);
/* Writes what has changed, and forgets what is in the buffers, which the next iteration uses. */
int ah__run_disk_settle(struct ah_run *run);

/* input.c: writes the tokens of iteration `queue.begun` into host memory, from which they are copied. */
void ah__run_input(struct ah_run *run, const struct ah_batch *batch, unsigned flags);

/* queue.c */
void ah__run_queue_init(struct ah_run *run);
/* Waits until nothing is in flight and ends the thread. */
void ah__run_queue_fini(struct ah_run *run);
/* Returns the number of iterations begun, evaluations included. */
int64_t ah__run_begun(struct ah_run *run);
/* Lets iteration `queue.begun` begin, whose tokens are written. */
void ah__run_post(struct ah_run *run);
/* Hands a result to the caller; on the run's thread. */
void ah__run_result_put(struct ah_run *run, const struct ah_run_result *result);

/* drive.c: starts the run's thread, which runs the iterations that begin. AH_ENOMEM. */
int ah__run_start(struct ah_run *run);

#endif
