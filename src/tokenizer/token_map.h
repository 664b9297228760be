/* Which text has which token id, and the other way round. Takes any bytes; knows not what they mean. */
#ifndef AH_TOKENIZER_TOKEN_MAP_H
#define AH_TOKENIZER_TOKEN_MAP_H

#include "base/status.h"

enum { AH_TOKEN_IDS_MOST = 1 << 24 }; /* ids are below it */

/* Zero-initialised is a valid empty map. */
struct ah_token_map {
    struct ah_token_text {
        size_t at; /* in the pool */
        uint32_t length;
        bool present;
    } * texts;    /* [size], by id */
    int32_t size; /* the highest id + 1 */
    size_t room, count;
    char *pool; /* the texts, each with a zero byte behind it */
    size_t pool_bytes, pool_room;
    int32_t *slots; /* [slot_count] ids by the texts' hashes, -1: free */
    size_t slot_count;
};

/* 0 <= id < AH_TOKEN_IDS_MOST, of which the map has no text; a text that it has already keeps its first id. AH_ENOMEM,
 * AH_EINPUT: 4 GiB of texts. */
int ah__token_map_add(struct ah_token_map *map, int32_t id, const char *text, size_t length);
/* -1: no such text. */
int32_t ah__token_map_find(const struct ah_token_map *map, const char *text, size_t length);
/* The terminated text of an id, whatever it is; null: it has none. Valid until the next add. */
const char *ah__token_map_text(size_t *length, const struct ah_token_map *map, int32_t id);
void ah__token_map_fini(struct ah_token_map *map);

#endif
