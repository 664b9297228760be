#include "shared.h"

#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "inside.h"

enum { DYNAMIC_BYTES = 256 << 10, CANARY_BYTES = 64, NAN_BYTE = 0xFF, CANARY_BYTE = 0xA5, CHUNK_BYTES = 512 };
/* Filling all shared variables of all kernels before each block would take most of the time. So what a kernel writes is
 * looked for after its first blocks and after some of the later ones, and that is what is filled again. */
enum { BLOCKS_LOOKED_AT = 4, BLOCKS_BETWEEN = 256 };

/* ---- where a module's thread-local storage is */

/* The argument of the linker's own function. */
struct storage_index {
    unsigned long module, offset;
};
extern void *__tls_get_addr(struct storage_index *index);

struct module_search {
    const char *kernel;
    size_t module, bytes;
};

static int module_visit(struct dl_phdr_info *info, size_t size, void *context)
{
    struct module_search *search = context;
    (void)size;
    bool inside = false;
    size_t bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *from = (const char *)info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && search->kernel >= from && search->kernel < from + header->p_memsz)
            inside = true;
        if (header->p_type == PT_TLS)
            bytes = header->p_memsz;
    }
    if (!inside)
        return 0;
    search->module = info->dlpi_tls_modid;
    search->bytes = bytes;
    return 1;
}

/* All thread-local variables of a kernel's module are shared variables of kernels: plugin sources have no others. */
static void storage_find(struct shared *shared, const void *kernel)
{
    struct module_search search = {.kernel = kernel};
    dl_iterate_phdr(module_visit, &search);
    char *storage = search.bytes ? __tls_get_addr(&(struct storage_index){search.module, 0}) : NULL;
    if (storage == shared->storage)
        return;
    shared->storage = storage;
    shared->bytes = search.bytes;
    shared->chunk_bytes = CHUNK_BYTES;
    while (shared->bytes > shared->chunk_bytes * SHARED_CHUNKS_MOST)
        shared->chunk_bytes *= 2;
    emulation_fill_unseen(storage, NAN_BYTE, search.bytes);
}

/* ---- chunks of it */

static size_t chunk_count(const struct shared *shared)
{
    return shared->bytes ? (shared->bytes + shared->chunk_bytes - 1) / shared->chunk_bytes : 0;
}

static size_t chunk_size(const struct shared *shared, size_t chunk)
{
    size_t left = shared->bytes - chunk * shared->chunk_bytes;
    return left < shared->chunk_bytes ? left : shared->chunk_bytes;
}

static bool is_nan(const char *at, size_t bytes)
{
    uint64_t word;
    size_t i = 0;
    for (; i + sizeof word <= bytes; i += sizeof word) {
        memcpy(&word, at + i, sizeof word);
        if (word != ~(uint64_t)0)
            return false;
    }
    for (; i < bytes; i++)
        if ((unsigned char)at[i] != NAN_BYTE)
            return false;
    return true;
}

static void writes_learn(struct shared *shared)
{
    for (size_t i = 0; i < chunk_count(shared); i++)
        if (!is_nan(shared->storage + i * shared->chunk_bytes, chunk_size(shared, i)))
            shared->current->writes[i / 8] |= (unsigned char)(1U << i % 8);
}

static void writes_fill(struct shared *shared)
{
    for (size_t i = 0; i < chunk_count(shared); i++)
        if (shared->current->writes[i / 8] >> i % 8 & 1)
            emulation_fill_unseen(shared->storage + i * shared->chunk_bytes, NAN_BYTE, chunk_size(shared, i));
}

/* ---- kernels and blocks */

void shared_kernel_begin(struct shared *shared, const void *kernel)
{
    if (shared->current && shared->current->kernel == kernel)
        return;
    size_t slot = (uintptr_t)kernel / 16 % SHARED_KERNELS_MOST, steps = 0;
    for (; shared->known[slot].kernel && shared->known[slot].kernel != kernel; slot = (slot + 1) % SHARED_KERNELS_MOST)
        if (++steps == SHARED_KERNELS_MOST)
            abort();
    shared->current = &shared->known[slot];
    if (!shared->current->kernel)
        storage_find(shared, kernel);
    shared->current->kernel = kernel;
}

void shared_block_begin(struct shared *shared, size_t bytes)
{
    size_t rounded = (bytes + 15) & ~(size_t)15;
    shared->dynamic = shared->pages + DYNAMIC_BYTES - CANARY_BYTES - rounded;
    emulation_fill_unseen(shared->dynamic, NAN_BYTE, rounded);
    emulation_fill_unseen(shared->dynamic + rounded, CANARY_BYTE, CANARY_BYTES);
}

bool shared_block_end(struct shared *shared)
{
    const char *canary = shared->pages + DYNAMIC_BYTES - CANARY_BYTES;
    unsigned blocks = shared->current->blocks++;
    if (blocks < BLOCKS_LOOKED_AT || blocks % BLOCKS_BETWEEN == 0)
        writes_learn(shared);
    writes_fill(shared);
    for (int i = 0; i < CANARY_BYTES; i++)
        if ((unsigned char)canary[i] != CANARY_BYTE)
            return false;
    return true;
}

void shared_init(struct shared *shared)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    shared->pages = mmap(NULL, DYNAMIC_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (shared->pages == MAP_FAILED)
        abort();
}

void shared_fini(struct shared *shared)
{
    munmap(shared->pages, DYNAMIC_BYTES);
}
