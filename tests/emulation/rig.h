/* What the emulation's tests share: two streams, device and pinned memory; everything given back at the end. */
#ifndef EMULATION_RIG_H
#define EMULATION_RIG_H

#include "emulation.h"
#include "test.h"

enum { RIG_BYTES = 1 << 16, RIG_FLOATS = RIG_BYTES / 4 };

struct rig {
    cudaStream_t stream, other;
    float *device, *device2; /* RIG_BYTES each */
    float *pinned;
    uint64_t *flag; /* pinned, 0: streams wait for it */
};

#define assert_cuda(call) assert_int_equal(call, cudaSuccess)

void rig_open(struct rig *rig);
/* Fails the test when something is left. */
void rig_close(struct rig *rig);
/* A stream waits until rig_go(). */
void rig_hold(struct rig *rig, cudaStream_t stream);
void rig_go(struct rig *rig);
/* Device memory into `pinned`, when the stream has come that far; waits for it. */
void rig_read(struct rig *rig, const void *device, size_t bytes);

#endif
