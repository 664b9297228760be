/* Inside the CUDA device: collectives between ranks, on the comm lane's stream.
 *
 * NCCL carries bytes and adds nothing up: sums are kernels of the device's own, in order of ranks, so that they have
 * the bits that comm/group.c gives (comm/comm.h). One communicator for each device of several ranks, one that never
 * blocks: whoever waits here looks whether the other ranks are still there, and gives it up when they are not. All
 * calls come from the driver's thread. */
#ifndef AH_DEV_CUDA_COLLECTIVE_H
#define AH_DEV_CUDA_COLLECTIVE_H

#include "dev/cuda/library.h"
#include "dev/dev.h"

/* Of each rank at a time: what passes through scratch. */
enum { AH_CUDA_PIECE_BYTES = 4 << 20 };

struct ah_cuda_group {
    ncclComm_t nccl; /* null: one rank alone, not joined yet, or given up */
    char *scratch;   /* AH_CUDA_PIECE_BYTES from each rank, beside the region */
};

struct ah_cuda;

/* This rank's own part: NCCL and scratch. AH_EDEVICE, AH_ENOMEM; what was made is given back by close. */
int ah__cuda_group_open(struct ah_cuda *cuda);
/* As `join` of struct ah_dev_ops. */
int ah__cuda_group_join(struct ah_cuda *cuda);
/* Enqueues a collective task, its buffer checked. Waits for the other ranks' programs at most where NCCL does, and for
 * no work of theirs. AH_EDEVICE; NCCL is then given up, or was before. */
int ah__cuda_collective(struct ah_cuda *cuda, cudaStream_t stream, const struct ah_task *task);
/* Whether NCCL and the other ranks are still well. If not, NCCL is given up, so that streams that wait for them go on,
 * and AH_EDEVICE says why, once. */
int ah__cuda_group_look(struct ah_cuda *cuda);
/* Waits for what is left on the comm lane's stream of work that has failed, or until NCCL is given up. Keeps
 * ah_error(). */
void ah__cuda_group_settle(struct ah_cuda *cuda);
/* The device closes, before its streams are drained, which may wait for other ranks: what is on the way is waited for
 * two seconds at most. Keeps ah_error(). */
void ah__cuda_group_leave(struct ah_cuda *cuda);
void ah__cuda_group_close(struct ah_cuda *cuda); /* once the streams are drained; all zero is fine */

#endif
