/* Inside the CUDA device: collectives between ranks, on the comm lane's stream.
 *
 * NCCL moves bytes and adds nothing up: sums are the device's own kernels, in order of ranks, so that they have the
 * bits of comm/group.c (comm/comm.h). With several ranks each device has one communicator, which never blocks: code
 * that waits checks whether the other ranks still run, and aborts it if they do not. All calls come from the driver's
 * thread. */
#ifndef AH_DEV_CUDA_COLLECTIVE_H
#define AH_DEV_CUDA_COLLECTIVE_H

#include "dev/cuda/state.h"

/* Bytes of each rank that pass through scratch at a time. */
enum { AH_CUDA_PIECE_BYTES = 4 << 20 };

/* Opens this rank's part: NCCL and scratch. AH_EDEVICE, AH_ENOMEM; ah__cuda_group_close frees it, also after a
 * failure. */
int ah__cuda_group_open(struct ah_cuda *cuda);
/* Does the work of `join` of struct ah_dev_ops. */
int ah__cuda_group_join(struct ah_cuda *cuda);
/* Enqueues a collective task, whose buffer has been checked. It may wait, where NCCL does, for the other ranks'
 * programs, but never for their work. AH_EDEVICE; the group is then broken. */
int ah__cuda_collective(struct ah_cuda *cuda, cudaStream_t stream, const struct ah_task *task);
/* Checks NCCL and the other ranks. AH_EDEVICE gives the reason, once, and the group is broken. */
int ah__cuda_group_look(struct ah_cuda *cuda);
/* Aborts a broken group's work on the stream that waits for other ranks. The stream then goes on with any data in
 * memory, so the failure must be known before, and no later work counts. */
void ah__cuda_group_abandon(struct ah_cuda *cuda);
/* Waits for the rest of failed work on the comm lane's stream; abandons the group if it is broken. Keeps ah_error(). */
void ah__cuda_group_settle(struct ah_cuda *cuda);
/* Leaves the group when the device closes, before its streams are drained, which may wait for other ranks. Waits for
 * work on the way for two seconds at most. Keeps ah_error(). */
void ah__cuda_group_leave(struct ah_cuda *cuda);
void ah__cuda_group_close(struct ah_cuda *cuda); /* once the streams are drained; all zero is fine */

#endif
