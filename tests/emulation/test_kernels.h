/* Kernels for the emulation's own tests; each function puts one launch on a stream. */
#ifndef EMULATION_TEST_KERNELS_H
#define EMULATION_TEST_KERNELS_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* out[i] = in[i] + 1 */
cudaError_t test_add_one(cudaStream_t stream, float *out, const float *in, int count);
/* out[i] = 1 + the number of the block and thread that wrote it; each element by one thread of a 3-d launch. */
cudaError_t test_where(cudaStream_t stream, unsigned *out, dim3 grid, dim3 block);
/* out[block] = the sum of its 256 elements, by shared memory and barriers. */
cudaError_t test_block_sum(cudaStream_t stream, float *out, const float *in, int blocks);
/* As above, but without the barrier between writing shared memory and reading it. */
cudaError_t test_no_barrier(cudaStream_t stream, float *out, const float *in, int blocks);
/* Each block reads shared memory that it has not written: out[block * 2] static, out[block * 2 + 1] dynamic. */
cudaError_t test_shared_unwritten(cudaStream_t stream, float *out, int blocks);
/* The last of `bytes` of dynamic shared memory, with or without asking for more than 48 KiB first; `beyond` more are
 * written behind it. */
cudaError_t test_shared_bytes(cudaStream_t stream, float *out, int bytes, int opt_in, int beyond);
enum test_shuffle { TEST_SHFL, TEST_UP, TEST_DOWN, TEST_XOR, TEST_BALLOT, TEST_ANY, TEST_ALL };
/* out[thread] of 64 threads, of in[thread]; masks are full. */
cudaError_t test_shuffle(cudaStream_t stream, unsigned *out, const unsigned *in, enum test_shuffle kind, int argument,
                         int width);
/* Halves of a warp shuffle on their own, other lanes' values are asked for. */
cudaError_t test_half_warp(cudaStream_t stream, unsigned *out, unsigned mask);
enum test_stuck {
    TEST_EXITED,     /* some threads end, the others wait at the barrier */
    TEST_TWO_PLACES, /* two barriers in different branches */
    TEST_WARP_ENDED, /* a shuffle whose mask names lanes that have ended */
    TEST_WARP_APART, /* lanes of one mask in different shuffles */
    TEST_MASK,       /* a mask without the caller */
    TEST_TRAP
};
cudaError_t test_stuck(cudaStream_t stream, enum test_stuck kind);
/* Counts blocks with an atomic; order[] receives block numbers as they ran. */
cudaError_t test_order(cudaStream_t stream, unsigned *count, unsigned *order, int blocks);
/* out[0] = 1e-20F * 1e-20F: zero where denormals are; out[1] = 1 rounded to bf16 and back of 1 + 2^-9. */
cudaError_t test_rounding(cudaStream_t stream, float *out, float small);
/* Launches that cannot be: threads of a block, blocks, bytes of shared memory. */
cudaError_t test_geometry(cudaStream_t stream, unsigned threads, unsigned blocks);

#ifdef __cplusplus
}
#endif

#endif
