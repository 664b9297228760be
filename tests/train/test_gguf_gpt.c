/* GPT-2 and GPT-NeoX as GGUF files: what llama.cpp's package wrote is written again as it was, and what llama.cpp would
 * compute otherwise is refused or noted. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gguf/config.h"
#include "gguf/write.h"
#include "golden/gguf_same.h"
#include "source/weight_tensors.h"
#include "train/tiny.h"

static const char *golden(char path[512], const char *name)
{
    snprintf(path, 512, "%s/golden/gguf/%s.gguf", ah_test_source(), name);
    return path;
}

static const char *config_of(struct ah_model **model, const char *path)
{
    assert_ok(ah_model_load(model, path));
    assert_null(ah_model_note(*model));
    return ah_model_get(*model)->config;
}

/* Turned matrices, queries, keys and values part by part, positions in F32. */
static void a_file_is_written_as_it_was(void **state)
{
    static const struct {
        const char *name, *part; /* of the configuration */
    } rows[] = {{"gpt2", "\"activation_function\": \"gelu_new\""}, {"gptneox", "\"rotary_pct\": 0.25"}};
    char path[512], out[PATH_SIZE];
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_model *before, *after;
        at(out, ah_test_folder(), "out.gguf");
        assert_ok(ah_export_gguf(out, golden(path, rows[i].name), "f16"));
        expect_same_tensors(path, out);
        assert_string_equal(config_of(&before, path), config_of(&after, out));
        assert_non_null(strstr(ah_model_get(after)->config, rows[i].part));
        ah_model_free(before);
        ah_model_free(after);
    }
}

#define NEOX                                                                                                           \
    "{\"model_type\": \"gpt_neox\", \"vocab_size\": 268, \"hidden_size\": 16, \"intermediate_size\": 32, "             \
    "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"max_position_embeddings\": 24"
#define GPT2                                                                                                           \
    "{\"model_type\": \"gpt2\", \"vocab_size\": 268, \"n_embd\": 16, \"n_layer\": 1, \"n_head\": 2, \"n_positions\": " \
    "24"

static void model_of(struct ah_model **model, const char *config)
{
    char path[PATH_SIZE];
    write_text(at(path, ah_test_folder(), "config.json"), config);
    assert_ok(ah_model_load(model, path));
}

static void what_llama_cpp_computes_otherwise_is_refused(void **state)
{
    static const struct {
        const char *config, *words;
    } rows[] = {
        {GPT2 ", \"activation_function\": \"relu\"}", "'activation_function': found 'relu', expected gelu or gelu_new"},
        {NEOX ", \"attention_bias\": false}", "key 'attention_bias': found false, expected true"},
        {NEOX ", \"rotary_pct\": 0}", "key 'rotary_pct': found 0, expected some channels to rotate"},
        {NEOX ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
              "\"high_freq_factor\": 4}}",
         "key 'rope_scaling.rope_type': found 'llama3', expected linear or yarn"},
        {"{\"model_type\": \"opt\", \"vocab_size\": 268, \"hidden_size\": 16, \"num_hidden_layers\": 1, \"ffn_dim\": "
         "32, "
         "\"num_attention_heads\": 2, \"max_position_embeddings\": 24}",
         "model 'opt': GGUF is written of llama, mistral, ministral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, "
         "gemma, gemma2, gemma3_text, phi3, granite, granitemoe, olmo2, olmo3, olmoe, smollm3, gpt2, gpt_neox and "
         "gpt_oss; llama.cpp has no architecture for it"},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_gguf_writer *writer;
        struct ah_model *model;
        model_of(&model, rows[i].config);
        assert_ok(ah__gguf_writer_new(&writer));
        assert_fails(ah__gguf_put_config(writer, ah_model_get(model)), AH_EINPUT, rows[i].words);
        ah__gguf_writer_free(writer);
        ah_model_free(model);
    }
}

/* A file's keys with nothing but an embedding in it give the configuration back. */
static void configurations_come_back(void **state)
{
    static const char *const configs[] = {
        GPT2 ", \"n_inner\": 24, \"tie_word_embeddings\": false, \"activation_function\": \"gelu\", "
             "\"layer_norm_epsilon\": 0.001}",
        NEOX ", \"hidden_act\": \"gelu_new\", \"use_parallel_residual\": false, \"rotary_pct\": 1, "
             "\"rotary_emb_base\": 3000}",
        NEOX ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4}}",
        NEOX ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 6}}",
    };
    const struct ah_shape table = ah_shape2(268, 16);
    static const float zeros[268 * 16] = {0};
    char path[PATH_SIZE];
    for (size_t i = 0; i < AH_LENGTH(configs); i++) {
        struct ah_gguf_writer *writer;
        struct ah_model *model, *again;
        model_of(&model, configs[i]);
        assert_ok(ah__gguf_writer_new(&writer));
        assert_ok(ah__gguf_put_config(writer, ah_model_get(model)));
        ah__gguf_put_tensor(writer, "token_embd.weight", ah__gguf_type(AH_GGUF_F32), &table);
        ah__gguf_put_tensor(writer, "output.weight", ah__gguf_type(AH_GGUF_F32), &table);
        assert_ok(ah__gguf_writer_open(writer, at(path, ah_test_folder(), "keys.gguf")));
        assert_ok(ah__gguf_writer_add(writer, zeros, sizeof zeros));
        assert_ok(ah__gguf_writer_add(writer, zeros, sizeof zeros));
        assert_ok(ah__gguf_writer_close(writer));
        ah__gguf_writer_free(writer);
        assert_string_equal(ah_model_get(model)->config, config_of(&again, path));
        ah_model_free(model);
        ah_model_free(again);
    }
}

/* llama.cpp wants a head of a GPT-NeoX, whose embedding is it. */
static void a_tied_neox_has_a_head_there(void **state)
{
    struct ah_model *model;
    struct {
        const char *config;
        bool needs;
    } rows[] = {{NEOX ", \"tie_word_embeddings\": true}", true}, {NEOX "}", false}, {GPT2 "}", false}};
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        model_of(&model, rows[i].config);
        assert_int_equal(ah__gguf_needs_head(ah_model_get(model)), rows[i].needs);
        ah_model_free(model);
    }
}

AH_TEST_CASES("train/gguf_gpt", a_file_is_written_as_it_was, what_llama_cpp_computes_otherwise_is_refused,
              configurations_come_back, a_tied_neox_has_a_head_there)
