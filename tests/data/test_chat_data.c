/* Conversations as data: their tokens, and which of them are learned. Tokens are bytes, so that ids show as text. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "data/learned.h"
#include "test.h"

enum { VOCAB = 256, LONG = 1000, PATH_SIZE = 600 };

static const char plain[] =
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}<{{ m.role }}>"
    "{{ m.content }};{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
static const char talk[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                           "{\"role\": \"assistant\", \"content\": \"B\"}, {\"role\": \"user\", \"content\": \"c\"}, "
                           "{\"role\": \"assistant\", \"content\": \"D\"}]}";

/* A model's folder with a template (null: none), and data in it. */
struct made {
    char folder[PATH_SIZE - 64], data[PATH_SIZE], template[PATH_SIZE];
};

static void put(char path[PATH_SIZE], const struct made *made, const char *name, const char *text)
{
    snprintf(path, PATH_SIZE, "%s/%s", made->folder, name);
    assert_ok(ah__file_write(path, text, strlen(text)));
}

static void make(struct made *made, const char *template, const char *data)
{
    char path[PATH_SIZE];
    snprintf(made->folder, sizeof made->folder, "%s", ah_test_folder());
    put(path, made, "config.json", "{}");
    if (template)
        put(made->template, made, "chat_template.jinja", template);
    put(made->data, made, "data.jsonl", data);
}

static int load(struct ah_corpus *corpus, const struct made *made, enum ah_train_on train_on, int64_t most)
{
    const struct ah_corpus_chat chat = {made->folder, NULL, train_on, NULL};
    const char *path = made->data;
    const struct ah_corpus_options options = {
        .format = AH_DATA_AUTO, .tokenizer = &ah__tokenizer_bytes, .chat = &chat, .vocab_size = VOCAB, .most = most};
    return ah__corpus_load(corpus, &path, 1, &options);
}

static uint64_t expect(const char *template, const char *data, enum ah_train_on train_on, const char *expected)
{
    struct made made;
    struct ah_corpus corpus = {0};
    char shown[4096];
    make(&made, template, data);
    assert_ok(load(&corpus, &made, train_on, LONG));
    show(shown, &corpus);
    assert_string_equal(shown, expected);
    uint64_t signature = corpus.signature;
    ah__corpus_free(&corpus);
    return signature;
}

/* No token before or behind the text, and each choice is another training. */
static void messages(void **state)
{
    uint64_t a = expect(plain, talk, AH_TRAIN_ON_ASSISTANT, "<user>a;<assistant>[B;]<user>c;<assistant>[D;]");
    uint64_t b = expect(plain, talk, AH_TRAIN_ON_LAST, "<user>a;<assistant>B;<user>c;<assistant>[D;]");
    uint64_t c = expect(plain, talk, AH_TRAIN_ON_ALL, "[<user>a;<assistant>B;<user>c;<assistant>D;]");
    assert_true(a != b && b != c && a != c);
}

static void other_forms(void **state)
{
    expect(plain,
           "{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\", \"value\": \"B\"}]}\n",
           AH_TRAIN_ON_ASSISTANT, "<user>a;<assistant>[B;]");
    /* Turns of the prompt are none of the completion's. */
    expect(
        plain,
        "{\"prompt\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"B\"}, "
        "{\"role\": \"user\", \"content\": \"c\"}], \"completion\": [{\"role\": \"assistant\", \"content\": \"D\"}]}",
        AH_TRAIN_ON_ASSISTANT, "<user>a;<assistant>B;<user>c;<assistant>[D;]");
    expect(plain, "{\"instruction\": \"a\", \"input\": \"\", \"output\": \"B\"}\n", AH_TRAIN_ON_ASSISTANT,
           "<user>a;<assistant>[B;]");
    /* Tools as a list, or as JSON in a text. */
    expect(plain,
           "{\"tools\": [{\"n\": 1.0}], \"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": "
           "\"assistant\", \"content\": \"B\"}]}\n{\"tools\": \"[{\\\"n\\\": 2}]\", \"messages\": [{\"role\": "
           "\"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"B\"}]}\n",
           AH_TRAIN_ON_ASSISTANT, "{\"n\": 1.0}<user>a;<assistant>[B;] / {\"n\": 2}<user>a;<assistant>[B;]");
}

static void by_marks(void **state)
{
    expect("{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
           "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}",
           talk, AH_TRAIN_ON_ASSISTANT, "<user>a<assistant>[B]<user>c<assistant>[D]");
}

/* A turn that is written otherwise once others follow is an example of its own. */
static void not_prefix_stable(void **state)
{
    struct made made;
    struct ah_corpus corpus = {0};
    char shown[4096];
    make(&made,
         "{% for m in messages %}<{{ m.role }}>{% if loop.last and m.role == 'assistant' %}~{% endif %}{{ m.content }}"
         "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
         talk);
    assert_ok(load(&corpus, &made, AH_TRAIN_ON_ASSISTANT, LONG));
    show(shown, &corpus);
    assert_string_equal(shown, "<user>a<assistant>[~B] / <user>a<assistant>B<user>c<assistant>[~D]");
    assert_int_equal(corpus.turns, 2);
    assert_int_equal(corpus.apart, 1);
    assert_int_equal(corpus.documents, 1);
    ah__corpus_free(&corpus);
    /* What is cut before anything that is learned is left out. */
    assert_ok(load(&corpus, &made, AH_TRAIN_ON_LAST, 20));
    assert_int_equal(corpus.example_count, 0);
    assert_int_equal(corpus.left_out, 1);
    ah__corpus_free(&corpus);
}

/* OpenAI's and ShareGPT's data say by a weight which turns are learned. */
static void weights(void **state)
{
    static const char marked[] =
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}";
    static const char said[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                               "{\"role\": \"assistant\", \"content\": \"b\", \"weight\": 0}, "
                               "{\"role\": \"user\", \"content\": \"c\"}, "
                               "{\"role\": \"assistant\", \"content\": \"d\", \"weight\": 1}, "
                               "{\"role\": \"assistant\", \"content\": \"e\", \"weight\": null}]}";
    static const char turns[] = "{\"conversations\": [{\"from\": \"Human\", \"value\": \"a\"}, "
                                "{\"from\": \"GPT\", \"value\": \"b\", \"weight\": 0.0}, "
                                "{\"from\": \"human\", \"value\": \"c\"}, {\"from\": \"bing\", \"value\": \"d\"}]}";
    expect("{% for m in messages %}{{ m.content }}{% endfor %}", said, AH_TRAIN_ON_ASSISTANT, "abc[de]");
    expect(marked, said, AH_TRAIN_ON_ASSISTANT, "abc[de]");
    expect("{% for m in messages %}{{ m.content }}{% endfor %}", turns, AH_TRAIN_ON_ASSISTANT, "abc[d]");
    expect("{% for m in messages %}{{ m.content }}{% endfor %}", said, AH_TRAIN_ON_ALL, "[abcde]");
}

/* Questions and answers by the names that they have. */
static void names_of_pairs(void **state)
{
    static const char chat[] = "{\"conversation\": [{\"role\": \"user\", \"content\": \"a\"}, "
                               "{\"role\": \"assistant\", \"content\": \"b\"}]}";
    static const char *const data[] = {"{\"question\": \"a\", \"answer\": \"b\"}",
                                       "{\"query\": \"a\", \"response\": \"b\", \"source\": 1}", chat};
    for (size_t i = 0; i < AH_LENGTH(data); i++)
        expect("{% for m in messages %}{{ m.content }}{% endfor %}", data[i], AH_TRAIN_ON_ASSISTANT, "a[b]");
}

/* Conversations that are empty, or broke off before an answer, are left out and counted. */
static void unanswered_ones_are_left_out(void **state)
{
    struct made made;
    struct ah_corpus corpus = {0};
    make(&made, plain,
         "{\"conversations\": []}\n{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n"
         "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}\n"
         "{\"messages\": [{\"role\": \"assistant\", \"content\": \"b\", \"weight\": 0}]}\n");
    assert_ok(load(&corpus, &made, AH_TRAIN_ON_ASSISTANT, LONG));
    assert_true(corpus.example_count == 1 && corpus.unlearned == 3 && corpus.documents == 4);
    ah__corpus_free(&corpus);
    assert_ok(load(&corpus, &made, AH_TRAIN_ON_ALL, LONG));
    assert_true(corpus.example_count == 3 && corpus.unlearned == 1);
    ah__corpus_free(&corpus);
}

/* The same data are the same on every day. */
static void the_day_stands_still(void **state)
{
    expect("{{ strftime_now('%d %b %Y') }}{% for m in messages %}{{ m.content }}{% endfor %}", talk, AH_TRAIN_ON_ALL,
           "[26 Jul 2024aBcD]");
}

static void refusals(void **state)
{
    static const struct {
        const char *template, *data, *words;
    } rows[] = {
        {NULL, talk, "line 1: found a conversation (messages), and no chat template with the model"},
        {"{{ raise_exception('no') }}", talk, "line 1: chat_template.jinja: line 1: the template refuses: no"},
        {"{% foo %}", talk, "chat_template.jinja: line 1: found 'foo', expected a statement"},
        {plain, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
         "line 1: found no message of an assistant"},
        {plain, "{\"messages\": []}", "line 1: found no message of an assistant, expected one to learn from"},
        {plain, "{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\", \"weight\": 2}]}",
         "line 1: message 0: weight: found another value, expected 0 or false (not learned), 1 or true"},
        {plain, "{\"tools\": 3, \"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}", "line 1: key 'tools'"},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct made made;
        struct ah_corpus corpus = {0};
        make(&made, rows[i].template, rows[i].data);
        if (!rows[i].template) {
            char path[PATH_SIZE];
            snprintf(path, sizeof path, "%s/chat_template.jinja", made.folder);
            remove(path);
        }
        assert_fails(load(&corpus, &made, AH_TRAIN_ON_ASSISTANT, LONG), AH_EINPUT, rows[i].words);
    }
}

/* A template that writes nothing of what is said, and room that is too small, are told apart. */
static void left_out_for_two_reasons(void **state)
{
    struct made made;
    struct ah_corpus corpus = {0};
    make(&made, "constant", talk);
    assert_ok(load(&corpus, &made, AH_TRAIN_ON_ASSISTANT, LONG));
    assert_true(corpus.unlearned == 1 && corpus.left_out == 0 && corpus.example_count == 0);
    ah__corpus_free(&corpus);
    make(&made, plain, talk);
    assert_ok(load(&corpus, &made, AH_TRAIN_ON_ASSISTANT, 4));
    assert_true(corpus.unlearned == 0 && corpus.left_out == 1 && corpus.example_count == 0);
    ah__corpus_free(&corpus);
}

AH_TEST_CASES("data/chat_data", left_out_for_two_reasons, weights, names_of_pairs, unanswered_ones_are_left_out,
              messages, other_forms, by_marks, not_prefix_stable, the_day_stands_still, refusals)
