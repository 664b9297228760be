/* The scheduler's state. Who calls whom: sched.c (where it begins), submitted.c and complete.c (what happened) and
 * pick.c (what comes next: fetches.c, updates.c, activations.c) call state.c, which calls none; pick.c settles by
 * complete.c. */
#ifndef AH_SCHED_INTERNAL_H
#define AH_SCHED_INTERNAL_H

#include "base/alloc.h"
#include "sched/sched.h"

/* How many items may be queued on a lane. Two keep a lane busy while the driver hears of a completion, unless the
 * device asks for more; gradients and host updates are chosen as late as possible, because a better candidate may
 * appear (their priority queues). */
enum { QUEUE_DEPTH = 2, HOST_DEPTH = 1, COMM_DEPTH = 1 };

/* Iterations with items in flight at once: updates of k, compute of k+1, input of k+2. */
enum { ITERATION_RING = 4 };

/* One item of the current round of a group: when it will have completed. */
struct item_event {
    struct ah_event event;
    bool submitted;
    int64_t round;
    int64_t arrival; /* order of submission, for first-in-first-out */
};

struct group {
    bool on_host;    /* its optimizer, so its parameters are fetched and its gradient leaves */
    bool staged;     /* on_host, and updated on the device all the same */
    bool refetches;  /* gives its parameters back between forward and backward */
    bool casts;      /* its parameters are put into a buffer by the compute lane, for forward and again for backward */
    bool unsharded;  /* a block: its parameters have a place of their own, where updates put them */
    bool casts_once; /* not a block: they are put into the place that embedding and head share, where they stay */
    enum ah_keeping keeping; /* a block: of its activations */
    bool leaves;             /* its activations wait for backward on the host */
    int passing; /* which of the blocks whose activations pass the stages; -1: they have a place of their own */
    bool pooled; /* parameters and gradient live in pool buffers (blocks), else in dedicated memory */
    int param_buffer, grad_buffer;
    int fetched;                      /* chunks of this iteration's fetch submitted */
    int offloaded, updating, updated; /* chunks of iteration ready_for: offloads and updates submitted, updates done */
    int set;                          /* of host states: the one in use */
    int shadow;                       /* the one that speculative updates of iteration ready_for write; -1: none */
    int void_chunks;     /* that are still being written there and do not count: the iteration was clipped */
    int64_t param_round; /* the round param_buffer was claimed for */
    int64_t ready_for;   /* the iteration the host parameters are up to date for */
    struct item_event fetch, refetch, forward, backward, reduce,
        update; /* fetch: its last chunk; update: on the device */
    struct item_event evict, activations_out, activations_in, sums_out, sums_in;
    struct item_event cast[2], gather[2];            /* for forward, for backward */
    struct item_event offload[AH_SCHED_MOST_CHUNKS]; /* last: pickers look at what is above, group after group */
};

struct buffer {
    bool claimed;
    struct item_event release; /* the item that frees it; unset: free from the start */
};

/* A chunk of states that is staged. */
struct staged_chunk {
    struct ah_item item;       /* the UPDATE_STAGED that it waits for */
    struct item_event arrived; /* its STATES_IN */
};

struct step {
    enum ah_item_kind kind;
    int partition;
    enum ah_phase phase;
    int below;
};

/* The steps of a lane in a round, in the only order there is, and which is next. */
struct step_list {
    struct step *steps;
    int count, forward_count; /* evaluation takes only the first forward_count */
    int at;
    int64_t round;
};

/* A place for sums of blocks: backwards use the places in turn, each until its sum has left, or is a gradient. */
struct sum_place {
    int64_t next;           /* the use it is free for, of all since the run began */
    struct item_event left; /* what ends the use before */
};

/* A place through which blocks below pass: a fetch and a forward in turn. */
struct below_place {
    struct item_event fetched, left;
};

/* Groups in ascending order; what the pickers look through instead of all groups. */
struct group_set {
    int *groups;
    int count;
};

struct ah_sched {
    struct ah_sched_config config;
    int partitions;
    struct group *groups;
    struct buffer *buffers;
    struct group_set leaving;  /* a gradient on the device with chunks that have not been sent home */
    struct group_set evicting; /* released parameters that have not been copied home */
    /* Chunks of a gradient sent home that have no update yet, of groups that the host updates and of those that stream:
     * in `held` without shadow states and before the norm is known. */
    struct group_set updating[2], held[2];
    struct group_set updated; /* chunks updated and not fetched since (only kept for policies that overtake) */
    struct group_set filling; /* a buffer claimed by a prefetch of which not all chunks are submitted */
    /* Chunks use the staging buffers in turn: those begun and not ended lie in them. */
    struct staged_chunk staged_chunks[AH_STAGING_BUFFERS];
    struct item_event stage_left[AH_STAGING_BUFFERS];
    int64_t staged_begun, staged_ended; /* STATES_IN, UPDATE_STAGED submitted */
    int param_buffers[ITERATION_RING];  /* buffers that hold fetched parameters, by the round they are for */
    int *shadow_sets;                   /* free sets of host states */
    int shadow_count;
    int free_buffers; /* not claimed; their release may still be under way */

    struct step_list compute;           /* forwards, backwards, casts and device updates, in the only order there is */
    struct step_list fetch;             /* prefetches, then refetches */
    struct step_list out, in;           /* activations that leave for the host, and come back */
    struct step_list sums_out, sums_in; /* the same of sums: in all rounds but an iteration's last, or its first */
    struct sum_place sum_places[AH_SUM_PLACES];
    struct step_list below; /* prefetches of blocks below, in every round */
    struct below_place below_places[AH_BELOW_PLACES];
    int64_t below_fetched, below_left; /* uses of a place that its fetch, its forward was submitted of, since the run
                                        * began */
    struct step_list comm; /* several ranks: gathers and reductions, in one order for all of them, see comm_next */

    int rounds; /* of an iteration */
    bool forward_only;
    int64_t first, limit; /* iterations [first, limit) since the last drain */
    int64_t input_iteration, head_iteration, loss_iteration, norm_iteration; /* next of each */
    int64_t gradient_round; /* of the next gradient to claim its buffer */
    int lowest_gradient;    /* the last group that claimed one in that round; partitions before any */
    int lowest_backward;    /* partition of the last backward submitted in this round; partitions before any */

    struct item_event input[ITERATION_RING], head[ITERATION_RING], last_compute[ITERATION_RING], norms[ITERATION_RING];
    struct item_event last_gradient[ITERATION_RING]; /* what the norms wait for: the last backward, or its reduction */
    int64_t norms_known;                             /* the host knows the norms of all iterations below */
    bool clipped[ITERATION_RING];                    /* of those it knows: the factor is not one */
    int64_t updates_redone;
    bool unsettled; /* speculative updates wait for what follows from the last norms that arrived */
    int items_done[ITERATION_RING], items; /* of those begun; all that one has */
    int64_t iterations_complete;           /* all iterations below it are complete */
    int in_flight[AH_LANE_COUNT];
    uint64_t passed[AH_LANE_COUNT]; /* sequence of the lane's last completed item */
    int64_t arrivals;
};

/* Where an iteration's entry is in arrays of ITERATION_RING. */
static inline int ah__sched_ring(int64_t iteration)
{
    return (int)((uint64_t)iteration % ITERATION_RING);
}

static inline bool ah__sched_passed(const struct ah_sched *sched, const struct item_event *of)
{
    return of->event.sequence <= sched->passed[of->event.lane];
}

/* Submitted and complete. */
static inline bool ah__sched_completed(const struct ah_sched *sched, const struct item_event *of)
{
    return of->submitted && ah__sched_passed(sched, of);
}

/* ---- what policies look at ---- */

/* Every backward of the iteration a group is in has completed. */
bool ah__sched_backward_over(const struct ah_sched *sched, int group);
/* The parameters of all groups on the host have arrived for the iteration the compute lane is in. */
bool ah__sched_all_fetched(const struct ah_sched *sched);
/* The compute lane stands before (or, its casts being ahead, just beyond) the step that a fetch is for. */
bool ah__sched_entered(const struct ah_sched *sched, const struct ah_item *fetch);
/* The host update that follows the group's last backward has completed, or has to wait for the norm. */
bool ah__sched_update_over(const struct ah_sched *sched, int group);
/* Nothing runs or is queued on a lane. */
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

/* The embedding's gradient lies where the head has added to, or is to have its own, until the last round: then all of
 * its micro-batches follow, as they do where there is one round. */
static inline bool ah__embeds_late(const struct ah_sched *sched)
{
    return sched->config.shared_embedding || ah__share_gradients(&sched->config.switches, sched->config.clips);
}

/* A place that only one group has keeps its parameters from round to round. */
static inline bool ah__stays(const struct ah_sched *sched, const struct group *group)
{
    return !group->pooled && !sched->config.switches.share_embedding_head;
}

/* Whether a round has a step that others have. */
bool ah__step_runs(const struct ah_sched *sched, const struct step *step, int64_t round);
/* Of all since the run began, the use of a place for sums that a block makes in a round. */
static inline int64_t ah__sum_use(const struct ah_sched *sched, int block, int64_t round)
{
    int layers = sched->config.switches.layers;
    return round * layers + layers - block;
}

/* The use of a place that a block below makes in a round: the same count. */
static inline int64_t ah__below_use(const struct ah_sched *sched, const struct ah_item *item)
{
    return item->round * sched->config.below + item->below - 1;
}

/* Of the lane's steps, how many there are in a round. */
static inline int ah__list_length(const struct ah_sched *sched, const struct step_list *list)
{
    return sched->forward_only ? list->forward_count : list->count;
}

/* The group begins an iteration: nothing of it has been submitted. */
void ah__events_clear(struct group *group);
/* A group has a chunk to update, or all of them again. */
void ah__update_due(struct ah_sched *sched, int index);
/* Kept in order; what is in the set already is not added again. */
void ah__group_set_add(struct group_set *set, int group);
void ah__group_set_remove(struct group_set *set, int group);

static inline const struct step *ah__step_next(const struct step_list *list)
{
    return &list->steps[list->at];
}

/* What follows from the norms that arrived last for the updates that ran before they were known. */
void ah__sched_settle(struct ah_sched *sched);
/* Items of one iteration, for knowing when it is complete. */
int ah__sched_count_items(const struct ah_sched *sched);
/* Whether the factor of an iteration is known. */
static inline bool ah__sched_norm_known(const struct ah_sched *sched, int64_t iteration)
{
    return !sched->config.clips || sched->norms_known > iteration;
}

/* What has been fetched for a round counts: it was not made by updates that still may turn out not to. */
static inline bool ah__sched_params_final(const struct ah_sched *sched, int64_t round)
{
    int64_t iteration = ah__iteration_of(sched, round);
    return sched->forward_only || iteration == sched->first || ah__sched_norm_known(sched, iteration - 1);
}

/* A group's parameters for a round have a buffer. */
static inline bool ah__holds_buffer(const struct group *group, int64_t round)
{
    return group->param_buffer >= 0 && group->param_round == round;
}

/* Blocks that give their parameters back are copied home. With several ranks what a rank owns of them stays its own. */
static inline bool ah__sched_evicts(const struct ah_sched *sched)
{
    return sched->config.policy->evicts && sched->config.switches.world_size == 1;
}

/* How many buffers the blocks optimized on the device need at once. */
int ah__sched_device_buffers(const struct ah_sched_config *config, bool backward);

#endif
