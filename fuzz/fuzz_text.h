/* What the fuzz targets of tokenizers share: a folder with one file, and a text. */
#ifndef AH_FUZZ_FUZZ_TEXT_H
#define AH_FUZZ_FUZZ_TEXT_H

#include "fuzz.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

/* Ids below the vocabulary, whose text told token by token is well-formed. */
static inline void fuzz_text(const struct ah_tokenizer *tokenizer, const char *text, size_t length)
{
    int32_t *ids;
    int64_t count;
    struct ah_buf told = {0};
    struct ah_token_stream stream = {.tokenizer = tokenizer};
    char *back;
    size_t back_length;
    int status = tokenizer->encode_prompt(&ids, &count, tokenizer, text, length);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    if (status != AH_OK)
        return;
    for (int64_t i = 0; i < count; i++) {
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < tokenizer->vocab_size);
        FUZZ_CHECK(ah__token_stream_next(&told, &stream, ids[i]) == AH_OK);
    }
    FUZZ_CHECK(ah__token_stream_end(&told, &stream) == AH_OK);
    FUZZ_CHECK(tokenizer->decode(&back, &back_length, tokenizer, ids, count) == AH_OK);
    FUZZ_CHECK(ah__utf8_good(back, back_length));
    FUZZ_CHECK(!told.text || ah__utf8_good(told.text, told.length));
    ah__buf_free(&told);
    ah__free(back);
    ah__free(ids);
}

/* The first `length` bytes are the folder's file of that name; those behind the byte after them, if there are any, a
 * text: the file is refused, or what it makes of the text is checked. */
static inline void fuzz_tokenizer_file(const char *name, const uint8_t *data, size_t size, size_t length)
{
    char folder[] = "/tmp/autohete-fuzz-XXXXXX", path[96];
    const struct ah_tokenizer *tokenizer = NULL;
    FUZZ_CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    FUZZ_CHECK(file && fwrite(data, 1, length, file) == length && fclose(file) == 0);
    int status = ah__tokenizer_open(&tokenizer, folder);
    unlink(path);
    rmdir(folder);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    if (status == AH_OK && !tokenizer->text_is_ids && length < size)
        fuzz_text(tokenizer, (const char *)data + length + 1, size - length - 1);
    ah__tokenizer_close(tokenizer);
}

#endif
