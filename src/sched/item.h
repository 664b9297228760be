/* Items: the units of work of a training, before they have addresses. The scheduler chooses them, a binder turns each
 * into work for a device, timelines and profiles refer to them. Knows lanes; must not know memory or tasks. */
#ifndef AH_SCHED_ITEM_H
#define AH_SCHED_ITEM_H

#include "dev/dev.h"

enum ah_item_kind {
#define AH_ITEM(id, ...) AH_ITEM_##id,
#include "sched/items.def"
#undef AH_ITEM
    AH_ITEM_COUNT
};
extern const char *const ah__item_names[AH_ITEM_COUNT];
extern const char *const ah__item_short_names[AH_ITEM_COUNT];
extern const enum ah_lane ah__item_lanes[AH_ITEM_COUNT];

/* Column `profile` of items.def. */
enum ah_profiled { AH_PROFILED_ALWAYS, AH_PROFILED_SOMETIMES, AH_PROFILED_NEVER };
extern const enum ah_profiled ah__item_profiled[AH_ITEM_COUNT];

/* The half of an iteration to which an item belongs: a CAST or GATHER brings parameters for one or the other. */
enum ah_phase { AH_PHASE_FORWARD, AH_PHASE_BACKWARD };

/* Staging buffers on the device, in which chunks of states are updated: one is filled while another is copied back. */
enum { AH_STAGING_BUFFERS = 2 };

/* Buffers on the device for sums of blocks, if a step has several rounds: one is added to while another is copied. */
enum { AH_SUM_PLACES = 2 };

struct ah_item {
    enum ah_item_kind kind;
    enum ah_phase phase;
    int partition;     /* 0 embedding, 1..L blocks, L+1 head; for model data (prefetch, offload, updates): the group */
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
    int set;          /* blocks on the host: the set of states that is read, and written except by UPDATE_SPECULATIVE;
                       * on disk: the place */
    int shadow_set;   /* a speculative update: the set or place that is written; else -1 */
    /* GATHER: the parameters stay where they are gathered, and frozen ones are there already. PREFETCH: the embedding
     * stays, so that nothing is fetched. */
    bool stays;
    int stage; /* STATES_IN, UPDATE_STAGED: index of AH_STAGING_BUFFERS */
    int slot;  /* a chunk of a block on disk: index of its host buffer; else -1 */
};

/* Returns an item's label for messages and traces of a device: "backward", partition, iteration. */
static inline struct ah_label ah__item_label(const struct ah_item *item)
{
    return (struct ah_label){ah__item_names[item->kind], item->partition, item->iteration};
}

/* An item without buffer, set or sum. It is copied, since a search begins many millions of items and clearing one takes
 * longer. */
extern const struct ah_item ah__item_none;

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
