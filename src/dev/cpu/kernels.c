#include "dev/cpu/kernels.h"

const struct ah_kernels *ah__kernels(enum ah_dtype dtype)
{
    static const struct ah_kernels *const tables[AH_ISA_COUNT][2] = {
        [AH_ISA_AVX512] = {&ah__kernels_avx512, &ah__kernels_avx512_bf16},
        [AH_ISA_AVX2] = {&ah__kernels_avx2, &ah__kernels_avx2_bf16},
        [AH_ISA_PLAIN] = {&ah__kernels_plain, &ah__kernels_plain_bf16},
    };
    return tables[ah__host_isa()][dtype == AH_BF16];
}
