#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tokenizer/subword.h"
#include "tokenizer/utf8.h"

/* ---- byte-level -------------------------------------------------------------------------------------------------- */

enum { BYTE_VALUES = 256, BYTE_NAME = 8 };

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

#define ROW16(first)                                                                                                   \
    first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7, first + 8, first + 9,          \
        first + 10, first + 11, first + 12, first + 13, first + 14, first + 15
static const unsigned char all_bytes[BYTE_VALUES] = {
    ROW16(0x00), ROW16(0x10), ROW16(0x20), ROW16(0x30), ROW16(0x40), ROW16(0x50), ROW16(0x60), ROW16(0x70),
    ROW16(0x80), ROW16(0x90), ROW16(0xa0), ROW16(0xb0), ROW16(0xc0), ROW16(0xd0), ROW16(0xe0), ROW16(0xf0)};

static const char *bytes_piece(size_t *length, const struct ah_tokenizer *tokenizer, int32_t id, bool first)
{
    (void)first;
    *length = id >= 0 && id < tokenizer->vocab_size;
    return *length ? (const char *)&all_bytes[id] : "";
}

/* Returns the name of a byte, as vocabularies with byte tokens write it. */
static const char *bytes_token(const struct ah_tokenizer *tokenizer, int32_t id)
{
    static _Thread_local char name[BYTE_NAME];
    if (id < 0 || id >= tokenizer->vocab_size)
        return NULL;
    snprintf(name, sizeof name, id > ' ' && id < 0x7f ? "%c" : "<0x%02X>", (unsigned)id);
    return name;
}

/* Returns false: all tokens are bytes, and none is special or added. */
static bool bytes_none(const struct ah_tokenizer *tokenizer, int32_t id)
{
    (void)tokenizer;
    (void)id;
    return false;
}

static int bytes_edges(const struct ah_tokenizer *tokenizer, int32_t id)
{
    (void)tokenizer;
    (void)id;
    return 0;
}

static void bytes_close(const struct ah_tokenizer *tokenizer)
{
    (void)tokenizer;
}

/* The byte that ends documents (data/corpus.h); no text has it. */
static const int32_t byte_stops[] = {0};

const struct ah_tokenizer ah__tokenizer_bytes = {
    .name = "byte-level",
    .unit = "byte",
    .vocab_size = BYTE_VALUES,
    .text_is_ids = true,
    .stops = byte_stops,
    .stop_count = 1,
    .encode = bytes_encode,
    .encode_prompt = bytes_encode,
    .decode = bytes_decode,
    .piece = bytes_piece,
    .token = bytes_token,
    .is_special = bytes_none,
    .is_added = bytes_none,
    .edges = bytes_edges,
    .close = bytes_close,
};

/* ---- none -------------------------------------------------------------------------------------------------------- */

int ah__tokenizer_check(const struct ah_tokenizer *tokenizer)
{
    return tokenizer->missing ? ah__fail(AH_EINPUT, "%s", tokenizer->missing) : AH_OK;
}

static int none_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                       size_t length)
{
    (void)ids, (void)count, (void)text, (void)length;
    return ah__tokenizer_check(tokenizer);
}

static int none_decode(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids,
                       int64_t count)
{
    (void)text, (void)length, (void)ids, (void)count;
    return ah__tokenizer_check(tokenizer);
}

static void none_close(const struct ah_tokenizer *tokenizer)
{
    ah__free((void *)(uintptr_t)tokenizer->missing);
    ah__free((void *)(uintptr_t)tokenizer);
}

int ah__tokenizer_none(const struct ah_tokenizer **out, const char *why)
{
    struct ah_tokenizer *none;
    char *missing;
    AH_TRY(ah__strdup(&missing, why));
    if (ah__new(&none, 1, sizeof *none) != AH_OK) {
        ah__free(missing);
        return AH_ENOMEM;
    }
    /* A placeholder has no ids, so the functions that look up an id find none. */
    *none = (struct ah_tokenizer){.name = "none",
                                  .unit = "token",
                                  .missing = missing,
                                  .encode = none_encode,
                                  .encode_prompt = none_encode,
                                  .decode = none_decode,
                                  .piece = bytes_piece,
                                  .token = bytes_token,
                                  .is_special = bytes_none,
                                  .is_added = bytes_none,
                                  .close = none_close};
    *out = none;
    return AH_OK;
}

/* ---- bytes, or not ----------------------------------------------------------------------------------------------- */

/* Tokenizers that this library cannot read. A model with one of these files must not silently use bytes. */
static const char *const unread[] = {
    "sentencepiece.bpe.model", "tekken.json",        "vocab.txt",     "tokenizer.tiktoken", "tokenizer.model.v1",
    "tokenizer.model.v2",      "tokenizer.model.v3", "qwen.tiktoken", "merges.txt", /* without vocab.json */
};

static int unread_check(const char *folder)
{
    for (size_t i = 0; i < AH_LENGTH(unread) && folder; i++) {
        char *path;
        /* Python's AutoTokenizer would save tekken.json again. */
        bool tekken = strcmp(unread[i], "tekken.json") == 0;
        AH_TRY(ah__sprintf(&path, "%s/%s", folder, unread[i]));
        int status = access(path, F_OK) != 0
                         ? AH_OK
                         : ah__fail(AH_EINPUT,
                                    "%s: found a tokenizer of a kind that is not read, expected tokenizer.json, as "
                                    "Python makes of it by %s.from_pretrained(FOLDER).save_pretrained(FOLDER)%s",
                                    path, tekken ? "transformers.PreTrainedTokenizerFast" : "AutoTokenizer",
                                    tekken ? ", where mistral-common is installed" : "");
        ah__free(path);
        AH_TRY(status);
    }
    return AH_OK;
}

static int bytes_open(const struct ah_tokenizer **out, const char *folder)
{
    AH_TRY(unread_check(folder));
    *out = &ah__tokenizer_bytes;
    return AH_OK;
}

/* ---- which one --------------------------------------------------------------------------------------------------- */

/* Each leaves *out null if the folder has no tokenizer of its kind, or is null; the last accepts every model. */
static int (*const openers[])(const struct ah_tokenizer **out, const char *folder) = {
    ah__subword_open_json,
    ah__subword_open_merges,
    ah__subword_open_pieces,
    bytes_open,
};

int ah__tokenizer_folder(char **folder, const char *model)
{
    static const char config[] = "/config.json";
    struct stat found;
    *folder = NULL;
    if (!model || stat(model, &found) != 0)
        return AH_OK;
    if (S_ISDIR(found.st_mode))
        return ah__strdup(folder, model);
    size_t length = strlen(model), tail = sizeof config - 1;
    if (strcmp(model, config + 1) == 0)
        return ah__strdup(folder, ".");
    if (length < tail || strcmp(model + length - tail, config) != 0)
        return AH_OK;
    return ah__sprintf(folder, "%.*s", length > tail ? (int)(length - tail) : 1, model);
}

int ah__tokenizer_open(const struct ah_tokenizer **out, const char *model)
{
    const struct ah_tokenizer *tokenizer = NULL;
    char *folder;
    AH_TRY(ah__tokenizer_folder(&folder, model));
    int status = AH_OK;
    for (size_t i = 0; i < AH_LENGTH(openers) && !tokenizer && status == AH_OK; i++)
        status = openers[i](&tokenizer, folder);
    ah__free(folder);
    if (status == AH_OK)
        *out = tokenizer;
    return status;
}

/* Returns the token of this text, else the number that it is if below the vocabulary's size, else -1. */
static int32_t token_id(const struct ah_tokenizer *tokenizer, const char *token)
{
    char *end;
    for (int32_t id = 0; id < tokenizer->vocab_size; id++) {
        const char *text = tokenizer->token(tokenizer, id);
        if (text && strcmp(text, token) == 0)
            return id;
    }
    long id = strtol(token, &end, 10);
    return *token >= '0' && *token <= '9' && !*end && id < tokenizer->vocab_size ? (int32_t)id : -1;
}

int ah__tokenizer_end_set(const struct ah_tokenizer *tokenizer, const char *token)
{
    if (!token)
        return AH_OK;
    if (tokenizer->text_is_ids)
        return ah__fail(AH_EINPUT, "eos: found '%.60s', expected none: texts of bytes end with byte 0", token);
    int32_t id = token_id(tokenizer, token);
    if (id < 0)
        return ah__fail(AH_EINPUT, "eos: found '%.60s', expected a token of the tokenizer, or an id below %d", token,
                        tokenizer->vocab_size);
    struct ah_tokenizer *own = (struct ah_tokenizer *)(uintptr_t)tokenizer; /* the caller opened it and alone has it */
    own->eos = id;
    own->has_eos = true;
    own->end_given = true;
    return AH_OK;
}

int ah__tokenizer_ids_take(const struct ah_tokenizer *tokenizer, const char *config, const char *path)
{
    /* The caller opened the tokenizer and alone has it. All tokenizers but bytes are subwords. */
    return tokenizer->text_is_ids ? AH_OK
                                  : ah__special_ids_add((struct ah_subword *)(uintptr_t)tokenizer, config, path);
}

void ah__tokenizer_close(const struct ah_tokenizer *tokenizer)
{
    if (tokenizer)
        tokenizer->close(tokenizer);
}

/* ---- token by token ---------------------------------------------------------------------------------------------- */

int ah__token_stream_next(struct ah_buf *to, struct ah_token_stream *stream, int32_t id)
{
    size_t length, bytes;
    const char *piece = stream->tokenizer->piece(&length, stream->tokenizer, id, !stream->started);
    struct ah_buf all = {0};
    stream->started = true;
    if (stream->tokenizer->text_is_ids) {
        ah__buf_add(to, piece, length);
        return to->status;
    }
    ah__buf_add(&all, stream->held, stream->held_bytes);
    ah__buf_add(&all, piece, length);
    int status = all.status;
    stream->held_bytes = 0;
    for (size_t at = 0; at < all.length && status == AH_OK; at += bytes)
        if (ah__utf8_look(&bytes, all.text + at, all.length - at) == AH_UTF8_CUT) {
            memcpy(stream->held, all.text + at, bytes);
            stream->held_bytes = bytes;
        } else {
            ah__utf8_repair(to, all.text + at, bytes);
        }
    ah__buf_free(&all);
    return status == AH_OK ? to->status : status;
}

int ah__token_stream_end(struct ah_buf *to, struct ah_token_stream *stream)
{
    ah__utf8_repair(to, stream->held, stream->held_bytes);
    stream->held_bytes = 0;
    return to->status;
}
