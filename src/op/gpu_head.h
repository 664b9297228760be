/* The head's chunks of tokens on a GPU: what the device takes, and what an estimate says that it takes.
 *
 * The operator's own chunks suit a processor. A GPU takes more tokens at once, in its own workspace: a chunk's product
 * for dx, whose result is the smallest, has two tiles for each multiprocessor, and the arithmetic hides the weight's
 * gradient, which each chunk reads and writes in fp32. All logits of a chunk stay below a part of the GPU's memory.
 * Takes shapes and two figures of a GPU, gives rows. Must not know CUDA. */
#ifndef AH_OP_GPU_HEAD_H
#define AH_OP_GPU_HEAD_H

#include <stdbool.h>
#include <stdint.h>

struct ah_gpu_head {
    int64_t rows, channels, vocab, dtype_bytes;
    int64_t operator_chunk;                /* rows of the operator's scratch */
    int64_t multiprocessors, memory_bytes; /* of the GPU */
};

struct ah_gpu_chunk {
    int64_t rows;
    int64_t stride;  /* elements from one row of logits to the next */
    bool own_logits; /* logits are in the workspace, not in the operator's scratch */
};

/* Returns a size of chunks, at most `most`: nearly equal, in multiples of CHUNK_MULTIPLE. */
static inline int64_t ah__gpu_chunk_of(int64_t rows, int64_t most)
{
    enum { CHUNK_MULTIPLE = 16 };
    int64_t count = (rows + most - 1) / most, each = (rows + count - 1) / count;
    int64_t rounded = (each + CHUNK_MULTIPLE - 1) / CHUNK_MULTIPLE * CHUNK_MULTIPLE;
    return rounded <= most ? rounded : each;
}

/* Returns the tokens of a chunk that keep the GPU busy. */
static inline int64_t ah__gpu_rows_wanted(const struct ah_gpu_head *head, int64_t stride)
{
    enum { TILE = 128, TILES_EACH = 2, ROWS_LEAST = 2048, MEMORY_PART = 64 };
    int64_t across = (head->channels + TILE - 1) / TILE, tiles = head->multiprocessors * TILES_EACH;
    int64_t rows = (tiles + across - 1) / across * TILE;
    int64_t fits = head->memory_bytes / MEMORY_PART / (stride * head->dtype_bytes);
    rows = rows < ROWS_LEAST ? ROWS_LEAST : rows;
    return rows < fits ? rows : fits;
}

/* Chooses the chunks. Rows of logits begin at multiples of 16 bytes if that costs no more than a 64th of their memory.
 * A chunk is in the operator's scratch, or in the workspace if the GPU needs more tokens than fit there. */
static inline struct ah_gpu_chunk ah__gpu_chunk(const struct ah_gpu_head *head)
{
    enum { MOST_PART = 64, ALIGN_BYTES = 16 };
    int64_t lanes = ALIGN_BYTES / head->dtype_bytes, padded = (head->vocab + lanes - 1) / lanes * lanes;
    struct ah_gpu_chunk out = {.stride = (padded - head->vocab) * MOST_PART > head->vocab ? head->vocab : padded};
    int64_t fits = head->operator_chunk * head->vocab / out.stride, wanted = ah__gpu_rows_wanted(head, out.stride);
    out.own_logits = wanted > fits && head->rows > fits;
    if (out.own_logits)
        out.rows = ah__gpu_chunk_of(head->rows, wanted);
    else if (out.stride == head->vocab || fits < 1) {
        out.stride = head->vocab;
        out.rows = head->operator_chunk;
    } else
        out.rows = ah__gpu_chunk_of(head->rows, fits);
    return out;
}

#endif
