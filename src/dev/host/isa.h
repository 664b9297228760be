/* The instruction set that the kernels of this process use. All give the same bits; wider ones are faster. */
#ifndef AH_DEV_HOST_ISA_H
#define AH_DEV_HOST_ISA_H

#include "base/status.h"

enum ah_isa { AH_ISA_AVX512, AH_ISA_AVX2, AH_ISA_PLAIN, AH_ISA_COUNT };

/* Returns the widest instruction set of this processor, unless another is forced. */
enum ah_isa ah__host_isa(void);
/* Returns "avx512", "avx2" or "plain". */
const char *ah__host_isa_name(void);
/* Forces an instruction set by name, if this processor has it; null undoes this. For tests of equal bits. */
void ah__host_isa_force(const char *name);

#endif
