#include "tokenizer/subword.h"

#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "tokenizer/utf8.h"

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

struct encoding {
    struct ah_subword *subword;
    struct ah_ids ids;
    const char *text, *normal; /* beginning of the text, and of the current normalized part */
    bool at_start;             /* that part is the beginning of the text */
    struct ah_buf buffers[2];
};

static int word_take(const char *word, size_t length, void *context)
{
    struct encoding *encoding = context;
    return ah__bpe_encode(&encoding->ids, encoding->subword->bpe, word, length);
}

static int normal_part(int32_t id, const char *text, size_t length, void *context)
{
    struct encoding *encoding = context;
    if (!text)
        return ah__ids_add(&encoding->ids, &id, 1);
    bool at_start = encoding->at_start && text == encoding->normal;
    return ah__pretokenize(&encoding->subword->pre, text, length, at_start, word_take, encoding);
}

static int raw_part(int32_t id, const char *text, size_t length, void *context)
{
    struct encoding *encoding = context;
    if (!text)
        return ah__ids_add(&encoding->ids, &id, 1);
    struct ah_subword *subword = encoding->subword;
    encoding->at_start = text == encoding->text;
    if (subword->pieces) {
        bool adds = encoding->at_start ? subword->base.adds_space != AH_SPACE_NEVER
                                       : subword->base.adds_space == AH_SPACE_ALWAYS;
        return ah__sentencepiece_encode(&encoding->ids, subword->pieces, text, length, adds);
    }
    AH_TRY(ah__normalize(&text, &length, encoding->buffers, &subword->normalizer));
    encoding->normal = text;
    return ah__added_tokens_split(subword->added, true, text, length, normal_part, encoding);
}

static int text_encode(struct encoding *encoding, const char *text, size_t length)
{
    struct ah_buf repaired = {0};
    if (!ah__utf8_good(text, length)) {
        ah__utf8_repair(&repaired, text, length);
        text = repaired.text;
        length = repaired.length;
    }
    encoding->text = text;
    int status = repaired.status;
    if (status == AH_OK)
        status = ah__added_tokens_split(encoding->subword->added, false, text, length, raw_part, encoding);
    ah__buf_free(&repaired);
    return status;
}

static int encode_around(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                         size_t length, bool around)
{
    struct ah_subword *subword = (struct ah_subword *)tokenizer;
    struct encoding encoding = {.subword = subword};
    /* makes an array even if there are no ids */
    int status = ah__grow(&encoding.ids.ids, &encoding.ids.room, 1 + length / 8, sizeof *encoding.ids.ids);
    if (status == AH_OK && around)
        status = ah__ids_add(&encoding.ids, subword->before.ids, subword->before.count);
    if (status == AH_OK)
        status = text_encode(&encoding, text, length);
    if (status == AH_OK && around)
        status = ah__ids_add(&encoding.ids, subword->behind.ids, subword->behind.count);
    ah__buf_free(&encoding.buffers[0]);
    ah__buf_free(&encoding.buffers[1]);
    if (status != AH_OK) {
        ah__free(encoding.ids.ids);
        return status;
    }
    *ids = encoding.ids.ids;
    *count = (int64_t)encoding.ids.count;
    return AH_OK;
}

static int subword_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                          size_t length)
{
    return encode_around(ids, count, tokenizer, text, length, false);
}

static int subword_encode_prompt(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                                 size_t length)
{
    return encode_around(ids, count, tokenizer, text, length, true);
}

/* ---- decoding and asking ----------------------------------------------------------------------------------------- */

static int subword_decode(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids,
                          int64_t count)
{
    const struct ah_subword *subword = (const struct ah_subword *)tokenizer;
    struct ah_buf to = {0};
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= tokenizer->vocab_size)
            return ah__fail(AH_EINPUT, "token %lld: found %d, expected below the tokenizer's vocabulary of %d",
                            (long long)i, ids[i], tokenizer->vocab_size);
    int status = ah__token_decoder_text(&to, subword->decoder, ids, count);
    ah__buf_add(&to, "", 0); /* makes a text even if there are no ids */
    if (status == AH_OK)
        status = to.status;
    if (status != AH_OK) {
        ah__buf_free(&to);
        return status;
    }
    to.text[to.length] = 0;
    *text = to.text;
    *length = to.length;
    return AH_OK;
}

static const char *subword_piece(size_t *length, const struct ah_tokenizer *tokenizer, int32_t id, bool first)
{
    return ah__token_decoder_piece(length, ((const struct ah_subword *)tokenizer)->decoder, id, first);
}

static const char *subword_token(const struct ah_tokenizer *tokenizer, int32_t id)
{
    const struct ah_subword *subword = (const struct ah_subword *)tokenizer;
    size_t length;
    const char *text = ah__token_map_text(&length, &subword->own, id);
    return text ? text : ah__token_map_text(&length, &subword->vocab, id);
}

static bool subword_special(const struct ah_tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && id < tokenizer->vocab_size && ((const struct ah_subword *)tokenizer)->special[id];
}

static bool subword_added(const struct ah_tokenizer *tokenizer, int32_t id)
{
    size_t length;
    return ah__token_map_text(&length, &((const struct ah_subword *)tokenizer)->own, id) != NULL;
}

static int subword_edges(const struct ah_tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && id < tokenizer->vocab_size ? ((const struct ah_subword *)tokenizer)->edges[id] : 0;
}

static void subword_close(const struct ah_tokenizer *tokenizer)
{
    struct ah_subword *subword = (struct ah_subword *)tokenizer;
    ah__token_map_fini(&subword->vocab);
    ah__token_map_fini(&subword->own);
    ah__token_map_fini(&subword->words);
    ah__pretokenizer_fini(&subword->pre);
    ah__added_tokens_free(subword->added);
    ah__bpe_free(subword->bpe);
    ah__sentencepiece_free(subword->pieces);
    ah__token_decoder_free(subword->decoder);
    ah__free(subword->before.ids);
    ah__free(subword->behind.ids);
    ah__free(subword->stops.ids);
    ah__free(subword->special);
    ah__free(subword->edges);
    ah__arena_free(&subword->arena);
    ah__free(subword);
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

/* Fills the ids of bytes: of GPT-2's characters, or of the tokens of byte fallback. */
static void byte_ids_fill(int32_t byte_ids[256], const struct ah_subword_recipe *recipe)
{
    const struct ah_token_map *vocab = &recipe->subword->vocab;
    char text[8];
    for (int i = 0; i < 256; i++)
        byte_ids[i] = -1;
    for (uint32_t code = 0; code < 324 && recipe->byte_level; code++)
        if (ah__byte_of_char(code) >= 0)
            byte_ids[ah__byte_of_char(code)] = ah__token_map_find(vocab, text, ah__utf8_put(text, code));
    for (int i = 0; i < 256 && !recipe->byte_level; i++) {
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)i);
        byte_ids[i] = ah__token_map_find(vocab, text, 6);
    }
}

static int words_fill(struct ah_subword *subword)
{
    struct ah_buf bytes = {0};
    int status = AH_OK;
    for (int32_t id = 0; id < subword->vocab.size && status == AH_OK; id++) {
        size_t length;
        const char *text = ah__token_map_text(&length, &subword->vocab, id);
        bytes.length = 0;
        if (!text || !length || !ah__bytes_of_text(&bytes, text, length))
            continue;
        status =
            bytes.status == AH_OK ? ah__token_map_add(&subword->words, id, bytes.text, bytes.length) : bytes.status;
    }
    ah__buf_free(&bytes);
    return status;
}

static int make_bpe(const struct ah_subword_recipe *recipe)
{
    struct ah_subword *subword = recipe->subword;
    struct ah_bpe_options options = {
        .vocab = &subword->vocab,
        .bytes = recipe->byte_level,
        .byte_fallback = recipe->byte_fallback,
        .unknown = recipe->unknown ? ah__token_map_find(&subword->vocab, recipe->unknown, strlen(recipe->unknown)) : -1,
        .fuse_unknown = recipe->fuse_unknown,
        .ignore_merges = recipe->ignore_merges,
        .words = recipe->byte_level ? &subword->words : &subword->vocab,
        .merges = recipe->merges,
        .merge_count = recipe->merge_count,
    };
    if (recipe->byte_level && recipe->byte_fallback)
        return ah__fail(AH_EINPUT,
                        "%s: key 'model.byte_fallback': found true beside a ByteLevel pre-tokenizer, "
                        "expected false",
                        recipe->path);
    if (recipe->unknown && options.unknown < 0)
        return ah__fail(AH_EINPUT, "%s: key 'model.unk_token': found '%.40s', which the vocabulary does not have",
                        recipe->path, recipe->unknown);
    byte_ids_fill(options.byte_ids, recipe);
    if (recipe->byte_level && recipe->ignore_merges)
        AH_TRY(words_fill(subword));
    return ah__bpe_new(&subword->bpe, &options);
}

/* Adds an added token. If it is looked for in normalized text, it decodes to that, as in the tokenizers library. */
static int own_add(struct ah_subword *subword, const struct ah_added_token *token)
{
    const char *text = token->content;
    size_t length = strlen(text);
    struct ah_buf buffers[2] = {{0}};
    int status = token->normalized ? ah__normalize(&text, &length, buffers, &subword->normalizer) : AH_OK;
    if (status == AH_OK)
        status = ah__token_map_add(&subword->own, token->id, text, length);
    ah__buf_free(&buffers[0]);
    ah__buf_free(&buffers[1]);
    return status;
}

/* Makes the decoder. With SentencePiece the unknown piece decodes to the text that the model names. */
static int make_decoder(const struct ah_subword_recipe *recipe)
{
    struct ah_subword *subword = recipe->subword;
    struct ah_token_map own = {0};
    size_t length;
    if (!subword->pieces)
        return ah__token_decoder_new(&subword->decoder, &recipe->decoder, &subword->vocab, &subword->own);
    int32_t unknown_id = ah__token_map_find(&subword->vocab, recipe->unknown, strlen(recipe->unknown));
    int status = ah__token_map_add(&own, unknown_id, recipe->unknown_text, strlen(recipe->unknown_text));
    for (int32_t id = 0; id < subword->own.size && status == AH_OK; id++) {
        const char *text = id == unknown_id ? NULL : ah__token_map_text(&length, &subword->own, id);
        status = text ? ah__token_map_add(&own, id, text, length) : AH_OK;
    }
    if (status == AH_OK)
        status = ah__token_decoder_new(&subword->decoder, &recipe->decoder, &subword->vocab, &own);
    ah__token_map_fini(&own);
    return status;
}

/* Puts the file's path before the message of an error. */
static int of_file(int status, const struct ah_subword_recipe *recipe)
{
    return status == AH_EINPUT ? ah__fail_prefix(status, "%s", recipe->path) : status;
}

static int subword_finish(const struct ah_subword_recipe *recipe)
{
    struct ah_subword *subword = recipe->subword;
    struct ah_tokenizer *base = &subword->base;
    for (size_t i = 0; i < recipe->added_count; i++)
        AH_TRY(of_file(own_add(subword, &recipe->added[i]), recipe));
    base->vocab_size = subword->vocab.size > subword->own.size ? subword->vocab.size : subword->own.size;
    if (base->vocab_size == 0)
        return ah__fail(AH_EINPUT, "%s: found a vocabulary of no tokens, expected one at least", recipe->path);
    AH_TRY(ah__new(&subword->special, (size_t)base->vocab_size, sizeof *subword->special));
    AH_TRY(ah__new(&subword->edges, (size_t)base->vocab_size, sizeof *subword->edges));
    for (size_t i = 0; i < recipe->added_count; i++) {
        const struct ah_added_token *token = &recipe->added[i];
        subword->special[token->id] = token->special;
        int sides = token->lstrip * AH_EDGE_LEFT | token->rstrip * AH_EDGE_RIGHT;
        subword->edges[token->id] = (unsigned char)(sides | token->single_word * AH_EDGE_WORD);
    }
    AH_TRY(of_file(ah__added_tokens_new(&subword->added, recipe->added, recipe->added_count, &subword->normalizer),
                   recipe));
    AH_TRY(subword->pieces ? AH_OK : make_bpe(recipe));
    return of_file(make_decoder(recipe), recipe);
}

static int subword_new(struct ah_subword **out)
{
    AH_TRY(ah__new(out, 1, sizeof **out));
    (*out)->base = (struct ah_tokenizer){
        .unit = "token",
        .encode = subword_encode,
        .encode_prompt = subword_encode_prompt,
        .decode = subword_decode,
        .piece = subword_piece,
        .token = subword_token,
        .is_special = subword_special,
        .is_added = subword_added,
        .edges = subword_edges,
        .close = subword_close,
    };
    return AH_OK;
}

/* Frees the recipe and returns the tokenizer; on failure frees that too. */
static int recipe_close(const struct ah_tokenizer **out, struct ah_subword_recipe *recipe, int status)
{
    ah__free(recipe->merges);
    ah__free(recipe->added);
    ah__token_map_fini(&recipe->added_map);
    if (status == AH_OK)
        *out = &recipe->subword->base;
    else
        subword_close(&recipe->subword->base);
    return status;
}

/* With SentencePiece: sets the tokens around a prompt, after all files have been read. */
static int around_fill(const struct ah_subword_recipe *recipe)
{
    struct ah_subword *subword = recipe->subword;
    AH_TRY(subword->base.has_bos ? AH_OK : ah__special_id_set(subword, recipe->bos, false));
    AH_TRY(subword->base.has_eos ? AH_OK : ah__special_id_set(subword, recipe->eos, true));
    if (recipe->adds_bos && subword->base.has_bos)
        AH_TRY(ah__ids_add(&subword->before, &subword->base.bos, 1));
    return recipe->adds_eos && subword->base.has_eos ? ah__ids_add(&subword->behind, &subword->base.eos, 1) : AH_OK;
}

static int open_file(const struct ah_tokenizer **out, const char *folder, const char *path,
                     int (*read)(struct ah_subword_recipe *recipe, const char *folder, const char *path))
{
    struct ah_subword_recipe recipe = {.path = path};
    AH_TRY(subword_new(&recipe.subword));
    int status = read(&recipe, folder, path);
    if (status == AH_OK)
        status = subword_finish(&recipe);
    if (status == AH_OK)
        status = ah__special_ids_read(recipe.subword, folder);
    if (status == AH_OK && recipe.subword->pieces)
        status = around_fill(&recipe);
    return recipe_close(out, &recipe, status);
}

int ah__subword_make(const struct ah_tokenizer **out, const struct ah_subword_texts *texts,
                     int (*read)(struct ah_subword_recipe *recipe, const char *text, size_t length))
{
    struct ah_subword_recipe recipe = {.path = texts->path};
    AH_TRY(subword_new(&recipe.subword));
    int status = read(&recipe, texts->tokenizer, strlen(texts->tokenizer));
    if (status == AH_OK)
        status = subword_finish(&recipe);
    if (status == AH_OK)
        status = ah__special_ids_read_texts(recipe.subword, texts);
    return recipe_close(out, &recipe, status);
}

int ah__subword_open(const struct ah_tokenizer **out, const char *folder, const char *name,
                     int (*read)(struct ah_subword_recipe *recipe, const char *folder, const char *path))
{
    char *path;
    if (!folder)
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    int status = access(path, F_OK) == 0 ? open_file(out, folder, path, read) : AH_OK;
    ah__free(path);
    return status;
}
