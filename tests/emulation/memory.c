/* Device and pinned memory. Each cudaMalloc has pages of its own: it ends where a page ends that nobody may touch, and
 * what was freed is never handed out again, so that a kernel that leaves its memory stops the program. */
#include "inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if EMULATION_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) ((void)(address), (void)(bytes))
#endif

enum { PAGE = 4096, ALIGN = 256, RANGES_MOST = 4096, NAN_BYTE = 0xFF };
enum { MEMORY_BYTES = 1 << 30 }; /* of a device, unless AUTOHETE_EMULATION_MEMORY says otherwise */

enum kind { NONE, DEVICE, REGISTERED, HOST_ALLOCATED };

static struct range {
    enum kind kind;
    int device;
    char *base;
    size_t bytes;
    char *pages;
    size_t page_bytes;
} ranges[RANGES_MOST];
static int ranges_used; /* those behind have never been used */

/* ---- the table; callers hold the lock */

static struct range *range_new(void)
{
    int i = 0;
    while (i < ranges_used && ranges[i].kind != NONE)
        i++;
    if (i == RANGES_MOST)
        return NULL;
    ranges_used = i == ranges_used ? i + 1 : ranges_used;
    return &ranges[i];
}

static struct range *range_at(const void *base, enum kind kind)
{
    for (int i = 0; i < ranges_used; i++)
        if (ranges[i].kind == kind && ranges[i].base == base)
            return &ranges[i];
    return NULL;
}

static struct range *range_around(const void *address, size_t bytes)
{
    const char *from = address;
    for (int i = 0; i < ranges_used; i++)
        if (ranges[i].kind != NONE && from >= ranges[i].base && from < ranges[i].base + ranges[i].bytes &&
            bytes <= (size_t)(ranges[i].base + ranges[i].bytes - from))
            return &ranges[i];
    return NULL;
}

static bool overlaps(const void *address, size_t bytes)
{
    const char *from = address;
    for (int i = 0; i < ranges_used; i++)
        if (ranges[i].kind != NONE && from < ranges[i].base + ranges[i].bytes && ranges[i].base < from + bytes)
            return true;
    return false;
}

static bool is_kind(const void *address, size_t bytes, bool device)
{
    emulation_lock();
    const struct range *range = range_around(address, bytes);
    bool is = range && (range->kind == DEVICE) == device;
    emulation_unlock();
    return is;
}

bool emulation_is_device(const void *address, size_t bytes)
{
    return is_kind(address, bytes, true);
}

bool emulation_device_range(const void *address, const void **from, size_t *bytes)
{
    emulation_lock();
    const struct range *range = range_around(address, 1);
    bool is = range && range->kind == DEVICE;
    if (is) {
        *from = range->base;
        *bytes = range->bytes;
    }
    emulation_unlock();
    return is;
}

bool emulation_is_pinned(const void *address, size_t bytes)
{
    return is_kind(address, bytes, false);
}

/* ---- device memory */

static size_t device_used(int device)
{
    size_t used = 0;
    for (int i = 0; i < ranges_used; i++)
        if (ranges[i].kind == DEVICE && ranges[i].device == device)
            used += ranges[i].bytes;
    return used;
}

static size_t device_total(void)
{
    return (size_t)emulation_setting("AUTOHETE_EMULATION_MEMORY", MEMORY_BYTES);
}

size_t emulation_memory_bytes(void)
{
    return device_total();
}

/* One page before and one behind that nobody may touch. */
static bool device_pages(struct range *range, size_t bytes)
{
    size_t rounded = (bytes + ALIGN - 1) / ALIGN * ALIGN, inner = (rounded + PAGE - 1) / PAGE * PAGE;
    char *pages = mmap(NULL, inner + (size_t)2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED)
        return false;
    mprotect(pages + PAGE, inner, PROT_READ | PROT_WRITE);
    range->pages = pages;
    range->page_bytes = inner + (size_t)2 * PAGE;
    range->base = pages + PAGE + inner - rounded;
    range->bytes = bytes;
    emulation_fill_unseen(pages + PAGE, NAN_BYTE, inner);
    ASAN_POISON_MEMORY_REGION(pages + PAGE, inner);
    return true;
}

static cudaError_t device_take(void **out, size_t bytes)
{
    struct range *range = range_new();
    size_t total = device_total();
    int device = emulation_device();
    if (!range || bytes > total || device_used(device) > total - bytes || !device_pages(range, bytes))
        return cudaErrorMemoryAllocation;
    range->kind = DEVICE;
    range->device = device;
    *out = range->base;
    emulation_count(COUNT_DEVICE_ALLOCATIONS, 1);
    emulation_count(COUNT_DEVICE_BYTES, (long)bytes);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    ENTER("cudaMalloc");
    if (!out || !bytes)
        REFUSE(cudaErrorInvalidValue, "cudaMalloc: of %zu bytes", bytes);
    emulation_lock();
    cudaError_t error = device_take(out, bytes);
    emulation_unlock();
    return error ? emulation_failed(error) : cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    ENTER_RELEASE("cudaFree");
    if (!memory)
        return cudaSuccess;
    emulation_drain();
    emulation_lock();
    struct range *range = range_at(memory, DEVICE), freed = {0};
    if (range) {
        freed = *range;
        *range = (struct range){0};
    }
    emulation_unlock();
    if (!freed.base)
        REFUSE(cudaErrorInvalidValue, "cudaFree: %p is not what cudaMalloc gave", memory);
    /* The addresses stay taken; the pages go. */
    mmap(freed.pages, freed.page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    emulation_count(COUNT_DEVICE_ALLOCATIONS, -1);
    emulation_count(COUNT_DEVICE_BYTES, -(long)freed.bytes);
    return (cudaError_t)emulation_sticky();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER("cudaMemGetInfo");
    emulation_lock();
    *total = device_total();
    size_t used = device_used(emulation_device());
    *free_bytes = used < *total ? *total - used : 0;
    emulation_unlock();
    return cudaSuccess;
}

/* ---- pinned memory */

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    ENTER("cudaHostRegister");
    unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    if (!memory || !bytes || flags & ~known)
        REFUSE(cudaErrorInvalidValue, "cudaHostRegister: %p, %zu bytes, flags %u", memory, bytes, flags);
    emulation_lock();
    struct range *range = range_new();
    bool fits = range && !overlaps(memory, bytes);
    if (fits)
        *range = (struct range){.kind = REGISTERED, .base = memory, .bytes = bytes};
    emulation_unlock();
    if (!fits)
        REFUSE(cudaErrorHostMemoryAlreadyRegistered, "cudaHostRegister: %p is registered already", memory);
    emulation_count(COUNT_PINNED, 1);
    emulation_count(COUNT_PINNED_BYTES, (long)bytes);
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags)
{
    ENTER("cudaHostAlloc");
    if (!out || !bytes || flags & ~(unsigned)(cudaHostAllocPortable | cudaHostAllocMapped))
        REFUSE(cudaErrorInvalidValue, "cudaHostAlloc: %zu bytes, flags %u", bytes, flags);
    char *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return emulation_failed(cudaErrorMemoryAllocation);
    memset(pages, NAN_BYTE, bytes);
    emulation_lock();
    struct range *range = range_new();
    if (range)
        *range = (struct range){.kind = HOST_ALLOCATED, .base = pages, .bytes = bytes};
    emulation_unlock();
    if (!range) {
        munmap(pages, bytes);
        return emulation_failed(cudaErrorMemoryAllocation);
    }
    *out = pages;
    emulation_count(COUNT_PINNED, 1);
    emulation_count(COUNT_PINNED_BYTES, (long)bytes);
    return cudaSuccess;
}

/* Copies that are under way still use it. */
static struct range pinned_take(const void *memory, enum kind kind)
{
    struct range taken = {0};
    emulation_drain();
    emulation_lock();
    struct range *range = range_at(memory, kind);
    if (range) {
        taken = *range;
        *range = (struct range){0};
    }
    emulation_unlock();
    if (taken.base) {
        emulation_count(COUNT_PINNED, -1);
        emulation_count(COUNT_PINNED_BYTES, -(long)taken.bytes);
    }
    return taken;
}

cudaError_t cudaHostUnregister(void *memory)
{
    ENTER_RELEASE("cudaHostUnregister");
    if (!pinned_take(memory, REGISTERED).base)
        REFUSE(cudaErrorHostMemoryNotRegistered, "cudaHostUnregister: %p is not registered", memory);
    return (cudaError_t)emulation_sticky();
}

cudaError_t cudaFreeHost(void *memory)
{
    ENTER_RELEASE("cudaFreeHost");
    if (!memory)
        return cudaSuccess;
    struct range range = pinned_take(memory, HOST_ALLOCATED);
    if (!range.base)
        REFUSE(cudaErrorInvalidValue, "cudaFreeHost: %p is not what cudaHostAlloc gave", memory);
    munmap(range.base, range.bytes);
    return (cudaError_t)emulation_sticky();
}
