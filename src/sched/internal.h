/* The scheduler's state. Calls between files: sched.c (begin), submitted.c and complete.c (events) and pick.c (the next
 * item: fetches.c, updates.c, activations.c, disk.c, sums.c) call state.c, which calls none; pick.c also calls
 * complete.c to settle. */
#ifndef AH_SCHED_INTERNAL_H
#define AH_SCHED_INTERNAL_H

#include "base/alloc.h"
#include "sched/sched.h"

/* Items that may be queued on a lane. Two keep a lane busy while the driver learns of a completion, unless the device
 * asks for more; gradients and host updates are chosen as late as possible, because a better candidate may appear
 * (their priority queues). */
enum { QUEUE_DEPTH = 2, HOST_DEPTH = 1, COMM_DEPTH = 1, DISK_DEPTH = 2 };

/* Iterations with items in flight at the same time: updates of k, compute of k+1, input of k+2. */
enum { ITERATION_RING = 4 };

/* The event of one item of a group's current round: when it will have completed. */
struct item_event {
    struct ah_event event;
    bool submitted;
    int64_t round;
    int64_t arrival; /* order of submission, for first-in-first-out */
};

/* Ways in which the states of a group on the host are updated. */
enum updated_in { UPDATED_ON_HOST, UPDATED_STAGED, UPDATED_FROM_DISK, UPDATED_IN_COUNT };

struct group {
    bool on_host;               /* its optimizer states are on the host: its parameters are fetched and its gradient is
                      * offloaded */
    bool on_disk;               /* on_host, but parameters and states pass through host buffers */
    enum updated_in updated_in; /* on_host: on the device if staged */
    bool frozen;                /* a block without backward: its parameters never change */
    bool refetches;             /* releases its parameters between forward and backward */
    bool releases;              /* releases its parameters after forward */
    bool kept;                  /* its fetched parameters stay on the device from round to round of an iteration */
    bool sum_stays;             /* its sum does, too, and becomes its gradient there */
    bool casts;      /* the compute lane copies its parameters into a buffer, for forward and again for backward */
    bool unsharded;  /* a block: its parameters have device memory of their own, which updates write */
    bool casts_once; /* not a block: its parameters are copied into the buffer shared by embedding and head, and stay
                      * there */
    enum ah_keeping keeping; /* a block: which of its activations are kept */
    bool leaves;             /* its activations are offloaded until backward */
    int passing; /* its number among blocks that use staging buffers of activations; -1: it does not use them */
    bool pooled; /* parameters and gradient are in pool buffers (blocks), else in dedicated memory */
    int param_buffer, grad_buffer;
    int fetched;                      /* chunks of this iteration's fetch submitted */
    int offloaded, updating, updated; /* chunks of iteration ready_for: offloads and updates submitted, updates done */
    int stored;                       /* on disk: chunks of the gradient of which the write there is submitted */
    int set;                          /* set of host states in use */
    int shadow;                       /* set that speculative updates of iteration ready_for write; -1: none */
    int void_chunks;     /* chunks still being written there that do not count: the iteration was clipped */
    int64_t param_round; /* round for which param_buffer was claimed */
    int64_t ready_for;   /* iteration for which the host parameters are up to date; of a frozen block INT64_MAX */
    struct item_event fetch, refetch, forward, backward, reduce,
        update; /* fetch: its last chunk; update: on the device */
    struct item_event evict, activations_out, activations_in, sums_out, sums_in;
    struct item_event cast[2], gather[2];            /* for forward, for backward */
    struct item_event offload[AH_SCHED_MOST_CHUNKS]; /* last, since pickers read the members above, group after group */
    /* A block on disk: chunks that are read for the next fetch, the buffer of each, and when it has arrived. */
    int read;
    int slot[AH_SCHED_MOST_CHUNKS];
    struct item_event arrived[AH_SCHED_MOST_CHUNKS];
};

struct buffer {
    bool claimed;
    struct item_event release; /* the item that frees it; unset: free from the start */
};

/* A chunk of states in a staging buffer. */
struct staged_chunk {
    struct ah_item item;       /* the UPDATE_STAGED that the chunk waits for */
    struct item_event arrived; /* its STATES_IN */
};

/* A host buffer through which chunks of blocks on disk pass. */
struct disk_slot {
    bool claimed;
    struct item_event release; /* the item that frees it; unset: free from the start */
};

/* A chunk of states from disk, in a host buffer until it is back; or of a gradient on its way there. */
struct disk_chunk {
    struct ah_item item; /* its update; the gradient's OFFLOAD */
    struct item_event arrived, updated;
};

/* The rounds of an iteration in which a step runs; ROUNDS_KEPT: in the first, evaluations in all. */
enum step_rounds { ROUNDS_ALL, ROUNDS_FIRST, ROUNDS_KEPT, ROUNDS_LAST, ROUNDS_BUT_FIRST, ROUNDS_BUT_LAST };

struct step {
    enum ah_item_kind kind;
    int partition;
    enum ah_phase phase;
    enum step_rounds rounds;
    int chunks; /* items that it is, 0: one */
};

/* The steps of a lane in a round, in their only order, and the next step. */
struct step_list {
    struct step *steps;
    int count, forward_count; /* evaluation takes only the first forward_count */
    int at;
    int64_t round;
};

/* A buffer for sums of blocks. Backwards use the buffers in turn, each until its sum is offloaded or has become a
 * gradient. */
struct sum_place {
    int64_t next;           /* number of the use for which it is free, counted since the run began */
    struct item_event left; /* the end of the use before */
};

/* Groups in ascending order. The pickers search these instead of all groups. */
struct group_set {
    int *groups;
    int count;
};

struct ah_sched {
    struct ah_sched_config config;
    int partitions;
    struct group *groups;
    struct buffer *buffers;
    struct group_set leaving;  /* gradients on the device with chunks that are not offloaded yet */
    struct group_set evicting; /* released parameters that are not copied to the host yet */
    /* Groups with offloaded gradient chunks that have no update yet, of updates on the host and of staged ones. Groups
     * without shadow states are in `held` until the norm is known. */
    struct group_set updating[UPDATED_IN_COUNT], held[UPDATED_IN_COUNT];
    struct group_set updated; /* chunks updated and not fetched since (only kept for policies that overtake) */
    struct group_set filling; /* buffers claimed by a prefetch of which not all chunks are submitted */
    /* Chunks use the staging buffers in turn: those begun and not ended are in them. */
    struct staged_chunk staged_chunks[AH_STAGING_BUFFERS];
    struct item_event stage_left[AH_STAGING_BUFFERS];
    int64_t staged_begun, staged_ended; /* STATES_IN, UPDATE_STAGED submitted */
    struct disk_slot disk_slots[AH_DISK_SLOTS + AH_DISK_MOST_AHEAD];
    int disk_params; /* of them, those with parameters that wait for a fetch */
    /* Chunks of states from disk, updated and written back in the order in which they are read. */
    struct disk_chunk disk_chunks[AH_DISK_SLOTS + AH_DISK_MOST_AHEAD];
    int64_t disk_begun, disk_updated, disk_ended; /* DISK_READ, updates, DISK_WRITE submitted */
    /* Chunks of gradients, written in the order in which they are offloaded. */
    struct disk_chunk disk_gradients[AH_DISK_SLOTS + AH_DISK_MOST_AHEAD];
    int64_t disk_offloaded, disk_stored; /* OFFLOAD of blocks on disk, DISK_GRADIENT submitted */
    int param_buffers[ITERATION_RING];   /* buffers with fetched parameters, by the round for which they are */
    int *shadow_sets;                    /* free sets of host states */
    int shadow_count;
    int free_buffers; /* not claimed; their release may not have completed yet */

    struct step_list compute;           /* forwards, backwards, casts and device updates, in their only order */
    struct step_list fetch;             /* prefetches, then refetches */
    struct step_list disk;              /* parameters from disk, for these fetches in their order */
    int disk_at;                        /* chunks of its next step that are submitted */
    struct step_list out, in;           /* activations that are offloaded, and fetched back */
    struct step_list sums_out, sums_in; /* sums that are offloaded, in all rounds but an iteration's last, and fetched
                                         * back, in all but its first */
    struct sum_place sum_places[AH_SUM_PLACES];
    struct step_list comm; /* several ranks: gathers and reductions, in one order on all ranks, see comm_next */

    int rounds; /* rounds of an iteration */
    bool forward_only;
    int64_t first, limit; /* iterations [first, limit) since the last drain */
    int64_t input_iteration, head_iteration, loss_iteration, norm_iteration; /* the next of each */
    int64_t gradient_round; /* round of the next gradient to claim its buffer */
    int lowest_gradient;    /* the last group that claimed one in that round; partitions before any */
    int lowest_backward;    /* partition of the last backward submitted in this round; partitions before any */

    struct item_event input[ITERATION_RING], head[ITERATION_RING], last_compute[ITERATION_RING], norms[ITERATION_RING];
    struct item_event last_gradient[ITERATION_RING]; /* the last backward, or its reduction, for which the norms wait */
    int64_t norms_known;                             /* the host knows the norms of all iterations below */
    bool clipped[ITERATION_RING];                    /* of iterations with known norms: the factor is not one */
    int64_t updates_redone;
    bool unsettled;                        /* the norms that arrived last were not applied to speculative updates yet */
    int items_done[ITERATION_RING], items; /* items done of each iteration begun; items of one iteration */
    int64_t iterations_complete;           /* all iterations below it are complete */
    int in_flight[AH_LANE_COUNT];
    uint64_t passed[AH_LANE_COUNT]; /* sequence of the lane's last completed item */
    int64_t arrivals;
};

/* Returns the index of an iteration in arrays of ITERATION_RING. */
static inline int ah__sched_ring(int64_t iteration)
{
    return (int)((uint64_t)iteration % ITERATION_RING);
}

/* Returns a chunk of states from disk by its number since the run began. */
static inline struct disk_chunk *ah__disk_chunk(struct ah_sched *sched, int64_t number)
{
    return &sched->disk_chunks[(uint64_t)number % AH_LENGTH(sched->disk_chunks)];
}

/* Returns a chunk of a gradient by its number. */
static inline struct disk_chunk *ah__disk_gradient(struct ah_sched *sched, int64_t number)
{
    return &sched->disk_gradients[(uint64_t)number % AH_LENGTH(sched->disk_gradients)];
}

/* Returns how many chunks of a group's gradient are where updates read them, or on their way there. */
static inline int ah__gradient_chunks(const struct group *group)
{
    return group->on_disk ? group->stored : group->offloaded;
}

static inline bool ah__sched_passed(const struct ah_sched *sched, const struct item_event *of)
{
    return of->event.sequence <= sched->passed[of->event.lane];
}

/* Returns true if the item was submitted and has completed. */
static inline bool ah__sched_completed(const struct ah_sched *sched, const struct item_event *of)
{
    return of->submitted && ah__sched_passed(sched, of);
}

/* ---- what policies look at ---- */

/* Returns true if every backward of the iteration a group is in has completed. */
bool ah__sched_backward_over(const struct ah_sched *sched, int group);
/* Returns true if the parameters of all groups on the host have arrived for the iteration the compute lane is in. */
bool ah__sched_all_fetched(const struct ah_sched *sched);
/* Returns true if the compute lane has come to the step that needs a fetch (or, if its casts are ahead, just beyond
 * it). */
bool ah__sched_entered(const struct ah_sched *sched, const struct ah_item *fetch);
/* Returns true if the host update after the group's last backward has completed, or has to wait for the norm. */
bool ah__sched_update_over(const struct ah_sched *sched, int group);
/* Returns true if nothing runs or is queued on a lane. */
static inline bool ah__sched_idle(const struct ah_sched *sched, enum ah_lane lane)
{
    return sched->in_flight[lane] == 0;
}

/* ---- rounds ---- */

static inline int64_t ah__iteration_of(const struct ah_sched *sched, int64_t round)
{
    return sched->rounds > 1 ? round / sched->rounds : round;
}

static inline int64_t ah__first_round(const struct ah_sched *sched, int64_t iteration)
{
    return iteration * sched->rounds;
}

static inline int64_t ah__last_round(const struct ah_sched *sched, int64_t iteration)
{
    return iteration * sched->rounds + sched->rounds - 1;
}

static inline bool ah__begins_iteration(const struct ah_sched *sched, int64_t round)
{
    return round == ah__first_round(sched, ah__iteration_of(sched, round));
}

static inline bool ah__ends_iteration(const struct ah_sched *sched, int64_t round)
{
    return round == ah__last_round(sched, ah__iteration_of(sched, round));
}

/* Returns true if the embedding's gradient uses the same memory as the head's until the last round. Then all its
 * micro-batches run in the last round, in the same order as with one round. */
static inline bool ah__embeds_late(const struct ah_sched *sched)
{
    return sched->config.shared_embedding || ah__share_gradients(&sched->config.switches, sched->config.clips);
}

/* Returns true if a group's parameters stay on the device from round to round, since their memory is not shared. */
static inline bool ah__stays(const struct ah_sched *sched, const struct group *group)
{
    return !group->pooled && !sched->config.switches.share_embedding_head;
}

/* Returns true if a round has the step; some rounds lack steps of others. */
bool ah__step_runs(const struct ah_sched *sched, const struct step *step, int64_t round);
/* Returns the number of the use of a sum buffer that a block makes in a round, counted since the run began. Blocks
 * whose sums stay have none. */
static inline int64_t ah__sum_use(const struct ah_sched *sched, int block, int64_t round)
{
    const struct ah_switches *switches = &sched->config.switches;
    int taking_turns = ah__trained_blocks(switches) - ah__staying_sums(switches, sched->rounds);
    return round * taking_turns + switches->layers - block;
}

/* Returns the number of steps of a list in a round. */
static inline int ah__list_length(const struct ah_sched *sched, const struct step_list *list)
{
    return sched->forward_only ? list->forward_count : list->count;
}

/* Notes the iteration for which a group's parameters on the host are up to date. */
static inline void ah__group_ready(struct group *group, int64_t iteration)
{
    group->ready_for = group->frozen ? INT64_MAX : iteration;
}

/* Clears a group's events at the start of an iteration: nothing of it has been submitted. */
void ah__events_clear(struct group *group);
/* Notes that a group has a chunk to update, or all chunks again. */
void ah__update_due(struct ah_sched *sched, int index);
/* Adds a group to an ordered set, unless it is in the set already; removes a group. */
void ah__group_set_add(struct group_set *set, int group);
void ah__group_set_remove(struct group_set *set, int group);

static inline const struct step *ah__step_next(const struct step_list *list)
{
    return &list->steps[list->at];
}

/* Applies the norms that arrived last to updates that ran before they were known. */
void ah__sched_settle(struct ah_sched *sched);
/* Returns the number of items of one iteration, by which its end is recognised. */
int ah__sched_count_items(const struct ah_sched *sched);
/* Returns true if the factor of an iteration is known. */
static inline bool ah__sched_norm_known(const struct ah_sched *sched, int64_t iteration)
{
    return !sched->config.clips || sched->norms_known > iteration;
}

/* Returns true if parameters fetched for a round are final, since no speculative update that may not count has made
 * them. */
static inline bool ah__sched_params_final(const struct ah_sched *sched, int64_t round)
{
    int64_t iteration = ah__iteration_of(sched, round);
    return sched->forward_only || iteration == sched->first || ah__sched_norm_known(sched, iteration - 1);
}

/* Returns true if a group's parameters for a round have a buffer. */
static inline bool ah__holds_buffer(const struct group *group, int64_t round)
{
    return group->param_buffer >= 0 && group->param_round == round;
}

/* Returns true if released parameters are copied to the host. With several ranks a rank's shard stays its own. */
static inline bool ah__sched_evicts(const struct ah_sched *sched)
{
    return sched->config.policy->evicts && sched->config.switches.world_size == 1;
}

/* Returns true if no block's gradient is in a buffer. */
bool ah__sched_own_gradients(const struct ah_sched_config *config);
/* Returns the number of blocks optimized on the device whose gradients are in buffers. */
int ah__sched_device_gradients(const struct ah_sched_config *config);
/* Returns how many buffers the blocks optimized on the device need at the same time. */
int ah__sched_device_buffers(const struct ah_sched_config *config, bool backward);

#endif
