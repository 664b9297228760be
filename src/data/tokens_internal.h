/* The data source's state, shared by tokens.c (opening, splitting) and batches.c (what a batch holds). */
#ifndef AH_DATA_TOKENS_INTERNAL_H
#define AH_DATA_TOKENS_INTERNAL_H

#include "data/corpus.h"
#include "data/pack.h"
#include "data/token_file.h"
#include "data/tokens.h"

/* The map serves to look the whole file over; batches are read, since a map of a file that is cut short kills. */
struct ah_tokens {
    struct ah_map map;       /* only while opening */
    int fd;                  /* -1: not open */
    char *path;              /* for messages */
    struct ah_corpus corpus; /* of documents */
    bool packed;
    int32_t document_end;      /* the id */
    struct ah_pack train, val; /* packed examples */
    struct ah_token_file file; /* what a token file says */
    int32_t *encoded;          /* a text's tokens when they are not its bytes, or the corpus's, else null and: */
    const unsigned char *data; /* the first token in the map */
    int64_t offset;            /* and in the file */
    int width;                 /* bytes of a token there: 1, 2 or 4 */
    int64_t vocab_size;        /* every token is below */
    struct ah_tokens_info info;
};

#endif
