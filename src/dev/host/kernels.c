#include "dev/host/kernels.h"

const struct ah_host_kernels *ah__host_kernels(void)
{
    static const struct ah_host_kernels *const tables[AH_ISA_COUNT] = {
        [AH_ISA_AVX512] = &ah__host_kernels_avx512,
        [AH_ISA_AVX2] = &ah__host_kernels_avx2,
        [AH_ISA_PLAIN] = &ah__host_kernels_plain,
    };
    return tables[ah__host_isa()];
}
