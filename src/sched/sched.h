/* The scheduler: what may be submitted next. No threads, no clock, no memory of its own beyond counters.
 *
 * It is told what was submitted and what has completed, and answers with the next item, its lane, the buffers it holds
 * and the events it must wait for. The same code drives the simulated and the real devices (drive.h).
 *
 * It cannot deadlock. Buffers are claimed in the order in which the compute lane needs them: forward fetches, then for
 * each backward step its fetch and its gradient. A fetch may run ahead of an earlier gradient's claim only while one
 * more buffer stays free for it. Every claimed buffer is released by work that claims nothing further. */
#ifndef AH_SCHED_SCHED_H
#define AH_SCHED_SCHED_H

#include "sched/costs.h"
#include "sched/item.h"
#include "sched/switch_table.h"

/* What the scheduler needs to know of a plan and its model. */
struct ah_sched_config {
    /* Several ranks: only this rank's part stays on the device, a CAST (of what stays) or a fetch (of what does not)
     * puts it into a buffer around forward and around backward, a GATHER fills the rest, and a REDUCE leaves this
     * rank's part of the summed gradient before it goes home or is used. */
    struct ah_switches switches;
    bool shared_embedding; /* the head reads group 0 as well */
    bool own_gradients;    /* gradients of blocks have places of their own, not buffers */
    int below;             /* frozen blocks that run between embedding and blocks */
    bool frozen_embedding; /* no update changes the embedding */
    /* An iteration is so many rounds over the whole model, 0 and 1: one. Each runs forward and backward of its share of
     * the micro-batches; what follows from gradients comes in the last. Between rounds the sums of blocks are on the
     * host, if anything of a block is trained; those of embedding and head stay where they are. */
    int rounds, micro_batches;
    bool sums_blocks;
    /* Updates are scaled by a factor that follows from the norm of all gradients of the iteration. Updates on the
     * device come after the last backward; on the host an update before the norm is known is speculative: it takes the
     * factor to be one and writes shadow states, which become the block's when the factor is one and is
     * forgotten when it is not. The parameters in it may be fetched before that is known, but not used; those that were
     * forgotten are fetched again. */
    bool clips;
    const struct ah_policy *policy;
    int queue_depth; /* the device's (struct ah_dev_info); 0: two */
};

struct ah_sched;

/* A policy: who goes first, what has to wait although its data are there, and which placements it knows. One table per
 * policy_*.c, which names what differs from zero: first come first served, no gates, no barrier, all placements
 * searched. Gates may hold back an item only until something that is in flight or may start has completed, else they
 * deadlock. */
struct ah_policy {
    const char *name;
    const char *description;
    enum ah_switch_use uses; /* which switches the search may set; published systems have no more than BASIC */
    uint32_t without;        /* switches (bits) that it may not set all the same: for comparisons */
    bool barrier;            /* nothing of iteration k+1 before everything of k is complete */
    bool all_at_once;        /* the first forward waits until the parameters of all groups on the host have arrived */
    bool overtakes; /* parameters that are ready may be fetched before others that are needed earlier but not ready */
    bool waits_off_lane; /* a fetch without a free buffer is not queued behind one, but takes what becomes free first */
    bool gathers_late;   /* of several ranks, plans with too few buffers to gather ahead are its own, too */
    bool evicts;         /* parameters that are released between forward and backward are copied home first */
    /* The earliest block goes first among gradients ready to leave, and among groups ready for their update. */
    bool earliest_gradient, earliest_update;
    /* Gates, null: open. FORWARD, BACKWARD / PREFETCH, REFETCH / OFFLOAD / UPDATE_HOST items. */
    bool (*may_compute)(const struct ah_sched *sched, const struct ah_item *item);
    bool (*may_fetch)(const struct ah_sched *sched, const struct ah_item *item);
    bool (*may_offload)(const struct ah_sched *sched, int group);
    bool (*may_update)(const struct ah_sched *sched, int group);
    /* The index-th placement that a published system considers: its switches but world_size, chunks and out_of_order;
     * buffers below what cannot deadlock are raised to that. False after the last. Null: the planner searches all. */
    bool (*placement)(struct ah_switches *out, int layers, int index);
    /* With and without checkpointing it takes the first placement that fits and that `suffices` (null: each does), else
     * the last that fits. Else the fastest is taken for it. */
    bool first_fit;
    bool (*suffices)(const struct ah_switches *placement, const struct ah_costs *costs);
};
/* Whether the search may set a switch under the policy. */
static inline bool ah__policy_uses(const struct ah_policy *policy, enum ah_switch index)
{
    return ah__switch_table[index].use <= policy->uses && !(policy->without >> index & 1);
}
extern const struct ah_policy ah__policy_autohete, ah__policy_autohete_paper, ah__policy_autohete_fifo,
    ah__policy_resident, ah__policy_zero_offload, ah__policy_patrickstar, ah__policy_stronghold,
    ah__policy_stronghold_best, ah__policy_l2l;
/* Switches (bits) that its search may not set. */
uint32_t ah__policy_unused(const struct ah_policy *policy);
/* null when unknown; ah__policies is null-terminated. */
const struct ah_policy *ah__policy_find(const char *name);
extern const struct ah_policy *const ah__policies[];
/* Whether the policy brings its own placements; else the planner searches all. */
bool ah__policy_is_placed(const struct ah_policy *policy);
/* "autohete, autohete-fifo, ... or resident", for messages. */
const char *ah__policy_names(void);

int ah__sched_new(struct ah_sched **out, const struct ah_sched_config *config);
void ah__sched_free(struct ah_sched *sched);
/* Smallest number of buffers with which this configuration cannot deadlock. */
int ah__sched_min_buffers(const struct ah_sched_config *config);

/* Let iterations up to (not including) `limit` start; forward_only: evaluation iterations without backward and updates.
 * Only while drained. */
void ah__sched_limit(struct ah_sched *sched, int64_t limit, bool forward_only);
/* Raises the limit of training iterations: also while some are in flight. */
void ah__sched_extend(struct ah_sched *sched, int64_t limit);
/* Whether everything up to the limit is complete. */
bool ah__sched_drained(const struct ah_sched *sched);

/* Iterations completed since the scheduler was made: all below this number. */
int64_t ah__sched_iterations(const struct ah_sched *sched);

/* An item to be submitted now, with its lane and the events it must wait for. */
struct ah_next {
    struct ah_item item;
    enum ah_lane lane;
    int waits;
    struct ah_event wait[AH_WORK_MAX_WAITS];
};
/* The next item, or false when nothing may be submitted now. */
bool ah__sched_next(struct ah_sched *sched, struct ah_next *next);
/* The item given last was submitted and will complete at `event`. */
void ah__sched_submitted(struct ah_sched *sched, const struct ah_next *next, struct ah_event event);
/* The lane's oldest item, which is `item`, has completed. */
void ah__sched_complete(struct ah_sched *sched, enum ah_lane lane, const struct ah_item *item);

/* The norm of an iteration is not within the limit, so that its speculative updates do not count. To be told while its
 * RESULT (norms) completes: after ah__sched_complete, before the next ah__sched_next. */
void ah__sched_clipped(struct ah_sched *sched, int64_t iteration);
/* The set that holds a block's host states; 0 for what is elsewhere. Only while drained. */
int ah__sched_set(const struct ah_sched *sched, int group);

/* Speculative updates that did not count, since the scheduler was made. */
int64_t ah__sched_updates_redone(const struct ah_sched *sched);

/* Buffers in use now (claimed and not yet released by a completed item). */
int ah__sched_buffers_used(const struct ah_sched *sched);

#endif
