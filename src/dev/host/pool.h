/* Worker threads of the host. Work is cut into pieces by size alone, which any number of threads run.
 *
 * Takes a function and a number of pieces, returns when all are done. A result has the same bits for any number of
 * threads as long as each piece is reduced in a fixed order. Knows no tasks and no devices. */
#ifndef AH_DEV_HOST_POOL_H
#define AH_DEV_HOST_POOL_H

#include "base/status.h"

enum { AH_POOL_PARTIALS = 4096, AH_POOL_SCRATCH = 17 * 64 * 256 };

struct ah_pool;
/* Makes a pool of `threads` workers; the calling thread of ah__pool_run is one of them. Workers (and the caller, by
 * ah__pool_enter) run with FTZ/DAZ and single-threaded oneDNN. `core`: first core to pin to, -1: not pinned. Scratch of
 * each worker is allocated here. AH_ENOMEM, AH_EDEVICE. */
int ah__pool_new(struct ah_pool **out, int threads, int core);
void ah__pool_free(struct ah_pool *pool);
/* Prepares the thread that will call ah__pool_run; call it once on that thread. */
void ah__pool_enter(struct ah_pool *pool);
/* Calls piece(context, i, worker) for i in 0..count-1 over the workers, in any order, and returns when all are done.
 * `count` below 2^31; a piece must not start another run. */
void ah__pool_run(struct ah_pool *pool, void (*piece)(void *context, int index, int worker), int count, void *context);
int ah__pool_threads(const struct ah_pool *pool);
/* Returns the worker's own scratch: AH_POOL_SCRATCH floats, 64-byte aligned, owned by the pool. */
float *ah__pool_scratch(struct ah_pool *pool, int worker);
/* Returns AH_POOL_PARTIALS doubles: one result for each piece of a reduction, which the caller combines in order. */
double *ah__pool_partials(struct ah_pool *pool);

/* Makes denormals zero on the calling thread: they slow arithmetic several times, and results must not depend on the
 * thread. */
void ah__host_denormals_off(void);
/* Checks that there is memory for the data that libraries keep of one more thread; call it before starting one.
 * AH_ENOMEM. */
int ah__host_thread_room(void);
/* Binds the calling thread to a core; no effect if that is not allowed. */
void ah__host_pin(int core);

/* `total` elements cut into `count` equal pieces of `size` (the last one smaller). */
struct ah_pieces {
    int64_t total, size;
    int count;
};

/* Returns pieces of `wanted` elements each, larger if there would be more than 2^20 of them. */
static inline struct ah_pieces ah__pieces(int64_t total, int64_t wanted)
{
    const int64_t most = 1 << 20;
    int64_t least = (total + most - 1) / most;
    int64_t size = wanted > least ? wanted : least;
    if (size < 1)
        size = 1;
    return (struct ah_pieces){.total = total, .size = size, .count = (int)((total + size - 1) / size)};
}

/* Returns the length of piece `index`, which begins at index * pieces->size. */
static inline int64_t ah__pieces_length(const struct ah_pieces *pieces, int index)
{
    int64_t rest = pieces->total - index * pieces->size;
    return rest < pieces->size ? rest : pieces->size;
}

#endif
