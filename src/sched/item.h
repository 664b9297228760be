/* Items: what a training is made of between two decisions, before it has addresses. The scheduler gives them out, a
 * binder turns each into work for a device, timelines and profiles speak of them. Knows lanes; must not know memory or
 * tasks. */
#ifndef AH_SCHED_ITEM_H
#define AH_SCHED_ITEM_H

#include "dev/dev.h"

/* kind, lane, name, and a short one for rows where dozens must fit */
#define AH_ITEM_TABLE(X)                                                                                               \
    X(INPUT, AH_LANE_H2D, "input", "input") /* token ids and targets of an iteration */                                \
    X(FORWARD, AH_LANE_COMPUTE, "forward", "F")                                                                        \
    X(BACKWARD, AH_LANE_COMPUTE, "backward", "B")                                                                      \
    X(UPDATE_DEVICE, AH_LANE_COMPUTE, "update", "update")                                                              \
    X(CAST, AH_LANE_COMPUTE, "cast", "cast")                   /* several ranks: a shard that stays, to a buffer */    \
    X(PREFETCH, AH_LANE_H2D, "prefetch", "fetch")              /* updated parameters for forward */                    \
    X(REFETCH, AH_LANE_H2D, "refetch", "refetch")              /* released parameters again for backward */            \
    X(OFFLOAD, AH_LANE_D2H, "offload", "offload")              /* gradient */                                          \
    X(EVICT, AH_LANE_D2H, "evict", "evict")                    /* released parameters, as they came */                 \
    X(ACTIVATIONS_OUT, AH_LANE_D2H, "activations out", "acts") /* what a block keeps for backward: to the host */      \
    X(ACTIVATIONS_IN, AH_LANE_H2D, "activations in", "acts")   /* and back */                                          \
    X(SUMS_IN, AH_LANE_H2D, "sums in",                                                                                 \
      "sums") /* a block's gradient, summed over rounds before this one: from the host */                              \
    X(SUMS_OUT, AH_LANE_D2H, "sums out", "sums") /* and to it, with this round's in it */                              \
    X(RESULT, AH_LANE_D2H, "result", "result")   /* loss (partition head) or gradient norms (partition 0) */           \
    X(UPDATE_HOST, AH_LANE_HOST, "host update", "update")                                                              \
    X(UPDATE_SPECULATIVE, AH_LANE_HOST, "speculative update",                                                          \
      "ahead")                                               /* before the norm is known, into shadow states */        \
    X(STATES_IN, AH_LANE_H2D, "states in", "states")         /* with the gradient, a chunk: to a staging buffer */     \
    X(UPDATE_STAGED, AH_LANE_D2H, "staged update", "update") /* of that chunk, on the device; then copied back */      \
    X(GATHER, AH_LANE_COMM, "all-gather", "gather")          /* full parameters from every rank's shard */             \
    X(REDUCE, AH_LANE_COMM, "reduce-scatter", "reduce")      /* every rank's shard of the summed gradient */

enum ah_item_kind {
#define AH_ITEM_ENUM(id, lane, name, short_name) AH_ITEM_##id,
    AH_ITEM_TABLE(AH_ITEM_ENUM)
#undef AH_ITEM_ENUM
        AH_ITEM_COUNT
};
extern const char *const ah__item_names[AH_ITEM_COUNT];
extern const char *const ah__item_short_names[AH_ITEM_COUNT];
extern const enum ah_lane ah__item_lanes[AH_ITEM_COUNT];

/* Which half of an iteration an item belongs to: a CAST or GATHER brings parameters for one or the other. */
enum ah_phase { AH_PHASE_FORWARD, AH_PHASE_BACKWARD };

/* Staging buffers on the device, in which chunks of states are updated: one is filled while another is copied back. */
enum { AH_STAGING_BUFFERS = 2 };

/* Places on the device through which blocks below pass that come from the host: one is read while another comes. */
enum { AH_BELOW_PLACES = 2 };

/* Places on the device for sums of blocks, where a step has several rounds: one is added to while another comes or
 * goes. */
enum { AH_SUM_PLACES = 2 };

struct ah_item {
    enum ah_item_kind kind;
    enum ah_phase phase;
    int partition; /* 0 embedding, 1..L blocks, L+1 head; for model data (prefetch, offload, updates): the group */
    int below;     /* FORWARD, PREFETCH of partition 0: of which block below, from 1 on; 0: of the embedding itself */
    int chunk, chunks; /* PREFETCH, OFFLOAD, updates of states on the host: which of how many equal chunks of a group; 0
                        * chunks: whole */
    int64_t iteration; /* 0-based since the run began */
    int64_t round;     /* the same of rounds, of which each iteration has as many */
    int first_micro_batch, micro_batches; /* FORWARD, BACKWARD: of which they are; ACTIVATIONS_OUT and _IN: of how many;
                                           * 0: of all that a step has */
    bool adds;                            /* to the sums of rounds before, from the first of them on */
    bool unfinished;                      /* BACKWARD: a later round adds to the sum, which is not a gradient yet */
    int sum;        /* BACKWARD, SUMS_IN, SUMS_OUT of a block: which of AH_SUM_PLACES; -1: the round is the only one */
    bool recompute; /* BACKWARD makes the saved activations again first; FORWARD keeps none, only input */
    bool selective; /* BACKWARD makes again what is no product and no attention; FORWARD keeps only those */
    int param_buffer; /* buffer with the parameters, -1: none (resident or dedicated) */
    int grad_buffer;  /* buffer with the gradient, -1: none or dedicated */
    int set;          /* blocks on the host: the set of states that is read, and written but by UPDATE_SPECULATIVE */
    int shadow_set;   /* a speculative update: the set that is written; else -1 */
    bool stays;       /* GATHER: its place keeps the parameters; those that never change are there already. PREFETCH:
                       * there are no others */
    int stage;        /* STATES_IN, UPDATE_STAGED: which of AH_STAGING_BUFFERS; of a block below that comes from the
                       * host: which of AH_BELOW_PLACES */
};

/* "backward", partition, iteration: what messages and traces of a device say. */
static inline struct ah_label ah__item_label(const struct ah_item *item)
{
    return (struct ah_label){ah__item_names[item->kind], item->partition, item->iteration};
}

/* An item that has run, by the device's clock. */
struct ah_span {
    struct ah_item item;
    enum ah_lane lane;
    int64_t start_ns, end_ns;
};

/* Items submitted to a device and not completed. A device completes the work of a lane in order, so a queue for each
 * lane tells which item has completed. */
enum { AH_IN_FLIGHT_MOST = 16 };
struct ah_in_flight {
    struct ah_item items[AH_LANE_COUNT][AH_IN_FLIGHT_MOST];
    unsigned pushed[AH_LANE_COUNT], popped[AH_LANE_COUNT];
    int count; /* of all lanes */
};
/* AH_EINTERNAL when the lane holds AH_IN_FLIGHT_MOST items. */
int ah__in_flight_push(struct ah_in_flight *in_flight, enum ah_lane lane, const struct ah_item *item);
/* The last item pushed was not submitted after all. */
void ah__in_flight_take_back(struct ah_in_flight *in_flight, enum ah_lane lane);
/* The item that a completion speaks of, with its times. */
struct ah_span ah__in_flight_pop(struct ah_in_flight *in_flight, const struct ah_done *done);

#endif
