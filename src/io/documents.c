#include "io/documents.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/paths.h"
#include "io/stream.h"

enum { PIECE_MOST = 1 << 24, LOOKED_AT = 1 << 20, LINE_MOST = 64 << 20, SHORT = 1 << 14, WHERE_SIZE = 640 };

const char *const ah__data_format_words[AH_DATA_FORMAT_COUNT] = {
#define FORMAT_WORD(id, word) word,
    AH_DATA_FORMAT_TABLE(FORMAT_WORD)
#undef FORMAT_WORD
};

int ah__data_format_parse(enum ah_data_format *out, const char *word)
{
    *out = AH_DATA_AUTO;
    for (int i = 0; word && i < AH_DATA_FORMAT_COUNT; i++)
        if (strcmp(ah__data_format_words[i], word) == 0) {
            *out = (enum ah_data_format)i;
            return AH_OK;
        }
    return word ? ah__fail(AH_EINPUT, "data_format: found '%.40s', expected auto, text, jsonl, llmc or nanogpt", word)
                : AH_OK;
}

enum kind { NO_KIND, PLAIN, PAIRS };

struct ah_documents {
    struct ah_paths paths;
    size_t next; /* of them */
    enum ah_data_format format;
    enum kind kind; /* of all documents so far */

    struct ah_stream *stream; /* of the file that is read, null: none */
    const char *path;
    bool jsonl, ended; /* of that file; the stream has given all */
    int64_t line;
    char *text;                /* [room] what was read of it */
    size_t room, used, length; /* [used, length) is not given yet */
    struct ah_json json;       /* of the last line: its strings were given */
    char where[WHERE_SIZE];
    uint64_t signature;
    int64_t bytes;
};

/* ---- what is in a file ------------------------------------------------------------------------------------------- */

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t tail = strlen(end);
    return length >= tail && strncasecmp(name + length - tail, end, tail) == 0;
}

/* A first line that is an object with the keys of a document. */
static int line_has_document(bool *out, const char *start, size_t length)
{
    static const char *const keys[] = {"text", "prompt", "messages"};
    const char *end = memchr(start, '\n', length);
    struct ah_json json;
    *out = false;
    if (!length || start[0] != '{')
        return AH_OK;
    int status = ah__json_parse(&json, start, end ? (size_t)(end - start) : length, "");
    if (status != AH_OK)
        return status == AH_ENOMEM ? status : AH_OK; /* it is no JSON */
    for (size_t i = 0; i < AH_LENGTH(keys); i++)
        *out |= ah__json_has(&json, keys[i]);
    ah__json_free(&json);
    return AH_OK;
}

int ah__documents_are_jsonl(bool *out, const char *name, const char *start, size_t length)
{
    size_t end = strlen(name);
    static const char *const packed[] = {".gz", ".zst"}, *const endings[] = {".jsonl", ".ndjson"};
    *out = true;
    for (size_t i = 0; i < AH_LENGTH(packed); i++)
        if (ends_with(name, end, packed[i])) {
            end -= strlen(packed[i]);
            break;
        }
    for (size_t i = 0; i < AH_LENGTH(endings); i++)
        if (ends_with(name, end, endings[i]))
            return AH_OK;
    return line_has_document(out, start, length);
}

const char *ah__documents_not_text(size_t *at, const void *start, size_t length)
{
    static const struct {
        const char *start, *what;
    } known[] = {
        {"\x88\xd8\x34\x01", "a token file"}, {"\xa1\xd9\x34\x01", "a token file"}, {"%PDF-", "a PDF document"},
        {"PAR1", "a Parquet file"},           {"ARROW1", "an Arrow file"},
    };
    size_t looked_at = length < LOOKED_AT ? length : LOOKED_AT;
    for (size_t i = 0; i < AH_LENGTH(known); i++)
        if (length >= strlen(known[i].start) && memcmp(start, known[i].start, strlen(known[i].start)) == 0)
            return known[i].what;
    const unsigned char *zero = memchr(start, 0, looked_at);
    *at = zero ? (size_t)(zero - (const unsigned char *)start) : 0;
    return zero ? AH_ZERO_BYTE : NULL;
}

static int text_check(const struct ah_documents *documents)
{
    size_t at = 0;
    const char *what = ah__documents_not_text(&at, documents->text, documents->length);
    if (!what)
        return AH_OK;
    if (strcmp(what, AH_ZERO_BYTE) == 0)
        return ah__fail(AH_EINPUT, "%s: found a zero byte at %zu, expected text", documents->path, at);
    return ah__fail(AH_EINPUT, "%s: found %s, expected text", documents->path, what);
}

/* ---- one file after the other ------------------------------------------------------------------------------------ */

int ah__documents_open(struct ah_documents **out, const char *const *paths, size_t count, enum ah_data_format format)
{
    struct ah_documents *documents;
    AH_TRY(ah__new(&documents, 1, sizeof *documents));
    documents->format = format;
    int status = AH_OK;
    for (size_t i = 0; status == AH_OK && i < count; i++)
        status = ah__paths_add(&documents->paths, paths[i]);
    if (status == AH_OK)
        *out = documents;
    else
        ah__documents_close(documents);
    return status;
}

void ah__documents_close(struct ah_documents *documents)
{
    if (!documents)
        return;
    ah__stream_close(documents->stream);
    ah__json_free(&documents->json);
    ah__paths_free(&documents->paths);
    ah__free(documents->text);
    ah__free(documents);
}

/* Reads on until `wanted` bytes are not given yet, or the file ends. */
static int read_on(struct ah_documents *documents, size_t wanted)
{
    if (documents->used) {
        memmove(documents->text, documents->text + documents->used, documents->length - documents->used);
        documents->length -= documents->used;
        documents->used = 0;
    }
    while (documents->length < wanted && !documents->ended) {
        size_t got, doubled = 2 * documents->length, next = doubled < SHORT ? SHORT : doubled;
        next = next < wanted ? next : wanted; /* a short file takes little memory */
        AH_TRY(ah__grow(&documents->text, &documents->room, next, 1));
        AH_TRY(ah__stream_read(&got, documents->stream, documents->text + documents->length, next - documents->length));
        documents->length += got;
        documents->ended = got == 0;
    }
    return AH_OK;
}

static int file_open(struct ah_documents *documents)
{
    const struct ah_path *path = &documents->paths.path[documents->next++];
    documents->path = path->path;
    documents->signature = ah__hash_text(path->within, documents->signature);
    documents->used = documents->length = 0;
    documents->line = 0;
    documents->ended = false;
    AH_TRY(ah__stream_open(&documents->stream, path->path));
    AH_TRY(read_on(documents, LOOKED_AT));
    AH_TRY(text_check(documents));
    documents->jsonl = documents->format == AH_DATA_JSONL;
    return documents->format == AH_DATA_AUTO
               ? ah__documents_are_jsonl(&documents->jsonl, path->path, documents->text, documents->length)
               : AH_OK;
}

static void file_close(struct ah_documents *documents)
{
    documents->signature = ah__stream_hash(documents->stream, documents->signature);
    documents->bytes += ah__stream_bytes(documents->stream);
    ah__stream_close(documents->stream);
    documents->stream = NULL;
}

/* Bytes at the end of text [0, length) that belong to a character which goes on behind it; bytes that are no UTF-8 are
 * cut anywhere. */
static size_t character_tail(const char *text, size_t length)
{
    enum { CHARACTER_MOST = 4 };
    size_t tail = 0;
    while (tail < length && tail < CHARACTER_MOST && ((unsigned char)text[length - tail] & 0xC0) == 0x80)
        tail++;
    return tail < CHARACTER_MOST && tail < length ? tail : 0;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* All of the file, or what ends with a line of a long one. *more false: nothing is left. */
static int text_next(bool *more, struct ah_document *out, struct ah_documents *documents)
{
    AH_TRY(read_on(documents, PIECE_MOST + 1));
    size_t length = documents->length;
    *more = length > 0;
    if (!*more)
        return AH_OK;
    if (memchr(documents->text, 0, length))
        return ah__fail(AH_EINPUT, "%s: found a zero byte, expected text", documents->path);
    if (!documents->ended) { /* something stays for the next piece, which then ends the document */
        const char *line = memrchr(documents->text, '\n', PIECE_MOST);
        length = line ? (size_t)(line + 1 - documents->text) : PIECE_MOST;
        length -= character_tail(documents->text, length); /* no character is cut in two */
    }
    *out = (struct ah_document){
        .text = documents->text, .length = length, .whole = documents->ended, .alone = documents->paths.count == 1};
    documents->used = length;
    return AH_OK;
}

/* ---- JSON lines -------------------------------------------------------------------------------------------------- */

/* Text [0, *length) is the next line, without its end; *more false: there is none. */
static int line_next(bool *more, size_t *length, struct ah_documents *documents)
{
    for (size_t wanted = LOOKED_AT; wanted <= LINE_MOST; wanted *= 2) {
        AH_TRY(read_on(documents, wanted));
        const char *end = memchr(documents->text, '\n', documents->length);
        *more = documents->length > 0;
        if (end || documents->ended) {
            *length = end ? (size_t)(end - documents->text) : documents->length;
            documents->used = *length + (end ? 1 : 0);
            documents->line++;
            return AH_OK;
        }
    }
    return ah__fail(AH_EINPUT, "%s: line %lld: found more than %d MiB in one line, expected a document",
                    documents->path, (long long)documents->line + 1, LINE_MOST >> 20);
}

static int string_get(const char **out, size_t *length, const struct ah_json *json, const char *key)
{
    AH_TRY(ah__json_string(out, json, key));
    *length = strlen(*out);
    return AH_OK;
}

static int document_get(struct ah_document *out, const struct ah_json *json)
{
    bool text = ah__json_has(json, "text");
    *out = (struct ah_document){.whole = true};
    if (text && (ah__json_has(json, "prompt") || ah__json_has(json, "completion")))
        return ah__fail(AH_EINPUT, "%s: found 'text' beside a prompt or completion, expected one of the two",
                        json->path);
    if (text)
        return string_get(&out->text, &out->length, json, "text");
    if (ah__json_has(json, "prompt") || ah__json_has(json, "completion")) {
        AH_TRY(string_get(&out->text, &out->length, json, "prompt"));
        return string_get(&out->completion, &out->completion_length, json, "completion");
    }
    if (ah__json_has(json, "messages"))
        return ah__fail(AH_EINPUT,
                        "%s: found 'messages', which are not read, expected 'text', or 'prompt' and "
                        "'completion'",
                        json->path);
    return ah__fail(AH_EINPUT, "%s: found an object without them, expected 'text', or 'prompt' and 'completion'",
                    json->path);
}

/* A line of nothing but white space is none. */
static bool is_blank(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && strchr(" \t\r", text[i]) && text[i])
        i++;
    return i == length;
}

static int jsonl_next(bool *more, struct ah_document *out, struct ah_documents *documents)
{
    size_t length = 0;
    ah__json_free(&documents->json);
    documents->json = (struct ah_json){0};
    do
        AH_TRY(line_next(more, &length, documents));
    while (*more && is_blank(documents->text, length));
    if (!*more)
        return AH_OK;
    AH_TRY(ah__json_parse(&documents->json, documents->text, length, ah__documents_where(documents)));
    return document_get(out, &documents->json);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Pairs are sequences of their own, other documents are joined. */
static int kind_check(struct ah_documents *documents, const struct ah_document *document)
{
    enum kind kind = document->completion ? PAIRS : PLAIN;
    if (documents->kind != NO_KIND && documents->kind != kind)
        return ah__fail(AH_EINPUT, "%s: found %s, expected %s as before it", ah__documents_where(documents),
                        kind == PAIRS ? "a prompt and completion" : "a document of text",
                        kind == PAIRS ? "text" : "a prompt and completion");
    documents->kind = kind;
    return AH_OK;
}

int ah__documents_next(bool *more, struct ah_document *out, struct ah_documents *documents)
{
    for (;;) {
        *more = false;
        if (!documents->stream) {
            if (documents->next == documents->paths.count)
                return AH_OK;
            AH_TRY(file_open(documents));
        }
        AH_TRY(documents->jsonl ? jsonl_next(more, out, documents) : text_next(more, out, documents));
        if (*more)
            return kind_check(documents, out);
        file_close(documents);
    }
}

const char *ah__documents_where(struct ah_documents *documents)
{
    if (documents->jsonl)
        snprintf(documents->where, sizeof documents->where, "%.600s: line %lld", documents->path,
                 (long long)documents->line);
    else
        snprintf(documents->where, sizeof documents->where, "%.600s", documents->path);
    return documents->where;
}

uint64_t ah__documents_signature(const struct ah_documents *documents)
{
    return documents->signature;
}

int64_t ah__documents_bytes(const struct ah_documents *documents)
{
    return documents->bytes;
}
