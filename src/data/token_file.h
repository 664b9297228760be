/* Token files in llm.c's form: 1024 bytes of header, then tokens, little-endian. The header's first three int32 are
 * 20240520, 1 and the number of tokens for 16-bit tokens, 20240801, 7 and the number for 32-bit ones; other readers
 * need no more. Files that are written here go on, in what llm.c leaves zero:
 *
 *     [3]       0x31544841 "AHT1"
 *     [4..5]    the number of tokens, 64 bits; above 2^31 - 1 of them [2] is -1
 *     [6..7]    how many at the end are for validation
 *     [8..9]    documents
 *     [10..11]  the tokenizer's signature
 *     [12..13]  XXH3 of all tokens' bytes, seed 0
 *     [14..15]  XXH3 of the header's 56 bytes before
 *
 * Knows no tokenizers and no batches. */
#ifndef AH_DATA_TOKEN_FILE_H
#define AH_DATA_TOKEN_FILE_H

#include "base/status.h"

enum { AH_TOKEN_FILE_HEADER = 1024 };

struct ah_token_file {
    int width; /* bytes of a token: 2 or 4 */
    int64_t tokens;
    bool ours; /* the rest is said */
    int64_t val_tokens, documents;
    uint64_t tokenizer, hash;
};

/* Whether a file that starts so is a token file, perhaps a damaged one. */
bool ah__token_file_is(const void *start, size_t length);
/* Tells whether a whole file is one of nanoGPT's, 16 bits a token. Nothing in it says so: it must be named
 * NAME.bin and be no text, and all numbers of its first 2 MiB must be tokens, of which a vocabulary has not all. */
bool ah__nanogpt_is(const void *data, size_t length, const char *path, int64_t vocab_size);
/* From a file's start and its whole length. AH_EINPUT: another version; AH_ECORRUPT: lengths or checksum do not fit. */
int ah__token_file_parse(struct ah_token_file *out, const unsigned char *start, size_t length, const char *path);

struct ah_token_writer;

/* Makes a temporary file beside path. AH_EINPUT: it cannot be made; AH_ENOMEM. */
int ah__token_writer_open(struct ah_token_writer **out, const char *path, int width);
/* The next count ids, each of which `width` bytes hold. AH_EIO. */
int ah__token_writer_append(struct ah_token_writer *writer, const int32_t *ids, int64_t count);
/* Writes the header (tokens and hash are the writer's own to fill in), fsyncs and renames to path. AH_EIO. The writer
 * must still be freed. */
int ah__token_writer_close(struct ah_token_writer *writer, struct ah_token_file *file);
/* Frees; what was not closed with success is removed. Null is fine. */
void ah__token_writer_free(struct ah_token_writer *writer);

#endif
