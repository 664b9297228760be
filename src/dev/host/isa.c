#include "dev/host/isa.h"

#include <stdatomic.h>
#include <string.h>

static const char *const names[AH_ISA_COUNT] = {
    [AH_ISA_AVX512] = "avx512",
    [AH_ISA_AVX2] = "avx2",
    [AH_ISA_PLAIN] = "plain",
};
static atomic_int chosen = AH_ISA_COUNT;

static bool usable(int isa)
{
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == AH_ISA_AVX512)
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (isa == AH_ISA_AVX2)
        return avx2;
#endif
    return isa == AH_ISA_PLAIN;
}

enum ah_isa ah__host_isa(void)
{
    int isa = atomic_load(&chosen);
    if (isa != AH_ISA_COUNT)
        return (enum ah_isa)isa;
    for (isa = 0; !usable(isa);)
        isa++;
    atomic_store(&chosen, isa);
    return (enum ah_isa)isa;
}

const char *ah__host_isa_name(void)
{
    return names[ah__host_isa()];
}

void ah__host_isa_force(const char *name)
{
    int forced = AH_ISA_COUNT;
    for (int isa = 0; name && isa < AH_ISA_COUNT; isa++)
        if (strcmp(names[isa], name) == 0 && usable(isa))
            forced = isa;
    atomic_store(&chosen, forced);
}
