/* The ranks as which a launcher (mpirun, srun) has started this program. They are found in its environment and joined
 * through libautohete-mpi-KIND.so, which is in a folder of plugins (plugin.h). comm/comm.h has their communication. */
#ifndef AH_DEV_RANKS_H
#define AH_DEV_RANKS_H

#include "comm/comm.h"

/* Return the processor cores and the memory of this rank: its share of the machine's, among the ranks on it. */
static inline int ah__ranks_cores(const struct ah_comm *comm, int cores)
{
    return cores > comm->shares ? cores / comm->shares : comm->shares > 1 ? 1 : cores;
}

static inline int64_t ah__ranks_memory(const struct ah_comm *comm, int64_t bytes)
{
    return bytes / comm->neighbours;
}

#endif
