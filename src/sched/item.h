/* Items: the units of work of a training, before they have addresses. The scheduler chooses them, a binder turns each
 * into work for a device, timelines and profiles refer to them. Knows lanes; must not know memory or tasks. */
#ifndef AH_SCHED_ITEM_H
#define AH_SCHED_ITEM_H

#include "dev/dev.h"

/* kind, lane, name, and a short name for rows in which dozens must fit */
#define AH_ITEM_TABLE(X)                                                                                               \
    X(INPUT, AH_LANE_H2D, "input", "input") /* token ids and targets of an iteration */                                \
    X(FORWARD, AH_LANE_COMPUTE, "forward", "F")                                                                        \
    X(BACKWARD, AH_LANE_COMPUTE, "backward", "B")                                                                      \
    X(UPDATE_DEVICE, AH_LANE_COMPUTE, "update", "update")                                                              \
    X(CAST, AH_LANE_COMPUTE, "cast", "cast")                   /* several ranks: a shard that stays, to a buffer */    \
    X(PREFETCH, AH_LANE_H2D, "prefetch", "fetch")              /* updated parameters for forward */                    \
    X(REFETCH, AH_LANE_H2D, "refetch", "refetch")              /* released parameters again for backward */            \
    X(OFFLOAD, AH_LANE_D2H, "offload", "offload")              /* gradient */                                          \
    X(EVICT, AH_LANE_D2H, "evict", "evict")                    /* released parameters, unchanged */                    \
    X(ACTIVATIONS_OUT, AH_LANE_D2H, "activations out", "acts") /* a block's saved activations: to the host */          \
    X(ACTIVATIONS_IN, AH_LANE_H2D, "activations in", "acts")   /* a block's saved activations: back */                 \
    X(SUMS_IN, AH_LANE_H2D, "sums in", "sums")                 /* a block's sum over earlier rounds: from the host */  \
    X(SUMS_OUT, AH_LANE_D2H, "sums out", "sums")               /* a block's sum over rounds so far: to the host */     \
    X(RESULT, AH_LANE_D2H, "result", "result") /* loss (partition head) or gradient norms (partition 0) */             \
    X(UPDATE_HOST, AH_LANE_HOST, "host update", "update")                                                              \
    X(UPDATE_SPECULATIVE, AH_LANE_HOST, "speculative update",                                                          \
      "ahead")                                               /* before the norm is known, into shadow states */        \
    X(STATES_IN, AH_LANE_H2D, "states in", "states")         /* with the gradient, a chunk: to a staging buffer */     \
    X(UPDATE_STAGED, AH_LANE_D2H, "staged update", "update") /* of a staged chunk, on the device; then copied back */  \
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

/* The half of an iteration to which an item belongs: a CAST or GATHER brings parameters for one or the other. */
enum ah_phase { AH_PHASE_FORWARD, AH_PHASE_BACKWARD };

/* Staging buffers on the device, in which chunks of states are updated: one is filled while another is copied back. */
enum { AH_STAGING_BUFFERS = 2 };

/* Buffers on the device for frozen lowest blocks that are fetched: one is read while another is filled. */
enum { AH_BELOW_PLACES = 2 };

/* Buffers on the device for sums of blocks, if a step has several rounds: one is added to while another is copied. */
enum { AH_SUM_PLACES = 2 };

struct ah_item {
    enum ah_item_kind kind;
    enum ah_phase phase;
    int partition; /* 0 embedding, 1..L blocks, L+1 head; for model data (prefetch, offload, updates): the group */
    int below;     /* FORWARD, PREFETCH of partition 0: the number of a frozen lowest block, from 1 on; 0: the embedding
                    * itself */
    int chunk, chunks; /* PREFETCH, OFFLOAD, updates of states on the host: the index of a chunk, and into how many
                        * equal chunks the group is divided; 0 chunks: whole */
    int64_t iteration; /* 0-based since the run began */
    int64_t round;     /* 0-based since the run began, counted over all iterations' rounds */
    /* FORWARD, BACKWARD: the first micro-batch, and how many; ACTIVATIONS_OUT and _IN: how many. 0: all of a step. */
    int first_micro_batch, micro_batches;
    bool adds;        /* adds to the sums of earlier rounds, from its first micro-batch on */
    bool unfinished;  /* BACKWARD: a later round adds to the sum, which is not a gradient yet */
    int sum;          /* BACKWARD, SUMS_IN, SUMS_OUT of a block: index of AH_SUM_PLACES; -1: there is one round */
    bool recompute;   /* BACKWARD recomputes the saved activations first; FORWARD keeps none, only input */
    bool selective;   /* BACKWARD recomputes everything but products and attention; FORWARD keeps only those */
    int param_buffer; /* buffer with the parameters, -1: no buffer (resident or dedicated) */
    int grad_buffer;  /* buffer with the gradient, -1: no gradient, or a dedicated one */
    int set;          /* blocks on the host: the set of states that is read, and written except by UPDATE_SPECULATIVE */
    int shadow_set;   /* a speculative update: the set that is written; else -1 */
    /* GATHER: the parameters stay where they are gathered, and frozen ones are there already. PREFETCH: the embedding
     * stays, so that nothing is fetched. */
    bool stays;
    /* STATES_IN, UPDATE_STAGED: index of AH_STAGING_BUFFERS; for a fetched frozen lowest block: index of
     * AH_BELOW_PLACES. */
    int stage;
};

/* Returns an item's label for messages and traces of a device: "backward", partition, iteration. */
static inline struct ah_label ah__item_label(const struct ah_item *item)
{
    return (struct ah_label){ah__item_names[item->kind], item->partition, item->iteration};
}

/* An item that has run, with times by the device's clock. */
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
/* Adds an item. AH_EINTERNAL if the lane already has AH_IN_FLIGHT_MOST items. */
int ah__in_flight_push(struct ah_in_flight *in_flight, enum ah_lane lane, const struct ah_item *item);
/* Removes the last item pushed, which was not submitted after all. */
void ah__in_flight_take_back(struct ah_in_flight *in_flight, enum ah_lane lane);
/* Returns the item that completed, with its times. */
struct ah_span ah__in_flight_pop(struct ah_in_flight *in_flight, const struct ah_done *done);

#endif
