/* Reads tokenizer.json, as the tokenizers library writes it. A feature that this library does not have is an error that
 * names it. Nothing in the file is ignored but truncation and padding, which concern batches of other programs. */
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "tokenizer/subword.h"
#include "tokenizer/subword_json.h"
#include "tokenizer/utf8.h"

enum { JSON_BYTES = 64 << 20 };

/* ---- kinds of parts ---------------------------------------------------------------------------------------------- */

static int optional_bool(bool *out, const struct ah_json *json, const char *key, bool otherwise)
{
    *out = otherwise;
    return ah__json_has(json, key) ? ah__json_bool(out, json, key) : AH_OK;
}

/* Reads {"String": text} or {"Regex": text}, not empty. */
static int pattern_read(const char **text, bool *literal, const struct ah_json *json, const char *key)
{
    static const char *const keys[] = {"String", "Regex", NULL};
    struct ah_json pattern;
    AH_TRY(ah__json_object(&pattern, json, key));
    AH_TRY(ah__json_only(&pattern, keys));
    *literal = ah__json_has(&pattern, "String");
    AH_TRY(ah__json_string(text, &pattern, *literal ? "String" : "Regex"));
    return **text ? AH_OK
                  : ah__fail(AH_EINPUT, "%s: key '%s': found an empty pattern, expected one that is not", pattern.path,
                             pattern.where);
}

/* ---- normalizer -------------------------------------------------------------------------------------------------- */

#define KEYS(...)                                                                                                      \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        "type", __VA_ARGS__, NULL                                                                                      \
    }
#define NO_KEYS                                                                                                        \
    (const char *const[])                                                                                              \
    {                                                                                                                  \
        "type", NULL                                                                                                   \
    }

static int normalizer_read(struct ah_subword_recipe *recipe, const struct ah_json *json);

static int normal_sequence(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    return ah__json_each(recipe, json, "normalizers", normalizer_read);
}

static int normal_form(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    static const char *const names[] = {
        [AH_NORMAL_NFC] = "NFC", [AH_NORMAL_NFD] = "NFD", [AH_NORMAL_NFKC] = "NFKC", [AH_NORMAL_NFKD] = "NFKD"};
    const char *type;
    int kind = AH_NORMAL_NFC;
    AH_TRY(ah__json_string(&type, json, "type"));
    while (strcmp(type, names[kind]) != 0)
        kind++;
    return ah__subword_add_normal(recipe, (enum ah_normal_kind)kind, NULL, NULL, json->where);
}

static int normal_prepend(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    const char *text;
    AH_TRY(ah__json_string(&text, json, "prepend"));
    return ah__subword_add_normal(recipe, AH_NORMAL_PREPEND, NULL, text, json->where);
}

static int literal_replace(const char **from, const char **to, const struct ah_json *json)
{
    bool literal;
    AH_TRY(pattern_read(from, &literal, json, "pattern"));
    if (!literal)
        return ah__fail(AH_EINPUT, "%s: key '%s.pattern': found a Regex, expected a String", json->path, json->where);
    return ah__json_string(to, json, "content");
}

static int normal_replace(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    const char *from, *to;
    AH_TRY(literal_replace(&from, &to, json));
    return ah__subword_add_normal(recipe, AH_NORMAL_REPLACE, from, to, json->where);
}

static int normalizer_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    const struct ah_part_kind kinds[] = {{"Sequence", KEYS("normalizers"), normal_sequence},
                                         {"NFC", NO_KEYS, normal_form},
                                         {"NFD", NO_KEYS, normal_form},
                                         {"NFKC", NO_KEYS, normal_form},
                                         {"NFKD", NO_KEYS, normal_form},
                                         {"Prepend", KEYS("prepend"), normal_prepend},
                                         {"Replace", KEYS("pattern", "content"), normal_replace}};
    return ah__part_read(recipe, json, kinds, AH_LENGTH(kinds));
}

/* ---- pre-tokenizer ----------------------------------------------------------------------------------------------- */

static int pre_read(struct ah_subword_recipe *recipe, const struct ah_json *json);

static int pre_sequence(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    return ah__json_each(recipe, json, "pretokenizers", pre_read);
}

static int pre_byte_level(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    bool prefix_space, splits, trims;
    AH_TRY(ah__json_bool(&prefix_space, json, "add_prefix_space"));
    AH_TRY(optional_bool(&splits, json, "use_regex", true));
    AH_TRY(optional_bool(&trims, json, "trim_offsets", true));
    return ah__subword_add_byte_level(recipe, prefix_space, splits, json->where);
}

static int behavior_read(enum ah_split_behavior *out, const struct ah_json *json)
{
    static const char *const names[] = {
        [AH_SPLIT_ISOLATED] = "Isolated",
        [AH_SPLIT_REMOVED] = "Removed",
        [AH_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
        [AH_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext",
        [AH_SPLIT_CONTIGUOUS] = "Contiguous",
    };
    const char *name;
    AH_TRY(ah__json_string(&name, json, "behavior"));
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum ah_split_behavior)i;
            return AH_OK;
        }
    return ah__fail(AH_EINPUT,
                    "%s: key '%s.behavior': found '%.40s', expected Isolated, Removed, MergedWithPrevious, "
                    "MergedWithNext or Contiguous",
                    json->path, json->where, name);
}

static int pre_split(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    const char *pattern;
    bool literal, invert;
    enum ah_split_behavior behavior;
    AH_TRY(pattern_read(&pattern, &literal, json, "pattern"));
    AH_TRY(behavior_read(&behavior, json));
    AH_TRY(ah__json_bool(&invert, json, "invert"));
    return ah__subword_add_split(recipe, pattern, literal, behavior, invert, json->where);
}

static int pre_digits(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    bool individual;
    AH_TRY(ah__json_bool(&individual, json, "individual_digits"));
    return ah__subword_add_split(recipe, "\\p{N}", false, individual ? AH_SPLIT_ISOLATED : AH_SPLIT_CONTIGUOUS, false,
                                 json->where);
}

/* Reads a text of one character. */
static int mark_read(char mark[5], const struct ah_json *json, const char *key)
{
    const char *text;
    AH_TRY(ah__json_string(&text, json, key));
    if (!*text || ah__utf8_bytes(*text) != strlen(text))
        return ah__fail(AH_EINPUT, "%s: key '%s.%s': found '%.40s', expected one character", json->path, json->where,
                        key, text);
    snprintf(mark, 5, "%s", text);
    return AH_OK;
}

/* Reads the scheme. Older files have only add_prefix_space. */
static int scheme_read(enum ah_prepend_scheme *out, const struct ah_json *json)
{
    bool prefix_space;
    AH_TRY(optional_bool(&prefix_space, json, "add_prefix_space", true));
    *out = prefix_space ? AH_PREPEND_ALWAYS : AH_PREPEND_NEVER;
    if (!ah__json_has(json, "prepend_scheme"))
        return AH_OK;
    static const char *const names[] = {
        [AH_PREPEND_ALWAYS] = "always", [AH_PREPEND_FIRST] = "first", [AH_PREPEND_NEVER] = "never"};
    const char *name;
    AH_TRY(ah__json_string(&name, json, "prepend_scheme"));
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (enum ah_prepend_scheme)i;
            return AH_OK;
        }
    return ah__fail(AH_EINPUT, "%s: key '%s.prepend_scheme': found '%.40s', expected always, first or never",
                    json->path, json->where, name);
}

static int pre_metaspace(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    struct ah_pre_step step = {.kind = AH_PRE_METASPACE};
    AH_TRY(mark_read(step.mark, json, "replacement"));
    AH_TRY(scheme_read(&step.scheme, json));
    AH_TRY(optional_bool(&step.split, json, "split", true));
    return ah__subword_add_step(recipe, &step, json->where);
}

#define BYTE_LEVEL_KEYS KEYS("add_prefix_space", "trim_offsets", "use_regex")
#define METASPACE_KEYS KEYS("replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split")

static int pre_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    const struct ah_part_kind kinds[] = {{"Sequence", KEYS("pretokenizers"), pre_sequence},
                                         {"ByteLevel", BYTE_LEVEL_KEYS, pre_byte_level},
                                         {"Split", KEYS("pattern", "behavior", "invert"), pre_split},
                                         {"Digits", KEYS("individual_digits"), pre_digits},
                                         {"Metaspace", METASPACE_KEYS, pre_metaspace}};
    return ah__part_read(recipe, json, kinds, AH_LENGTH(kinds));
}

/* ---- decoder ----------------------------------------------------------------------------------------------------- */

static int decoder_read(struct ah_subword_recipe *recipe, const struct ah_json *json);

static int decode_sequence(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    recipe->decoder.kind = AH_DECODE_PIECES;
    return ah__json_each(recipe, json, "decoders", decoder_read);
}

/* The order in which parts of a decoder may come: each changes the result of the parts before it. */
enum stage { STAGE_REPLACE = 1, STAGE_BYTES, STAGE_MARK, STAGE_FUSE, STAGE_STRIP, STAGE_ALONE };

static int stage_enter(struct ah_subword_recipe *recipe, const struct ah_json *json, enum stage stage)
{
    bool again = stage == STAGE_REPLACE && recipe->decoder_stage == STAGE_REPLACE;
    if ((recipe->decoder_stage >= (int)stage && !again) || (stage == STAGE_ALONE && recipe->decoder_stage > 0) ||
        (stage == STAGE_STRIP && recipe->decoder_stage != STAGE_FUSE))
        return ah__fail(AH_EINPUT,
                        "%s: key '%s': found it at this place, expected decoders in the order Replace, "
                        "ByteFallback, Metaspace, Fuse, Strip, or ByteLevel alone",
                        json->path, json->where);
    recipe->decoder_stage = (int)stage;
    recipe->decoder.kind = stage == STAGE_ALONE ? AH_DECODE_BYTE_LEVEL : AH_DECODE_PIECES;
    return AH_OK;
}

static int decode_byte_level(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    return stage_enter(recipe, json, STAGE_ALONE);
}

static int decode_replace(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    struct ah_token_decoder_options *decoder = &recipe->decoder;
    struct ah_decode_replace *replace = &decoder->replaces[decoder->replace_count];
    AH_TRY(stage_enter(recipe, json, STAGE_REPLACE));
    if (decoder->replace_count == AH_DECODE_REPLACES)
        return ah__fail(AH_EINPUT, "%s: key '%s': found more than %d Replace, expected fewer", json->path, json->where,
                        AH_DECODE_REPLACES);
    AH_TRY(literal_replace(&replace->from, &replace->to, json));
    AH_TRY(ah__arena_strdup(&recipe->subword->arena, &replace->from, replace->from));
    AH_TRY(ah__arena_strdup(&recipe->subword->arena, &replace->to, replace->to));
    decoder->replace_count++;
    return AH_OK;
}

static int decode_byte_fallback(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    recipe->decoder.byte_fallback = true;
    return stage_enter(recipe, json, STAGE_BYTES);
}

static int decode_metaspace(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    enum ah_prepend_scheme scheme;
    AH_TRY(stage_enter(recipe, json, STAGE_MARK));
    AH_TRY(mark_read(recipe->decoder.mark, json, "replacement"));
    AH_TRY(scheme_read(&scheme, json));
    recipe->decoder.mark_drops = scheme != AH_PREPEND_NEVER;
    return AH_OK;
}

static int decode_fuse(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    return stage_enter(recipe, json, STAGE_FUSE);
}

static int decode_strip(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    int64_t start, stop;
    AH_TRY(stage_enter(recipe, json, STAGE_STRIP));
    AH_TRY(mark_read(recipe->decoder.strip, json, "content"));
    AH_TRY(ah__json_int(&start, json, "start", 0, 1000));
    AH_TRY(ah__json_int(&stop, json, "stop", 0, 0));
    recipe->decoder.strip_most = (int)start;
    return AH_OK;
}

static int decoder_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    const struct ah_part_kind kinds[] = {
        {"Sequence", KEYS("decoders"), decode_sequence},          {"ByteLevel", BYTE_LEVEL_KEYS, decode_byte_level},
        {"Replace", KEYS("pattern", "content"), decode_replace},  {"ByteFallback", NO_KEYS, decode_byte_fallback},
        {"Metaspace", METASPACE_KEYS, decode_metaspace},          {"Fuse", NO_KEYS, decode_fuse},
        {"Strip", KEYS("content", "start", "stop"), decode_strip}};
    return ah__part_read(recipe, json, kinds, AH_LENGTH(kinds));
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int added_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    struct ah_added_token token;
    int64_t id;
    AH_TRY(ah__json_only(json, keys));
    AH_TRY(ah__json_int(&id, json, "id", 0, AH_TOKEN_IDS_MOST - 1));
    token.id = (int32_t)id;
    AH_TRY(ah__json_string(&token.content, json, "content"));
    AH_TRY(ah__json_bool(&token.single_word, json, "single_word"));
    AH_TRY(ah__json_bool(&token.lstrip, json, "lstrip"));
    AH_TRY(ah__json_bool(&token.rstrip, json, "rstrip"));
    AH_TRY(ah__json_bool(&token.normalized, json, "normalized"));
    AH_TRY(ah__json_bool(&token.special, json, "special"));
    return ah__subword_add_token(recipe, token, json->where);
}

/* Reads a part that may be null or missing. */
static int part_read(struct ah_subword_recipe *recipe, const struct ah_json *json, const char *key,
                     int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *json))
{
    struct ah_json part;
    if (!ah__json_has(json, key))
        return AH_OK;
    AH_TRY(ah__json_object(&part, json, key));
    return read(recipe, &part);
}

static int root_read(struct ah_subword_recipe *recipe, const struct ah_json *json)
{
    static const char *const keys[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    AH_TRY(ah__json_only(json, keys));
    struct ah_json model;
    AH_TRY(ah__json_object(&model, json, "model"));
    AH_TRY(ah__model_read(recipe, &model));
    if (ah__json_has(json, "added_tokens"))
        AH_TRY(ah__json_each(recipe, json, "added_tokens", added_read));
    AH_TRY(part_read(recipe, json, "normalizer", normalizer_read));
    AH_TRY(part_read(recipe, json, "pre_tokenizer", pre_read));
    AH_TRY(part_read(recipe, json, "post_processor", ah__template_read));
    return part_read(recipe, json, "decoder", decoder_read);
}

static int json_text_read(struct ah_subword_recipe *recipe, const char *text, size_t length)
{
    struct ah_json json;
    recipe->subword->base.name = "tokenizer.json";
    recipe->subword->base.signature = ah__hash(text, length, 1);
    AH_TRY(ah__json_parse(&json, text, length, recipe->path));
    int status = root_read(recipe, &json);
    if (status == AH_OK && recipe->unknown)
        status = ah__arena_strdup(&recipe->subword->arena, &recipe->unknown, recipe->unknown);
    ah__json_free(&json);
    return status;
}

static int json_read(struct ah_subword_recipe *recipe, const char *folder, const char *path)
{
    char *text;
    size_t length;
    (void)folder;
    AH_TRY(ah__file_read(&text, &length, path, JSON_BYTES));
    int status = json_text_read(recipe, text, length);
    ah__free(text);
    return status;
}

int ah__subword_open_json(const struct ah_tokenizer **out, const char *folder)
{
    return ah__subword_open(out, folder, "tokenizer.json", json_read);
}

int ah__subword_open_texts(const struct ah_tokenizer **out, const struct ah_subword_texts *texts)
{
    return ah__subword_make(out, texts, json_text_read);
}
