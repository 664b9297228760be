#include "data/documents.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "io/paths.h"

enum { PIECE_MOST = 1 << 24, LOOKED_AT = 1 << 20, WHERE_SIZE = 640 };

enum kind { NO_KIND, PLAIN, EXAMPLES };

struct ah_documents {
    struct ah_paths paths;
    size_t next; /* index of the next path */
    enum ah_data_format format;
    enum kind kind; /* kind of all documents so far */

    const char *path;        /* path of the open file */
    struct ah_reader reader; /* its stream is null if no file is open */
    struct ah_records records;
    struct ah_form_store store;
    char where[WHERE_SIZE];
    uint64_t signature;
    int64_t bytes;
};

/* ---- content of a file ------------------------------------------------------------------------------------------- */

/* Starts of files of other kinds, and advice about them. */
static const struct {
    const char *start, *what, *advice;
} known[] = {
    {"\x88\xd8\x34\x01", "a token file", ""},
    {"\xa1\xd9\x34\x01", "a token file", ""},
    {"%PDF-", "a PDF document", ""},
    {"PAR1", "a Parquet file",
     ": python3 -c \"import sys, pandas; pandas.read_parquet(sys.argv[1]).to_json(sys.argv[2], orient='records', "
     "lines=True)\" FILE.parquet FILE.jsonl converts it"},
    {"ARROW1", "an Arrow file",
     ": python3 -c \"import sys, pandas; pandas.read_feather(sys.argv[1]).to_json(sys.argv[2], orient='records', "
     "lines=True)\" FILE.arrow FILE.jsonl converts it"},
    {"version https://git-lfs.github.com/spec/v1", "a Git LFS pointer, not the file itself",
     ": 'git lfs pull' in its folder fetches it"},
    {"\x93NUMPY", "an array of NumPy", ""},
    {"\xff\xfe", "text in UTF-16", ": iconv -f utf-16 -t utf-8 converts it"},
    {"\xfe\xff", "text in UTF-16", ": iconv -f utf-16 -t utf-8 converts it"},
};

/* Returns true for a header's length of 64 bits, followed by the header, an object. */
static bool is_safetensors(const void *start, size_t length)
{
    const unsigned char *bytes = start;
    return length > 8 && bytes[8] == '{' && memcmp(bytes + 4, "\0\0\0\0", 4) == 0;
}

/* Returns true for the word GGUF and a version below 256 in 32 bits. */
static bool is_gguf(const void *start, size_t length)
{
    return length >= 8 && memcmp(start, "GGUF", 4) == 0 && memcmp((const char *)start + 5, "\0\0\0", 3) == 0;
}

static bool is_sqlite(const void *start, size_t length)
{
    static const char word[] = "SQLite format 3"; /* including its terminating zero */
    return length >= sizeof word && memcmp(start, word, sizeof word) == 0;
}

int ah__documents_check_text(const char *path, const void *start, size_t length, const char *expected)
{
    size_t looked_at = length < LOOKED_AT ? length : LOOKED_AT;
    for (size_t i = 0; i < AH_LENGTH(known); i++)
        if (length >= strlen(known[i].start) && memcmp(start, known[i].start, strlen(known[i].start)) == 0)
            return ah__fail(AH_EINPUT, "%s: found %s, expected %s%s", path, known[i].what, expected, known[i].advice);
    if (is_gguf(start, length))
        return ah__fail(AH_EINPUT, "%s: found a model in GGUF, expected %s: a model is what --model takes", path,
                        expected);
    if (is_sqlite(start, length))
        return ah__fail(AH_EINPUT, "%s: found a database of SQLite, expected %s", path, expected);
    if (is_safetensors(start, length))
        return ah__fail(AH_EINPUT,
                        "%s: found weights (safetensors), expected %s: the folder of a model is what --model "
                        "takes",
                        path, expected);
    const unsigned char *zero = looked_at ? memchr(start, 0, looked_at) : NULL;
    if (!zero)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: found a zero byte at %zu, expected %s", path,
                    (size_t)(zero - (const unsigned char *)start), expected);
}

bool ah__documents_are_table(const char *path, const char *text, size_t length)
{
    size_t name = strlen(path), end = 0;
    const char *tail = name > 4 ? path + name - 4 : "";
    char between = strcasecmp(tail, ".tsv") == 0 ? '\t' : ',';
    if (strcasecmp(tail, ".csv") != 0 && between == ',')
        return false;
    for (size_t at = 0; at < length && text[at] != '\n'; at = end + 1) {
        for (end = at; end < length && text[end] != between && text[end] != '\n' && text[end] != '\r';)
            end++;
        bool quoted = end - at >= 2 && text[at] == '"' && text[end - 1] == '"';
        if (ah__form_has_key(text + at + quoted, end - at - 2 * quoted))
            return true;
        if (end >= length || text[end] != between)
            return false;
    }
    return false;
}

static int table_refuse(const char *path)
{
    return ah__fail(AH_EINPUT,
                    "%s: found a table, expected records of JSON: python3 -c \"import sys, pandas; pandas.read_csv("
                    "sys.argv[1], sep=None, engine='python').to_json(sys.argv[2], orient='records', lines=True)\" "
                    "FILE.csv FILE.jsonl converts it (--data-format text reads a file as it lies)",
                    path);
}

/* ---- one file after the other ------------------------------------------------------------------------------------ */

static int path_add(struct ah_documents *documents, const char *path)
{
    return strcmp(path, AH_STANDARD_INPUT) == 0 ? ah__paths_add_name(&documents->paths, path)
                                                : ah__paths_add(&documents->paths, path);
}

int ah__documents_open(struct ah_documents **out, const char *const *paths, size_t count, enum ah_data_format format)
{
    struct ah_documents *documents;
    AH_TRY(ah__new(&documents, 1, sizeof *documents));
    documents->format = format;
    int status = AH_OK;
    for (size_t i = 0; status == AH_OK && i < count; i++)
        status = path_add(documents, paths[i]);
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
    ah__reader_free(&documents->reader);
    ah__form_store_free(&documents->store);
    ah__paths_free(&documents->paths);
    ah__free(documents);
}

static const char *given(const struct ah_documents *documents, size_t *length)
{
    *length = documents->reader.length - documents->reader.used;
    return documents->reader.text + documents->reader.used;
}

static int file_open(struct ah_documents *documents)
{
    const struct ah_path *path = &documents->paths.path[documents->next++];
    enum ah_records_kind kind = AH_RECORDS_NONE;
    size_t length, start = 0;
    documents->path = path->path;
    documents->signature = ah__hash_text(path->within, documents->signature);
    AH_TRY(ah__reader_open(&documents->reader, path->path));
    AH_TRY(ah__reader_want(&documents->reader, LOOKED_AT));
    const char *text = given(documents, &length);
    AH_TRY(ah__documents_check_text(path->path, text, length, "text"));
    if (documents->format != AH_DATA_TEXT && ah__documents_are_table(path->path, text, length))
        return table_refuse(path->path);
    if (documents->format != AH_DATA_TEXT)
        kind = ah__records_sniff(&start, path->path, documents->format != AH_DATA_AUTO, text, length, ah__form_has_key);
    ah__records_begin(&documents->records, kind, start, path->path, &documents->reader);
    return AH_OK;
}

/* Reads the rest of the file and closes it: every byte counts for the signature, also after an array's end. */
static int file_close(struct ah_documents *documents)
{
    struct ah_reader *reader = &documents->reader;
    while (!reader->ended) {
        reader->used = reader->length;
        AH_TRY(ah__reader_want(reader, LOOKED_AT));
    }
    documents->signature = ah__stream_hash(reader->stream, documents->signature);
    documents->bytes += ah__stream_bytes(reader->stream);
    ah__reader_close(reader);
    return AH_OK;
}

/* Returns the number of bytes at the end of text [0, length) of a character that continues after it; bytes that are not
 * UTF-8 are cut anywhere. */
static size_t character_tail(const char *text, size_t length)
{
    enum { CHARACTER_MOST = 4 };
    size_t tail = 0;
    while (tail < length && tail < CHARACTER_MOST && ((unsigned char)text[length - tail] & 0xC0) == 0x80)
        tail++;
    return tail < CHARACTER_MOST && tail < length ? tail : 0;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Gives the rest of the file, or a piece of a long one, up to the end of a line. *more is false at the end. */
static int text_next(bool *more, struct ah_document *out, struct ah_documents *documents)
{
    struct ah_reader *reader = &documents->reader;
    size_t length;
    AH_TRY(ah__reader_want(reader, PIECE_MOST + 1));
    const char *text = given(documents, &length);
    const bool ended = reader->ended && length <= PIECE_MOST;
    *more = length > 0;
    if (!*more)
        return AH_OK;
    if (!ended) { /* leaves something for the next piece, which then ends the document */
        const char *line = memrchr(text, '\n', PIECE_MOST);
        length = line ? (size_t)(line + 1 - text) : PIECE_MOST;
        length -= character_tail(text, length); /* never splits a character */
    }
    if (memchr(text, 0, length))
        return ah__fail(AH_EINPUT, "%s: found a zero byte, expected text", documents->path);
    *out = (struct ah_document){.kind = AH_DOCUMENT_TEXT,
                                .form = AH_DATA_TEXT,
                                .text = text,
                                .length = length,
                                .whole = ended,
                                .alone = documents->paths.count == 1};
    reader->used += length;
    return AH_OK;
}

static int record_next(bool *more, struct ah_document *out, struct ah_documents *documents)
{
    AH_TRY(ah__records_next(more, &documents->records));
    return *more ? ah__form_read(out, &documents->store, &documents->records, documents->format) : AH_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Refuses examples beside plain documents: examples are separate sequences, plain documents are joined. */
static int kind_check(struct ah_documents *documents, const struct ah_document *document)
{
    enum kind kind = document->kind == AH_DOCUMENT_TEXT ? PLAIN : EXAMPLES;
    if (documents->kind != NO_KIND && documents->kind != kind)
        return ah__fail(AH_EINPUT, "%s: found %s, expected %s as before it", ah__documents_where(documents),
                        kind == EXAMPLES ? "an example" : "a document of text",
                        kind == EXAMPLES ? "text" : "an example");
    documents->kind = kind;
    return AH_OK;
}

int ah__documents_next(bool *more, struct ah_document *out, struct ah_documents *documents)
{
    for (;;) {
        *more = false;
        if (!documents->reader.stream) {
            if (documents->next == documents->paths.count)
                return AH_OK;
            AH_TRY(file_open(documents));
        }
        bool text = documents->records.kind == AH_RECORDS_NONE;
        AH_TRY(text ? text_next(more, out, documents) : record_next(more, out, documents));
        if (*more)
            return kind_check(documents, out);
        AH_TRY(file_close(documents));
    }
}

const char *ah__documents_where(struct ah_documents *documents)
{
    if (documents->records.kind != AH_RECORDS_NONE)
        return ah__records_where(&documents->records);
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
