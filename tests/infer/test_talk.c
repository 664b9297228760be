/* Conversations with a model: the same text as from the whole prompt at once. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "test.h"

enum { PATH_SIZE = 512, ANSWER = 5 };

static char trained[PATH_SIZE], template[PATH_SIZE];

static void write_text(const char *path, const char *text)
{
    assert_ok(ah__file_write(path, text, strlen(text)));
}

/* A model of 16 positions that has seen letters in an order which depends on more than the last one. */
static int train_once(void **state)
{
    char folder[PATH_SIZE / 2], model[PATH_SIZE], data[PATH_SIZE], text[2001];
    struct ah_train_options options;
    struct ah_train_result result;
    if (trained[0])
        return 0;
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(model, sizeof model, "%s/model.json", folder);
    snprintf(data, sizeof data, "%s/data.txt", folder);
    snprintf(trained, sizeof trained, "%s/out", folder);
    snprintf(template, sizeof template, "%s/t.jinja", folder);
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = "abcadceabe"[i % 10];
    text[sizeof text - 1] = 0;
    write_text(data, text);
    write_text(template,
               "{% for m in messages %}{{ m.content }}{% endfor %}{% if not add_generation_prompt %}!{% endif %}");
    write_text(model, "{\"model_type\": \"gpt2\", \"vocab_size\": 128, \"n_positions\": 16, \"n_embd\": 16, "
                      "\"n_layer\": 2, \"n_head\": 2}");
    ah_train_options_init(&options, sizeof options);
    options.model_path = model;
    options.data_path = data;
    options.out_dir = trained;
    options.plan = "resident";
    options.dev.threads = 1;
    options.batch = 4;
    options.steps = 40;
    options.lr = 1e-2;
    return ah_train(&result, &options);
}

struct heard {
    char text[64];
};

static int hear(int token, const char *text, size_t length, void *context)
{
    struct heard *heard = context;
    snprintf(heard->text + strlen(heard->text), sizeof heard->text - strlen(heard->text), "%.*s", (int)length, text);
    return 0;
}

static struct ah_generate_options options_of(struct heard *heard)
{
    *heard = (struct heard){.text = ""};
    return (struct ah_generate_options){.model_dir = trained,
                                        .tokens = ANSWER,
                                        .threads = 1,
                                        .on_token = hear,
                                        .context = heard,
                                        .chat_template = template};
}

/* What the model says behind a prompt that it is given whole. */
static void expect_after(const char *prompt, const char *found)
{
    struct heard heard;
    struct ah_generate_options options = options_of(&heard);
    options.prompt = prompt;
    options.tokens = (int64_t)strlen(found);
    assert_ok(ah_generate(&options));
    assert_string_equal(found, heard.text);
}

static void turns_go_on(void **state)
{
    struct heard heard;
    struct ah_talk *talk;
    const struct ah_talk_options options = {.generate = options_of(&heard), .system = "c"};
    char first[64], prompt[128];
    assert_ok(ah_talk_open(&talk, &options));
    assert_ok(ah_talk_say(talk, "ab"));
    assert_int_equal(strlen(heard.text), ANSWER);
    expect_after("cab", heard.text);
    snprintf(first, sizeof first, "cab%s", heard.text);
    heard.text[0] = 0;
    assert_ok(ah_talk_say(talk, "de"));
    snprintf(prompt, sizeof prompt, "%sde", first);
    expect_after(prompt, heard.text);
    /* 15 tokens by now, of 16: what has no room was never said. */
    char second[192];
    snprintf(second, sizeof second, "%s%s", prompt, heard.text);
    heard.text[0] = 0;
    assert_fails(ah_talk_say(talk, "abc"), AH_EINPUT, "the conversation: found 18 tokens, expected 1 to 15");
    assert_string_equal(heard.text, "");
    assert_ok(ah_talk_say(talk, ""));
    assert_int_equal(strlen(heard.text), 1);
    expect_after(second, heard.text);
    ah_talk_close(talk);
}

/* Drawn at a high temperature, so that little else than the same logits gives the same text. */
static void draws_as_generation(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct heard said, whole;
        struct ah_talk *talk;
        struct ah_talk_options options = {.generate = options_of(&said)};
        struct ah_generate_options generate = options_of(&whole);
        options.generate.temperature = generate.temperature = 2;
        options.generate.seed = generate.seed = seed;
        generate.prompt = "abceabad";
        assert_ok(ah_talk_open(&talk, &options));
        assert_ok(ah_talk_say(talk, "abceabad"));
        ah_talk_close(talk);
        assert_ok(ah_generate(&generate));
        assert_string_equal(said.text, whole.text);
    }
}

static void a_prompt_is_a_message(void **state)
{
    struct heard heard;
    struct ah_generate_options options = options_of(&heard);
    options.chat = true;
    assert_fails(ah_generate(&options), AH_EINPUT, "prompt: found none");
    options.prompt = "abca";
    assert_ok(ah_generate(&options));
    expect_after("abca", heard.text);
}

static void refusals(void **state)
{
    struct heard heard;
    struct ah_talk *talk;
    struct ah_talk_options options = {.generate = options_of(&heard), .context_tokens = 17};
    assert_fails(ah_talk_open(&talk, &options), AH_EINPUT, "context_tokens: found 17, expected at most the model's 16");
    options.context_tokens = 0;
    options.generate.chat_template = NULL;
    assert_fails(ah_talk_open(&talk, &options), AH_EINPUT, "found no chat template");
    options.generate.chat = true;
    options.generate.prompt = "a";
    assert_fails(ah_generate(&options.generate), AH_EINPUT, "found no chat template");
}

AH_TEST_SUITE("infer/talk", cmocka_unit_test_setup(turns_go_on, train_once),
              cmocka_unit_test_setup(draws_as_generation, train_once),
              cmocka_unit_test_setup(a_prompt_is_a_message, train_once), cmocka_unit_test_setup(refusals, train_once))
