/* Reads tokenizer.model or spiece.model, SentencePiece's file, and tokenizer_config.json, added_tokens.json and
 * special_tokens_map.json beside it. Pieces without a text, and the unknown piece, are added tokens: their text is
 * found in texts, as in Python's tokenizers and unlike the sentencepiece library. */
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tokenizer/sentencepiece_normal.h"
#include "tokenizer/subword.h"

enum { MODEL_BYTES = 64 << 20 };

/* ---- by class ---------------------------------------------------------------------------------------------------- */

/* Defaults of Python's classes, by the name in tokenizer_config.json. Other classes move ids (XLM-RoBERTa's,
 * CamemBERT's, Pegasus's), or have other rules. */
struct kind {
    const char *name;
    bool bos, eos;
    int extra_ids;  /* T5: tokens after the vocabulary, "<extra_id_0>" last */
    bool adds_once; /* default without a key 'legacy': adds the space once */
};
static const struct kind kinds[] = {
    {"LlamaTokenizer", true, false, 0, false},       {"CodeLlamaTokenizer", true, false, 0, true},
    {"GemmaTokenizer", true, false, 0, true},        {"T5Tokenizer", false, true, 100, false},
    {"PreTrainedTokenizer", false, false, 0, false}, {"TokenizersBackend", false, false, 0, false},
    {"InternLM2Tokenizer", true, false, 0, false},   {"InternLMTokenizer", true, false, 0, false},
    {"BaichuanTokenizer", true, false, 0, false},    {"YiTokenizer", true, false, 0, false},
};

static bool name_is(const char *name, const char *kind)
{
    size_t length = strlen(kind);
    return strncmp(name, kind, length) == 0 && (!name[length] || strcmp(name + length, "Fast") == 0);
}

/* Reads the class that a file names; null: none. The model's config.json may also imply it by the model's type. */
static int class_read(const char **name, const struct ah_json *json)
{
    const char *type = "";
    if (json && ah__json_has(json, "tokenizer_class"))
        return ah__json_string(name, json, "tokenizer_class");
    if (json && ah__json_has(json, "model_type"))
        AH_TRY(ah__json_string(&type, json, "model_type"));
    *name = strcmp(type, "t5") == 0 ? "T5Tokenizer" : NULL;
    return AH_OK;
}

/* Finds the defaults of the class. Without a class, BPE has Llama's, and unigrams add no tokens. */
static int kind_find(struct kind *kind, const struct ah_json *json, bool unigram)
{
    const char *name = NULL;
    *kind = (struct kind){"", !unigram, false, 0, false};
    AH_TRY(class_read(&name, json));
    if (!name)
        return AH_OK;
    for (size_t i = 0; i < AH_LENGTH(kinds); i++)
        if (name_is(name, kinds[i].name)) {
            *kind = kinds[i];
            return AH_OK;
        }
    return ah__fail(AH_EINPUT,
                    "%s: key 'tokenizer_class': found '%.40s', expected LlamaTokenizer, CodeLlamaTokenizer, "
                    "GemmaTokenizer or T5Tokenizer: others need a tokenizer.json",
                    json->path, name);
}

static int bool_read(bool *value, const struct ah_json *config, const char *key)
{
    return config && ah__json_has(config, key) ? ah__json_bool(value, config, key) : AH_OK;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int vocab_fill(struct ah_subword_recipe *recipe, const struct ah_sentencepiece_model *model)
{
    for (size_t i = 0; i < model->count; i++)
        AH_TRY(ah__token_map_add(&recipe->subword->vocab, (int32_t)i, model->rows[i].text, model->rows[i].length));
    return AH_OK;
}

static int extra_ids_add(struct ah_subword_recipe *recipe, const struct ah_json *config, int64_t count)
{
    enum { EXTRA_MOST = 10000 };
    int32_t first = recipe->subword->vocab.size;
    if (config && ah__json_has(config, "extra_ids"))
        AH_TRY(ah__json_int(&count, config, "extra_ids", 0, EXTRA_MOST));
    for (int64_t i = 0; i < count; i++) {
        char text[32];
        snprintf(text, sizeof text, "<extra_id_%lld>", (long long)i);
        struct ah_added_token token = {.content = text, .id = (int32_t)(first + count - 1 - i), .special = true};
        AH_TRY(ah__subword_add_token(recipe, token, text));
    }
    return AH_OK;
}

/* Adds control pieces and the unknown piece as added tokens. A token that a file of the folder has already added keeps
 * its flags. Tokens are looked for in the original text, since pieces are normalized after it is split. */
static int controls_add(struct ah_subword_recipe *recipe, const struct ah_sentencepiece_model *model)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct ah_token_row *row = &model->rows[i];
        size_t length;
        if (row->type != AH_TOKEN_CONTROL && row->type != AH_TOKEN_UNKNOWN)
            continue;
        const char *text = ah__token_map_text(&length, &recipe->subword->vocab, (int32_t)i);
        if (ah__token_map_find(&recipe->subword->vocab, text, length) != (int32_t)i)
            return ah__fail(AH_EINPUT, "%s: piece %zu: found '%.40s' a second time, expected it once", recipe->path, i,
                            text);
        AH_TRY(ah__subword_add_token(
            recipe, (struct ah_added_token){.content = text, .id = (int32_t)i, .special = true}, text));
    }
    for (size_t i = 0; i < recipe->added_count; i++)
        recipe->added[i].normalized = false;
    return AH_OK;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static void decoder_set(struct ah_token_decoder_options *decoder, const struct ah_sentencepiece_model *model)
{
    *decoder = (struct ah_token_decoder_options){
        .kind = AH_DECODE_PIECES,
        .byte_fallback = model->byte_fallback,
        .mark = AH_SPACE_MARK,
        .strip = " ",
        .strip_most = model->adds_space || model->removes_spaces,
        .by_piece = true,
        .strip_all = model->removes_spaces,
        .unknown = model->unknown,
    };
}

static int unknown_text_set(struct ah_subword_recipe *recipe, const struct ah_sentencepiece_text *text)
{
    char *copy;
    AH_TRY(ah__arena_new(&recipe->subword->arena, &copy, text->length + 1, 1));
    memcpy(copy, text->text, text->length);
    recipe->unknown_text = copy;
    return AH_OK;
}

/* Sets when the model's space is added: never if `add_prefix_space` is false; after added tokens, too, only if `legacy`
 * is true. */
static int spaces_set(struct ah_subword_recipe *recipe, const struct kind *kind, const struct ah_json *config)
{
    bool legacy = !kind->adds_once, adds = true;
    AH_TRY(bool_read(&legacy, config, "legacy"));
    AH_TRY(bool_read(&adds, config, "add_prefix_space"));
    recipe->subword->base.adds_space = !adds ? AH_SPACE_NEVER : legacy ? AH_SPACE_ALWAYS : AH_SPACE_FIRST;
    if (!adds)
        recipe->decoder.strip_most = 0;
    return AH_OK;
}

static int recipe_fill(struct ah_subword_recipe *recipe, const char *folder, const struct kind *kind,
                       const struct ah_json *config, const struct ah_sentencepiece_model *model)
{
    struct ah_subword *subword = recipe->subword;
    size_t length;
    AH_TRY(vocab_fill(recipe, model));
    AH_TRY(ah__subword_add_tokens(recipe, folder));
    AH_TRY(extra_ids_add(recipe, config, kind->extra_ids));
    AH_TRY(controls_add(recipe, model));
    AH_TRY(ah__arena_strdup(&subword->arena, &recipe->unknown,
                            ah__token_map_text(&length, &subword->vocab, model->unknown)));
    AH_TRY(unknown_text_set(recipe, &model->unknown_text));
    decoder_set(&recipe->decoder, model);
    AH_TRY(spaces_set(recipe, kind, config));
    return ah__sentencepiece_new(&subword->pieces, model, recipe->path);
}

static int around_set(struct ah_subword_recipe *recipe, const struct kind *kind, const struct ah_json *config,
                      const struct ah_sentencepiece_model *model)
{
    recipe->adds_bos = kind->bos;
    recipe->adds_eos = kind->eos;
    AH_TRY(bool_read(&recipe->adds_bos, config, "add_bos_token"));
    AH_TRY(bool_read(&recipe->adds_eos, config, "add_eos_token"));
    recipe->bos = ah__sentencepiece_control(model, &model->bos);
    recipe->eos = ah__sentencepiece_control(model, &model->eos);
    return AH_OK;
}

/* Applies the configurations; both may have no node. tokenizer_config.json names the class, or else config.json
 * does. */
static int configs_take(struct ah_subword_recipe *recipe, const char *folder, const struct ah_json *tokenizer,
                        const struct ah_json *model_config, const struct ah_sentencepiece_model *model)
{
    const struct ah_json *config = tokenizer->node ? tokenizer : NULL;
    const struct ah_json *of_model = model_config->node ? model_config : NULL;
    struct kind kind;
    AH_TRY(kind_find(&kind, config && ah__json_has(config, "tokenizer_class") ? config : of_model, model->unigram));
    AH_TRY(recipe_fill(recipe, folder, &kind, config, model));
    return around_set(recipe, &kind, config, model);
}

static int model_take(struct ah_subword_recipe *recipe, const char *folder, const struct ah_sentencepiece_model *model)
{
    struct ah_json tokenizer, model_config = {0};
    AH_TRY(ah__json_load_any(&tokenizer, folder, "tokenizer_config.json"));
    int status = ah__json_load_any(&model_config, folder, "config.json");
    if (status == AH_OK)
        status = configs_take(recipe, folder, &tokenizer, &model_config, model);
    ah__json_free(&model_config);
    ah__json_free(&tokenizer);
    return status;
}

static int pieces_read(struct ah_subword_recipe *recipe, const char *folder, const char *path)
{
    char *file;
    size_t length;
    struct ah_sentencepiece_model model;
    AH_TRY(ah__file_read(&file, &length, path, MODEL_BYTES));
    recipe->subword->base.signature = ah__hash(file, length, 3);
    int status = ah__sentencepiece_model_read(&model, file, length, path);
    if (status == AH_OK) {
        status = model_take(recipe, folder, &model);
        ah__sentencepiece_model_free(&model);
    }
    ah__free(file);
    return status;
}

static int named_read(struct ah_subword_recipe *recipe, const char *folder, const char *path)
{
    int status = pieces_read(recipe, folder, path);
    recipe->subword->base.name = "tokenizer.model";
    return status;
}

static int spiece_read(struct ah_subword_recipe *recipe, const char *folder, const char *path)
{
    int status = pieces_read(recipe, folder, path);
    recipe->subword->base.name = "spiece.model";
    return status;
}

int ah__subword_open_pieces(const struct ah_tokenizer **out, const char *folder)
{
    AH_TRY(ah__subword_open(out, folder, "tokenizer.model", named_read));
    return *out ? AH_OK : ah__subword_open(out, folder, "spiece.model", spiece_read);
}
