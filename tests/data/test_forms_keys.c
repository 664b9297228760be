/* Keys of records: the table in the documentation, what of each form is learned, and that chat --render shows it. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/forms_keys.h"
#include "data/learned.h"
#include "test.h"

enum { VOCAB = 256, LONG = 4000, PATH_SIZE = 600 };

#define U "{\"role\": \"user\", \"content\": \"a\"}"
#define A "{\"role\": \"assistant\", \"content\": \"B\"}"
#define CALL "{\\\"name\\\": \\\"f\\\", \\\"arguments\\\": {\\\"x\\\": 1}}"

/* Shows every part of a record that a template may see. */
static const char template[] =
    "{% if extra %}({{ extra }}){% endif %}{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages "
    "%}"
    "<{{ m.role }}>{{ m.reasoning_content }}{{ m.content }}{% for c in m.tool_calls or [] %}!{{ c.function | tojson }}"
    "{% endfor %};{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

static char folder[PATH_SIZE - 64], data[PATH_SIZE];

static void put(const char *name, const char *text)
{
    snprintf(data, sizeof data, "%s/%s", folder, name);
    assert_ok(ah__file_write(data, text, strlen(text)));
}

static int load(struct ah_corpus *corpus, const char *records, const char *source, enum ah_train_on train_on)
{
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    put("config.json", "{}");
    if (source)
        put("chat_template.jinja", source);
    put("data.jsonl", records);
    const struct ah_corpus_chat chat = {folder, NULL, train_on, NULL};
    const char *path = data;
    const struct ah_corpus_options options = {
        .format = AH_DATA_AUTO, .tokenizer = &ah__tokenizer_bytes, .chat = &chat, .vocab_size = VOCAB, .most = LONG};
    return ah__corpus_load(corpus, &path, 1, &options);
}

/* What chat --render and its --train-on make of the record. */
static void assert_rendered(const char *record, const char *shown)
{
    const struct ah_chat *chat;
    const struct ah_chat_options options = {.conversation = record, .length = strlen(record), .date = "2024-07-26"};
    char *text, *mask, plain[2048], *to = plain, expected[4096];
    size_t length;
    assert_ok(ah_chat_open(&chat, folder, NULL));
    assert_ok(ah_chat_render(&text, &length, chat, &options));
    assert_ok(ah_chat_mask(&mask, &length, chat, &options, NULL));
    for (const char *at = shown; *at; at++)
        if (*at != '[' && *at != ']')
            *to++ = *at;
    *to = 0;
    if (*shown)
        assert_string_equal(text, plain);
    size_t used = (size_t)snprintf(expected, sizeof expected, "\"parts\": [");
    size_t place = 0;
    for (const char *at = shown; *at; at++) {
        place += *at != '[' && *at != ']';
        if (*at == '[')
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%s[%zu, ",
                                     expected[used - 1] == '[' ? "" : ", ", place);
        if (*at == ']')
            used += (size_t)snprintf(expected + used, sizeof expected - used, "%zu]", place);
    }
    snprintf(expected + used, sizeof expected - used, "]}");
    assert_non_null(strstr(mask, *shown ? expected : "[]"));
    ah__free(text);
    ah__free(mask);
    ah_chat_close(chat);
}

/* ---- what is learned --------------------------------------------------------------------------------------------- */

static const struct {
    const char *record, *shown;
    const char *unread; /* what a note names; null: nothing */
} rows[] = {
    /* marks */
    {"{\"messages\": [" U ", {\"role\": \"assistant\", \"content\": \"b\", \"train\": false}, " U ", " A "]}",
     "<user>a;<assistant>b;<user>a;<assistant>[B;]", NULL},
    {"{\"messages\": [" U ", {\"role\": \"assistant\", \"content\": \"b\", \"loss\": false}, " U ", " A "]}",
     "<user>a;<assistant>b;<user>a;<assistant>[B;]", NULL},
    {"{\"messages\": [" U ", {\"role\": \"assistant\", \"content\": \"b\", \"training\": 0}, " U ", " A "]}",
     "<user>a;<assistant>b;<user>a;<assistant>[B;]", NULL},
    {"{\"conversations\": [{\"from\": \"human\", \"value\": \"a\", \"train\": true}, {\"from\": \"gpt\", \"value\": "
     "\"B\", "
     "\"train\": true}]}",
     "<user>a;<assistant>[B;]", "'train'"},
    {"{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"value\": \"a\"}], \"loss_weight\": "
     "0.0}, "
     "{\"role\": \"assistant\", \"content\": [{\"type\": \"reasoning\", \"value\": \"r\"}, {\"type\": \"text\", "
     "\"value\": \"B\"}, {\"type\": \"tool_call\", \"value\": \"" CALL "\"}], \"loss_weight\": 1.0}]}",
     "<user>a;<assistant>[rB!{\"name\": \"f\", \"arguments\": {\"x\": 1}};]", NULL},
    {"{\"messages\": [" U ", " A "], \"label\": false}", "", NULL},
    {"{\"messages\": [" U ", " A "], \"label\": true, \"seen\": false}", "<user>a;<assistant>[B;]", "'seen'"},
    {"{\"instruction\": \"a\", \"input\": \"\", \"output\": \"B\", \"kto_tag\": false}", "", NULL},
    /* beside the conversation */
    {"{\"messages\": [" U ", " A "], \"system\": \"s\", \"history\": [[\"q\", \"R\"]]}",
     "<system>s;<user>q;<assistant>[R;]<user>a;<assistant>[B;]", NULL},
    {"{\"system_prompt\": \"s\", \"messages\": [{\"role\": \"system\", \"content\": \"t\"}, " U ", " A "]}",
     "<system>t;<user>a;<assistant>[B;]", "'system_prompt'"},
    {"{\"prompt\": [" A ", " U "], \"completion\": [" A "], \"system\": \"s\"}",
     "<system>s;<assistant>B;<user>a;<assistant>[B;]", NULL},
    {"{\"system\": \"s\", \"query\": \"a\", \"response\": \"B\", \"answer\": \"C\"}",
     "<system>s;<user>a;<assistant>[B;]", "'answer'"},
    {"{\"instruction\": \"a\", \"input\": \"i\", \"response\": \"B\", \"category\": \"c\"}",
     "<user>a\n\ni;<assistant>[B;]", NULL},
    {"{\"system\": \"s\", \"conversation\": [{\"human\": \"a\", \"assistant\": \"B\"}, {\"human\": \"c\", "
     "\"assistant\": "
     "\"D\"}]}",
     "<system>s;<user>a;<assistant>[B;]<user>c;<assistant>[D;]", NULL},
    {"{\"conversations\": [{\"role\": \"human\", \"value\": \"a\"}, {\"role\": \"gpt\", \"value\": \"B\"}]}",
     "<user>a;<assistant>[B;]", NULL},
    /* variables */
    {"{\"messages\": [" U ", " A "], \"extra\": \"e\", \"score\": 3, \"note\": [\"n\"]}", "(e)<user>a;<assistant>[B;]",
     "'note'"},
    {"{\"messages\": [" U ", " A "], \"extra\": \"e\", \"chat_template_kwargs\": {\"extra\": \"k\"}}",
     "(k)<user>a;<assistant>[B;]", NULL},
    {"{\"messages\": [" U ", {\"role\": \"assistant\", \"content\": \"B\", \"mood\": \"m\", \"name\": \"n\"}]}",
     "<user>a;<assistant>[B;]", "'mood'"},
    /* calls */
    {"{\"tools\": \"[1]\", \"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"function_call\", "
     "\"value\": \"[" CALL ", " CALL "]\"}, {\"from\": \"observation\", \"value\": \"o\"}]}",
     "1<user>a;<assistant>[!{\"name\": \"f\", \"arguments\": {\"x\": 1}}!{\"name\": \"f\", \"arguments\": {\"x\": 1}};]"
     "<tool>o;",
     NULL},
    {"{\"functions\": [1], \"messages\": [" U ", {\"role\": \"assistant\", \"content\": null, \"function_call\": "
     "{\"name\": \"f\"}}, {\"role\": \"function\", \"content\": \"o\"}]}",
     "1<user>a;<assistant>[!{\"name\": \"f\"};]<tool>o;", NULL},
    {"{\"messages\": [" U ", {\"role\": \"tool_call\", \"content\": \"" CALL "\"}, {\"role\": \"tool_response\", "
     "\"content\": \"o\"}, {\"role\": \"assistant\", \"content\": null}]}",
     "<user>a;<assistant>[!{\"name\": \"f\", \"arguments\": {\"x\": 1}};]<tool>o;<assistant>[;]", NULL},
};

static void learned_as_rendered(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_corpus corpus = {0};
        char shown[4096];
        assert_ok(load(&corpus, rows[i].record, template, AH_TRAIN_ON_ASSISTANT));
        show(shown, &corpus);
        assert_string_equal(shown, rows[i].shown);
        assert_string_equal(corpus.unread ? corpus.unread : "", rows[i].unread ? rows[i].unread : "");
        assert_int_equal(corpus.bad, *shown ? 0 : 1);
        ah__corpus_free(&corpus);
        assert_rendered(rows[i].record, rows[i].shown);
    }
}

/* Bad answers are not learned with --train-on all either; the note names a key once. */
static void bad_answers_are_counted(void **state)
{
    struct ah_corpus corpus = {0};
    char shown[256];
    assert_ok(load(&corpus,
                   "{\"prompt\": \"a\", \"completion\": \"b\", \"label\": false, \"by\": \"x\", \"id\": \"1\"}\n"
                   "{\"prompt\": \"c\", \"completion\": \"d\", \"label\": true, \"by\": \"y\", \"system\": \"s\"}\n"
                   "{\"prompt\": \"e\", \"completion\": \"f\", \"label\": \"good\"}\n",
                   NULL, AH_TRAIN_ON_ALL));
    corpus.ids[2] = corpus.ids[5] = '.'; /* the documents' ends */
    show(shown, &corpus);
    assert_string_equal(shown, "c[d.] / e[f.]");
    assert_string_equal(corpus.bad_key, "label");
    assert_int_equal(corpus.bad, 1);
    assert_string_equal(corpus.unread, "'by', 'system', 'label'");
    ah__corpus_free(&corpus);
}

static void masks_of_ids(void **state)
{
    struct ah_corpus corpus = {0};
    char shown[256];
    assert_ok(load(&corpus,
                   "{\"input_ids\": [97, 98, 99], \"completion_mask\": [0, 1, 1], \"assistant_masks\": [1, 1, 0]}\n",
                   NULL, AH_TRAIN_ON_ASSISTANT));
    show(shown, &corpus);
    assert_string_equal(shown, "a[b]c");
    ah__corpus_free(&corpus);
    assert_ok(load(&corpus,
                   "{\"input_ids\": [97, 98, 99, 100], \"completion_mask\": [false, true, 1, true], "
                   "\"attention_mask\": [true, true, true, false]}\n",
                   NULL, AH_TRAIN_ON_ASSISTANT));
    show(shown, &corpus);
    assert_string_equal(shown, "a[bc]");
    ah__corpus_free(&corpus);
}

/* Between documents. */
static void reading_is_stopped(void **state)
{
    struct ah_corpus corpus = {0};
    volatile int stop = 1;
    char path[256];
    snprintf(path, sizeof path, "%s/stopped.jsonl", ah_test_folder());
    assert_ok(ah__file_write(path, "{\"text\": \"a\"}\n", 14));
    const char *paths[] = {path};
    const struct ah_corpus_options options = {
        .tokenizer = &ah__tokenizer_bytes, .vocab_size = 256, .most = 8, .stop = &stop};
    assert_fails(ah__corpus_load(&corpus, paths, 1, &options), AH_ESTOP, "stopped while documents were read");
    stop = 0;
    assert_ok(ah__corpus_load(&corpus, paths, 1, &options));
    ah__corpus_free(&corpus);
}

static void refused_by_key(void **state)
{
    static const struct {
        const char *record, *words;
    } cases[] = {
        {"{\"prompt\": \"a\", \"chosen\": \"b\", \"rejected\": \"c\"}",
         "key 'chosen': found answers to choose between"},
        {"{\"chosen\": [], \"rejected\": [" U "]}", "key 'rejected': found answers"},
        {"{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}], \"chosen\": {\"from\": \"gpt\", \"value\": "
         "\"4\"}, \"rejected\": {\"from\": \"gpt\", \"value\": \"5\"}}",
         "key 'chosen': found answers"},
        {"{\"messages\": [" U ", " A "], \"rejected_response\": \"b\"}", "key 'rejected_response': found answers"},
        {"{\"messages\": [" U
         ", {\"role\": \"assistant\", \"content\": \"b\", \"train_detail\": [{\"train\": false}]}]}",
         "key 'messages[1].train_detail': found a list, expected none"},
        {"{\"messages\": [" U ", {\"role\": \"assistant\", \"content\": \"b\", \"loss_weight\": 0.5}]}",
         "message 1: loss_weight: found another value, expected 0 or false"},
        {"{\"messages\": [" U ", " A "], \"chat_template_kwargs\": \"x\"}",
         "key 'chat_template_kwargs': found 'x', expected an object"},
        {"{\"conversations\": [{\"from\": \"function_call\", \"value\": \"f(x)\"}]}",
         "key 'conversations[0].content': found 'f(x)', expected calls of functions in JSON"},
        {"{\"conversations\": [{\"from\": \"function_call\", \"value\": \"[{}]\"}]}",
         "key 'conversations[0].content': found '[{}]', expected calls of functions in JSON"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_corpus corpus = {0};
        assert_fails(load(&corpus, cases[i].record, template, AH_TRAIN_ON_ASSISTANT), AH_EINPUT, cases[i].words);
    }
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* docs/data.md has every row, and no other. */
static void documented(void **state)
{
    char path[PATH_SIZE], *text, row[512];
    size_t length, found = 0;
    snprintf(path, sizeof path, "%s/../docs/data.md", ah_test_source());
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    const char *begin = strstr(text, "| key | in | it is |"), *end = begin ? strstr(begin, "\n\n") : NULL;
    assert_non_null(end);
    for (const char *at = begin; at < end; at++)
        found += strncmp(at, "\n| `", 4) == 0;
    assert_int_equal(found, ah__form_keys_count);
    for (size_t i = 0; i < ah__form_keys_count; i++) {
        const struct ah_form_key *key = &ah__form_keys[i];
        snprintf(row, sizeof row, "\n| `%s` | %s | %s | %s | %s |\n", key->key, key->name, ah__form_key_word(key->use),
                 key->what, key->source);
        if (!strstr(begin, row))
            fail_msg("docs/data.md lacks the row:%s", row);
    }
    ah__free(text);
}

AH_TEST_CASES("data/forms_keys", learned_as_rendered, bad_answers_are_counted, masks_of_ids, reading_is_stopped,
              refused_by_key, documented)
