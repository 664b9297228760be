/* Reads vocab.json and merges.txt, the older files of byte-level BPE: GPT-2's, or Qwen2's if tokenizer_config.json
 * names its class. Added tokens come from tokenizer_config.json, or from added_tokens.json and
 * special_tokens_map.json. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tokenizer/subword.h"

enum { MERGES_BYTES = 64 << 20 };

/* ---- merges.txt -------------------------------------------------------------------------------------------------- */

static int line_read(struct ah_subword_recipe *recipe, const char *path, char *line, int number)
{
    char where[64];
    char *space = strchr(line, ' ');
    size_t length = strlen(line);
    if (length == 0 || strncmp(line, "#version", 8) == 0)
        return AH_OK;
    if (!space || strchr(space + 1, ' '))
        return ah__fail(AH_EINPUT, "%s: line %d: found '%.40s', expected two texts with one space between them", path,
                        number, line);
    snprintf(where, sizeof where, "merges.txt, line %d", number);
    return ah__subword_add_merge(recipe, line, (size_t)(space - line), space + 1, strlen(space + 1), where);
}

static int lines_read(struct ah_subword_recipe *recipe, const char *path, char *text, size_t length)
{
    int number = 1;
    for (char *line = text, *end; line < text + length; line = end + 1, number++) {
        end = line + strcspn(line, "\n");
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = 0;
        AH_TRY(line_read(recipe, path, line, number));
    }
    return AH_OK;
}

static int merges_read(struct ah_subword_recipe *recipe, const char *folder)
{
    char *path, *text;
    size_t length;
    AH_TRY(ah__sprintf(&path, "%s/merges.txt", folder));
    int status = ah__file_read(&text, &length, path, MERGES_BYTES);
    if (status == AH_OK) {
        recipe->subword->base.signature = ah__hash(text, length, recipe->subword->base.signature);
        status = lines_read(recipe, path, text, length);
        ah__free(text);
    }
    ah__free(path);
    return status;
}

/* ---- added tokens ------------------------------------------------------------------------------------------------ */

static bool flag(const cJSON *object, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, key));
}

/* Reads {"50256": {"content": ..., "lstrip": ...}, ...} */
static int decoder_tokens(struct ah_subword_recipe *recipe, const struct ah_json *config)
{
    struct ah_json tokens;
    if (!ah__json_has(config, "added_tokens_decoder"))
        return AH_OK;
    AH_TRY(ah__json_object(&tokens, config, "added_tokens_decoder"));
    for (const cJSON *child = tokens.node->child; child; child = child->next) {
        char *end;
        long id = strtol(child->string, &end, 10);
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(child, "content");
        if (*end || id < 0 || id >= AH_TOKEN_IDS_MOST || !cJSON_IsString(content))
            return ah__fail(AH_EINPUT, "%s: key '%s.%.40s': found no token, expected an id and its content",
                            config->path, tokens.where, child->string);
        struct ah_added_token token = {content->valuestring,  (int32_t)id,           flag(child, "single_word"),
                                       flag(child, "lstrip"), flag(child, "rstrip"), flag(child, "normalized"),
                                       flag(child, "special")};
        AH_TRY(ah__subword_add_token(recipe, token, tokens.where));
    }
    return AH_OK;
}

/* Reads {"<text>": id, ...} */
static int listed_tokens(struct ah_subword_recipe *recipe, const struct ah_json *list)
{
    for (const cJSON *child = list->node->child; child; child = child->next) {
        int64_t id;
        AH_TRY(ah__json_int(&id, list, child->string, 0, AH_TOKEN_IDS_MOST - 1));
        struct ah_added_token token = {.content = child->string, .id = (int32_t)id, .normalized = true};
        AH_TRY(ah__subword_add_token(recipe, token, child->string));
    }
    return AH_OK;
}

/* Adds a special token: one of the vocabulary, or an added token, which becomes special. */
static int special_add(struct ah_subword_recipe *recipe, const char *text)
{
    int32_t id = text ? ah__token_map_find(&recipe->subword->vocab, text, strlen(text)) : -1;
    for (size_t i = 0; text && i < recipe->added_count; i++)
        if (strcmp(recipe->added[i].content, text) == 0) {
            recipe->added[i].special = true;
            recipe->added[i].normalized = false;
            return AH_OK;
        }
    if (id < 0)
        return AH_OK;
    return ah__subword_add_token(recipe, (struct ah_added_token){.content = text, .id = id, .special = true}, text);
}

static int mapped_tokens(struct ah_subword_recipe *recipe, const struct ah_json *map)
{
    for (const cJSON *child = map->node->child; child; child = child->next)
        AH_TRY(special_add(recipe, ah__special_text(map, child->string)));
    return AH_OK;
}

/* ---- which kind -------------------------------------------------------------------------------------------------- */

static int gpt2_read(struct ah_subword_recipe *recipe, const struct ah_json *config)
{
    bool prefix_space = config && flag(config->node, "add_prefix_space");
    return ah__subword_add_byte_level(recipe, prefix_space, true, "GPT-2's pre-tokenizer");
}

static int qwen2_read(struct ah_subword_recipe *recipe, const struct ah_json *config)
{
    static const char words[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
                                " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
    (void)config;
    AH_TRY(ah__subword_add_normal(recipe, AH_NORMAL_NFC, NULL, NULL, "Qwen2's normalizer"));
    AH_TRY(ah__subword_add_split(recipe, words, false, AH_SPLIT_ISOLATED, false, "Qwen2's pre-tokenizer"));
    return ah__subword_add_byte_level(recipe, false, false, "Qwen2's pre-tokenizer");
}

/* Python's classes. If no file says otherwise, GPT-2's has a token that begins texts, Qwen2's has not. */
struct kind {
    const char *name;
    int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *config);
    bool has_bos;
};
static const struct kind kinds[] = {{"GPT2Tokenizer", gpt2_read, true},
                                    {"GPT2TokenizerFast", gpt2_read, true},
                                    {"Qwen2Tokenizer", qwen2_read, false},
                                    {"Qwen2TokenizerFast", qwen2_read, false}};

static int kind_find(const struct kind **kind, const struct ah_json *config)
{
    const char *name = kinds[0].name;
    if (config && ah__json_has(config, "tokenizer_class"))
        AH_TRY(ah__json_string(&name, config, "tokenizer_class"));
    for (size_t i = 0; i < AH_LENGTH(kinds); i++)
        if (strcmp(name, kinds[i].name) == 0) {
            *kind = &kinds[i];
            return AH_OK;
        }
    return ah__fail(AH_EINPUT,
                    "%s: key 'tokenizer_class': found '%.40s', expected GPT2Tokenizer or Qwen2Tokenizer: "
                    "others need a tokenizer.json",
                    config->path, name);
}

static int class_read(struct ah_subword_recipe *recipe, const struct ah_json *config)
{
    const struct kind *kind;
    AH_TRY(kind_find(&kind, config));
    return kind->read(recipe, config);
}

/* ---- around a prompt --------------------------------------------------------------------------------------------- */

#define END_OF_TEXT "<|endoftext|>"

static int32_t token_id(const struct ah_subword_recipe *recipe, const char *text)
{
    for (size_t i = 0; text && i < recipe->added_count; i++)
        if (strcmp(recipe->added[i].content, text) == 0)
            return recipe->added[i].id;
    return text ? ah__token_map_find(&recipe->subword->vocab, text, strlen(text)) : -1;
}

/* Reads the tokens around a text. A key that is null means that there is no such token. */
static int around_take(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    if (cJSON_HasObjectItem(json->node, "bos_token"))
        recipe->bos = token_id(recipe, ah__special_text(json, "bos_token"));
    if (cJSON_HasObjectItem(json->node, "eos_token"))
        recipe->eos = token_id(recipe, ah__special_text(json, "eos_token"));
    return AH_OK;
}

static int around_read(struct ah_subword_recipe *recipe, const struct ah_json *config)
{
    const struct kind *kind;
    AH_TRY(kind_find(&kind, config));
    recipe->eos = token_id(recipe, END_OF_TEXT);
    recipe->bos = kind->has_bos ? recipe->eos : -1;
    if (!config)
        return AH_OK;
    recipe->adds_bos = flag(config->node, "add_bos_token");
    recipe->adds_eos = flag(config->node, "add_eos_token");
    recipe->maps_specials = !ah__json_has(config, "added_tokens_decoder");
    return around_take(recipe, config);
}

/* Reads FOLDER/name. If there is no such file, `read` is called with null if `otherwise` is set. */
static int file_read(struct ah_subword_recipe *recipe, const char *folder, const char *name, bool otherwise,
                     int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *json))
{
    struct ah_json json;
    AH_TRY(ah__json_load_any(&json, folder, name));
    int status = json.node || otherwise ? read(recipe, json.node ? &json : NULL) : AH_OK;
    ah__json_free(&json);
    return status;
}

int ah__subword_add_tokens(struct ah_subword_recipe *recipe, const char *folder)
{
    AH_TRY(file_read(recipe, folder, "tokenizer_config.json", false, decoder_tokens));
    AH_TRY(file_read(recipe, folder, "added_tokens.json", false, listed_tokens));
    return file_read(recipe, folder, "special_tokens_map.json", false, mapped_tokens);
}

/* Sets the tokens around a prompt, as transformers 5 does for both classes, from OPT on: special_tokens_map.json counts
 * if tokenizer_config.json has no added_tokens_decoder. */
static int around_set(struct ah_subword_recipe *recipe, const char *folder)
{
    struct ah_subword *subword = recipe->subword;
    AH_TRY(file_read(recipe, folder, "tokenizer_config.json", true, around_read));
    if (recipe->maps_specials)
        AH_TRY(file_read(recipe, folder, "special_tokens_map.json", false, around_take));
    if (recipe->adds_bos && recipe->bos >= 0)
        AH_TRY(ah__ids_add(&subword->before, &recipe->bos, 1));
    return recipe->adds_eos && recipe->eos >= 0 ? ah__ids_add(&subword->behind, &recipe->eos, 1) : AH_OK;
}

static int merges_file_read(struct ah_subword_recipe *recipe, const char *folder, const char *path)
{
    char *text;
    size_t length;
    struct ah_json vocab;
    recipe->subword->base.name = "vocab.json and merges.txt";
    recipe->decoder.kind = AH_DECODE_BYTE_LEVEL;
    AH_TRY(ah__file_read(&text, &length, path, MERGES_BYTES));
    recipe->subword->base.signature = ah__hash(text, length, 2);
    int status = ah__json_parse(&vocab, text, length, path);
    ah__free(text);
    AH_TRY(status);
    status = ah__subword_read_vocab(recipe, &vocab);
    ah__json_free(&vocab);
    AH_TRY(status);
    AH_TRY(merges_read(recipe, folder));
    AH_TRY(file_read(recipe, folder, "tokenizer_config.json", true, class_read));
    AH_TRY(ah__subword_add_tokens(recipe, folder));
    AH_TRY(special_add(recipe, END_OF_TEXT)); /* a token of GPT-2 and Qwen2, even if no file lists it */
    return around_set(recipe, folder);
}

int ah__subword_open_merges(const struct ah_tokenizer **out, const char *folder)
{
    return ah__subword_open(out, folder, "vocab.json", merges_file_read);
}
