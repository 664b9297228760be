/* Documents of files, folders and JSON lines, packed or not, and what is none. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/file.h"
#include "data/documents.h"
#include "io/stream.h"

static char path[512];
static char base[200]; /* where files are written */

static const char *write_as(const char *name, const void *data, size_t length)
{
    if (!base[0])
        snprintf(base, sizeof base, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/%s", base, name);
    assert_ok(ah__file_write(path, data, length));
    return path;
}

static const char *write_lines(const char *name, const char *text)
{
    return write_as(name, text, strlen(text));
}

static size_t gzip_to(unsigned char *to, size_t room, const char *text, size_t length)
{
    z_stream stream = {
        .next_in = (unsigned char *)(uintptr_t)text, .avail_in = (uInt)length, .next_out = to, .avail_out = (uInt)room};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

/* Everything the stream gives, in pieces of `step`. */
static int read_all(char *to, size_t room, size_t *length, size_t step)
{
    struct ah_stream *stream = NULL;
    int status = ah__stream_open(&stream, path);
    *length = 0;
    for (size_t got = 1; status == AH_OK && got > 0; *length += got) {
        assert_true(*length + step <= room);
        status = ah__stream_read(&got, stream, to + *length, step);
        if (status != AH_OK)
            break;
    }
    ah__stream_close(stream);
    return status;
}

/* Two parts one after the other, as `cat a.gz b.gz` makes them; cut at every place. */
static void expect_parts(const unsigned char *parts, size_t length, size_t first, const char *whole, const char *name)
{
    static char text[1 << 16];
    size_t got;
    for (size_t step = 1; step < 3000; step = 3 * step + 1) {
        write_as(name, parts, length);
        assert_ok(read_all(text, sizeof text, &got, step));
        assert_int_equal(got, strlen(whole));
        assert_memory_equal(text, whole, got);
    }
    for (size_t cut = 5; cut < length; cut++) {
        write_as(name, parts, cut);
        int status = read_all(text, sizeof text, &got, 1000);
        assert_int_equal(status, cut == first ? AH_OK : AH_ECORRUPT);
    }
    unsigned char damaged[4096];
    memcpy(damaged, parts, length);
    damaged[length - 3] ^= 0x55; /* a checksum, or data */
    write_as(name, damaged, length);
    assert_int_equal(read_all(text, sizeof text, &got, 1000), AH_ECORRUPT);
    assert_non_null(strstr(ah_error(), name));
}

static void packed_files_are_read(void **state)
{
    char first[600], second[300], whole[1000];
    unsigned char parts[4096];
    for (size_t i = 0; i < sizeof first; i++)
        first[i] = (char)('a' + i * i % 23);
    for (size_t i = 0; i < sizeof second; i++)
        second[i] = (char)('A' + i % 17);
    first[sizeof first - 1] = second[sizeof second - 1] = 0;
    snprintf(whole, sizeof whole, "%s%s", first, second);
    size_t length = gzip_to(parts, sizeof parts, first, strlen(first));
    size_t end = length + gzip_to(parts + length, sizeof parts - length, second, strlen(second));
    expect_parts(parts, end, length, whole, "two.gz");
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    length = ZSTD_compress2(context, parts, sizeof parts, first, strlen(first));
    end = length + ZSTD_compress2(context, parts + length, sizeof parts - length, second, strlen(second));
    ZSTD_freeCCtx(context);
    expect_parts(parts, end, length, whole, "two.zst");
}

static struct ah_documents *open_one(enum ah_data_format format)
{
    const char *const paths[] = {path};
    struct ah_documents *documents = NULL;
    assert_ok(ah__documents_open(&documents, paths, 1, format));
    return documents;
}

static void expect_document(struct ah_documents *documents, const char *text, const char *completion)
{
    struct ah_document document;
    bool more;
    assert_ok(ah__documents_next(&more, &document, documents));
    assert_true(more && document.whole);
    assert_int_equal(document.length, strlen(text));
    assert_memory_equal(document.text, text, document.length);
    assert_int_equal(document.completion != NULL, completion != NULL);
    if (completion)
        assert_string_equal(document.completion, completion);
}

static void expect_end(struct ah_documents *documents)
{
    struct ah_document document;
    bool more;
    assert_ok(ah__documents_next(&more, &document, documents));
    assert_false(more);
    ah__documents_close(documents);
}

static void json_lines_have_documents(void **state)
{
    write_lines("a.jsonl", "{\"text\": \"one\\ntwo\", \"id\": 7}\n\n"
                           "{\"id\": [1], \"text\": \"\"}\r\n{\"text\": \"end\"}");
    struct ah_documents *documents = open_one(AH_DATA_AUTO);
    expect_document(documents, "one\ntwo", NULL);
    expect_document(documents, "", NULL);
    expect_document(documents, "end", NULL);
    assert_non_null(strstr(ah__documents_where(documents), "a.jsonl: line 4"));
    expect_end(documents);
    /* told by its first line, whatever its name is */
    static const char pairs[] = "{\"prompt\": \"2+2=\", \"completion\": \"4\"}\n"
                                "{\"prompt\": \"\", \"completion\": \"x\"}\n";
    write_lines("pairs", pairs);
    documents = open_one(AH_DATA_AUTO);
    expect_document(documents, "2+2=", "4");
    expect_document(documents, "", "x");
    expect_end(documents);
    documents = open_one(AH_DATA_TEXT);
    expect_document(documents, pairs, NULL);
    expect_end(documents);
    write_lines("prose", "{\"title\": 3}\nand prose\n");
    documents = open_one(AH_DATA_AUTO);
    expect_document(documents, "{\"title\": 3}\nand prose\n", NULL);
    expect_end(documents);
}

static void bad_lines_are_named(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"text\": \"a\"}\n{\"text\": 3}\n", "b.jsonl: line 2: key 'text': found"},
        {"{\"text\": \"a\"}\n{\"text\": \"b\"\n", "b.jsonl: line 2, column 13: found a syntax error at the end"},
        {"{\"text\": \"a\"}\n[1]\n", "b.jsonl: line 2:"},
        {"{\"text\": \"a\"}\n\nplain\n", "b.jsonl: line 3:"},
        {"{\"text\": \"a\", \"text\": \"b\"}\n", "key 'text': found twice"},
        {"{\"text\": \"a\", \"prompt\": \"b\"}\n", "line 1: found 'text' beside a prompt"},
        {"{\"prompt\": \"b\"}\n", "line 1: key 'completion': found nothing"},
        {"{\"completion\": \"b\"}\n", "line 1: key 'prompt': found nothing"},
        {"{\"messages\": {}}\n", "line 1: key 'messages': found an object, expected a list"},
        {"{\"story\": \"b\"}\n", "line 1: found an object with the keys story, expected text; prompt"},
        {"{\"text\": \"a\\u0000\"}\n", "line 1"},
        {"{\"text\": \"a\"}\n{\"prompt\": \"b\", \"completion\": \"c\"}\n",
         "line 2: found an example, expected text as before it"},
        {"{\"prompt\": \"b\", \"completion\": \"c\"}\n{\"text\": \"a\"}\n",
         "line 2: found a document of text, expected an example as before it"},
    };
    struct ah_document document;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool more = true;
        int status = AH_OK;
        write_lines("b.jsonl", cases[i].text);
        struct ah_documents *documents = open_one(AH_DATA_AUTO);
        while (status == AH_OK && more)
            status = ah__documents_next(&more, &document, documents);
        assert_fails(status, AH_EINPUT, cases[i].words);
        ah__documents_close(documents);
    }
}

/* All files of a folder in order, those of folders within too, each of its own kind; what is no text is named. */
static void folders_are_read_in_order(void **state)
{
    char folder[256];
    unsigned char packed[256];
    struct ah_document document;
    bool more;
    write_lines("beside", "never");
    snprintf(folder, sizeof folder, "%s/corpus", base);
    assert_int_equal(mkdir(folder, 0777), 0);
    snprintf(path, sizeof path, "%s/b", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    write_lines("corpus/c.txt", "third");
    write_lines("corpus/a.txt", "first");
    write_lines("corpus/b/x.jsonl", "{\"text\": \"second\"}\n{\"text\": \"and more\"}\n");
    write_lines("corpus/.hidden", "never");
    write_as("corpus/d.txt.gz", packed, gzip_to(packed, sizeof packed, "fourth", 6));
    snprintf(path, sizeof path, "%s", folder);
    struct ah_documents *documents = open_one(AH_DATA_AUTO);
    static const char *const texts[] = {"first", "second", "and more", "third", "fourth"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        expect_document(documents, texts[i], NULL);
    assert_ok(ah__documents_next(&more, &document, documents));
    uint64_t signature = ah__documents_signature(documents);
    expect_end(documents);
    /* another name, the same bytes */
    char from[600], to[600];
    snprintf(from, sizeof from, "%s/a.txt", folder);
    snprintf(to, sizeof to, "%s/aa.txt", folder);
    assert_int_equal(rename(from, to), 0);
    documents = open_one(AH_DATA_AUTO);
    do
        assert_ok(ah__documents_next(&more, &document, documents));
    while (more);
    assert_true(ah__documents_signature(documents) != signature);
    ah__documents_close(documents);
    write_as("corpus/e.bin", "ab\0cd", 5);
    snprintf(path, sizeof path, "%s", folder);
    documents = open_one(AH_DATA_AUTO);
    int status = AH_OK;
    for (more = true; status == AH_OK && more;)
        status = ah__documents_next(&more, &document, documents);
    assert_fails(status, AH_EINPUT, "corpus/e.bin: found a zero byte at 2, expected text");
    ah__documents_close(documents);
    const char *const nowhere[] = {"/nowhere"};
    assert_fails(ah__documents_open(&documents, nowhere, 1, AH_DATA_AUTO), AH_EINPUT, "/nowhere: cannot open");
    snprintf(path, sizeof path, "%s/empty", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    const char *const empty[] = {path};
    assert_fails(ah__documents_open(&documents, empty, 1, AH_DATA_AUTO), AH_EINPUT, "found a folder without files");
}

/* A long text comes in pieces that end with lines or characters and make the whole; memory stays small. */
static void long_texts_come_in_pieces(void **state)
{
    enum { LENGTH = 40 << 20, LINE = 1000 };
    char *text = malloc(LENGTH);
    assert_non_null(text);
    for (int lines = 0; lines < 2; lines++) {
        for (size_t i = 0; i < LENGTH; i++) /* of two-byte characters, or letters in lines */
            text[i] = lines ? (char)(i % LINE == 0 ? '\n' : 'a' + i % 26) : i % 2 ? '\xa4' : '\xc3';
        write_as("long.txt", text, LENGTH);
        struct ah_documents *documents = open_one(AH_DATA_AUTO);
        struct ah_document document = {0};
        size_t at = 0, pieces = 0;
        for (bool more = true; more; pieces += more) {
            assert_ok(ah__documents_next(&more, &document, documents));
            if (!more)
                break;
            assert_true(document.length > 0 && at + document.length <= LENGTH);
            assert_memory_equal(document.text, text + at, document.length);
            at += document.length;
            assert_int_equal(document.whole, at == LENGTH);
            if (!document.whole)
                assert_true(lines ? text[at - 1] == '\n' : at % 2 == 0);
        }
        assert_true(at == LENGTH && pieces == 3);
        ah__documents_close(documents);
    }
    free(text);
}

/* Bytes that go on a character which never began are cut anywhere, not looked through again for each of them. */
static void bytes_of_no_character_come_in_pieces(void **state)
{
    enum { LENGTH = 18 << 20 };
    char *text = malloc(LENGTH);
    assert_non_null(text);
    memset(text, '\x80', LENGTH);
    write_as("long.txt", text, LENGTH);
    free(text);
    struct ah_documents *documents = open_one(AH_DATA_TEXT);
    struct ah_document document = {0};
    size_t at = 0, pieces = 0;
    for (bool more = true; more; pieces += more, at += more ? document.length : 0)
        assert_ok(ah__documents_next(&more, &document, documents));
    assert_true(at == LENGTH && pieces == 2);
    ah__documents_close(documents);
}

AH_TEST_CASES("data/documents", bytes_of_no_character_come_in_pieces, packed_files_are_read, json_lines_have_documents,
              bad_lines_are_named, folders_are_read_in_order, long_texts_come_in_pieces)
