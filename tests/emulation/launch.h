/* Between kernel.h, which is compiled into kernels' files, and the emulation: launches and what a thread of a block can
 * ask for. */
#ifndef EMULATION_LAUNCH_H
#define EMULATION_LAUNCH_H

#include <stddef.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

struct emulation_launch {
    const void *kernel;             /* its address: its name in messages, and where its shared variables lie */
    void (*run)(const void *bound); /* one thread of it */
    /* Instead of `run`, if not null: all blocks, in an order by the seed. 0, or the error after an objection. */
    int (*run_all)(const struct emulation_launch *launch, unsigned long long seed);
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
    const void *bound; /* the kernel's arguments, of `bound_bytes`, trivially copyable */
    size_t bound_bytes;
};
/* Fills the geometry in from `config` and copies the arguments. */
cudaError_t emulation_launch_enqueue(struct emulation_launch *launch, const cudaLaunchConfig_t *config);

/* A line of a kernel. */
struct emulation_site {
    const char *file, *function;
    int line;
};

void *emulation_shared(void);
void emulation_barrier(const struct emulation_site *site);
/* Waits for the lanes of `mask`, each of which gives a value and names the lane whose value it wants. The value of a
 * lane that the mask does not name is NaN bytes. */
unsigned long long emulation_shuffle(const struct emulation_site *site, unsigned mask, unsigned long long value,
                                     unsigned from_lane);
/* Waits for the lanes of `mask`: a bit for each whose predicate holds. */
unsigned emulation_ballot(const struct emulation_site *site, unsigned mask, int predicate);
unsigned emulation_lane(void);
/* The kernel stops with an error. */
void emulation_trap(const struct emulation_site *site, const char *why);

#ifdef __cplusplus
}
#endif

#endif
