/* Inside the CUDA device: collectives between ranks, on the comm lane's stream.
 *
 * NCCL carries bytes and adds nothing up: sums are kernels of the device's own, in order of ranks, so that they have
 * the bits that comm/group.c gives (comm/comm.h). One communicator for each device of several ranks, one that never
 * blocks: whoever waits here looks whether the other ranks are still there, and aborts it when they are not. All calls
 * come from the driver's thread. */
#ifndef AH_DEV_CUDA_COLLECTIVE_H
#define AH_DEV_CUDA_COLLECTIVE_H

#include "dev/cuda/state.h"

/* Of each rank at a time: what passes through scratch. */
enum { AH_CUDA_PIECE_BYTES = 4 << 20 };

/* This rank's own part: NCCL and scratch. AH_EDEVICE, AH_ENOMEM; what was made is given back by close. */
int ah__cuda_group_open(struct ah_cuda *cuda);
/* As `join` of struct ah_dev_ops. */
int ah__cuda_group_join(struct ah_cuda *cuda);
/* Enqueues a collective task, its buffer checked. Waits for the other ranks' programs at most where NCCL does, and for
 * no work of theirs. AH_EDEVICE; the group is then broken. */
int ah__cuda_collective(struct ah_cuda *cuda, cudaStream_t stream, const struct ah_task *task);
/* Whether NCCL and the other ranks are still well. AH_EDEVICE says why not, once, and the group is broken. */
int ah__cuda_group_look(struct ah_cuda *cuda);
/* Of a broken group: aborts what waits for other ranks on the stream, which then goes on with whatever lies in memory.
 * So its failure must be known before, and no work counts any more. */
void ah__cuda_group_abandon(struct ah_cuda *cuda);
/* Waits for what is left on the comm lane's stream of work that has failed; abandons the group when it is broken. Keeps
 * ah_error(). */
void ah__cuda_group_settle(struct ah_cuda *cuda);
/* The device closes, before its streams are drained, which may wait for other ranks: what is on the way is waited for
 * two seconds at most. Keeps ah_error(). */
void ah__cuda_group_leave(struct ah_cuda *cuda);
void ah__cuda_group_close(struct ah_cuda *cuda); /* once the streams are drained; all zero is fine */

#endif
