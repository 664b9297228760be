/* Records of JSON in every shape, and the forms that they have. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "data/documents.h"

/* ---- what a file gives, in a line of its own ------------------------------------------------------------------- */

static void ids_show(struct ah_buf *to, const struct ah_document *document)
{
    ah__buf_printf(to, "I");
    for (size_t i = 0; i < document->id_count; i++)
        ah__buf_printf(to, " %d%s", document->ids[i], document->learned[i] ? "" : "-");
}

static void chat_show(struct ah_buf *to, const struct ah_document *document)
{
    ah__buf_printf(to, "C");
    for (const cJSON *item = document->messages->child; item; item = item->next) {
        const cJSON *content = cJSON_GetObjectItem(item, "content");
        ah__buf_printf(to, " %s:%s", cJSON_GetObjectItem(item, "role")->valuestring,
                       cJSON_IsString(content) ? content->valuestring : "-");
    }
    if (document->given)
        ah__buf_printf(to, " given %zu", document->given);
    if (document->tools)
        ah__buf_printf(to, " tools %d", cJSON_GetArraySize(document->tools));
}

static void document_show(struct ah_buf *to, const struct ah_document *document)
{
    switch (document->kind) {
    case AH_DOCUMENT_TEXT:
        ah__buf_printf(to, "T %.*s", (int)document->length, document->text);
        break;
    case AH_DOCUMENT_PAIR:
        ah__buf_printf(to, "P %.*s|%s", (int)document->length, document->text, document->completion);
        break;
    case AH_DOCUMENT_CHAT:
        chat_show(to, document);
        break;
    case AH_DOCUMENT_IDS:
        ids_show(to, document);
    }
    ah__buf_printf(to, ";");
}

/* Every document of a file of this name and content; the status of the last call. */
static int show(struct ah_buf *to, const char *name, const char *text, size_t length, enum ah_data_format format)
{
    static char path[512];
    const char *const paths[] = {path};
    struct ah_documents *documents;
    struct ah_document document;
    bool more = true;
    snprintf(path, sizeof path, "%s/%s", ah_test_folder(), name);
    assert_ok(ah__file_write(path, text, length));
    assert_ok(ah__documents_open(&documents, paths, 1, format));
    int status = AH_OK;
    while (status == AH_OK && more) {
        status = ah__documents_next(&more, &document, documents);
        if (status == AH_OK && more)
            document_show(to, &document);
    }
    ah__documents_close(documents);
    return status;
}

static void expect_shown(const char *name, const char *text, const char *expected, enum ah_data_format format)
{
    struct ah_buf shown = {0};
    int status = show(&shown, name, text, strlen(text), format);
    if (status != AH_OK || strcmp(shown.text ? shown.text : "", expected) != 0)
        fail_msg("%s: %s\ngave     %s\nexpected %s\n%s", name, text, shown.text ? shown.text : "", expected,
                 status == AH_OK ? "" : ah_error());
    ah__buf_free(&shown);
}

static void expect_refused(const char *name, const char *text, const char *words, enum ah_data_format format)
{
    struct ah_buf shown = {0};
    int status = show(&shown, name, text, strlen(text), format);
    if (status != AH_EINPUT || !strstr(ah_error(), words))
        fail_msg("%s: %s\ngave     %s\nstatus   %d, %s\nexpected %s", name, text, shown.text ? shown.text : "", status,
                 ah_error(), words);
    ah__buf_free(&shown);
}

/* ---- shapes ---------------------------------------------------------------------------------------------------- */

#define BOM "\xef\xbb\xbf"

static void records_have_many_shapes(void **state)
{
    static const struct {
        const char *name, *text, *expected;
    } cases[] = {
        /* lines, whatever the name */
        {"a.json", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n", "T a;T b;"},
        {"a", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n", "T a;T b;"},
        {"a.txt", "{\"text\": \"a\"}", "T a;"},
        {"a.jsonl", BOM "{\"text\": \"a\"}\r\n\r\n{\"text\": \"b\"}\r\n", "T a;T b;"},
        {"bom", BOM "\n \n{\"text\": \"a\"}\n\n\n{\"text\": \"b\"}", "T a;T b;"},
        {"a.jsonlines", "\n\n  {\"text\": \"a\"}  \n", "T a;"},
        {"a.jsonl", "", ""},
        {"a.jsonl", "\n \n", ""},
        /* arrays */
        {"a.json", "[{\"text\": \"a\"}, {\"text\": \"b\"}]", "T a;T b;"},
        {"a.json", "[\n  {\n    \"text\": \"a\"\n  },\n  {\n    \"text\": \"b]\"\n  }\n]\n", "T a;T b];"},
        {"a.jsonl", "[{\"text\": \"a\"}]", "T a;"},
        {"a", BOM " [ {\"text\" : \"a\"} ] ", "T a;"},
        {"a.json", "[]", ""},
        {"a.json", "{\"version\": [1, {}], \"data\": [{\"text\": \"a\"},\n{\"text\": \"b\"}], \"more\": 1}",
         "T a;T b;"},
        {"a", "{\n \"data\": [\n  {\"text\": \"a\"}\n ]\n}\n", "T a;"},
        {"a", "{\"data\": [{\"text\": \"a\"}] , \"n\" : -1.5e3,\n\"o\":{\"]\": []},\"z\":null }\n", "T a;"},
        /* objects of several lines */
        {"a.json", "{\n  \"text\": \"a\"\n}\n{\n  \"text\": \"b\"\n}\n", "T a;T b;"},
        /* a record that has data of its own */
        {"a.jsonl", "{\"data\": [{}], \"text\": \"a\"}\n", "T a;"},
        {"a.jsonl", "{\"text\": \"a\", \"data\": [{}]}\n", "T a;"},
        {"a.txt", "GGUF is a format of files.", "T GGUF is a format of files.;"},
        {"a.txt", "SQLite format 3 is old.", "T SQLite format 3 is old.;"},
        /* text */
        {"a", "[1] a list of references\n", "T [1] a list of references\n;"},
        {"a", "{\"title\": 3}\nand prose\n", "T {\"title\": 3}\nand prose\n;"},
        {"a", "{ a set }\n", "T { a set }\n;"},
        {"a.c", "{\n\"a\"\n}\n", "T {\n\"a\"\n}\n;"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        expect_shown(cases[i].name, cases[i].text, cases[i].expected, AH_DATA_AUTO);
    expect_shown("a.json", "[{\"text\": \"a\"}]", "T [{\"text\": \"a\"}];", AH_DATA_TEXT);
    expect_shown("a", "{\"text\":\n\"a\"}", "T a;", AH_DATA_JSONL);
}

/* What Python's json takes, where nobody looks. */
static void other_keys_hold_anything(void **state)
{
    static const char *const values[] = {
        "NaN",
        "-Infinity",
        "\"a\\u0000b\"",
        "\"\\ud83d\"",
        "\"\\udc00\\ud800\"",
        "1, \"k\": 2",
        "{\"a\": 1, \"a\": 2}",
        "1e999",
        "123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
        "\"\\\"}, {\"",
        "1, \"\": 1",
        "\"text\"",
    };
    char text[400];
    for (size_t i = 0; i < AH_LENGTH(values); i++) {
        snprintf(text, sizeof text, "{\"k\": %s, \"text\": \"a\"}\n{\"text\": \"b\", \"k\": %s}\n", values[i],
                 values[i]);
        expect_shown("keys.jsonl", text, "T a;T b;", AH_DATA_AUTO);
        snprintf(text, sizeof text, "[{\"k\": %s, \"text\": \"a\"},\n{\"text\": \"b\", \"k\": %s}]", values[i],
                 values[i]);
        expect_shown("keys.json", text, "T a;T b;", AH_DATA_AUTO);
    }
}

static void faults_are_named_once(void **state)
{
    static const struct {
        const char *name, *text, *words;
    } cases[] = {
        {"b.jsonl", "{\"text\": \"a\"}\n\n{\"text\": 'b'}\n",
         "b.jsonl: line 3, column 10: found the byte 0x27, expected"},
        {"b.jsonl", "{\"id\": 1, \"data\": [{\"text\": \"a\"}]}\n{\"id\": 2, \"data\": [{\"text\": \"b\"}]}\n",
         "line 1: found an object with the keys id, data, expected text; prompt"},
        {"b.jsonl", "{\"text\": \"a\"} // no\n", "b.jsonl: line 1, column 15: found more text behind the object"},
        {"b.jsonl", "{\"text\": \"a\"}\n[1]\n", "b.jsonl: line 2: found '[1]', expected an object"},
        {"b.jsonl", "{\"text\": \"a\",}\n", "line 1, column 14: found a syntax error at '}'"},
        {"b.jsonl", "{\"text\": \"a\" \"k\": 1}\n", "line 1, column 14: found a syntax error at '\"'"},
        {"b.jsonl", "{\"text\" \"a\"}\n", "line 1, column 9: found a syntax error at '\"'"},
        {"b.jsonl", "{\"text\": [1 2]}\n", "line 1, column 13: found a syntax error at '2'"},
        {"b.jsonl", "{\"text\": tru}\n", "line 1, column 10: found 'tru'"},
        {"b.jsonl", "{\"text\": 01}\n", "line 1, column 10: found '01'"},
        {"b.jsonl", "{\"text\": \"a\tb\"}\n", "line 1, column 12: found in a string the control character 0x09"},
        {"b.jsonl", "{\"text\": \"\xe9\"}\n", "line 1, column 11: found in a string what is no UTF-8, byte 0xe9"},
        {"b.jsonl", "{\"text\": \"a\\ud83d\"}\n", "line 1: key 'text': found in a string half of a surrogate pair"},
        {"b.jsonl", "{\"text\": \"a\\u0000\"}\n", "line 1: key 'text': found in a string \\u0000"},
        {"b.jsonl", "{\"text\": null}\n", "line 1: found an object with the keys text (null), expected text; prompt"},
        {"b.jsonl", "{\"text\": 3}\n", "b.jsonl: line 1: key 'text': found 3, expected a string"},
        {"b.json", "[{\"text\": \"a\"},\n\n {\"text\": 3}]", "b.json: record 2, line 3: key 'text': found 3"},
        {"b.json", "[{\"text\": \"a\"},\n {\"text\": \"a\"]", "b.json: line 2, column 14: found a syntax error at ']'"},
        {"b.json", "[{\"text\": \"a\"}\n {\"text\": \"a\"}]",
         "b.json: line 2: found '{\"text\": \"a\"}]', expected ','"},
        {"b.json", "[{\"text\": \"a\"},]", "b.json: line 1: found ']', expected an object"},
        {"b.json", "[{\"text\": \"a\"}", "b.json: line 1: found the end of the file, expected ',' or ']'"},
        {"b.json", "[{\"text\": \"a\"}] x", "b.json: line 1: found 'x', expected nothing behind the array"},
        {"b.json", "{\"data\": [{\"text\": \"a\"}]} x", "line 1: found 'x', expected nothing behind the object"},
        {"b.json", "{\"data\": [{\"text\": \"a\"}]", "found the end of the file, expected ',' or '}' behind the array"},
        {"b.json", "{\"data\": [{\"text\": \"a\"}], \"n\": 1\n", "line 2: found the end of the file, expected ',' or"},
        {"b.json", "{\"data\": [{\"text\": \"a\"}],\n \"n\": 01}", "b.json: line 2, column 7: found '01'"},
        {"b.json", "{\"data\": [{\"text\": \"a\"}], n: 1}", "line 1: found 'n: 1}', expected a key behind the array"},
        {"b.json", "{\"data\": [{\"text\": \"a\"}], \"n\" 1}", "line 1: found '1}', expected ':' behind a key"},
        {"b.json", "\xef\xbb\xbf [{\"text\": \"a\"}]\n\n[", "b.json: line 3: found '[', expected nothing behind"},
        {"b.json", "[\"a\", \"b\"]", "b.json: line 1: found '\"a\", \"b\"]', expected an object, as every record"},
        {"b.json", "\"a\"", "b.json: line 1: found '\"a\"', expected an object"},
        {"b.json", "{\"rows\": [{\"text\": \"a\"}]}", "found an object with the keys rows, expected text; prompt"},
        {"b.json", "{\"Text\": \"a\"}\n{\"Text\": \"a\"}", "line 1: found an object with the keys Text, expected"},
        {"b", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1345\n",
         "b: found a Git LFS pointer, not the file itself, expected text: 'git lfs pull'"},
        {"b.csv", "id,\"prompt\",completion\n1,a,b\n", "b.csv: found a table, expected records of JSON: python3 -c"},
        {"b.tsv", "text\tlabel\r\na\tb\n", "b.tsv: found a table, expected records"},
        {"b.parquet", "PAR1\x15\x04\x15", "b.parquet: found a Parquet file, expected text: python3 -c"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        expect_refused(cases[i].name, cases[i].text, cases[i].words, AH_DATA_AUTO);
    static const char zero[] = "{\"text\": \"a\"}\n\0{\"text\": \"a\"}\n";
    struct ah_buf shown = {0};
    assert_fails(show(&shown, "z.jsonl", zero, sizeof zero - 1, AH_DATA_AUTO), AH_EINPUT, "found a zero byte at 14");
    ah__buf_free(&shown);
}

/* Records and arrays that are longer than what is read at once. */
static void long_records_are_whole(void **state)
{
    enum { LENGTH = 3 << 20, COUNT = 3 };
    static char text[COUNT * (LENGTH + 64)];
    static char letters[LENGTH];
    for (int shape = 0; shape < 3; shape++) {
        char path[512];
        const char *const paths[] = {path};
        size_t length = (size_t)sprintf(text, shape == 0 ? "" : shape == 1 ? "[" : "{\"a\": \"b\", \"data\":\n[");
        for (int i = 0; i < COUNT; i++) {
            memset(letters, 'a' + i, sizeof letters - 1);
            length += (size_t)sprintf(text + length, "%s{\"text\": \"%s\"}%s", i && shape ? "," : "", letters,
                                      shape ? "" : "\n");
        }
        length += (size_t)sprintf(text + length, shape == 0 ? "" : shape == 1 ? "]" : "]}");
        snprintf(path, sizeof path, "%s/long.json", ah_test_folder());
        assert_ok(ah__file_write(path, text, length));
        struct ah_documents *documents;
        struct ah_document document = {0};
        bool more = true;
        assert_ok(ah__documents_open(&documents, paths, 1, AH_DATA_AUTO));
        for (int i = 0; i <= COUNT; i++) {
            assert_ok(ah__documents_next(&more, &document, documents));
            assert_int_equal(more, i < COUNT);
            if (more)
                assert_true(document.length == LENGTH - 1 && document.text[0] == 'a' + i &&
                            document.text[LENGTH - 2] == 'a' + i);
        }
        assert_int_equal(ah__documents_bytes(documents), length);
        ah__documents_close(documents);
    }
}

/* ---- forms ----------------------------------------------------------------------------------------------------- */

static void forms_are_told_by_keys(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"{\"prompt\": \"a\", \"completion\": \"b\", \"id\": 1}", "P a|b;"},
        {"{\"prompt\": \"a\", \"response\": \"b\"}", "P a|b;"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}",
         "C user:a assistant:b;"},
        {"{\"messages\": [{\"role\": \"assistant\", \"content\": null, \"tool_calls\": []}], \"tools\": [{}, {}]}",
         "C assistant:- tools 2;"},
        {"{\"prompt\": \"p\", \"prompt_id\": \"x\", \"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
         "C user:a;"},
        {"{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}], \"completion\": [{\"role\": \"assistant\", "
         "\"content\": \"b\"}]}",
         "C user:a assistant:b given 1;"},
        {"{\"id\": \"x\", \"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": "
         "\"b\"}, {\"from\": \"observation\", \"value\": \"c\"}], \"system\": \"s\"}",
         "C system:s user:a assistant:b tool:c;"},
        {"{\"conversations\": [{\"role\": \"user\", \"content\": \"a\"}]}", "C user:a;"},
        {"{\"instruction\": \"i\", \"input\": \"\", \"output\": \"o\", \"text\": \"all\"}", "C user:i assistant:o;"},
        {"{\"instruction\": \"i\", \"input\": \"n\", \"output\": \"o\", \"system\": \"s\", \"history\": [[\"q\", "
         "\"r\"]]}",
         "C system:s user:q assistant:r user:i\n\nn assistant:o;"},
        {"{\"instruction\": \"i\", \"input\": null, \"output\": \"o\"}", "C user:i assistant:o;"},
        {"{\"instruction\": \"i\", \"context\": \"c\", \"response\": \"o\", \"category\": \"qa\"}",
         "C user:i\n\nc assistant:o;"},
        {"{\"id\": \"1\", \"system_prompt\": \"s\", \"question\": \"q\", \"response\": \"r\"}",
         "C system:s user:q assistant:r;"},
        {"{\"input_ids\": [5, 6, 7]}", "I 5 6 7;"},
        {"{\"input_ids\": [5, 6, 7, 0], \"labels\": [-100, 6, -100, -100], \"attention_mask\": [1, 1, 1, 0]}",
         "I 5- 6 7-;"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        expect_shown("f.jsonl", cases[i].text, cases[i].expected, AH_DATA_AUTO);
    static const char both[] = "{\"text\": \"t\", \"prompt\": \"a\", \"completion\": \"b\"}";
    expect_refused("f.jsonl", both, "line 1: found 'text' beside a prompt or completion", AH_DATA_AUTO);
    expect_shown("f.jsonl", both, "P a|b;", AH_DATA_PAIRS);
    expect_shown("f.jsonl", both, "T t;", AH_DATA_DOCUMENTS);
    expect_refused("f.jsonl", both, "line 1: key 'messages': found nothing, expected a list", AH_DATA_MESSAGES);
}

static void forms_refuse_by_key(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{\"messages\": {}}", "key 'messages': found an object, expected a list"},
        {"{\"messages\": [3]}", "key 'messages[0]': found 3, expected a message"},
        {"{\"messages\": [{\"content\": \"a\"}]}", "key 'messages[0].role': found nothing, expected a string"},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"user\"}]}",
         "key 'messages[1].content': found nothing, expected a string or a list"},
        {"{\"messages\": [\"hi\"]}", "key 'messages[0]': found 'hi', expected a message"},
        {"{\"messages\": [{\"role\": 1e5}]}", "key 'messages[0].role': found 1e5, expected a string"},
        {"{\"messages\": [{\"role\": \"a\", \"content\": true}]}", "key 'messages[0].content': found true, expected"},
        {"{\"messages\": \"hi\"}", "key 'messages': found 'hi', expected a list"},
        {"{\"prompt\": [], \"completion\": []}", "key 'prompt': found an empty list, expected a list"},
        {"{\"conversation\": [{\"from\": \"alien\", \"value\": \"a\"}]}",
         "key 'conversation[0].from': found 'alien', expected human, gpt"},
        {"{\"conversations\": [{\"from\": \"alien\", \"value\": \"a\"}]}",
         "key 'conversations[0].from': found 'alien', expected human, gpt"},
        {"{\"conversations\": [{\"value\": \"a\"}]}", "key 'conversations[0].from': found nothing"},
        {"{\"instruction\": 3, \"output\": \"o\"}", "key 'instruction': found 3, expected a string"},
        {"{\"instruction\": \"i\", \"output\": null}", "key 'output': found null, expected a string"},
        {"{\"instruction\": \"i\", \"output\": \"o\", \"history\": [[\"a\"]]}",
         "key 'history[0]': found another value"},
        {"{\"instruction\": \"i\"}", "found an object with the keys instruction, expected text; prompt"},
        {"{\"input_ids\": [1, -1]}", "key 'input_ids[1]': found -1, expected a token's id"},
        {"{\"input_ids\": [1, 2], \"labels\": [1]}", "key 'labels': found 1 values, expected 2, as of input_ids"},
        {"{\"input_ids\": [1, 2], \"labels\": [1, 1]}", "key 'labels[1]': found 1, expected the id of input_ids there"},
        {"{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}], \"completion\": \"b\"}",
         "key 'completion': found 'b', expected a list"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        expect_refused("f.jsonl", cases[i].text, cases[i].words, AH_DATA_AUTO);
}

/* As Stanford Alpaca's train.py puts them together. */
static void instructions_have_the_published_layout(void **state)
{
    static const struct {
        const char *text, *layout;
    } cases[] = {
        {"{\"instruction\": \"Add.\", \"input\": \"1 2\", \"output\": \"3\"}",
         "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
         "response that appropriately completes the request.\n\n### Instruction:\nAdd.\n\n### Input:\n1 2\n\n### "
         "Response:"},
        {"{\"instruction\": \"Go.\", \"input\": \"\", \"output\": \"3\"}",
         "Below is an instruction that describes a task. Write a response that appropriately completes the "
         "request.\n\n### Instruction:\nGo.\n\n### Response:"},
        {"{\"instruction\": \"Go.\", \"output\": \"3\", \"system\": \"Be.\", \"history\": [[\"q\", \"r\"]]}",
         "Be.\n\n### Instruction:\nq\n\n### Response:r\n\n### Instruction:\nGo.\n\n### Response:"},
    };
    char path[512];
    const char *const paths[] = {path};
    snprintf(path, sizeof path, "%s/a.jsonl", ah_test_folder());
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_documents *documents;
        struct ah_document document;
        bool more;
        assert_ok(ah__file_write(path, cases[i].text, strlen(cases[i].text)));
        assert_ok(ah__documents_open(&documents, paths, 1, AH_DATA_AUTO));
        assert_ok(ah__documents_next(&more, &document, documents));
        assert_true(more && document.kind == AH_DOCUMENT_CHAT);
        assert_int_equal(document.length, strlen(cases[i].layout));
        assert_memory_equal(document.text, cases[i].layout, document.length);
        assert_string_equal(document.completion, "3");
        ah__documents_close(documents);
    }
}

AH_TEST_CASES("data/records", records_have_many_shapes, other_keys_hold_anything, faults_are_named_once,
              long_records_are_whole, forms_are_told_by_keys, forms_refuse_by_key,
              instructions_have_the_published_layout)
