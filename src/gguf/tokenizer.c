#include "gguf/tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json.h"
#include "gguf/around.h"
#include "gguf/by_name.h"
#include "gguf/scores.h"
#include "tokenizer/sentencepiece_model.h"
#include "tokenizer/subword.h"

#define KEY(name) "tokenizer.ggml." name
/* SentencePiece's mark for a space. */
#define MARK "\xe2\x96\x81"

struct written {
    struct ah_gguf_writer *writer;
    struct ah_buf *notes;
    const struct ah_gguf_tokenizer *from;
    struct ah_json json, model;
    const char *pre;              /* llama.cpp's name of the way text is split; null: SentencePiece's BPE */
    bool prefix;                  /* SentencePiece: a space is added before the text, */
    bool once;                    /* but not after added tokens */
    bool normalizes;              /* other kind: normalizes to NFC, which llama.cpp does not */
    struct ah_gguf_token *tokens; /* [from->rows] */
};

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static int token_set(struct written *to, int64_t id, const char *text, enum ah_token_type type)
{
    if (id < 0 || id >= to->from->rows)
        return ah__fail(AH_EINPUT, "%s: token '%.40s': found id %lld, expected below the model's vocabulary of %lld",
                        to->from->path, text, (long long)id, (long long)to->from->rows);
    ah__free(to->tokens[id].text);
    to->tokens[id].text = NULL;
    to->tokens[id].type = type;
    return ah__strdup(&to->tokens[id].text, text);
}

static int tokens_of_vocab(struct written *to)
{
    struct ah_json vocab;
    AH_TRY(ah__json_object(&vocab, &to->model, "vocab"));
    for (const cJSON *child = vocab.node->child; child; child = child->next)
        AH_TRY(token_set(to, (int64_t)child->valuedouble, child->string, AH_TOKEN_NORMAL));
    return AH_OK;
}

/* Returns true for texts of special tokens, by the rule of llama.cpp's converter: some models do not mark them as
 * special. */
static bool looks_special(const char *text)
{
    static const char *const whole[] = {"<pad>", "<mask>", "<2mass>", "[@BOS@]"};
    static const struct {
        const char *start, *end;
    } forms[] = {{"<|", "|>"}, {"<\xef\xbd\x9c", "\xef\xbd\x9c>"}, {"<unused", ">"}};
    size_t length = strlen(text);
    for (size_t i = 0; i < AH_LENGTH(whole); i++)
        if (strcmp(text, whole[i]) == 0)
            return true;
    for (size_t i = 0; i < AH_LENGTH(forms); i++) {
        size_t start = strlen(forms[i].start), end = strlen(forms[i].end);
        if (length >= start && length >= end && strncmp(text, forms[i].start, start) == 0 &&
            strcmp(text + length - end, forms[i].end) == 0)
            return true;
    }
    return false;
}

static enum ah_token_type added_type(bool special, const char *text)
{
    return special || looks_special(text) ? AH_TOKEN_CONTROL : AH_TOKEN_USER;
}

static int tokens_of_added(struct written *to)
{
    const cJSON *child;
    cJSON_ArrayForEach(child, cJSON_GetObjectItemCaseSensitive(to->json.node, "added_tokens"))
    {
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(child, "content"));
        double id = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(child, "id"));
        bool special = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(child, "special"));
        if (!text || !(id >= 0 && id < 1e9))
            return ah__fail(AH_EINPUT, "%s: key 'added_tokens': found no content or no id, expected both",
                            to->from->path);
        AH_TRY(token_set(to, (int64_t)id, text, added_type(special, text)));
    }
    return AH_OK;
}

static int tokens_pad(struct written *to)
{
    for (int64_t i = 0; i < to->from->rows; i++) {
        char name[32];
        if (to->tokens[i].text)
            continue;
        snprintf(name, sizeof name, "[PAD%lld]", (long long)i);
        AH_TRY(token_set(to, i, name, AH_TOKEN_UNUSED));
    }
    return AH_OK;
}

/* ---- merges ------------------------------------------------------------------------------------------------------ */

/* Writes a merge of either form as "left right" to `both`; false for another form. */
static bool merge_text(struct ah_buf *both, const cJSON *merge)
{
    const cJSON *left = cJSON_IsArray(merge) ? merge->child : NULL, *right = left ? left->next : NULL;
    both->length = 0;
    if (cJSON_IsString(merge))
        ah__buf_printf(both, "%s", merge->valuestring);
    else if (cJSON_IsString(left) && cJSON_IsString(right))
        ah__buf_printf(both, "%s %s", left->valuestring, right->valuestring);
    else
        return false;
    return true;
}

static int put_merges(const struct written *to, const cJSON *merges)
{
    struct ah_buf both = {0};
    const cJSON *merge;
    ah__gguf_put_array(to->writer, KEY("merges"), AH_GGUF_ITEMS_TEXT, (uint64_t)cJSON_GetArraySize(merges));
    int status = AH_OK;
    cJSON_ArrayForEach(merge, merges)
    {
        if (!merge_text(&both, merge))
            status = ah__fail(AH_EINPUT, "%s: key 'model.merges': found no pair of texts", to->from->path);
        ah__gguf_item_text(to->writer, both.text ? both.text : "", both.length);
    }
    if (status == AH_OK)
        status = both.status;
    ah__buf_free(&both);
    return status;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Finds bytes and the unknown token, which the vocabulary has like texts. */
static int pieces_find(struct written *to)
{
    const char *unknown = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(to->model.node, "unk_token"));
    unsigned byte;
    char end;
    for (int64_t i = 0; i < to->from->rows; i++) {
        struct ah_gguf_token *token = &to->tokens[i];
        if (unknown && strcmp(token->text, unknown) == 0)
            token->type = AH_TOKEN_UNKNOWN;
        else if (strlen(token->text) == 6 && sscanf(token->text, "<0x%2X%c", &byte, &end) == 2 && end == '>')
            token->type = AH_TOKEN_BYTE;
    }
    const cJSON *merges = cJSON_GetObjectItemCaseSensitive(to->model.node, "merges");
    return ah__gguf_scores_find(to->tokens, (int32_t)to->from->rows, merges, to->from->path);
}

/* ---- splitting of text ------------------------------------------------------------------------------------------- */

static bool is_type(const cJSON *part, const char *type)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(part, "type");
    return cJSON_IsString(found) && strcmp(found->valuestring, type) == 0;
}

static bool is_text(const cJSON *part, const char *key, const char *text)
{
    const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, key));
    return found && strcmp(found, text) == 0;
}

/* Returns true for a part that finds spaces by a string, not by an expression. */
static bool finds_spaces(const cJSON *part, const char *type)
{
    return is_type(part, type) && is_text(cJSON_GetObjectItemCaseSensitive(part, "pattern"), "String", " ");
}

/* Takes a normalizer's step that marks spaces, or adds one before the text. */
static bool step_take(bool *replaces, bool *prefix, const cJSON *step)
{
    bool marks = finds_spaces(step, "Replace") && is_text(step, "content", MARK);
    bool first = is_type(step, "Prepend") && is_text(step, "prepend", MARK);
    *replaces = *replaces || marks;
    *prefix = *prefix || first;
    return marks || first;
}

/* Returns true if Metaspace adds a space before the text: by prepend_scheme, or, in older files, by
 * add_prefix_space. */
static bool metaspace_prefix(const cJSON *metaspace)
{
    if (cJSON_HasObjectItem(metaspace, "prepend_scheme"))
        return !is_text(metaspace, "prepend_scheme", "never");
    return !cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(metaspace, "add_prefix_space"));
}

/* Returns true if spaces are marked as SentencePiece does it, by a normalizer or by Metaspace. *prefix: a space is
 * added before the text; *once: only at the text's start. */
static bool marks_spaces(bool *prefix, bool *once, const cJSON *tokenizer)
{
    const cJSON *normal = cJSON_GetObjectItemCaseSensitive(tokenizer, "normalizer"), *step;
    const cJSON *before = cJSON_GetObjectItemCaseSensitive(tokenizer, "pre_tokenizer");
    bool replaces = false, plain = !before || cJSON_IsNull(before);
    *prefix = false;
    if (is_type(before, "Metaspace")) {
        *prefix = metaspace_prefix(before);
        *once = is_text(before, "prepend_scheme", "first");
        return (!normal || cJSON_IsNull(normal)) && is_text(before, "replacement", MARK) &&
               cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(before, "split"));
    }
    if (!plain && !finds_spaces(before, "Split")) /* Gemma's, which finds no space: they are marked by then */
        return false;
    if (!is_type(normal, "Sequence"))
        return step_take(&replaces, prefix, normal) && replaces;
    cJSON_ArrayForEach(step, cJSON_GetObjectItemCaseSensitive(normal, "normalizers"))
    {
        if (!step_take(&replaces, prefix, step))
            return false;
    }
    return replaces;
}

static int kind_find(struct written *to)
{
    bool fallback = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(to->model.node, "byte_fallback"));
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(to->model.node, "type");
    if (cJSON_IsString(type) && strcmp(type->valuestring, "BPE") != 0)
        return ah__fail(AH_EINPUT, "%s: key 'model.type': found '%.40s', expected BPE", to->from->path,
                        type->valuestring);
    if (fallback && marks_spaces(&to->prefix, &to->once, to->json.node))
        return AH_OK;
    if (fallback)
        return ah__fail(AH_EINPUT,
                        "%s: keys 'normalizer' and 'pre_tokenizer': found other steps, expected SentencePiece's, which "
                        "mark spaces by U+2581",
                        to->from->path);
    return ah__token_tables_pre_of(&to->pre, &to->normalizes, to->json.node, to->from->path);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Returns the key's text, or the default of a list of named templates, or null. */
static const char *template_of(const cJSON *config)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(config, "chat_template");
    if (!cJSON_IsArray(found))
        return cJSON_GetStringValue(found);
    for (const cJSON *item = found->child; item; item = item->next) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "name"));
        if (name && strcmp(name, "default") == 0)
            return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "template"));
    }
    return NULL;
}

/* Returns the token with this text, or -1. */
static int64_t token_of(const struct written *to, const char *text)
{
    for (int64_t i = 0; text && i < to->from->rows; i++)
        if (strcmp(to->tokens[i].text, text) == 0)
            return i;
    return -1;
}

/* Writes the unknown and padding tokens that tokenizer_config.json names; else the unknown token is the one of that
 * type. */
static int put_others(const struct written *to)
{
    struct ah_json config = {0};
    const char *text = to->from->config;
    int64_t unknown = -1, padding = -1;
    if (text)
        AH_TRY(ah__json_parse(&config, text, strlen(text), to->from->path));
    if (text) {
        unknown = token_of(to, ah__special_text(&config, "unk_token"));
        padding = token_of(to, ah__special_text(&config, "pad_token"));
    }
    ah__json_free(&config);
    for (int64_t i = 0; i < to->from->rows && unknown < 0; i++)
        if (to->tokens[i].type == AH_TOKEN_UNKNOWN)
            unknown = i;
    if (unknown >= 0)
        ah__gguf_put_int(to->writer, KEY("unknown_token_id"), (uint32_t)unknown);
    if (padding >= 0)
        ah__gguf_put_int(to->writer, KEY("padding_token_id"), (uint32_t)padding);
    return AH_OK;
}

static int put_template(const struct written *to)
{
    static const char key[] = "tokenizer.chat_template";
    struct ah_json config;
    const char *text = to->from->config;
    if (to->from->template)
        ah__gguf_put_text(to->writer, key, to->from->template);
    if (to->from->template || !text)
        return AH_OK;
    AH_TRY(ah__json_parse(&config, text, strlen(text), to->from->path));
    const char *chat = template_of(config.node);
    if (chat)
        ah__gguf_put_text(to->writer, key, chat);
    ah__json_free(&config);
    return AH_OK;
}

/* Replaces marks by spaces in a token that is searched in the plain text. */
static void marks_replace(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        bool mark = strncmp(from, MARK, sizeof MARK - 1) == 0;
        *to++ = mark ? ' ' : *from;
        from += mark ? sizeof MARK - 1 : 1;
    }
    *to = 0;
}

static void names_note(const struct written *to)
{
    for (int64_t i = 0; i < to->from->rows; i++)
        if (to->tokens[i].type == AH_TOKEN_NORMAL && ah__gguf_control_named(to->tokens[i].text))
            ah__buf_printf(ah__gguf_clause(to->notes), "token '%s' is special in llama.cpp by its text, and not here",
                           to->tokens[i].text);
}

static void put_tokens(const struct written *to)
{
    names_note(to);
    ah__gguf_put_array(to->writer, KEY("tokens"), AH_GGUF_ITEMS_TEXT, (uint64_t)to->from->rows);
    for (int64_t i = 0; i < to->from->rows; i++) {
        if (to->tokens[i].type == AH_TOKEN_USER)
            marks_replace(to->tokens[i].text);
        ah__gguf_item_text(to->writer, to->tokens[i].text, strlen(to->tokens[i].text));
    }
    ah__gguf_put_array(to->writer, KEY("token_type"), AH_GGUF_ITEMS_INT, (uint64_t)to->from->rows);
    for (int64_t i = 0; i < to->from->rows; i++)
        ah__gguf_item_int(to->writer, (int32_t)to->tokens[i].type);
}

static void put_scores(const struct written *to)
{
    ah__gguf_put_array(to->writer, KEY("scores"), AH_GGUF_ITEMS_FLOAT, (uint64_t)to->from->rows);
    for (int64_t i = 0; i < to->from->rows; i++)
        ah__gguf_item_float(to->writer, to->tokens[i].score);
    ah__gguf_put_bool(to->writer, KEY("add_space_prefix"), to->prefix);
}

/* ---- SentencePiece's file ---------------------------------------------------------------------------------------- */

/* Checks that llama.cpp's SentencePiece can do the same: byte pairs of the unchanged text, with spaces marked. */
static int model_check(const struct written *to, const struct ah_sentencepiece_model *model)
{
    const char *found = model->unigram          ? "unigrams"
                        : !model->byte_fallback ? "no bytes for what is unknown"
                        : model->rules.length   ? "replacements of characters"
                        : model->removes_spaces || model->space_behind || !model->escapes_spaces
                            ? "spaces that are not kept, or not marked"
                            : NULL;
    return found ? ah__fail(AH_EINPUT,
                            "%s: tokenizer.model: found %s, expected SentencePiece's BPE as Llama 2 has it, which is "
                            "what GGUF has keys for",
                            to->from->path, found)
                 : AH_OK;
}

static int tokens_of_model(struct written *to, const struct ah_sentencepiece_model *model)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct ah_token_row *row = &model->rows[i];
        char *text;
        AH_TRY(ah__sprintf(&text, "%.*s", (int)row->length, row->text));
        int status = token_set(to, (int64_t)i, text, row->type);
        ah__free(text);
        AH_TRY(status);
        to->tokens[i].score = row->score;
    }
    return AH_OK;
}

/* Adds the tokens that other files of the folder add to the pieces, or make special. */
static int tokens_of_folder(struct written *to, const struct ah_sentencepiece_model *model)
{
    const struct ah_tokenizer *tokenizer = to->from->tokenizer;
    for (int32_t id = 0; id < tokenizer->vocab_size; id++) {
        const char *text = tokenizer->token(tokenizer, id);
        bool special = tokenizer->is_special(tokenizer, id), piece = (size_t)id < model->count;
        if (text && !piece)
            AH_TRY(token_set(to, id, text, added_type(special, text)));
        else if (piece && tokenizer->is_added(tokenizer, id) && to->tokens[id].type != AH_TOKEN_UNKNOWN)
            to->tokens[id].type = added_type(special, text);
    }
    return AH_OK;
}

static int pieces_take(struct written *to, const struct ah_sentencepiece_model *model)
{
    AH_TRY(model_check(to, model));
    to->prefix = model->adds_space && to->from->tokenizer->adds_space != AH_SPACE_NEVER;
    to->once = to->from->tokenizer->adds_space == AH_SPACE_FIRST;
    for (size_t i = 0; i < model->count; i++) /* they are pieces here, without a space after them */
        to->once = to->once || model->rows[i].type == AH_TOKEN_USER;
    AH_TRY(tokens_of_model(to, model));
    return tokens_of_folder(to, model);
}

static int put_pieces(struct written *to)
{
    struct ah_sentencepiece_model model;
    AH_TRY(ah__sentencepiece_model_read(&model, to->from->pieces, to->from->pieces_length, to->from->path));
    int status = pieces_take(to, &model);
    ah__sentencepiece_model_free(&model);
    AH_TRY(status);
    return tokens_pad(to);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int put_json(struct written *to)
{
    AH_TRY(ah__json_parse(&to->json, to->from->json, strlen(to->from->json), to->from->path));
    AH_TRY(ah__json_object(&to->model, &to->json, "model"));
    AH_TRY(kind_find(to));
    AH_TRY(tokens_of_vocab(to));
    AH_TRY(tokens_of_added(to));
    AH_TRY(tokens_pad(to));
    return to->pre ? AH_OK : pieces_find(to);
}

static int put_all(struct written *to)
{
    AH_TRY(to->from->json ? put_json(to) : put_pieces(to));
    if (to->pre && strcmp(to->pre, "gpt-4o") == 0)
        ah__buf_printf(
            ah__gguf_clause(to->notes),
            "llama.cpp takes letters beyond a to z for both cases and does not join accents to letters, so a "
            "few texts in other scripts have other tokens there");
    if (to->normalizes)
        ah__buf_printf(ah__gguf_clause(to->notes), "the tokenizer brings text to NFC first and llama.cpp does not, so "
                                                   "that ids of text in another form differ");
    ah__gguf_put_text(to->writer, KEY("model"), to->pre ? "gpt2" : "llama");
    ah__gguf_put_text(to->writer, KEY("pre"), to->pre ? to->pre : "default");
    put_tokens(to);
    if (to->pre)
        AH_TRY(put_merges(to, cJSON_GetObjectItemCaseSensitive(to->model.node, "merges")));
    else
        put_scores(to);
    AH_TRY(ah__gguf_put_around(to->writer, to->notes, to->from->tokenizer, to->pre ? 11 : 2));
    AH_TRY(put_others(to));
    return put_template(to);
}

int ah__gguf_put_tokenizer(struct ah_gguf_writer *writer, struct ah_buf *notes, const struct ah_gguf_tokenizer *from)
{
    struct written to = {.writer = writer, .notes = notes, .from = from};
    AH_TRY(ah__new(&to.tokens, (size_t)from->rows, sizeof *to.tokens));
    int status = put_all(&to);
    if (to.prefix && to.once)
        ah__buf_printf(ah__gguf_clause(notes),
                       "the tokenizer adds a space to a text but not behind added tokens ('legacy' false, "
                       "'prepend_scheme' first, or pieces that are user-defined); llama.cpp adds it there too, so that "
                       "ids behind them differ");
    for (int64_t i = 0; i < from->rows; i++)
        ah__free(to.tokens[i].text);
    ah__free(to.tokens);
    ah__json_free(&to.json);
    return status;
}
