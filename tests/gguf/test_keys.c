/* Keys of GGUF files that change the arithmetic: what llama.cpp computes of them is what the configuration says. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gguf/config.h"
#include "gguf/write.h"
#include "test.h"

/* A key of a file: a text, or a number where there is none. */
struct key {
    const char *name, *text;
    float number;
};

static void put_sizes(struct ah_gguf_writer *writer)
{
    static const struct {
        const char *key;
        uint32_t value;
    } sizes[] = {{"llama.embedding_length", 32},
                 {"llama.feed_forward_length", 48},
                 {"llama.block_count", 2},
                 {"llama.context_length", 64},
                 {"llama.attention.head_count", 4}};
    ah__gguf_put_text(writer, "general.architecture", "llama");
    ah__gguf_put_float(writer, "llama.attention.layer_norm_rms_epsilon", 1e-5F);
    for (size_t i = 0; i < AH_LENGTH(sizes); i++)
        ah__gguf_put_int(writer, sizes[i].key, sizes[i].value);
}

/* A tiny Llama with these keys and an embedding, and, if asked, factors of frequencies. */
static void write(const char *path, const struct key *keys, size_t count, bool factors)
{
    static const float zeros[4 * 32] = {0}, ones[4] = {1, 1, 1, 1};
    const struct ah_shape table = ah_shape2(4, 32), pairs = ah_shape1(4);
    struct ah_gguf_writer *writer;
    assert_ok(ah__gguf_writer_new(&writer));
    put_sizes(writer);
    for (size_t i = 0; i < count && keys[i].name; i++)
        if (keys[i].text)
            ah__gguf_put_text(writer, keys[i].name, keys[i].text);
        else
            ah__gguf_put_float(writer, keys[i].name, keys[i].number);
    ah__gguf_put_tensor(writer, "token_embd.weight", ah__gguf_type(AH_GGUF_F32), &table);
    if (factors)
        ah__gguf_put_tensor(writer, "rope_freqs.weight", ah__gguf_type(AH_GGUF_F32), &pairs);
    assert_ok(ah__gguf_writer_open(writer, path));
    assert_ok(ah__gguf_writer_add(writer, zeros, sizeof zeros));
    if (factors)
        assert_ok(ah__gguf_writer_add(writer, ones, sizeof ones));
    assert_ok(ah__gguf_writer_close(writer));
    ah__gguf_writer_free(writer);
}

static int config_of(char **text, const struct key *keys, size_t count, bool factors)
{
    char path[512];
    struct ah_gguf *file;
    snprintf(path, sizeof path, "%s/keys.gguf", ah_test_folder());
    write(path, keys, count, factors);
    assert_ok(ah__gguf_open(&file, path));
    int status = ah__gguf_config(text, file);
    ah__gguf_close(file);
    return status;
}

#define TYPE "llama.rope.scaling.type"
#define FACTOR "llama.rope.scaling.factor"

/* Without a type a scaling is linear, of the older key, too; by 1 or 0 there is none. */
static void a_factor_alone_is_linear(void **state)
{
    static const struct {
        struct key keys[2];
        const char *words; /* of the configuration; null: no scaling */
    } rows[] = {
        {{{FACTOR, NULL, 4}}, "\"linear\",\n    \"factor\": 4"},
        {{{TYPE, "linear", 0}, {FACTOR, NULL, 4}}, "\"linear\",\n    \"factor\": 4"},
        {{{"llama.rope.scale_linear", NULL, 2}}, "\"linear\",\n    \"factor\": 2"},
        {{{"llama.rope.scale_linear", NULL, 2}, {FACTOR, NULL, 8}}, "\"factor\": 8"},
        {{{TYPE, "yarn", 0}, {"llama.rope.scaling.yarn_beta_fast", NULL, 16}}, "\"beta_fast\": 16"},
        {{{TYPE, "yarn", 0}, {FACTOR, NULL, 4}}, "\"yarn\",\n    \"factor\": 4"},
        {{{TYPE, "yarn", 0}, {"llama.rope.scaling.attn_factor", NULL, 2}}, "\"attention_factor\": 2"},
        {{{TYPE, "none", 0}, {FACTOR, NULL, 4}}, NULL},
        {{{FACTOR, NULL, 1}}, NULL},
        {{{FACTOR, NULL, 0}}, NULL},
        {{{TYPE, "linear", 0}}, NULL},
        {{{NULL, NULL, 0}}, NULL},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        char *text;
        assert_ok(config_of(&text, rows[i].keys, 2, false));
        if (rows[i].words ? !strstr(text, rows[i].words) : strstr(text, "rope_scaling") != NULL)
            fail_msg("row %zu: found %s, expected %s", i, text, rows[i].words ? rows[i].words : "no scaling");
        ah__free(text);
    }
}

static void other_scalings_are_refused(void **state)
{
    static const struct {
        struct key keys[2];
        bool factors;
        const char *words;
    } rows[] = {
        {{{TYPE, "ntk", 0}, {FACTOR, NULL, 4}}, false, "'" TYPE "': found 'ntk', expected none, yarn or linear"},
        {{{TYPE, "yarn", 0}, {"llama.rope.scaling.yarn_ext_factor", NULL, 0}},
         false,
         "yarn_ext_factor': found 0, expected 1"},
        {{{TYPE, "linear", 0}, {"llama.rope.scaling.attn_factor", NULL, 2}},
         false,
         "attn_factor': found 2, expected 1"},
        {{{TYPE, "yarn", 0}, {FACTOR, NULL, 4}}, true, "'" FACTOR "': found 4 beside factors"},
        {{{FACTOR, NULL, 4}}, true, "'" FACTOR "': found 4 beside factors of each frequency, expected 1"},
        {{{FACTOR, NULL, -1}}, false, "'" FACTOR "': found -1, expected 0 to"},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        char *text;
        assert_fails(config_of(&text, rows[i].keys, 2, rows[i].factors), AH_EINPUT, rows[i].words);
    }
}

/* Windows in blocks as the file says, and YaRN with what early converters said of its attention: the models' own. */
static void olmo3_has_its_windows_and_yarn(void **state)
{
    static const char *const parts[] = {
        "\"model_type\": \"olmo3\"",
        "\"sliding_window\": 4096",
        "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\"]",
        "\"rope_type\": \"yarn\"",
        "\"factor\": 8",
        "\"attention_factor\": 1.2079441541679836",
        "\"original_max_position_embeddings\": 8192",
    };
    char path[512];
    struct ah_model *model;
    snprintf(path, sizeof path, "%s/golden/gguf/olmo3.gguf", ah_test_source());
    assert_ok(ah_model_load(&model, path));
    for (size_t i = 0; i < AH_LENGTH(parts); i++)
        if (!strstr(ah_model_get(model)->config, parts[i]))
            fail_msg("found no %s in %s", parts[i], ah_model_get(model)->config);
    assert_null(ah_model_note(model));
    ah_model_free(model);
}

/* The golden file with another 4-byte value of a key, whose name, type and value follow each other. */
static void olmo3_with(const char *path, const char *key, const void *value)
{
    char from[512], *bytes;
    size_t count, length = strlen(key), at = 0;
    snprintf(from, sizeof from, "%s/golden/gguf/olmo3.gguf", ah_test_source());
    assert_ok(ah__file_read(&bytes, &count, from, 1 << 20));
    while (at + length + 8 < count && memcmp(bytes + at, key, length) != 0)
        at++;
    assert_true(at + length + 8 < count);
    memcpy(bytes + at + length + 4, value, 4);
    assert_ok(ah__file_write(path, bytes, count));
    ah__free(bytes);
}

/* A period in the place of a bool for each block; of 0 all blocks slide. */
static void olmo3_period(void **state)
{
    char path[512], *text;
    struct ah_gguf *file;
    struct ah_gguf_writer *writer;
    for (uint32_t period = 0; period <= 2; period += 2) {
        static const float zeros[4 * 32] = {0};
        const struct ah_shape table = ah_shape2(4, 32);
        snprintf(path, sizeof path, "%s/period.gguf", ah_test_folder());
        assert_ok(ah__gguf_writer_new(&writer));
        ah__gguf_put_text(writer, "general.architecture", "olmo2");
        ah__gguf_put_float(writer, "olmo2.attention.layer_norm_rms_epsilon", 1e-5F);
        ah__gguf_put_float(writer, "olmo2.rope.freq_base", 500000);
        static const char *const sizes[] = {"embedding_length", "feed_forward_length",  "block_count",
                                            "context_length",   "attention.head_count", "attention.sliding_window"};
        static const uint32_t values[] = {32, 48, 2, 64, 4, 8};
        for (size_t i = 0; i < AH_LENGTH(sizes); i++) {
            char key[64];
            snprintf(key, sizeof key, "olmo2.%s", sizes[i]);
            ah__gguf_put_int(writer, key, values[i]);
        }
        ah__gguf_put_int(writer, "olmo2.attention.sliding_window_pattern", period);
        ah__gguf_put_tensor(writer, "token_embd.weight", ah__gguf_type(AH_GGUF_F32), &table);
        assert_ok(ah__gguf_writer_open(writer, path));
        assert_ok(ah__gguf_writer_add(writer, zeros, sizeof zeros));
        assert_ok(ah__gguf_writer_close(writer));
        ah__gguf_writer_free(writer);
        assert_ok(ah__gguf_open(&file, path));
        assert_ok(ah__gguf_config(&text, file));
        assert_int_equal(strstr(text, "full_attention") != NULL, period != 0);
        assert_non_null(strstr(text, "sliding_attention"));
        ah__free(text);
        ah__gguf_close(file);
    }
}

/* Blocks with a window turn by the file's base, where it names no other; so many blocks are not counted out. */
static void what_olmo3_cannot_be_is_refused(void **state)
{
    const float base = 10000;
    const uint32_t blocks = 0x7fffffff;
    char path[512];
    struct ah_model *model;
    snprintf(path, sizeof path, "%s/olmo3.gguf", ah_test_folder());
    olmo3_with(path, "olmo2.rope.freq_base", &base);
    assert_fails(ah_model_load(&model, path), AH_EINPUT, "found 10000, expected 500000");
    olmo3_with(path, "olmo2.block_count", &blocks);
    assert_fails(ah_model_load(&model, path), AH_EINPUT, "block_count': found 2147483647, expected 1 to 4096");
}

/* The model is read, and the line that llama.cpp warns with is a note. */
static void a_missing_way_to_split_is_noted(void **state)
{
    static const struct key keys[][3] = {
        {{"tokenizer.ggml.model", "gpt2", 0}, {"llama.unheard_of", NULL, 1}},
        {{"tokenizer.ggml.model", "gpt2", 0}, {"tokenizer.ggml.pre", "qwen2", 0}},
        {{"tokenizer.ggml.model", "llama", 0}},
    };
    char path[512];
    struct ah_model *model;
    snprintf(path, sizeof path, "%s/keys.gguf", ah_test_folder());
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        write(path, keys[i], 3, false);
        assert_ok(ah_model_load(&model, path));
        const char *note = ah_model_note(model);
        if (i > 0)
            assert_null(note);
        else {
            assert_non_null(strstr(note, "not read: llama.unheard_of; "));
            assert_non_null(strstr(note, "key 'tokenizer.ggml.pre': found nothing; text is split by llama.cpp's"));
        }
        ah_model_free(model);
    }
}

AH_TEST_CASES("gguf/keys", a_factor_alone_is_linear, other_scalings_are_refused, olmo3_has_its_windows_and_yarn,
              olmo3_period, what_olmo3_cannot_be_is_refused, a_missing_way_to_split_is_noted)
