/* Public functions for open tokenizers; source/model_tokenizer.c opens them. */
#include "base/alloc.h"
#include "tokenizer/tokenizer.h"

static int there(const struct ah_tokenizer *tokenizer)
{
    return tokenizer ? AH_OK : ah__fail(AH_EINPUT, "tokenizer: found none, expected one that is open");
}

void ah_tokenizer_close(const struct ah_tokenizer *tokenizer)
{
    ah__tokenizer_close(tokenizer);
}

const char *ah_tokenizer_name(const struct ah_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->name : NULL;
}

int32_t ah_tokenizer_vocab_size(const struct ah_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->vocab_size : 0;
}

int ah_tokenizer_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                        size_t length, bool prompt)
{
    AH_TRY(there(tokenizer));
    return (prompt ? tokenizer->encode_prompt : tokenizer->encode)(ids, count, tokenizer, text, length);
}

int ah_tokenizer_decode(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids,
                        int64_t count, bool skip_special)
{
    int32_t *kept;
    int64_t left = 0;
    AH_TRY(there(tokenizer));
    AH_TRY(ah__new(&kept, (size_t)count, sizeof *kept));
    for (int64_t i = 0; i < count; i++)
        if (!skip_special || !tokenizer->is_special(tokenizer, ids[i]))
            kept[left++] = ids[i];
    int status = tokenizer->decode(text, length, tokenizer, kept, left);
    ah__free(kept);
    return status;
}

const char *ah_tokenizer_token(const struct ah_tokenizer *tokenizer, int32_t id)
{
    return tokenizer ? tokenizer->token(tokenizer, id) : NULL;
}
