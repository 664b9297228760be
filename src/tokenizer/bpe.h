/* Byte pair encoding: merges the adjacent symbols of a word with the lowest rank, until no pair can be merged. Takes
 * words, returns ids. Knows no files and not how text becomes words.
 *
 * A symbol is a character of the word, or, if `bytes` is set, a byte (byte-level: a vocabulary whose texts stand for
 * bytes). A word may be of any length: long words use a heap, and are cut first if that changes nothing (no token has
 * the two characters next to each other). Words are cached, so an object is used from one thread at a time. */
#ifndef AH_TOKENIZER_BPE_H
#define AH_TOKENIZER_BPE_H

#include "tokenizer/bpe_table.h"
#include "tokenizer/token_map.h"

/* A growing list of ids; zero-initialised it is empty. */
struct ah_ids {
    int32_t *ids; /* freed with ah__free */
    size_t count, room;
};
int ah__ids_add(struct ah_ids *to, const int32_t *ids, size_t count);

struct ah_bpe_options {
    const struct ah_token_map *vocab; /* must outlive the object, and must not change meanwhile */
    bool bytes;
    int32_t byte_ids[256]; /* ids of bytes: the symbols if `bytes`, else used for an unknown character; -1: no id */
    bool byte_fallback;    /* an unknown character becomes its bytes if all of them have ids */
    int32_t unknown;       /* id of any other unknown character; -1: it is dropped */
    bool fuse_unknown;     /* several unknown characters in a row become one */
    bool ignore_merges;    /* a word that is a token becomes that token */
    const struct ah_token_map *words;  /* ignore_merges: the texts in which words are looked up */
    const struct ah_bpe_merge *merges; /* in order of rank; only read during the call */
    size_t merge_count;
};

struct ah_bpe;

int ah__bpe_new(struct ah_bpe **out, const struct ah_bpe_options *options);
void ah__bpe_free(struct ah_bpe *bpe);
/* Appends the ids of one word, which is well-formed UTF-8 unless symbols are bytes. AH_ENOMEM; AH_EINPUT: 2^30 bytes or
 * more. */
int ah__bpe_encode(struct ah_ids *to, struct ah_bpe *bpe, const char *word, size_t length);

#endif
