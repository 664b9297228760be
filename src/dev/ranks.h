/* The ranks a launcher (mpirun, srun) has started this program as: found in its environment, joined through
 * libautohete-mpi-KIND.so, which lies where plugins lie (plugin.h). What they do together is comm/comm.h. */
#ifndef AH_DEV_RANKS_H
#define AH_DEV_RANKS_H

#include "comm/comm.h"

/* Processor cores and memory that fall to this rank: what the machine has, divided among the ranks that share it. */
static inline int ah__ranks_cores(const struct ah_comm *comm, int cores)
{
    return cores > comm->shares ? cores / comm->shares : comm->shares > 1 ? 1 : cores;
}

static inline int64_t ah__ranks_memory(const struct ah_comm *comm, int64_t bytes)
{
    return bytes / comm->neighbours;
}

#endif
