/* How long every item takes on a machine: what a profile measures and a simulation runs. Decides nothing. */
#ifndef AH_SCHED_COSTS_H
#define AH_SCHED_COSTS_H

#include "dev/sim.h"
#include "partition/class.h"
#include "sched/item.h"
#include "sched/switches.h"

/* What the programs of a block take; the second two are added to backward. */
struct ah_block_costs {
    int64_t forward_ns, backward_ns, recompute_ns, selective_ns;
};

struct ah_costs {
    int layers, micro_batches;                                 /* micro-batches of a step, which times are of; 0: one */
    int64_t ns[AH_ITEM_COUNT][AH_CLASS_COUNT];                 /* of an item alone on the machine */
    int64_t recompute_ns[AH_CLASS_COUNT];                      /* added to BACKWARD where the item says recompute */
    int64_t selective_ns[AH_CLASS_COUNT];                      /* the same where it says selective */
    int64_t out_ns[AH_KEEPING_COUNT], in_ns[AH_KEEPING_COUNT]; /* ACTIVATIONS_OUT and _IN of a block that keeps so
                                                                * much; from the link's rate, in no profile */
    int64_t sums_out_ns, sums_in_ns;                           /* of a block; the same */
    int64_t below_in_ns;                                       /* of a block below; the same */
    int64_t widen_ns; /* of FORWARD and BACKWARD of a block: what is done once, however many micro-batches follow */
    struct ah_block_costs other;       /* of blocks of the other kind; all else of them is as of blocks */
    bool gathers_part[AH_CLASS_COUNT]; /* what is frozen is not gathered to where it stays; in no profile */
    const bool *below_other;           /* as in struct ah_partition, whose it is; null in a profile */
    const int *others_from;    /* as in struct ah_partition, whose it is; null: no such blocks, or in a profile */
    struct ah_sim_lanes lanes; /* gaps, notification, how lanes slow each other */
};

/* Of a block: what its programs take. */
struct ah_block_costs ah__costs_block(const struct ah_costs *costs, bool other);
/* Of FORWARD of a block below, which is that of a block of its kind, as far as there are such blocks above. */
int64_t ah__costs_below_ns(const struct ah_costs *costs, int below);
/* Of a GATHER; to where parameters stay (`stays`) that of what is trained is as long as its REDUCE. */
int64_t ah__costs_gather_ns(const struct ah_costs *costs, enum ah_class class, bool stays);
/* Of one item, alone on the machine; a chunk takes its share, rounded up, and so do the micro-batches of a round of
 * all that is not done once. */
int64_t ah__costs_item_ns(const struct ah_costs *costs, const struct ah_item *item);
/* Makes work on a simulated device of an item: the delay it takes. `context` is a const struct ah_costs. The bind hook
 * of sched/drive.h for simulations. */
int ah__costs_bind(struct ah_work *work, const struct ah_item *item, void *context);

#endif
