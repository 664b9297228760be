/* Adapters as PEFT configures them, held against a tiny llama: widths, scales, layers, modules that are saved whole. */
#include "train/adapter_tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/format.h"
#include "model/model.h"
#include "op/op.h"
#include "test.h"

enum { VOCAB = 6, WIDTH = 4, ENTRIES = 16, LONGEST = 64 };

static char folder[200];

struct entry {
    const char *name;
    int rows, columns; /* columns 0: a vector */
};

#define LAYER "base_model.model.model.layers."
#define FACTORS(layer, name, rank)                                                                                     \
    {LAYER #layer ".self_attn." name ".lora_A.weight", rank, WIDTH},                                                   \
    {                                                                                                                  \
        LAYER #layer ".self_attn." name ".lora_B.weight", WIDTH, rank                                                  \
    }

static struct ah_model *model_new(bool tied)
{
    char text[400];
    struct ah_model *model;
    snprintf(text, sizeof text,
             "{\"model_type\": \"llama\", \"vocab_size\": %d, \"hidden_size\": %d, \"intermediate_size\": 8, "
             "\"num_hidden_layers\": 2, \"num_attention_heads\": 1, \"num_key_value_heads\": 1, "
             "\"max_position_embeddings\": 8, \"tie_word_embeddings\": %s}",
             VOCAB, WIDTH, tied ? "true" : "false");
    assert_ok(ah__model_parse(&model, text, strlen(text), "m.json"));
    return model;
}

/* Element i of each tensor is i + 1. */
static void write(const char *config, const struct entry *entries, size_t count)
{
    struct ah_safetensors_decl decls[ENTRIES];
    struct ah_safetensors_writer *writer;
    char path[300];
    float values[LONGEST];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    for (int i = 0; i < LONGEST; i++)
        values[i] = (float)(i + 1);
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    assert_ok(ah__file_write(path, config, strlen(config)));
    for (size_t i = 0; i < count; i++)
        decls[i] = (struct ah_safetensors_decl){entries[i].name, AH_F32,
                                                entries[i].columns ? ah_shape2(entries[i].rows, entries[i].columns)
                                                                   : ah_shape1(entries[i].rows)};
    snprintf(path, sizeof path, "%s/" AH_ADAPTER_FILE, folder);
    assert_ok(ah__safetensors_writer_open(&writer, path, decls, count));
    for (size_t i = 0; i < count; i++)
        assert_ok(
            ah__safetensors_writer_append(writer, values, (size_t)ah__shape_count(&decls[i].shape) * sizeof *values));
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
}

static int open_fitted(struct ah_adapter_tensors *adapter, struct ah_model **model)
{
    AH_TRY(ah__adapter_tensors_open(adapter, folder));
    return ah__adapter_tensors_fit(adapter, model);
}

static void expect(const struct ah_adapter_tensors *adapter, const char *name, int rows, int columns,
                   const float *expected)
{
    float values[LONGEST];
    assert_ok(ah__adapter_tensors_read(values, adapter, name, ah_shape2(rows, columns)));
    for (int i = 0; i < rows * columns; i++)
        if (values[i] < expected[i] || values[i] > expected[i])
            fail_msg("%s[%d] is %g, expected %g", name, i, (double)values[i], (double)expected[i]);
}

#define Q0 "model.layers.0.self_attn.q_proj"

/* PEFT's rank and lora_alpha are 8 where nothing is said. */
static void what_is_not_said_is_as_peft_has_it(void **state)
{
    static const struct entry entries[] = {FACTORS(0, "q_proj", 8), FACTORS(1, "q_proj", 8)};
    struct ah_adapter_tensors adapter;
    struct ah_model *model = model_new(false);
    write("{\"peft_type\": \"LORA\", \"target_modules\": [\"c_attn\", \"q_proj\", \"query_key_value\"]}", entries,
          AH_LENGTH(entries));
    assert_ok(open_fitted(&adapter, &model));
    assert_int_equal(adapter.config.rank, 8);
    assert_true(adapter.config.alpha >= 8 && adapter.config.alpha <= 8);
    assert_string_equal(adapter.config.targets, "q_proj");
    assert_false(adapter.uneven);
    ah__adapter_tensors_close(&adapter);
    ah_model_free(model);
}

/* Narrower modules get zeros, and what scales them otherwise is in the second factor. */
static void patterns_widen_and_scale(void **state)
{
    static const struct entry entries[] = {FACTORS(0, "q_proj", 1), FACTORS(1, "q_proj", 2), FACTORS(0, "v_proj", 2),
                                           FACTORS(1, "v_proj", 2)};
    static const float narrow[] = {1, 2, 3, 4, 0, 0, 0, 0}, plain[] = {1, 2, 3, 4, 5, 6, 7, 8};
    /* The common scale is 4 / 2; that of the first layer's q_proj 3 / 1, of the second's v_proj 1 / 2. */
    static const float up[] = {1.5F, 0, 3, 0, 4.5F, 0, 6, 0};
    static const float half[] = {0.25F, 0.5F, 0.75F, 1, 1.25F, 1.5F, 1.75F, 2};
    struct ah_adapter_tensors adapter;
    struct ah_model *model = model_new(false);
    write(
        "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"target_modules\": [\"q_proj\", \"v_proj\"], "
        "\"rank_pattern\": {\"layers\\\\.0\\\\..*q_proj\": 1, \"q_proj\": 2}, "
        "\"alpha_pattern\": {\"layers.0.self_attn.q_proj\": 3, \".*\\\\.\\\\d*[1-9]\\\\.\\\\w+\\\\.(?:k|v)_proj\": 1}}",
        entries, AH_LENGTH(entries));
    assert_ok(open_fitted(&adapter, &model));
    assert_true(adapter.uneven);
    expect(&adapter, Q0 ".lora_A.weight", 2, WIDTH, narrow);
    expect(&adapter, Q0 ".lora_B.weight", WIDTH, 2, up);
    expect(&adapter, "model.layers.1.self_attn.q_proj.lora_B.weight", WIDTH, 2, plain);
    expect(&adapter, "model.layers.0.self_attn.v_proj.lora_B.weight", WIDTH, 2, plain);
    expect(&adapter, "model.layers.1.self_attn.v_proj.lora_B.weight", WIDTH, 2, half);
    ah__adapter_tensors_close(&adapter);
    ah_model_free(model);
}

/* A wider module makes all wide; the scale of all stays, whatever it is divided by. */
static void a_wider_module_keeps_the_scale(void **state)
{
    static const struct entry entries[] = {FACTORS(0, "q_proj", 3), FACTORS(1, "q_proj", 3), FACTORS(0, "v_proj", 2),
                                           FACTORS(1, "v_proj", 2)};
    static const float padded[] = {1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 0};
    static const double alphas[] = {6, 4.898979485566356}; /* 4 * 3 / 2, 4 * sqrt(3 / 2) */
    for (int stabilized = 0; stabilized < 2; stabilized++) {
        struct ah_adapter_tensors adapter;
        struct ah_model *model = model_new(false);
        char config[256];
        ah__snprintf(
            config, sizeof config,
            "{\"peft_type\": \"LORA\", \"r\": 2, \"lora_alpha\": 4, \"target_modules\": [\"q_proj\", \"v_proj\"], "
            "\"use_rslora\": %s, \"rank_pattern\": {\"q_proj\": 3}, \"alpha_pattern\": {\"q_proj\": %.17g}}",
            stabilized ? "true" : "false", alphas[stabilized]);
        write(config, entries, AH_LENGTH(entries));
        assert_ok(open_fitted(&adapter, &model));
        assert_false(adapter.uneven);
        assert_int_equal(adapter.config.rank, 3);
        assert_true(fabs(adapter.config.alpha - alphas[stabilized]) < 1e-12);
        expect(&adapter, "model.layers.0.self_attn.v_proj.lora_B.weight", WIDTH, 3, padded);
        ah__adapter_tensors_close(&adapter);
        ah_model_free(model);
    }
}

static void layers_without_adapters_stay(void **state)
{
    static const struct entry entries[] = {FACTORS(1, "q_proj", 2)};
    static const char *const configs[] = {
        "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": [\"q_proj\"], \"layers_to_transform\": [1]}",
        "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": [\"q_proj\"], \"layers_to_transform\": 1}",
        "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": [\"model.layers.1.self_attn.q_proj\"]}",
        "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": \"(?:.*)1.*q_proj\"}"};
    static const float zeros[LONGEST] = {0}, plain[] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < AH_LENGTH(configs); i++) {
        struct ah_adapter_tensors adapter;
        struct ah_model *model = model_new(false);
        write(configs[i], entries, AH_LENGTH(entries));
        assert_ok(open_fitted(&adapter, &model));
        assert_string_equal(adapter.config.targets, i < 2 ? "q_proj" : "self_attn.q_proj");
        expect(&adapter, Q0 ".lora_A.weight", 2, WIDTH, zeros);
        expect(&adapter, "model.layers.1.self_attn.q_proj.lora_A.weight", 2, WIDTH, plain);
        ah__adapter_tensors_close(&adapter);
        ah_model_free(model);
    }
}

/* Names with the adapter's in them, and those of what PEFT wraps. */
static void names_of_a_state_dict(void **state)
{
    static const struct entry entries[] = {
        {LAYER "0.self_attn.q_proj.lora_A.default.weight", 2, WIDTH},
        {LAYER "0.self_attn.q_proj.lora_B.default.weight", WIDTH, 2},
        {LAYER "1.self_attn.q_proj.lora_A.mine.weight", 2, WIDTH},
        {LAYER "1.self_attn.q_proj.lora_B.mine.weight", WIDTH, 2},
        {"base_model.model.lm_head.modules_to_save.default.weight", VOCAB, WIDTH},
        {"base_model.model.lm_head.original_module.weight", VOCAB, WIDTH},
        {"base_model.model.model.embed_tokens.modules_to_save.weight", VOCAB, WIDTH}, /* once more */
        {"base_model.model.model.embed_tokens.weight", VOCAB, WIDTH},
        {"base_model.model.model.norm.modules_to_save.weight", WIDTH, 0},
    };
    struct ah_adapter_tensors adapter;
    struct ah_model *model = model_new(false);
    write("{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": [\"q_proj\"], "
          "\"modules_to_save\": [\"lm_head\", \"model.norm\"]}",
          entries, AH_LENGTH(entries));
    assert_ok(open_fitted(&adapter, &model));
    assert_non_null(ah__adapter_tensors_whole(&adapter, "lm_head.weight"));
    assert_non_null(ah__adapter_tensors_whole(&adapter, "model.norm.weight"));
    assert_non_null(ah__adapter_tensors_whole(&adapter, "model.embed_tokens.weight"));
    assert_null(ah__adapter_tensors_whole(&adapter, "model.layers.0.input_layernorm.weight"));
    assert_null(ah__adapter_tensors_whole(&adapter, Q0 ".lora_A.weight"));
    ah__adapter_tensors_close(&adapter);
    ah_model_free(model);
}

/* An embedding of more rows is a model of more tokens; a head of its own beside a tied embedding unties it. */
static void tables_change_the_model(void **state)
{
    static const struct {
        struct entry embedding, head;
        const char *whole;
        bool tied;
        int64_t vocab;
        const char *config; /* part of what the model becomes */
    } cases[] = {
        {{"base_model.model.model.embed_tokens.weight", VOCAB + 2, WIDTH},
         {"base_model.model.lm_head.weight", VOCAB + 2, WIDTH},
         "[\"embed_tokens\", \"lm_head\"]",
         false,
         VOCAB + 2,
         "\"tie_word_embeddings\":false"},
        {{"base_model.model.model.embed_tokens.weight", VOCAB, WIDTH},
         {"base_model.model.lm_head.weight", VOCAB, WIDTH},
         "[\"embed_tokens\", \"lm_head\"]", /* the same values */
         true,
         VOCAB,
         "\"tie_word_embeddings\":true"},
        {{"base_model.model.model.embed_tokens.weight", VOCAB, WIDTH},
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "[\"embed_tokens\", \"norm\"]",
         true,
         VOCAB,
         "\"tie_word_embeddings\":false"},
        {{"base_model.model.model.embed_tokens.weight", VOCAB + 1, WIDTH},
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "[\"embed_tokens\", \"model.norm\"], \"ensure_weight_tying\": true",
         true,
         VOCAB + 1,
         "\"tie_word_embeddings\":true"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        const struct entry entries[] = {FACTORS(0, "q_proj", 2),
                                        FACTORS(1, "q_proj", 2),
                                        cases[i].embedding,
                                        cases[i].head,
                                        {LAYER "0.input_layernorm.weight", WIDTH, 0},
                                        {LAYER "1.input_layernorm.weight", WIDTH, 0},
                                        {LAYER "0.post_attention_layernorm.weight", WIDTH, 0},
                                        {LAYER "1.post_attention_layernorm.weight", WIDTH, 0}};
        char config[300], compact[400];
        struct ah_adapter_tensors adapter;
        struct ah_model *model = model_new(cases[i].tied);
        ah__snprintf(config, sizeof config,
                     "{\"peft_type\": \"LORA\", \"r\": 2, \"target_modules\": [\"q_proj\"], \"modules_to_save\": %s}",
                     cases[i].whole);
        write(config, entries, AH_LENGTH(entries));
        assert_ok(open_fitted(&adapter, &model));
        assert_int_equal(ah_model_get(model)->vocab_size, cases[i].vocab);
        size_t used = 0;
        for (const char *at = ah_model_get(model)->config; *at && used + 1 < sizeof compact; at++)
            if (*at != ' ' && *at != '\n' && *at != '\t')
                compact[used++] = *at;
        compact[used] = 0;
        if (!strstr(compact, cases[i].config))
            fail_msg("case %zu: no %s in %s", i, cases[i].config, compact);
        ah__adapter_tensors_close(&adapter);
        ah_model_free(model);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        const char *rest; /* of the configuration */
        struct entry entry;
        const char *says;
    } cases[] = {
        {"\"target_modules\": [\"c_attn\"]",
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "key 'target_modules': found 'c_attn', expected one of the linear layers of the model's blocks at least: "
         "q_proj, k_proj"},
        {"\"target_modules\": [\"q_proj\"]",
         {LAYER "0.self_attn.v_proj.lora_A.weight", 2, WIDTH},
         "found tensor 'model.layers.0.self_attn.v_proj.lora_A.weight', expected adapters of the model's linear "
         "layers"},
        {"\"target_modules\": [\"q_proj\", \"lm_head\"]",
         {"base_model.model.lm_head.lora_A.weight", 2, WIDTH},
         "adapter_model.safetensors: found tensor 'lm_head.lora_A.weight', expected adapters of"},
        {"\"target_modules\": [\"q_proj\", \"embed_tokens\"]",
         {"base_model.model.model.embed_tokens.lora_embedding_A", 2, VOCAB},
         "found tensor 'model.embed_tokens.lora_embedding_A', expected adapters of"},
        {"\"target_modules\": [\"q_proj\", \"v_proj\"]",
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "found no tensor 'model.layers.0.self_attn.v_proj.lora_A.weight'; it has 5, from"},
        {"\"target_modules\": [\"q_proj\"], \"modules_to_save\": [\"lm_head\"]",
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "found no tensor 'lm_head.weight'; it has 5, from"},
        {"\"target_modules\": [\"q_proj\"]",
         {"base_model.model.score.weight", 2, WIDTH},
         "found tensor 'score.weight', which the model does not have"},
        {"\"target_modules\": [\"q_proj\"], \"layers_to_transform\": [0]",
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "found tensor 'model.layers.1.self_attn.q_proj.lora_A.weight', expected adapters of"},
        {"\"target_modules\": [\"q_proj\"], \"alpha_pattern\": {\"q_proj\": 0}",
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "key 'alpha_pattern.q_proj': found another value, expected a number above 0"},
        {"\"target_modules\": [\"q_proj\"], \"rank_pattern\": {\"(q_proj\": 2}",
         {"base_model.model.model.norm.weight", WIDTH, 0},
         "adapter_config.json: pattern '(q_proj'"},
        {"\"target_modules\": \"q_proj|v_proj\"",
         {LAYER "0.self_attn.v_proj.lora_A.weight", 2, WIDTH},
         "found no tensor 'model.layers.0.self_attn.v_proj.lora_B.weight'"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        const struct entry entries[] = {FACTORS(0, "q_proj", 2), FACTORS(1, "q_proj", 2), cases[i].entry};
        char config[300];
        struct ah_adapter_tensors adapter;
        struct ah_model *model = model_new(false);
        snprintf(config, sizeof config, "{\"peft_type\": \"LORA\", \"r\": 2, %s}", cases[i].rest);
        write(config, entries, AH_LENGTH(entries));
        assert_fails(open_fitted(&adapter, &model), AH_EINPUT, cases[i].says);
        ah__adapter_tensors_close(&adapter);
        ah_model_free(model);
    }
}

AH_TEST_CASES("train/adapter_tensors", what_is_not_said_is_as_peft_has_it, patterns_widen_and_scale,
              a_wider_module_keeps_the_scale, layers_without_adapters_stay, names_of_a_state_dict,
              tables_change_the_model, what_does_not_fit_is_refused)
