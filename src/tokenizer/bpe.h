/* Byte pair encoding: of a word's symbols the neighbours whose merge ranks first become one, until none are left that
 * merge. Takes words, gives ids. Knows no files and not how text becomes words.
 *
 * A symbol is a character of the word, or, where `bytes` says so, a byte (byte-level: a vocabulary whose texts stand
 * for bytes). A word may be of any length: long ones go through a heap, and where that changes nothing (no token has
 * the two characters side by side) they are cut first. Words that recur are remembered, so an object is used from one
 * thread at a time. */
#ifndef AH_TOKENIZER_BPE_H
#define AH_TOKENIZER_BPE_H

#include "tokenizer/bpe_table.h"
#include "tokenizer/token_map.h"

/* A growing list of ids; zero-initialised is empty. */
struct ah_ids {
    int32_t *ids; /* freed with ah__free */
    size_t count, room;
};
int ah__ids_add(struct ah_ids *to, const int32_t *ids, size_t count);

struct ah_bpe_options {
    const struct ah_token_map *vocab; /* must outlive the object; not changed meanwhile */
    bool bytes;
    int32_t byte_ids[256]; /* bytes: the symbols; else what stands for a byte of an unknown character; -1: none */
    bool byte_fallback;    /* an unknown character becomes its bytes, where all of them have ids */
    int32_t unknown;       /* what any other unknown character becomes; -1: nothing */
    bool fuse_unknown;     /* several in a row become one */
    bool ignore_merges;    /* a word that is a token is that token */
    const struct ah_token_map *words;  /* ignore_merges: in which texts words are looked up */
    const struct ah_bpe_merge *merges; /* in order of rank; only read during the call */
    size_t merge_count;
};

struct ah_bpe;

int ah__bpe_new(struct ah_bpe **out, const struct ah_bpe_options *options);
void ah__bpe_free(struct ah_bpe *bpe);
/* Appends the ids of one word: well-formed UTF-8 unless symbols are bytes. AH_ENOMEM, AH_EINPUT: of 2^30 bytes. */
int ah__bpe_encode(struct ah_ids *to, struct ah_bpe *bpe, const char *word, size_t length);

#endif
