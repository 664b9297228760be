/* Token files in llm.c's format: 1024 bytes of header, then tokens, little-endian. The header's first three int32 are
 * 20240520, 1 and the number of tokens for 16-bit tokens; 20240801, 7 and that number for 32-bit tokens. Other readers
 * need no more. Files of this library continue in the bytes that llm.c leaves zero:
 *
 *     [3]       0x31544841 "AHT1"
 *     [4..5]    the number of tokens, 64 bits; above 2^31 - 1 of them [2] is -1
 *     [6..7]    number of tokens at the end for validation
 *     [8..9]    number of documents
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
    bool ours; /* written by this library: the next members are known */
    int64_t val_tokens, documents;
    uint64_t tokenizer, hash;
};

/* Returns true if a file with this start is a token file, perhaps a damaged one. */
bool ah__token_file_is(const void *start, size_t length);
/* Returns true if a whole file is one of nanoGPT's, 16 bits a token. The content cannot prove it: the file must be
 * named NAME.bin and not be text, and all numbers of its first 2 MiB must be tokens of a vocabulary of fewer than
 * 2^16. */
bool ah__nanogpt_is(const void *data, size_t length, const char *path, int64_t vocab_size);
/* Parses a file's start; `length` is that of the whole file. AH_EINPUT: another version; AH_ECORRUPT: lengths or
 * checksum do not fit. */
int ah__token_file_parse(struct ah_token_file *out, const unsigned char *start, size_t length, const char *path);

struct ah_token_writer;

/* Makes a temporary file beside `path`. AH_EINPUT: it cannot be made; AH_ENOMEM. */
int ah__token_writer_open(struct ah_token_writer **out, const char *path, int width);
/* Appends count ids, each of which fits `width` bytes. AH_EIO. */
int ah__token_writer_append(struct ah_token_writer *writer, const int32_t *ids, int64_t count);
/* Writes the header (the writer fills in tokens and hash), syncs the file and renames it to `path`. AH_EIO. The writer
 * must still be freed. */
int ah__token_writer_close(struct ah_token_writer *writer, struct ah_token_file *file);
/* Frees the writer and removes a file that was not closed with success. Null is fine. */
void ah__token_writer_free(struct ah_token_writer *writer);

#endif
