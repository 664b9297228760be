#include "base/alloc.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"

static atomic_uint_fast64_t allocations;
static atomic_uint_fast64_t fail_at;

uint64_t ah__alloc_count(void)
{
    return atomic_load(&allocations);
}

void ah__alloc_fail_at(uint64_t n)
{
    atomic_store(&fail_at, n ? atomic_load(&allocations) + n : 0);
}

static bool alloc_refused(void)
{
    uint64_t number = atomic_fetch_add(&allocations, 1) + 1;
    return number == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

/* Stores a pointer. Callers pass the address of a pointer of any type; copying bytes keeps the aliasing rules. */
static void pointer_set(void *to, void *value)
{
    memcpy(to, &value, sizeof value);
}

static void *pointer_get(const void *from)
{
    void *value;
    memcpy(&value, from, sizeof value);
    return value;
}

static int no_memory(size_t count, size_t size)
{
    return ah__fail(AH_ENOMEM, "out of host memory: %zu elements of %zu bytes", count, size);
}

int ah__new(void *out, size_t count, size_t size)
{
    bool refused = alloc_refused() || (size && count > (size_t)PTRDIFF_MAX / size);
    void *memory = refused ? NULL : calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        return no_memory(count, size);
    pointer_set(out, memory);
    return AH_OK;
}

int ah__grow(void *array, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity)
        return AH_OK;
    size_t room = *capacity < 8 ? 8 : *capacity * 2;
    if (room < need)
        room = need;
    if (alloc_refused() || room > (size_t)PTRDIFF_MAX / size)
        return no_memory(room, size);
    char *memory = realloc(pointer_get(array), room * size);
    if (!memory)
        return no_memory(room, size);
    memset(memory + *capacity * size, 0, (room - *capacity) * size);
    pointer_set(array, memory);
    *capacity = room;
    return AH_OK;
}

int ah__strdup(char **out, const char *text)
{
    size_t length = strlen(text);
    char *copy;
    AH_TRY(ah__new(&copy, length + 1, 1));
    memcpy(copy, text, length);
    *out = copy;
    return AH_OK;
}

int ah__sprintf(char **out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = ah__vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        return ah__fail(AH_EINTERNAL, "cannot format '%s'", format);
    char *text;
    AH_TRY(ah__new(&text, (size_t)length + 1, 1));
    va_start(arguments, format);
    ah__vsnprintf(text, (size_t)length + 1, format, arguments);
    va_end(arguments);
    *out = text;
    return AH_OK;
}

void ah__free(void *memory)
{
    free(memory);
}

enum { ARENA_CHUNK_BYTES = 32768 };

struct ah_arena_chunk {
    struct ah_arena_chunk *next;
    size_t used, room;
    _Alignas(max_align_t) unsigned char bytes[];
};

static int arena_chunk_add(struct ah_arena *arena, size_t bytes)
{
    size_t room = bytes > ARENA_CHUNK_BYTES ? bytes : ARENA_CHUNK_BYTES;
    struct ah_arena_chunk *chunk;
    AH_TRY(ah__new(&chunk, sizeof *chunk + room, 1));
    chunk->room = room;
    chunk->next = arena->chunk;
    arena->chunk = chunk;
    return AH_OK;
}

int ah__arena_new(struct ah_arena *arena, void *out, size_t count, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    if (size && count > (PTRDIFF_MAX - sizeof(struct ah_arena_chunk) - align) / size)
        return no_memory(count, size);
    size_t bytes = (count * size + align - 1) / align * align;
    if (!arena->chunk || arena->chunk->room - arena->chunk->used < bytes)
        AH_TRY(arena_chunk_add(arena, bytes));
    pointer_set(out, arena->chunk->bytes + arena->chunk->used);
    arena->chunk->used += bytes;
    return AH_OK;
}

int ah__arena_strdup(struct ah_arena *arena, const char **out, const char *text)
{
    size_t length = strlen(text);
    char *copy;
    AH_TRY(ah__arena_new(arena, &copy, length + 1, 1));
    memcpy(copy, text, length);
    *out = copy;
    return AH_OK;
}

void ah__arena_free(struct ah_arena *arena)
{
    while (arena->chunk) {
        struct ah_arena_chunk *next = arena->chunk->next;
        ah__free(arena->chunk);
        arena->chunk = next;
    }
}
