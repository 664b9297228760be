#include "tokenizer/token_map.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

static bool text_is(const struct ah_token_map *map, int32_t id, const char *text, size_t length)
{
    const struct ah_token_text *entry = &map->texts[id];
    return entry->length == length && memcmp(map->pool + entry->at, text, length) == 0;
}

/* Returns the slot of the text, or the free slot where it would be. */
static size_t slot_of(const struct ah_token_map *map, const char *text, size_t length)
{
    size_t mask = map->slot_count - 1, slot = (size_t)ah__hash(text, length, 0) & mask;
    while (map->slots[slot] >= 0 && !text_is(map, map->slots[slot], text, length))
        slot = (slot + 1) & mask;
    return slot;
}

/* Grows the slots, so that at most half of them are used. */
static int slots_grow(struct ah_token_map *map)
{
    enum { FIRST_SLOTS = 64 };
    if (2 * (map->count + 1) <= map->slot_count)
        return AH_OK;
    size_t length, count = map->slot_count ? 2 * map->slot_count : FIRST_SLOTS;
    int32_t *slots, *before = map->slots;
    AH_TRY(ah__new(&slots, count, sizeof *slots));
    memset(slots, 0xff, count * sizeof *slots);
    map->slots = slots;
    size_t before_count = map->slot_count;
    map->slot_count = count;
    for (size_t i = 0; i < before_count; i++) {
        if (before[i] < 0)
            continue;
        const char *text = ah__token_map_text(&length, map, before[i]);
        slots[slot_of(map, text, length)] = before[i];
    }
    ah__free(before);
    return AH_OK;
}

int ah__token_map_add(struct ah_token_map *map, int32_t id, const char *text, size_t length)
{
    if (length >= UINT32_MAX - map->pool_bytes)
        return ah__fail(AH_EINPUT, "token %d: found texts of more than 4 GiB, expected less", id);
    AH_TRY(ah__grow(&map->texts, &map->room, (size_t)id + 1, sizeof *map->texts));
    AH_TRY(ah__grow(&map->pool, &map->pool_room, map->pool_bytes + length + 1, 1));
    AH_TRY(slots_grow(map));
    memcpy(map->pool + map->pool_bytes, text, length);
    map->pool[map->pool_bytes + length] = 0;
    map->texts[id] = (struct ah_token_text){.at = map->pool_bytes, .length = (uint32_t)length, .present = true};
    map->pool_bytes += length + 1;
    map->size = id >= map->size ? id + 1 : map->size;
    size_t slot = slot_of(map, text, length);
    if (map->slots[slot] < 0) {
        map->slots[slot] = id;
        map->count++;
    }
    return AH_OK;
}

int32_t ah__token_map_find(const struct ah_token_map *map, const char *text, size_t length)
{
    return map->slot_count ? map->slots[slot_of(map, text, length)] : -1;
}

const char *ah__token_map_text(size_t *length, const struct ah_token_map *map, int32_t id)
{
    if (id < 0 || id >= map->size || !map->texts[id].present)
        return NULL;
    *length = map->texts[id].length;
    return map->pool + map->texts[id].at;
}

void ah__token_map_fini(struct ah_token_map *map)
{
    ah__free(map->texts);
    ah__free(map->pool);
    ah__free(map->slots);
    *map = (struct ah_token_map){0};
}
