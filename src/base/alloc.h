/* Every heap allocation of the library goes through here, so that tests can count them and make the n-th fail. */
#ifndef AH_BASE_ALLOC_H
#define AH_BASE_ALLOC_H

#include "base/status.h"

/* Allocates zeroed memory for `count` elements of `size` bytes into *(void **)out; AH_ENOMEM. Freed by ah__free. A
 * count of 0 gives a valid pointer. */
int ah__new(void *out, size_t count, size_t size);
/* Grows *(void **)array, an array of `size`-byte elements with room for *capacity of them, to hold at least `need`; new
 * room is zeroed. */
int ah__grow(void *array, size_t *capacity, size_t need, size_t size);
int ah__strdup(char **out, const char *text);
int ah__sprintf(char **out, const char *format, ...) AH_PRINTF(2, 3);
void ah__free(void *memory);

/* Returns AH_ENOMEM unless `bytes` can be allocated in one piece now; the memory is freed at once. For libraries that
 * do not survive a failed allocation: call it right before a call that allocates less. */
static inline int ah__room(size_t bytes)
{
    void *room;
    AH_TRY(ah__new(&room, bytes, 1));
    ah__free(room);
    return AH_OK;
}

/* For tests: ah__alloc_count returns the allocations made so far in this process; ah__alloc_fail_at makes the n-th
 * allocation from now on fail (0: no failure). */
uint64_t ah__alloc_count(void);
void ah__alloc_fail_at(uint64_t n);

/* An append-only arena: objects that live and die together. Zero-initialised is a valid empty arena. */
struct ah_arena {
    struct ah_arena_chunk *chunk;
};
int ah__arena_new(struct ah_arena *arena, void *out, size_t count, size_t size);
int ah__arena_strdup(struct ah_arena *arena, const char **out, const char *text);
void ah__arena_free(struct ah_arena *arena);

#endif
