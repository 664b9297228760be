/* The bytes before the first line break as parts of a tokenizer.json, those behind it as a text: refused, or ids below
 * the vocabulary, whose text told token by token is well-formed. */
#include "fuzz.h"

#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

static void text_check(const struct ah_tokenizer *tokenizer, const char *text, size_t length)
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

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    char folder[] = "/tmp/autohete-fuzz-XXXXXX", path[64];
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    const struct ah_tokenizer *tokenizer = NULL;
    size_t length = line ? (size_t)(line - data) : size;
    FUZZ_CHECK(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    FILE *file = fopen(path, "w");
    FUZZ_CHECK(file && fwrite(data, 1, length, file) == length && fclose(file) == 0);
    int status = ah__tokenizer_open(&tokenizer, folder);
    unlink(path);
    rmdir(folder);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    if (status == AH_OK && !tokenizer->text_is_ids && line)
        text_check(tokenizer, (const char *)line + 1, size - length - 1);
    ah__tokenizer_close(tokenizer);
    return 0;
}
