/* The emulation's own accesses to device memory. AddressSanitizer must not see them: device memory is poisoned for host
 * code; ThreadSanitizer must: they are what events order. */
#include "inside.h"

#include <string.h>

static void bytes_copy(void *to, const void *from, size_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = ((const volatile char *)from)[i];
#endif
}

void emulation_fill_unseen(void *to, int byte, size_t bytes)
{
#if defined(__x86_64__)
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
#else
    for (size_t i = 0; i < bytes; i++)
        ((volatile char *)to)[i] = (char)byte;
#endif
}

void emulation_copy(void *to, const void *from, size_t bytes)
{
#if EMULATION_THREAD_SANITIZER
    memcpy(to, from, bytes);
#else
    bytes_copy(to, from, bytes);
#endif
    (void)bytes_copy;
}

void emulation_fill(void *to, int byte, size_t bytes)
{
#if EMULATION_THREAD_SANITIZER
    memset(to, byte, bytes);
#else
    emulation_fill_unseen(to, byte, bytes);
#endif
}

uint64_t emulation_value_read(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

void emulation_value_write(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}
