#include "io/tokenizer.h"

#include "base/alloc.h"

/* ---- byte-level -------------------------------------------------------------------------------------------------- */

enum { BYTE_VALUES = 256 };

static int bytes_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                        size_t length)
{
    (void)tokenizer;
    AH_TRY(ah__new(ids, length, sizeof **ids));
    for (size_t i = 0; i < length; i++)
        (*ids)[i] = (unsigned char)text[i];
    *count = (int64_t)length;
    return AH_OK;
}

static int bytes_decode(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids,
                        int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab_size)
            return ah__fail(AH_EINPUT, "token %lld: found %d, expected below the tokenizer's vocabulary of %d",
                            (long long)i, ids[i], tokenizer->vocab_size);
    AH_TRY(ah__new(text, (size_t)count + 1, 1));
    for (int64_t i = 0; i < count; i++)
        (*text)[i] = (char)ids[i];
    *length = (size_t)count;
    return AH_OK;
}

static void bytes_close(const struct ah_tokenizer *tokenizer)
{
    (void)tokenizer;
}

const struct ah_tokenizer ah__tokenizer_bytes = {
    .name = "byte-level",
    .unit = "byte",
    .vocab_size = BYTE_VALUES,
    .text_is_ids = true,
    .encode = bytes_encode,
    .decode = bytes_decode,
    .close = bytes_close,
};

static int bytes_open(const struct ah_tokenizer **out, const char *model)
{
    (void)model;
    *out = &ah__tokenizer_bytes;
    return AH_OK;
}

/* ---- which one --------------------------------------------------------------------------------------------------- */

/* Each leaves *out null when the model has no tokenizer of its kind; the last takes every model. */
static int (*const openers[])(const struct ah_tokenizer **out, const char *model) = {
    bytes_open,
};

int ah__tokenizer_open(const struct ah_tokenizer **out, const char *model)
{
    const struct ah_tokenizer *tokenizer = NULL;
    for (size_t i = 0; i < AH_LENGTH(openers) && !tokenizer; i++)
        AH_TRY(openers[i](&tokenizer, model));
    *out = tokenizer;
    return AH_OK;
}

void ah__tokenizer_close(const struct ah_tokenizer *tokenizer)
{
    if (tokenizer)
        tokenizer->close(tokenizer);
}
