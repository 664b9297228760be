/* Costs: how long every item takes on a machine, as a profile measures and a simulation runs them. Decides nothing. */
#ifndef AH_SCHED_COSTS_H
#define AH_SCHED_COSTS_H

#include "dev/sim.h"
#include "partition/class.h"
#include "sched/item.h"
#include "sched/switches.h"

struct ah_costs {
    int class_count;                                           /* 0: AH_CLASS_COUNT */
    int layers, micro_batches;                                 /* micro-batches of the step to which the times belong;
                                                                * 0: one */
    int64_t ns[AH_ITEM_COUNT][AH_CLASSES_MOST];                /* time of an item alone on the machine; of classes from
                                                                * AH_CLASS_COUNT on only FORWARD and BACKWARD */
    int64_t recompute_ns[AH_CLASSES_MOST];                     /* added to BACKWARD if the item says recompute */
    int64_t selective_ns[AH_CLASSES_MOST];                     /* added to BACKWARD if the item says selective */
    int64_t out_ns[AH_KEEPING_COUNT], in_ns[AH_KEEPING_COUNT]; /* ACTIVATIONS_OUT and _IN of a block, by its saved
                                                                * activations; from the link's rate, in no profile */
    int64_t sums_out_ns, sums_in_ns;                           /* SUMS_OUT and _IN of a block; from the link's rate */
    int64_t disk_params_ns, disk_gradient_ns, disk_read_ns, disk_write_ns; /* DISK_PARAMS, _GRADIENT, _READ, _WRITE of a
                                                                             * block; from the drive's rates, in no
                                                                             * profile */
    int64_t widen_ns; /* part of a block's FORWARD and BACKWARD that is spent once for all micro-batches */
    bool gathers_part[AH_CLASS_COUNT]; /* a GATHER to where parameters stay leaves out frozen ones; in no profile */
    const uint8_t *class_of; /* of struct ah_partition, which owns it; null: blocks are of one kind, or in a profile */
    struct ah_sim_lanes lanes; /* gaps, notification, how lanes slow each other */
};

/* Returns the class of a partition. */
static inline int ah__costs_class(const struct ah_costs *costs, int partition)
{
    return costs->class_of ? costs->class_of[partition] : (int)ah__class_of(partition, costs->layers);
}

/* Returns the time that recomputation, full or selective, adds to BACKWARD of a partition. */
static inline int64_t ah__costs_again_ns(const struct ah_costs *costs, int partition, bool recompute, bool selective)
{
    int class = ah__costs_class(costs, partition);
    return recompute ? costs->recompute_ns[class] : selective ? costs->selective_ns[class] : 0;
}

/* Returns the time of a GATHER. If it gathers only trained parameters, to where parameters stay (`stays`), it takes as
 * long as the group's REDUCE. */
int64_t ah__costs_gather_ns(const struct ah_costs *costs, int class, bool stays);
/* Returns the time of one item, alone on the machine. A chunk takes its share, rounded up; so do the micro-batches of a
 * round, except for the part that is spent once. */
int64_t ah__costs_item_ns(const struct ah_costs *costs, const struct ah_item *item);
/* Makes an item's work on a simulated device: a delay. `context` is a const struct ah_costs. The bind hook of
 * sched/drive.h for simulations. */
int ah__costs_bind(struct ah_work *work, const struct ah_item *item, void *context);

#endif
