/* Inside the CPU device: a single-threaded product of fp32 matrices by oneDNN; failures are statuses. */
#ifndef AH_DEV_CPU_SGEMM_H
#define AH_DEV_CPU_SGEMM_H

#include "base/status.h"

/* C[M,N] (+)= op(A) op(B), row-major; leading dimensions in elements. */
struct ah_sgemm {
    bool trans_a, trans_b, accumulate;
    int64_t m, n, k, lda, ldb, ldc;
    const float *a, *b;
    float *c;
};
/* Makes oneDNN generate its code, once in a process, after checking that memory suffices: oneDNN does not survive a
 * failed allocation then. Call it before the first product. AH_ENOMEM. */
int ah__cpu_products_ready(void);
/* Computes a product, on a thread that has entered a pool. AH_ENOMEM, AH_EDEVICE. The message belongs to the calling
 * thread, which may be a worker, so the thread that started it calls ah__cpu_sgemm_fail(). */
int ah__cpu_sgemm(const struct ah_sgemm *call);
int ah__cpu_sgemm_fail(int status, int64_t m, int64_t n, int64_t k);

#endif
