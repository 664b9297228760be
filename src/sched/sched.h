/* The scheduler: chooses what is submitted next. No threads, no clock, no memory of its own beyond counters.
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

/* Everything the scheduler knows of a plan and its model. */
struct ah_sched_config {
    /* With several ranks only this rank's shard stays on the device. Around forward and around backward a CAST (of a
     * shard on the device) or a fetch (of one on the host) puts it into a buffer, a GATHER fills the rest, and a REDUCE
     * leaves this rank's shard of the summed gradient before that is offloaded or used. */
    struct ah_switches switches;
    bool shared_embedding; /* the head also reads group 0 */
    bool own_gradients;    /* gradients of blocks have memory of their own, not buffers */
    bool frozen_embedding; /* no update changes the embedding */
    /* An iteration has so many rounds over the whole model; 0 and 1: one. Each runs forward and backward of its share
     * of the micro-batches; norm, offloads and updates are in the last. Fetched parameters that stay from forward to
     * backward stay from round to round, unless the policy says otherwise. Between rounds the sums of blocks are on the
     * host, if any part of a block is trained, or where the plan says so on the device; those of embedding and head
     * stay on the device. */
    int rounds, micro_batches;
    bool sums_blocks;
    /* Updates are scaled by a factor that follows from the norm of all gradients of the iteration. Updates on the
     * device come after the last backward. On the host an update before the norm is known is speculative: it assumes a
     * factor of one and writes shadow states, which become the block's if the factor is one and are discarded if it is
     * not. Their parameters may be fetched before the factor is known, but not used; discarded ones are fetched
     * again. */
    bool clips;
    const struct ah_policy *policy;
    int queue_depth; /* the device's (struct ah_dev_info); 0: two */
};

struct ah_sched;

/* A policy: the order of items, items that have to wait although their data are there, and the placements it knows. One
 * table per policy_*.c, which names only members that differ from zero: first come first served, no gates, no barrier,
 * all placements searched. Gates may hold back an item only until an item that is in flight or may start has completed,
 * else they deadlock. */
struct ah_policy {
    const char *name;
    const char *description;
    enum ah_switch_use uses; /* switches that the search may set; published systems have at most BASIC */
    uint32_t without;        /* switches (bits) that it may not set nevertheless: for comparisons */
    bool barrier;            /* nothing of iteration k+1 before everything of k is complete */
    bool all_at_once;        /* the first forward waits until the parameters of all groups on the host have arrived */
    bool overtakes; /* parameters that are ready may be fetched before others that are needed earlier but not ready */
    bool waits_off_lane;    /* a fetch without a free buffer is not queued to wait for one, but takes the first that
                          * becomes free */
    bool gathers_late;      /* several ranks: its plans may have too few buffers to gather ahead */
    bool evicts;            /* parameters released between forward and backward are copied to the host first */
    bool accumulates;       /* a published system: its placements run each micro-batch through the whole model */
    bool leaves_each_round; /* parameters that stay from forward to backward do not stay from round to round */
    /* The earliest block goes first among gradients ready to be offloaded, and among groups ready for their update. */
    bool earliest_gradient, earliest_update;
    /* Gates for FORWARD and BACKWARD, PREFETCH and REFETCH, OFFLOAD, UPDATE_HOST items; null: open. */
    bool (*may_compute)(const struct ah_sched *sched, const struct ah_item *item);
    bool (*may_fetch)(const struct ah_sched *sched, const struct ah_item *item);
    bool (*may_offload)(const struct ah_sched *sched, int group);
    bool (*may_update)(const struct ah_sched *sched, int group);
    /* Sets the index-th placement that a published system considers: its switches but world_size, chunks and
     * out_of_order; too few buffers, which could deadlock, are raised. False after the last. Null: the planner searches
     * all placements. */
    bool (*placement)(struct ah_switches *out, int layers, int index);
    /* first_fit: with and without checkpointing the system uses the first placement that fits and that `suffices`
     * (null: each does), else the last that fits. Otherwise its fastest placement is used. */
    bool first_fit;
    bool (*suffices)(const struct ah_switches *placement, const struct ah_costs *costs);
};
/* Returns true if the search, or a published system's placement, may set a switch under the policy. */
static inline bool ah__policy_uses(const struct ah_policy *policy, enum ah_switch index)
{
    bool uses = ah__switch_table[index].use <= policy->uses || (index == AH_SWITCH_passes && policy->accumulates);
    return uses && !(policy->without >> index & 1);
}
extern const struct ah_policy ah__policy_autohete, ah__policy_autohete_paper, ah__policy_autohete_fifo,
    ah__policy_resident, ah__policy_zero_offload, ah__policy_patrickstar, ah__policy_stronghold,
    ah__policy_stronghold_best, ah__policy_l2l;
/* Returns the switches (bits) that its search may not set. */
uint32_t ah__policy_unused(const struct ah_policy *policy);
/* Returns a policy by name, null if unknown. ah__policies is null-terminated. */
const struct ah_policy *ah__policy_find(const char *name);
extern const struct ah_policy *const ah__policies[];
/* Returns true if the policy has its own placements; else the planner searches all. */
bool ah__policy_is_placed(const struct ah_policy *policy);
/* Returns "autohete, autohete-fifo, ... or resident", for messages. */
const char *ah__policy_names(void);

int ah__sched_new(struct ah_sched **out, const struct ah_sched_config *config);
void ah__sched_free(struct ah_sched *sched);
/* Returns the smallest number of buffers with which this configuration cannot deadlock. */
int ah__sched_min_buffers(const struct ah_sched_config *config);

/* Lets iterations up to (not including) `limit` start; forward_only: evaluations, without backward and updates. Only
 * while drained. */
void ah__sched_limit(struct ah_sched *sched, int64_t limit, bool forward_only);
/* Raises the limit of training iterations, also while some are in flight. */
void ah__sched_extend(struct ah_sched *sched, int64_t limit);
/* Returns true if everything up to the limit is complete. */
bool ah__sched_drained(const struct ah_sched *sched);

/* Returns the number of iterations completed since the scheduler was made: all below it are complete. */
int64_t ah__sched_iterations(const struct ah_sched *sched);

/* An item to be submitted now, with its lane and the events it must wait for. */
struct ah_next {
    struct ah_item item;
    enum ah_lane lane;
    int waits;
    struct ah_event wait[AH_WORK_MAX_WAITS];
};
/* Chooses the next item; false: nothing may be submitted now. */
bool ah__sched_next(struct ah_sched *sched, struct ah_next *next);
/* Tells that the last chosen item was submitted and will complete at `event`. */
void ah__sched_submitted(struct ah_sched *sched, const struct ah_next *next, struct ah_event event);
/* Tells that the lane's oldest item, which is `item`, has completed. */
void ah__sched_complete(struct ah_sched *sched, enum ah_lane lane, const struct ah_item *item);

/* Tells that the norm of an iteration exceeds the limit, so that its speculative updates do not count. Called while its
 * RESULT (norms) completes: after ah__sched_complete, before the next ah__sched_next. */
void ah__sched_clipped(struct ah_sched *sched, int64_t iteration);
/* Returns the set of a block's host states; 0 for other groups. Only while drained. */
int ah__sched_set(const struct ah_sched *sched, int group);

/* Returns the number of speculative updates that did not count since the scheduler was made. */
int64_t ah__sched_updates_redone(const struct ah_sched *sched);

/* Returns the number of buffers in use now (claimed and not yet released by a completed item). */
int ah__sched_buffers_used(const struct ah_sched *sched);

#endif
