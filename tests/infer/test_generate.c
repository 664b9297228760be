#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "test.h"

enum { PATH_SIZE = 512, TOKENS = 40 };

static char trained[PATH_SIZE];

static void write_text(const char *path, const char *text)
{
    assert_ok(ah__file_write(path, text, strlen(text)));
}

/* A model of vocabulary 128 that has seen "abcdeabcde..." until it can say nothing else. */
static int train_once(void **state)
{
    char folder[PATH_SIZE / 2], model[PATH_SIZE], data[PATH_SIZE], text[1001];
    struct ah_train_options options;
    struct ah_train_result result;
    if (trained[0])
        return 0;
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(model, sizeof model, "%s/model.json", folder);
    snprintf(data, sizeof data, "%s/data.txt", folder);
    snprintf(trained, sizeof trained, "%s/out", folder);
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('a' + i % 5);
    text[sizeof text - 1] = 0;
    write_text(data, text);
    write_text(model, "{\"model_type\": \"gpt2\", \"vocab_size\": 128, \"n_positions\": 16, \"n_embd\": 16, "
                      "\"n_layer\": 1, \"n_head\": 2}");
    ah_train_options_init(&options, sizeof options);
    options.model_path = model;
    options.data_path = data;
    options.out_dir = trained;
    options.plan = "resident";
    options.dev.threads = 1;
    options.batch = 4;
    options.steps = 60;
    options.lr = 1e-2;
    return ah_train(&result, &options);
}

struct heard {
    char text[TOKENS + 1];
    int count, stop;
};

static int hear(int token, const char *text, size_t length, void *context)
{
    struct heard *heard = context;
    assert_in_range(token, 0, 127);
    assert_int_equal(length, 1);
    assert_int_equal(text[0], token);
    heard->text[heard->count++] = text[0];
    heard->text[heard->count] = 0;
    return heard->count == heard->stop;
}

static struct ah_generate_options options_of(struct heard *heard)
{
    *heard = (struct heard){.count = 0};
    return (struct ah_generate_options){
        .model_dir = trained, .prompt = "abc", .tokens = TOKENS, .threads = 1, .on_token = hear, .context = heard};
}

/* Longer than the model's longest sequence, so that the window slides. */
static void says_what_it_learned(void **state)
{
    struct heard heard;
    struct ah_generate_options options = options_of(&heard);
    assert_ok(ah_generate(&options));
    assert_string_equal(heard.text, "deabcdeabcdeabcdeabcdeabcdeabcdeabcdeabc");
    options = options_of(&heard);
    options.prompt = "abcdeabcdeabcdeabcdeabcdea"; /* longer than the window */
    options.tokens = 3;
    assert_ok(ah_generate(&options));
    assert_string_equal(heard.text, "bcd");
    options = options_of(&heard);
    heard.stop = 2;
    assert_ok(ah_generate(&options));
    assert_string_equal(heard.text, "de");
    options = options_of(&heard);
    options.tokens = 0;
    assert_ok(ah_generate(&options));
    assert_int_equal(heard.count, 0);
}

/* A config.json beside weights stands for its folder; one alone has nothing to run. */
static void a_configuration_is_its_folder(void **state)
{
    struct heard heard;
    char config[PATH_SIZE + 32];
    struct ah_generate_options options = options_of(&heard);
    snprintf(config, sizeof config, "%s/config.json", trained);
    options.model_dir = config;
    options.tokens = 2;
    assert_ok(ah_generate(&options));
    assert_string_equal(heard.text, "de");
    snprintf(config, sizeof config, "%s/checkpoint/config.json", trained);
    assert_ok(ah_generate(&options));
    assert_string_equal(heard.text, "dede");
    snprintf(config, sizeof config, "%s/../model.json", trained);
    assert_fails(ah_generate(&options), AH_EINPUT, "model.json: found a configuration without weights, expected a ");
}

static void the_seed_decides(void **state)
{
    struct heard first, again, other;
    struct ah_generate_options options = options_of(&first);
    options.temperature = 8;
    options.seed = 1;
    assert_ok(ah_generate(&options));
    options.context = (again = (struct heard){.count = 0}, &again);
    options.threads = 2;
    assert_ok(ah_generate(&options));
    assert_string_equal(first.text, again.text);
    options.context = (other = (struct heard){.count = 0}, &other);
    options.seed = 2;
    assert_ok(ah_generate(&options));
    assert_true(strcmp(first.text, other.text) != 0);
    options.context = (other = (struct heard){.count = 0}, &other);
    options.top_k = 1;
    assert_ok(ah_generate(&options));
    assert_string_equal(other.text, "deabcdeabcdeabcdeabcdeabcdeabcdeabcdeabc");
}

/* A byte-level model stops at byte 0, which ends the examples it has learned, and goes on where it was told not to. */
static void stops_where_examples_end(void **state)
{
    char folder[PATH_SIZE / 2], model[PATH_SIZE], data[PATH_SIZE], out[PATH_SIZE];
    struct ah_train_options options;
    struct ah_train_result result;
    struct heard heard = {.count = 0};
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(model, sizeof model, "%s/model.json", folder);
    snprintf(data, sizeof data, "%s/pairs.jsonl", folder);
    snprintf(out, sizeof out, "%s/pairs", folder);
    write_text(data, "{\"prompt\": \"a\", \"completion\": \"bc\"}\n{\"prompt\": \"x\", \"completion\": \"yz\"}\n"
                     "{\"prompt\": \"m\", \"completion\": \"n\"}\n"); /* held out */
    write_text(model, "{\"model_type\": \"gpt2\", \"vocab_size\": 128, \"n_positions\": 16, \"n_embd\": 16, "
                      "\"n_layer\": 1, \"n_head\": 2}");
    for (int pack = 0; pack < 2; pack++) {
        ah_train_options_init(&options, sizeof options);
        options.model_path = model;
        options.data_path = data;
        options.pack = pack;
        options.plan = "resident";
        options.dev.threads = 1;
        options.batch = 2;
        options.seq = 8;
        options.steps = 60;
        options.lr = 1e-2;
        snprintf(out, sizeof out, "%s/pairs-%d", folder, pack);
        options.out_dir = out;
        assert_ok(ah_train(&result, &options));
        heard = (struct heard){.count = 0};
        struct ah_generate_options generate = {
            .model_dir = out, .prompt = "x", .tokens = 6, .threads = 1, .on_token = hear, .context = &heard};
        assert_ok(ah_generate(&generate));
        assert_string_equal(heard.text, "yz");
    }
}

static void train_longrope(char out[PATH_SIZE])
{
    char folder[PATH_SIZE / 2], model[PATH_SIZE], data[PATH_SIZE], text[601];
    struct ah_train_options options;
    struct ah_train_result result;
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(model, sizeof model, "%s/model.json", folder);
    snprintf(data, sizeof data, "%s/data.txt", folder);
    snprintf(out, PATH_SIZE, "%s/out", folder);
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('a' + i * i % 17);
    text[sizeof text - 1] = 0;
    write_text(data, text);
    write_text(model, "{\"model_type\": \"phi3\", \"vocab_size\": 128, \"max_position_embeddings\": 64, "
                      "\"hidden_size\": 16, \"intermediate_size\": 16, \"num_hidden_layers\": 1, "
                      "\"num_attention_heads\": 2, \"original_max_position_embeddings\": 12, \"rope_scaling\": "
                      "{\"type\": \"longrope\", \"short_factor\": [1, 1, 1, 1], \"long_factor\": [3, 9, 20, 60]}}");
    ah_train_options_init(&options, sizeof options);
    options.model_path = model;
    options.data_path = data;
    options.out_dir = out;
    options.plan = "resident";
    options.dev.threads = 1;
    options.seq = 40;
    options.steps = 20;
    options.lr = 1e-2;
    assert_ok(ah_train(&result, &options));
}

/* Where a text outgrows the lengths that rotate alike, all of it is run again: as if it had been the prompt. */
static void outgrows_short_rotations(void **state)
{
    char out[PATH_SIZE], text[64] = "abc";
    struct heard heard = {.count = 0}, one;
    train_longrope(out);
    struct ah_generate_options options = {
        .model_dir = out, .prompt = "abc", .tokens = 24, .threads = 1, .on_token = hear, .context = &heard};
    assert_ok(ah_generate(&options));
    options.tokens = 1;
    options.prompt = text;
    options.context = &one;
    for (int i = 0; i < 24; i++) {
        one = (struct heard){.count = 0};
        assert_ok(ah_generate(&options));
        strcat(text, one.text);
    }
    assert_string_equal(text + 3, heard.text);
}

static void refuses(void **state)
{
    struct heard heard;
    struct ah_generate_options options = options_of(&heard);
    options.model_dir = NULL;
    assert_fails(ah_generate(&options), AH_EINPUT, "model: found none");
    options.model_dir = ah_test_folder();
    assert_int_equal(ah_generate(&options), AH_EINPUT);
    options = options_of(&heard);
    options.tokens = -1;
    assert_fails(ah_generate(&options), AH_EINPUT, "tokens: found -1");
    options = options_of(&heard);
    options.temperature = -0.5;
    assert_fails(ah_generate(&options), AH_EINPUT, "temperature: found -0.5");
    options = options_of(&heard);
    options.prompt = "caf\xc3\xa9";
    assert_fails(ah_generate(&options), AH_EINPUT, "prompt: found byte 195 at 3");
    assert_int_equal(heard.count, 0);
}

AH_TEST_SUITE("infer/generate", cmocka_unit_test_setup(says_what_it_learned, train_once),
              cmocka_unit_test_setup(a_configuration_is_its_folder, train_once),
              cmocka_unit_test_setup(the_seed_decides, train_once), cmocka_unit_test(outgrows_short_rotations),
              cmocka_unit_test_setup(refuses, train_once), cmocka_unit_test(stops_where_examples_end))
