/* The data source's state, shared by tokens.c (opening, splitting) and batches.c (filling batches). */
#ifndef AH_DATA_TOKENS_INTERNAL_H
#define AH_DATA_TOKENS_INTERNAL_H

#include "data/corpus.h"
#include "data/pack.h"
#include "data/token_file.h"
#include "data/tokens.h"

/* State. The map is for reading the whole file once; batches are read by calls, since access to a map of a file that
 * was cut short kills the process. */
struct ah_tokens {
    struct ah_map map;       /* only while opening */
    int fd;                  /* -1: not open */
    char *path;              /* for messages */
    struct ah_corpus corpus; /* tokens of documents */
    bool packed;
    int32_t document_end;      /* id that ends a document */
    struct ah_pack train, val; /* packed examples */
    struct ah_token_file file; /* header of a token file */
    int32_t *encoded;          /* ids of a corpus, or of a text if they are not its bytes; else null and: */
    const unsigned char *data; /* first token in the map */
    int64_t offset;            /* position of the first token in the file */
    int width;                 /* bytes of a token there: 1, 2 or 4 */
    int64_t vocab_size;        /* every token is below it */
    struct ah_tokens_info info;
};

#endif
