/* Maps texts to token ids and ids to texts. Takes any bytes; knows not what they mean. */
#ifndef AH_TOKENIZER_TOKEN_MAP_H
#define AH_TOKENIZER_TOKEN_MAP_H

#include "base/status.h"

enum { AH_TOKEN_IDS_MOST = 1 << 24 }; /* all ids are less */

/* Zero-initialised it is a valid empty map. */
struct ah_token_map {
    struct ah_token_text {
        size_t at; /* place in the pool */
        uint32_t length;
        bool present;
    } * texts;    /* [size], by id */
    int32_t size; /* the highest id + 1 */
    size_t room, count;
    char *pool; /* the texts, each with a zero byte after it */
    size_t pool_bytes, pool_room;
    int32_t *slots; /* [slot_count] ids by the hashes of their texts, -1: free */
    size_t slot_count;
};

/* Adds an id, 0 <= id < AH_TOKEN_IDS_MOST, which must not have a text yet. If another id has the same text,
 * ah__token_map_find returns the first of them. AH_ENOMEM; AH_EINPUT: 4 GiB of texts. */
int ah__token_map_add(struct ah_token_map *map, int32_t id, const char *text, size_t length);
/* Returns the id of a text, -1: no such text. */
int32_t ah__token_map_find(const struct ah_token_map *map, const char *text, size_t length);
/* Returns the terminated text of any id; null: it has none. Valid until the next add. */
const char *ah__token_map_text(size_t *length, const struct ah_token_map *map, int32_t id);
void ah__token_map_fini(struct ah_token_map *map);

#endif
