/* Chooses the table of kernels this processor can run. */
#include "dev/cpu/kernels.h"

#include <stdatomic.h>
#include <string.h>

static const struct ah_kernels *const tables[] = {&ah__kernels_avx512, &ah__kernels_avx2, &ah__kernels_plain};
static _Atomic(const struct ah_kernels *) chosen;

const struct ah_kernels *ah__kernels(void)
{
    const struct ah_kernels *kernels = atomic_load(&chosen);
    for (size_t i = 0; !kernels && i < AH_LENGTH(tables); i++)
        if (tables[i]->usable())
            atomic_store(&chosen, kernels = tables[i]);
    return kernels;
}

const char *ah__cpu_isa(void)
{
    return ah__kernels()->name;
}

void ah__cpu_isa_force(const char *isa)
{
    atomic_store(&chosen, NULL);
    for (size_t i = 0; isa && i < AH_LENGTH(tables); i++)
        if (strcmp(tables[i]->name, isa) == 0 && tables[i]->usable())
            atomic_store(&chosen, tables[i]);
}
