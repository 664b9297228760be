/* Generation with a tokenizer that has special tokens: what a prompt begins with, and what is never told. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/safetensors.h"
#include "tokenizer/tokenizer.h"
#include "train/tiny.h"

/* Rows of the head, and the ids that the tokenizer knows, which alone are drawn. */
enum { VOCAB = 16, KNOWN = 13, PAD = 9, BOS = 10, EOS = 12, SEQ = 8, MOST = 40 };

static struct place place;

/* Six letters and three merges; a prompt begins with "<s>", "</s>" ends what is written. */
static const char tokenizer_json[] =
    "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"normalizer\": null, \"pre_tokenizer\": null,"
    "\"added_tokens\": [{\"id\": 9, \"content\": \"<pad>\", \"single_word\": false, \"lstrip\": false,"
    "\"rstrip\": false, \"normalized\": false, \"special\": true}, {\"id\": 10, \"content\": \"<s>\","
    "\"single_word\": false, \"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true},"
    "{\"id\": 11, \"content\": \"<x>\", \"single_word\": false, \"lstrip\": false, \"rstrip\": false,"
    "\"normalized\": false, \"special\": false}, {\"id\": 12, \"content\": \"</s>\", \"single_word\": false,"
    "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, \"special\": true}],"
    "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"<s>\","
    "\"type_id\": 0}}, {\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {\"<s>\":"
    "{\"id\": \"<s>\", \"ids\": [10], \"tokens\": [\"<s>\"]}}},"
    "\"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Fuse\"}]},"
    "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"c\": 2, \"d\": 3, \"e\": 4, \"f\": 5, \"ab\": 6,"
    "\"cd\": 7, \"ef\": 8}, \"merges\": [\"a b\", \"c d\", \"e f\"]}}";

/* A model that has learned nearly nothing, beside that tokenizer. */
static int train_once(void **state)
{
    char path[PATH_SIZE], text[1001];
    struct ah_train_options options;
    struct ah_train_result result;
    if (place.out[0])
        return 0;
    place_init(&place);
    snprintf(place.model, sizeof place.model, "%s", ah_test_folder());
    write_text(at(path, place.model, "tokenizer.json"), tokenizer_json);
    write_text(at(path, place.model, "config.json"),
               "{\"model_type\": \"llama\", \"vocab_size\": 16, \"hidden_size\": 16, \"intermediate_size\": 24, "
               "\"num_hidden_layers\": 2, \"num_attention_heads\": 2, \"max_position_embeddings\": 64, "
               "\"initializer_range\": 0.5, \"tie_word_embeddings\": false, "
               "\"bos_token_id\": 10, \"eos_token_id\": 12}");
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('a' + i * i / 3 % 6);
    text[sizeof text - 1] = 0;
    write_text(place.data, text);
    ah_train_options_init(&options, sizeof options);
    options.model_path = place.model;
    options.data_path = place.data;
    options.out_dir = place.out;
    options.plan = "resident";
    options.dev.threads = 1;
    options.batch = 2;
    options.seq = SEQ;
    options.steps = 3;
    options.lr = 1e-4;
    return ah_train(&result, &options);
}

struct heard {
    const struct ah_tokenizer *tokenizer;
    int32_t tokens[MOST];
    int count, special;
};

static int hear(int token, const char *text, size_t length, void *context)
{
    struct heard *heard = context;
    assert_in_range(token, 0, KNOWN - 1);
    assert_int_not_equal(token, EOS); /* ends it, and is not told */
    heard->tokens[heard->count++] = token;
    if (token == BOS || token == PAD) {
        heard->special++;
        assert_int_equal(length, 0);
        assert_string_equal(text, "");
    } else
        assert_string_equal(text, heard->tokenizer->token(heard->tokenizer, token));
    return 0;
}

static struct heard generate(const char *prompt, int64_t tokens, double temperature, uint64_t seed)
{
    struct heard heard = {.count = 0};
    assert_ok(ah__tokenizer_open(&heard.tokenizer, place.model));
    struct ah_generate_options options = {.model_dir = place.out,
                                          .prompt = prompt,
                                          .tokens = tokens,
                                          .device = "cpu",
                                          .temperature = temperature,
                                          .seed = seed,
                                          .threads = 1,
                                          .on_token = hear,
                                          .context = &heard};
    assert_ok(ah_generate(&options));
    assert_in_range(heard.count, 0, tokens);
    ah__tokenizer_close(heard.tokenizer);
    return heard;
}

/* The likeliest token behind these, by the logits of all of them at once. */
static int32_t likeliest(const int32_t *ids, int64_t count)
{
    char path[PATH_SIZE];
    const struct ah_eval_options options = {.model_dir = place.out, .device = "cpu", .threads = 1};
    struct ah_safetensors *file;
    float row[VOCAB];
    int32_t best = 0;
    assert_ok(ah_eval_logits(at(path, ah_test_folder(), "logits.safetensors"), ids, count, &options));
    assert_ok(ah__safetensors_open(&file, path));
    const struct ah_safetensors_tensor *logits = ah__safetensors_find(file, "logits");
    assert_non_null(logits);
    assert_int_equal(logits->dim[1], VOCAB);
    memcpy(row, logits->data + (size_t)(count - 1) * sizeof row, sizeof row);
    for (int32_t v = 1; v < KNOWN; v++)
        best = row[v] > row[best] ? v : best;
    ah__safetensors_close(file);
    return best;
}

/* The likeliest tokens one after the other, by a window of SEQ that is run as a whole for each. Returns how many. */
static int expected_tokens(int32_t *tokens, const int32_t *prompt, int64_t count, int most)
{
    int32_t all[2 * MOST];
    memcpy(all, prompt, (size_t)count * sizeof *all);
    for (int i = 0; i < most; i++, count++) {
        int64_t from = count > SEQ ? count - SEQ : 0;
        tokens[i] = all[count] = likeliest(all + from, count - from);
        if (tokens[i] == EOS)
            return i;
    }
    return most;
}

static void prompts_begin_as_the_tokenizer_says(void **state)
{
    static const struct {
        const char *text;
        int32_t ids[5]; /* with "<s>" in front */
        int64_t count;
    } prompts[] = {{"a", {BOS, 0}, 2},     {"cab", {BOS, 2, 6}, 3},        {"ef", {BOS, 8}, 2},
                   {"dd", {BOS, 3, 3}, 3}, {"cdb", {BOS, 7, 1}, 3},        {"fabe", {BOS, 5, 6, 4}, 4},
                   {"b", {BOS, 1}, 2},     {"ffcde", {BOS, 5, 5, 7, 4}, 5}};
    int differ = 0;
    for (size_t i = 0; i < AH_LENGTH(prompts); i++) {
        int32_t expected = likeliest(prompts[i].ids, prompts[i].count);
        struct heard heard = generate(prompts[i].text, 1, 0, 1);
        assert_int_equal(heard.count ? heard.tokens[0] : EOS, expected);
        differ += expected != likeliest(prompts[i].ids + 1, prompts[i].count - 1);
    }
    if (!differ)
        fail_msg("these prompts say nothing about \"<s>\"");
    const int32_t bos = BOS, eos = EOS, expected = likeliest(&bos, 1);
    struct heard heard = generate(NULL, 1, 0, 1);
    assert_int_equal(heard.count ? heard.tokens[0] : EOS, expected);
    assert_int_not_equal(expected, likeliest(&eos, 1));
}

/* Behind a prompt shorter and longer than the window, and on when it has slid: as without anything kept. */
static void the_window_slides(void **state)
{
    static const struct {
        const char *text;
        int32_t ids[12];
        int64_t count;
    } prompts[] = {{"a", {BOS, 0}, 2},
                   {"fcdbef", {BOS, 5, 7, 1, 8}, 5},
                   {"dd", {BOS, 3, 3}, 3},
                   {"fedcbabdface", {BOS, 5, 4, 3, 2, 1, 6, 3, 5, 0, 2, 4}, 12}};
    int32_t expected[MOST];
    int longest = 0;
    for (size_t i = 0; i < AH_LENGTH(prompts); i++) {
        int count = expected_tokens(expected, prompts[i].ids, prompts[i].count, MOST);
        struct heard heard = generate(prompts[i].text, MOST, 0, 1);
        assert_int_equal(heard.count, count);
        assert_memory_equal(heard.tokens, expected, (size_t)count * sizeof *expected);
        longest = count > longest ? count : longest;
    }
    assert_in_range(longest, 2 * SEQ, MOST);
}

static void special_tokens_have_no_text(void **state)
{
    int count = 0, special = 0, ended = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct heard heard = generate("ab", MOST, 1.5, seed);
        count += heard.count;
        special += heard.special;
        ended += heard.count < MOST;
    }
    assert_in_range(special, 3, count - 3);
    assert_in_range(ended, 1, 8);
}

AH_TEST_SUITE("infer/prompt", cmocka_unit_test_setup(prompts_begin_as_the_tokenizer_says, train_once),
              cmocka_unit_test_setup(the_window_slides, train_once),
              cmocka_unit_test_setup(special_tokens_have_no_text, train_once))
