/* Collectives between the ranks of a training: what several devices do with one buffer. Takes device or host memory
 * that all ranks have alike, gives it back gathered or summed. Knows no plans and no lanes. One rank is `self`. */
#ifndef AH_COMM_COMM_H
#define AH_COMM_COMM_H

#include "op/op.h"

/* A buffer is `ranks` parts of part_count elements, in order of ranks. */
enum ah_collective {
    AH_ALL_GATHER,    /* each rank brings its part, in place, and has all parts afterwards */
    AH_REDUCE_SCATTER /* each rank brings all parts and has the sum of its own, in place, in fp32 in order of ranks */
};

struct ah_comm;
struct ah_comm_ops {
    /* Returns when this rank's buffer is as promised. AH_EDEVICE. */
    int (*collective)(struct ah_comm *comm, enum ah_collective kind, void *buffer, int64_t part_count,
                      enum ah_dtype dtype);
    void (*close)(struct ah_comm *comm);
};

/* Every kind begins with this. */
struct ah_comm {
    const struct ah_comm_ops *ops;
    int rank, ranks;
};

/* One rank alone: every collective is done before it begins. Not to be closed. */
struct ah_comm *ah__comm_self(void);

#endif
