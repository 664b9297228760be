#include "gguf/around.h"

#include <string.h>

#include "base/alloc.h"
#include "gguf/by_name.h"

#define KEY(name) "tokenizer.ggml." name

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Writes the tokens that end a text. Two more keys hold ends beside the first, `end`; without an end (-1) llama.cpp
 * uses its own. */
static void put_ends(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_tokenizer *tokenizer,
                     int32_t end, int32_t usual)
{
    static const char *const keys[] = {KEY("eot_token_id"), KEY("eom_token_id")};
    const char *text = end < 0 ? tokenizer->token(tokenizer, usual) : NULL;
    size_t used = 0;
    if (end >= 0)
        ah__gguf_put_int(writer, KEY("eos_token_id"), (uint32_t)end);
    if (text)
        ah__buf_printf(ah__gguf_clause(notes),
                       "no token ends a text; llama.cpp ends one at token %d, '%.40s', where a file names none",
                       (int)usual, text);
    for (int32_t i = 0; i < tokenizer->stop_count; i++) {
        if (tokenizer->stops[i] == end)
            continue;
        if (used < AH_LENGTH(keys))
            ah__gguf_put_int(writer, keys[used++], (uint32_t)tokenizer->stops[i]);
        else
            ah__buf_printf(ah__gguf_clause(notes), "token %d ends a text, too, for which GGUF has no more keys",
                           (int)tokenizer->stops[i]);
    }
}

/* ---- around a prompt --------------------------------------------------------------------------------------------- */

struct around {
    int32_t *plain, *prompt; /* ids of a text for training, and of the same text as a prompt */
    int64_t count, all;
    int64_t before, behind; /* number of ids of `prompt` before and behind the plain ones */
};

static int around_find(struct around *around, const struct ah_tokenizer *tokenizer)
{
    AH_TRY(tokenizer->encode(&around->plain, &around->count, tokenizer, "a", 1));
    AH_TRY(tokenizer->encode_prompt(&around->prompt, &around->all, tokenizer, "a", 1));
    int64_t more = around->all - around->count;
    bool bos = tokenizer->has_bos && around->all && around->prompt[0] == tokenizer->bos, empty = around->count == 0;
    for (int64_t at = 0; at <= more; at++) {
        const int32_t *there = around->prompt + at;
        if (empty ? at == bos : memcmp(there, around->plain, (size_t)around->count * sizeof *there) == 0) {
            around->before = at;
            around->behind = more - at;
            return AH_OK;
        }
    }
    around->before = around->all;
    return AH_OK;
}

static void around_put(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_tokenizer *tokenizer,
                       const struct around *around, int32_t usual)
{
    int32_t end = tokenizer->has_eos ? tokenizer->eos : around->behind ? around->prompt[around->all - 1] : -1;
    bool begins = around->before > 0, ends = around->behind > 0 && around->prompt[around->all - 1] == end;
    int64_t others = around->before + around->behind - begins - ends;
    if (begins || tokenizer->has_bos)
        ah__gguf_put_int(writer, KEY("bos_token_id"), (uint32_t)(begins ? around->prompt[0] : tokenizer->bos));
    put_ends(writer, notes, tokenizer, end, usual);
    ah__gguf_put_bool(writer, KEY("add_bos_token"), begins);
    ah__gguf_put_bool(writer, KEY("add_eos_token"), ends);
    if (others)
        ah__buf_printf(ah__gguf_clause(notes),
                       "%lld token%s more around a prompt than BOS and EOS, for which GGUF has no keys",
                       (long long)others, others > 1 ? "s stand" : " stands");
}

int ah__gguf_put_around(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_tokenizer *tokenizer,
                        int32_t usual)
{
    struct around around = {0};
    int status = around_find(&around, tokenizer);
    if (status == AH_OK)
        around_put(writer, notes, tokenizer, &around, usual);
    ah__free(around.plain);
    ah__free(around.prompt);
    return status;
}
