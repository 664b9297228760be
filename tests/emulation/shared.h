/* Shared memory of thread blocks: NaN bytes when a block begins. What kernels declare __shared__ are thread-local
 * variables of their module; dynamic shared memory is one buffer of the stream's. */
#ifndef EMULATION_SHARED_H
#define EMULATION_SHARED_H

#include <stdbool.h>
#include <stddef.h>

enum { SHARED_CHUNKS_MOST = 4096, SHARED_KERNELS_MOST = 512 };

/* Which parts of the module's storage a kernel has been seen to write. */
struct shared_kernel {
    const void *kernel;
    unsigned blocks; /* looked at so far */
    unsigned char writes[SHARED_CHUNKS_MOST / 8];
};

/* Of one stream; used on its thread alone. */
struct shared {
    char *pages, *dynamic;
    char *storage; /* of the module, as this thread has it */
    size_t bytes, chunk_bytes;
    struct shared_kernel *current; /* among the known */
    struct shared_kernel known[SHARED_KERNELS_MOST];
};

void shared_init(struct shared *shared);
void shared_fini(struct shared *shared);
/* Blocks of this kernel follow. */
void shared_kernel_begin(struct shared *shared, const void *kernel);
/* A block begins, with `bytes` of dynamic shared memory, at shared->dynamic. */
void shared_block_begin(struct shared *shared, size_t bytes);
/* A block is over. False: it wrote behind its dynamic shared memory. */
bool shared_block_end(struct shared *shared);

#endif
