/* Which instruction set the kernels of this process use. All give the same bits; a wider one gives them sooner. */
#ifndef AH_DEV_HOST_ISA_H
#define AH_DEV_HOST_ISA_H

#include "base/status.h"

enum ah_isa { AH_ISA_AVX512, AH_ISA_AVX2, AH_ISA_PLAIN, AH_ISA_COUNT };

/* The widest this processor runs, unless another is forced. */
enum ah_isa ah__host_isa(void);
/* "avx512", "avx2" or "plain". */
const char *ah__host_isa_name(void);
/* For tests of equal bits: by name, where this processor runs it; null undoes. */
void ah__host_isa_force(const char *name);

#endif
