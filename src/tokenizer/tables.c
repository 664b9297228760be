#include "tokenizer/tables.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "tokenizer/token_map.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

/* ---- ways to split ----------------------------------------------------------------------------------------------- */

/* Patterns, as in the models' own tokenizer.json files. */
#define GPT2_SPLIT "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define BYTES_ONLY "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}"
#define SPLIT(pattern)                                                                                                 \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern                  \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}," BYTES_ONLY "]}"
#define DIGITS_SPLIT                                                                                                   \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_digits\":true}," GPT2_SPLIT "]}"
#define WORDS_SPLIT(digits)                                                                                            \
    SPLIT("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}" digits                       \
          "| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+")

#define UPPER "[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define LOWER "[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]"
#define BEFORE "[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
#define BEHIND "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define O200K_SPLIT                                                                                                    \
    SPLIT(BEFORE UPPER                                                                                                 \
          "*" LOWER "+" BEHIND "|" BEFORE UPPER "+" LOWER "*" BEHIND                                                   \
          "|\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+")

#define ISOLATED(pattern)                                                                                              \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" pattern "\"},\"behavior\":\"Isolated\",\"invert\":false}"
/* Splits of llama.cpp for files whose converter did not know the tokenizer. */
#define DEFAULT_SIGNS "[\\\\p{P}\\\\$\\\\+<=>\\\\^~\\\\|]+"
#define DEFAULT_WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+| ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)"
#define DEFAULT_SPLIT                                                                                                  \
    "{\"type\":\"Sequence\",\"pretokenizers\":[" ISOLATED(DEFAULT_SIGNS) "," ISOLATED(DEFAULT_WORDS) "," ISOLATED(     \
        "\\\\p{N}+") "," ISOLATED("[0-9][0-9][0-9]") "," BYTES_ONLY "]}"

static const struct split {
    const char *pre, *pre_tokenizer;
    bool nfc, ignore_merges, add_bos;
} splits[] = {
    {"gpt-2", GPT2_SPLIT, false, false, false},
    {"phi-2", GPT2_SPLIT, false, false, false},
    {"olmo", GPT2_SPLIT, false, false, false},
    {"llama-bpe", WORDS_SPLIT("{1,3}"), false, true, true},
    {"llama3", WORDS_SPLIT("{1,3}"), false, true, true},
    {"llama-v3", WORDS_SPLIT("{1,3}"), false, true, true},
    {"falcon3", WORDS_SPLIT("{1,3}"), false, true, true},
    {"dbrx", WORDS_SPLIT("{1,3}"), false, false, false},
    {"smaug-bpe", WORDS_SPLIT("{1,3}"), false, false, false},
    {"gpt-4o", O200K_SPLIT, false, false, false},
    {"qwen2", WORDS_SPLIT(""), true, false, false},
    {"smollm", DIGITS_SPLIT, false, false, false},
    {"starcoder", DIGITS_SPLIT, false, false, false},
    {"refact", DIGITS_SPLIT, false, false, false},
    {"mpt", GPT2_SPLIT, false, false, false},
    {"codeshell", DIGITS_SPLIT, false, false, false},
    {"deepseek-r1-qwen", WORDS_SPLIT(""), true, false, false},
    {"stablelm2", WORDS_SPLIT(""), false, false, false},
    {"default", DEFAULT_SPLIT, false, false, false},
};

static const struct split *split_find(const char *pre)
{
    for (size_t i = 0; i < AH_LENGTH(splits); i++)
        if (strcmp(splits[i].pre, pre) == 0)
            return &splits[i];
    return NULL;
}

bool ah__token_tables_pre(bool *add_bos, const char *pre)
{
    const struct split *split = split_find(pre);
    *add_bos = split && split->add_bos;
    return split != NULL;
}

/* Replaces "remove all but matches" by "isolate matches": both give the same words with a pattern that leaves nothing
 * between matches. */
static void behavior_settle(cJSON *split)
{
    const char *behavior = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(split, "behavior"));
    if (!behavior || strcmp(behavior, "Removed") != 0 ||
        !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(split, "invert")))
        return;
    cJSON_ReplaceItemInObjectCaseSensitive(split, "behavior", cJSON_CreateString("Isolated"));
    cJSON_ReplaceItemInObjectCaseSensitive(split, "invert", cJSON_CreateFalse());
}

/* Copies a pre-tokenizer without keys that change no ids, and without `key`. */
static cJSON *part_settle(const cJSON *part, const char *key)
{
    cJSON *copy = cJSON_Duplicate(part, true), *child;
    cJSON *children = cJSON_GetObjectItemCaseSensitive(copy, "pretokenizers");
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "trim_offsets");
    cJSON_DeleteItemFromObjectCaseSensitive(copy, key);
    cJSON_ArrayForEach(child, children)
    {
        cJSON_DeleteItemFromObjectCaseSensitive(child, "trim_offsets");
        cJSON_DeleteItemFromObjectCaseSensitive(child, key);
    }
    if (cJSON_GetArraySize(children) == 2)
        behavior_settle(children->child);
    return copy;
}

/* Returns true if the pre-tokenizers are equal but for `key`. */
static bool splits_alike(const cJSON *part, const char *text, const char *key)
{
    cJSON *known = cJSON_Parse(text), *a = part_settle(part, key), *b = part_settle(known, key);
    bool same = a && b && cJSON_Compare(a, b, true);
    cJSON_Delete(known);
    cJSON_Delete(a);
    cJSON_Delete(b);
    return same;
}

/* Returns the first row with this pre-tokenizer and ignore_merges, preferably one with the same normalization. */
static const struct split *split_like(const cJSON *part, bool nfc, bool ignores)
{
    const struct split *found = NULL;
    for (size_t i = 0; i < AH_LENGTH(splits); i++)
        if (splits[i].ignore_merges == ignores && (!found || (found->nfc != nfc && splits[i].nfc == nfc)) &&
            splits_alike(part, splits[i].pre_tokenizer, ""))
            found = &splits[i];
    return found;
}

/* Returns the row whose pre-tokenizer is equal but for a key. */
static const struct split *split_near(const cJSON *part, const char *key)
{
    for (size_t i = 0; i < AH_LENGTH(splits); i++)
        if (splits_alike(part, splits[i].pre_tokenizer, key))
            return &splits[i];
    return NULL;
}

static int fail_split(const cJSON *part, bool ignores, const char *path)
{
    static const char prefix[] = "add_prefix_space";
    const struct split *near = split_near(part, "");
    if (near)
        return ah__fail(AH_EINPUT,
                        "%s: key 'model.ignore_merges': found %s, expected %s: text is split as by '%s', by which "
                        "llama.cpp has it so",
                        path, ignores ? "true" : "false", ignores ? "false" : "true", near->pre);
    near = split_near(part, prefix);
    if (near)
        return ah__fail(AH_EINPUT,
                        "%s: key 'pre_tokenizer.%s': found true, expected false: text is split as by '%s' but for it, "
                        "and llama.cpp puts no space first",
                        path, prefix, near->pre);
    return ah__fail(
        AH_EINPUT,
        "%s: key 'pre_tokenizer': found a way to split text that is none of those known here by "
        "llama.cpp's name (gpt-2, llama-bpe, dbrx, gpt-4o, qwen2, stablelm2, smollm): GGUF cannot be written of it",
        path);
}

int ah__token_tables_pre_of(const char **pre, bool *normalizes, const cJSON *tokenizer, const char *path)
{
    const cJSON *normal = cJSON_GetObjectItemCaseSensitive(tokenizer, "normalizer");
    const cJSON *part = cJSON_GetObjectItemCaseSensitive(tokenizer, "pre_tokenizer");
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(tokenizer, "model");
    bool ignores = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(model, "ignore_merges"));
    const char *form = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(normal, "type"));
    *normalizes = form && strcmp(form, "NFC") == 0;
    if (form && !*normalizes)
        return ah__fail(AH_EINPUT,
                        "%s: key 'normalizer.type': found '%.40s', expected NFC or no normalizer: llama.cpp has none "
                        "beside byte-level tokens",
                        path, form);
    const struct split *split = split_like(part, *normalizes, ignores);
    if (!split)
        return fail_split(part, ignores, path);
    *pre = split->pre;
    return AH_OK;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static void text_add(struct ah_buf *to, const char *text, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    ah__buf_add(to, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        char escaped[6] = {'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]};
        if (byte == '"' || byte == '\\') {
            ah__buf_add(to, "\\", 1);
            ah__buf_add(to, text + i, 1);
        } else if (byte < ' ') {
            ah__buf_add(to, escaped, sizeof escaped);
        } else {
            ah__buf_add(to, text + i, 1);
        }
    }
    ah__buf_add(to, "\"", 1);
}

static void row_add(struct ah_buf *to, const struct ah_token_tables *tables, int32_t id)
{
    text_add(to, tables->rows[id].text, tables->rows[id].length);
}

/* ---- merges of SentencePiece ------------------------------------------------------------------------------------- */

struct merge {
    float score;
    int32_t merged, left, right;
};
struct merges {
    struct merge *all;
    size_t count, room;
};

/* Compares as the tokenizers library does: the best score first, then by token, then by the ids of its halves. */
static int compare_merges(const void *a, const void *b)
{
    const struct merge *x = a, *y = b;
    if (x->score < y->score || x->score > y->score)
        return x->score > y->score ? -1 : 1;
    if (x->merged != y->merged)
        return x->merged < y->merged ? -1 : 1;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return (x->right > y->right) - (x->right < y->right);
}

static bool is_piece(enum ah_token_type type)
{
    return type == AH_TOKEN_NORMAL || type == AH_TOKEN_USER || type == AH_TOKEN_UNUSED;
}

/* Adds all pairs of tokens that join to this token. */
static int merges_of(struct merges *merges, const struct ah_token_map *map, const struct ah_token_row *row, int32_t id)
{
    for (size_t cut = ah__utf8_bytes(row->text[0]); cut < row->length; cut += ah__utf8_bytes(row->text[cut])) {
        int32_t left = ah__token_map_find(map, row->text, cut);
        int32_t right = ah__token_map_find(map, row->text + cut, row->length - cut);
        if (left < 0 || right < 0)
            continue;
        AH_TRY(ah__grow(&merges->all, &merges->room, merges->count + 1, sizeof *merges->all));
        merges->all[merges->count++] = (struct merge){row->score, id, left, right};
    }
    return AH_OK;
}

static int merges_find(struct merges *merges, const struct ah_token_tables *tables)
{
    struct ah_token_map map = {0};
    int status = AH_OK;
    for (int32_t i = 0; i < tables->count && status == AH_OK; i++)
        if (is_piece(tables->rows[i].type))
            status = ah__token_map_add(&map, i, tables->rows[i].text, tables->rows[i].length);
    for (int32_t i = 0; i < tables->count && status == AH_OK; i++)
        if (is_piece(tables->rows[i].type) && tables->rows[i].length)
            status = merges_of(merges, &map, &tables->rows[i], i);
    ah__token_map_fini(&map);
    if (merges->count)
        qsort(merges->all, merges->count, sizeof *merges->all, compare_merges);
    return status;
}

int ah__token_tables_merges(int64_t *count, const struct ah_token_tables *tables)
{
    struct merges merges = {0};
    int status = merges_find(&merges, tables);
    *count = (int64_t)merges.count;
    ah__free(merges.all);
    return status;
}

static int merges_add(struct ah_buf *to, const struct ah_token_tables *tables)
{
    struct merges merges = {0};
    int status = merges_find(&merges, tables);
    for (size_t i = 0; i < merges.count && status == AH_OK; i++) {
        ah__buf_printf(to, i ? ",[" : "[");
        row_add(to, tables, merges.all[i].left);
        ah__buf_add(to, ",", 1);
        row_add(to, tables, merges.all[i].right);
        ah__buf_add(to, "]", 1);
        status = to->status;
    }
    ah__free(merges.all);
    return status;
}

/* ---- parts of tokenizer.json ------------------------------------------------------------------------------------- */

static const char *word_of(bool is)
{
    return is ? "true" : "false";
}

static void added_add(struct ah_buf *to, const struct ah_token_tables *tables)
{
    const char *between = "";
    ah__buf_printf(to, "\"added_tokens\":[");
    for (int32_t i = 0; i < tables->count; i++) {
        enum ah_token_type type = tables->rows[i].type;
        bool special = type == AH_TOKEN_CONTROL || type == AH_TOKEN_UNKNOWN;
        if ((!special && type != AH_TOKEN_USER) || !tables->rows[i].length)
            continue;
        ah__buf_printf(to, "%s{\"id\":%d,\"content\":", between, i);
        row_add(to, tables, i);
        ah__buf_printf(to, ",\"single_word\":false,\"lstrip\":%s,\"rstrip\":%s,\"normalized\":false,\"special\":%s}",
                       word_of(tables->rows[i].edges & AH_EDGE_LEFT), word_of(tables->rows[i].edges & AH_EDGE_RIGHT),
                       word_of(special));
        between = ",";
    }
    ah__buf_printf(to, "],");
}

static void special_add(struct ah_buf *to, const struct ah_token_tables *tables, bool adds, int32_t id,
                        const char *before, const char *behind)
{
    if (!adds)
        return;
    ah__buf_printf(to, "%s{\"SpecialToken\":{\"id\":", before);
    row_add(to, tables, id);
    ah__buf_printf(to, ",\"type_id\":0}}%s", behind);
}

static void special_ids_add(struct ah_buf *to, const struct ah_token_tables *tables, bool adds, int32_t id,
                            const char *before)
{
    if (!adds)
        return;
    ah__buf_printf(to, "%s", before);
    row_add(to, tables, id);
    ah__buf_printf(to, ":{\"id\":");
    row_add(to, tables, id);
    ah__buf_printf(to, ",\"ids\":[%d],\"tokens\":[", id);
    row_add(to, tables, id);
    ah__buf_printf(to, "]}");
}

static void template_add(struct ah_buf *to, const struct ah_token_tables *tables)
{
    bool bos = tables->add_bos && tables->bos >= 0, eos = tables->add_eos && tables->eos >= 0;
    bool both = bos && eos && tables->bos != tables->eos;
    if (!bos && !eos) {
        ah__buf_printf(to, "\"post_processor\":null,");
        return;
    }
    ah__buf_printf(to, "\"post_processor\":{\"type\":\"TemplateProcessing\"");
    for (int pair = 0; pair < 2; pair++) {
        ah__buf_printf(to, ",\"%s\":[", pair ? "pair" : "single");
        special_add(to, tables, bos, tables->bos, "", ",");
        ah__buf_printf(to, "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}");
        if (pair)
            ah__buf_printf(to, ",{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}");
        special_add(to, tables, eos, tables->eos, ",", "");
        ah__buf_printf(to, "]");
    }
    ah__buf_printf(to, ",\"special_tokens\":{");
    special_ids_add(to, tables, bos, tables->bos, "");
    special_ids_add(to, tables, eos && (both || !bos), tables->eos, bos ? "," : "");
    ah__buf_printf(to, "}},");
}

/* Appends the vocabulary. Unused tokens may share a text, which JSON cannot repeat as a key. No text becomes an unused
 * token, so only the first is written. */
static int vocab_add(struct ah_buf *to, const struct ah_token_tables *tables)
{
    struct ah_token_map map = {0};
    int status = AH_OK;
    const char *between = "";
    ah__buf_printf(to, "\"vocab\":{");
    for (int32_t i = 0; i < tables->count && status == AH_OK; i++) {
        const struct ah_token_row *row = &tables->rows[i];
        if (ah__token_map_find(&map, row->text, row->length) >= 0) {
            if (row->type != AH_TOKEN_UNUSED)
                status = ah__fail(AH_EINPUT, "%s: found token '%.*s' twice, expected it once", tables->path,
                                  row->length < 40 ? (int)row->length : 40, row->text);
            continue;
        }
        status = ah__token_map_add(&map, i, row->text, row->length);
        ah__buf_printf(to, "%s", between);
        row_add(to, tables, i);
        ah__buf_printf(to, ":%d", i);
        between = ",";
    }
    ah__buf_printf(to, "},");
    ah__token_map_fini(&map);
    return status;
}

/* ---- both kinds -------------------------------------------------------------------------------------------------- */

static int byte_level_add(struct ah_buf *to, const struct ah_token_tables *tables)
{
    const struct split *split = split_find(tables->pre);
    if (!split)
        return ah__fail(AH_EINPUT, "%s: found text split as by '%.40s', which is not known here", tables->path,
                        tables->pre);
    added_add(to, tables);
    ah__buf_printf(to, "\"normalizer\":%s,\"pre_tokenizer\":%s,", split->nfc ? "{\"type\":\"NFC\"}" : "null",
                   split->pre_tokenizer);
    template_add(to, tables);
    ah__buf_printf(to,
                   "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
                   "\"use_regex\":true},\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
                   "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
                   "\"byte_fallback\":false,\"ignore_merges\":%s,",
                   split->ignore_merges ? "true" : "false");
    AH_TRY(vocab_add(to, tables));
    ah__buf_printf(to, "\"merges\":[");
    ah__buf_add(to, tables->merges, strlen(tables->merges));
    ah__buf_printf(to, "]}}");
    return to->status;
}

/* SentencePiece's mark for a space. */
#define MARK "\xe2\x96\x81"

static void unknown_add(struct ah_buf *to, const struct ah_token_tables *tables)
{
    for (int32_t i = 0; i < tables->count; i++)
        if (tables->rows[i].type == AH_TOKEN_UNKNOWN) {
            row_add(to, tables, i);
            return;
        }
    ah__buf_printf(to, "null");
}

static int sentencepiece_add(struct ah_buf *to, const struct ah_token_tables *tables)
{
    static const char replace[] = "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}";
    added_add(to, tables);
    ah__buf_printf(to, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[%s%s]},\"pre_tokenizer\":null,",
                   tables->prefix ? "{\"type\":\"Prepend\",\"prepend\":\"" MARK "\"}," : "", replace);
    template_add(to, tables);
    ah__buf_printf(to,
                   "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
                   "\"" MARK "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}%s]},",
                   tables->prefix ? ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}" : "");
    ah__buf_printf(to, "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":");
    unknown_add(to, tables);
    ah__buf_printf(to, ",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":true,"
                       "\"byte_fallback\":true,\"ignore_merges\":false,");
    AH_TRY(vocab_add(to, tables));
    ah__buf_printf(to, "\"merges\":[");
    AH_TRY(merges_add(to, tables));
    ah__buf_printf(to, "]}}");
    return to->status;
}

int ah__token_tables_json(char **text, const struct ah_token_tables *tables)
{
    struct ah_buf to = {0};
    if (tables->count < 1)
        return ah__fail(AH_EINPUT, "%s: found a vocabulary of no tokens, expected one at least", tables->path);
    ah__buf_printf(&to, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,");
    int status = tables->pre ? byte_level_add(&to, tables) : sentencepiece_add(&to, tables);
    if (status == AH_OK)
        status = to.status;
    if (status == AH_OK)
        *text = to.text;
    else
        ah__buf_free(&to);
    return status;
}
