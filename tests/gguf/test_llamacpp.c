/* GGUF files mean what llama.cpp does with them. Its source says which keys it reads (tests/golden/llamacpp_keys.py):
 * those that it needs are written, those that are written it reads, and where it takes another value for a missing one
 * than a model has, the key is there. What it computes otherwise is noted or refused; configurations come back. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "gguf/config.h"
#include "gguf/tokenizer.h"
#include "model/model.h"
#include "source/model_tokenizer.h"
#include "test.h"

#define SIZES                                                                                                          \
    "\"vocab_size\": 8, \"hidden_size\": 32, \"intermediate_size\": 48, \"num_hidden_layers\": 6, "                    \
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"max_position_embeddings\": 64"
#define YARN "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 16"
#define LLAMA3(factor, low, high, original)                                                                            \
    "\"rope_theta\": 500000, \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": " factor                        \
    ", \"low_freq_factor\": " low ", \"high_freq_factor\": " high ", \"original_max_position_embeddings\": " original  \
    "}"
#define MIXED                                                                                                          \
    "\"layer_types\": [\"full_attention\", \"sliding_attention\", \"sliding_attention\", \"full_attention\", "         \
    "\"full_attention\", \"sliding_attention\"]"

#define OLMOE_SIZES                                                                                                    \
    "\"vocab_size\": 8, \"hidden_size\": 32, \"intermediate_size\": 48, \"num_hidden_layers\": 6, "                    \
    "\"num_attention_heads\": 4, \"max_position_embeddings\": 64"
#define OLMOE_EXPERTS "\"num_experts\": 4, \"num_experts_per_tok\": 3"
#define QWEN_EXPERTS OLMOE_EXPERTS ", \"moe_intermediate_size\": 24, \"norm_topk_prob\": true"
#define SHARED_EXPERTS OLMOE_EXPERTS ", \"moe_intermediate_size\": 24, \"shared_expert_intermediate_size\": 40"
#define MIXTRAL_EXPERTS "\"num_local_experts\": 4, \"num_experts_per_tok\": 2"

static const struct row {
    const char *type, *keys, *note; /* note: words of what llama.cpp does otherwise; null: it does the same */
} rows[] = {
    {"llama", SIZES, NULL},
    {"llama", SIZES ", \"tie_word_embeddings\": true, \"head_dim\": 10", NULL},
    {"llama", SIZES ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 2.5}", NULL},
    {"llama", SIZES ", " LLAMA3("8", "1", "4", "8192"), NULL},
    {"llama", SIZES ", " LLAMA3("32", "1", "4", "4096"), NULL},
    {"llama", SIZES ", " LLAMA3("8", "1.5", "3", "1000"), NULL},
    {"llama", SIZES ", " LLAMA3("2", "1", "4", "16000000"), NULL},
    {"llama", SIZES ", " YARN "}", NULL},
    {"llama", SIZES ", " YARN ", \"attention_factor\": 1.5}", NULL},
    {"mistral", SIZES ", \"sliding_window\": 7",
     "a window of 7 tokens ('sliding_window'), for which llama.cpp has nothing in architecture 'llama': beyond them it "
     "computes otherwise, so keep its context (--ctx-size) within 7"},
    {"mistral", SIZES ", \"sliding_window\": 64", NULL}, /* no text is longer */
    {"ministral", SIZES ", \"sliding_window\": 7, " MIXED, "in architecture 'llama'"},
    {"qwen2", SIZES ", \"tie_word_embeddings\": true", NULL},
    {"qwen2", SIZES ", \"sliding_window\": 7, \"use_sliding_window\": false", NULL},
    {"qwen2", SIZES ", \"sliding_window\": 7, \"use_sliding_window\": true, \"max_window_layers\": 0",
     "in architecture 'qwen2'"},
    {"qwen3", SIZES ", \"sliding_window\": 7, \"use_sliding_window\": true, \"max_window_layers\": 2",
     "in architecture 'qwen3'"},
    {"qwen3", SIZES ", " YARN "}", NULL},
    {"gemma", SIZES ", \"head_dim\": 12", NULL},
    {"gemma2", SIZES ", \"head_dim\": 10, \"query_pre_attn_scalar\": 10, \"sliding_window\": 5", NULL},
    {"gemma3_text", SIZES ", \"head_dim\": 10, \"query_pre_attn_scalar\": 10, \"sliding_window\": 5", NULL},
    {"gemma3_text",
     SIZES ", \"head_dim\": 10, \"query_pre_attn_scalar\": 10, \"final_logit_softcapping\": 20, "
           "\"rope_local_base_freq\": 5000, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 8}",
     NULL},
    {"phi3", SIZES ", \"sliding_window\": 5, \"original_max_position_embeddings\": 64", "in architecture 'phi3'"},
    {"phi3",
     SIZES ", \"partial_rotary_factor\": 0.75, \"original_max_position_embeddings\": 32, \"rope_scaling\": {\"type\": "
           "\"longrope\", \"short_factor\": [1, 1.1, 1.25], \"long_factor\": [1.08, 3, 7]}",
     "takes LongRoPE's long factors for all texts where its context (--ctx-size) is above 32"},
    {"phi3",
     SIZES ", \"original_max_position_embeddings\": 64, \"rope_scaling\": {\"type\": \"longrope\", "
           "\"short_factor\": [1, 1.1, 1.25, 2], \"long_factor\": [1.08, 3, 7, 8]}",
     NULL},
    {"granite",
     SIZES ", \"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, \"attention_multiplier\": 0.015625, "
           "\"logits_scaling\": 8",
     NULL},
    {"olmo2", SIZES, NULL},
    {"olmo3", SIZES ", \"rope_theta\": 500000, \"sliding_window\": 5, " YARN "}", NULL},
    {"smollm3", SIZES, NULL},
    {"qwen3_moe", SIZES ", " QWEN_EXPERTS, NULL},
    {"qwen3_moe",
     SIZES ", " QWEN_EXPERTS ", \"sliding_window\": 7, \"use_sliding_window\": true, "
           "\"max_window_layers\": 2",
     "in architecture 'qwen3moe'"},
    {"olmoe", OLMOE_SIZES ", " OLMOE_EXPERTS, NULL},
    {"mixtral", SIZES ", " MIXTRAL_EXPERTS, NULL},
    {"granitemoe",
     SIZES ", " MIXTRAL_EXPERTS ", \"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, "
           "\"attention_multiplier\": 0.015625, \"logits_scaling\": 6",
     NULL},
    {"gpt_oss", SIZES ", " MIXTRAL_EXPERTS ", \"sliding_window\": 7, \"head_dim\": 8", NULL},
    {"gpt_oss", SIZES ", " MIXTRAL_EXPERTS ", \"sliding_window\": 7, \"head_dim\": 8, " MIXED, NULL},
    {"qwen2_moe", SIZES ", " SHARED_EXPERTS, NULL},
    {"qwen2_moe", SIZES ", " SHARED_EXPERTS ", \"sliding_window\": 7, \"use_sliding_window\": true",
     "in architecture 'qwen2moe'"},
    {"mixtral", SIZES ", " MIXTRAL_EXPERTS ", \"sliding_window\": 7", "in architecture 'llama'"},
    {"gpt2", "\"vocab_size\": 8, \"n_embd\": 32, \"n_layer\": 2, \"n_head\": 4, \"n_positions\": 64", NULL},
    {"gpt_neox",
     "\"vocab_size\": 8, \"hidden_size\": 32, \"intermediate_size\": 48, \"num_hidden_layers\": 2, "
     "\"num_attention_heads\": 4, \"max_position_embeddings\": 64, \"rotary_pct\": 0.25",
     NULL},
};

/* Read by nobody but by us, or by people. */
static const char *const informational[] = {
    "every vocab_size",
    "llama attention.sliding_window",
    "llama attention.sliding_window_pattern",
    "qwen2 attention.sliding_window",
    "qwen2 attention.sliding_window_pattern",
    "qwen3 attention.sliding_window",
    "qwen3 attention.sliding_window_pattern",
    "qwen2moe attention.sliding_window",
    "qwen2moe attention.sliding_window_pattern",
    "qwen3moe attention.sliding_window",
    "qwen3moe attention.sliding_window_pattern",
    "llama rope.llama3.factor",
    "llama rope.llama3.low_freq_factor",
    "llama rope.llama3.high_freq_factor",
};

/* "llamas": what is built as Llama, without GPTs. What is missing is 10000, what follows from other sizes, or those of
 * Gemma 2's first models. */
static const char *const always[] = {"llamas rope.freq_base",
                                     "llamas rope.dimension_count",
                                     "llamas attention.key_length",
                                     "llamas attention.value_length",
                                     "every attention.head_count",
                                     "llamas attention.head_count_kv",
                                     "every feed_forward_length",
                                     "gemma2 attention.sliding_window",
                                     "gemma2 attn_logit_softcapping",
                                     "gemma2 final_logit_softcapping",
                                     "gptneox rope.freq_base",
                                     "gptneox rope.dimension_count",
                                     "granite residual_scale",
                                     "granite embedding_scale",
                                     "granite attention.scale",
                                     "phi3 rope.scaling.original_context_length",
                                     "granitemoe residual_scale",
                                     "granitemoe embedding_scale",
                                     "granitemoe attention.scale",
                                     "granitemoe expert_count",
                                     "granitemoe expert_used_count",
                                     "qwen2moe expert_count",
                                     "qwen2moe expert_used_count",
                                     "qwen2moe expert_feed_forward_length",
                                     "qwen2moe expert_shared_feed_forward_length",
                                     "qwen3moe expert_count",
                                     "qwen3moe expert_used_count",
                                     "olmoe expert_count",
                                     "olmoe expert_used_count",
                                     "qwen3moe expert_feed_forward_length"};

/* ---- llama.cpp's keys -------------------------------------------------------------------------------------------- */

static char *table;

static void table_read(void)
{
    char path[512], *lines;
    size_t length;
    snprintf(path, sizeof path, "%s/golden/gguf/llamacpp_keys.txt", ah_test_source());
    assert_ok(ah__file_read(&lines, &length, path, 1 << 20));
    assert_ok(ah__sprintf(&table, "\n%s", lines));
    ah__free(lines);
}

static bool in_table(const char *scope, const char *key, const char *need)
{
    char line[256];
    snprintf(line, sizeof line, "\n%s %s %s", scope, key, need);
    return strstr(table, line) != NULL;
}

static bool is_informational(const char *scope, const char *key)
{
    char line[256], every[256];
    snprintf(line, sizeof line, "%s %s", scope, key);
    snprintf(every, sizeof every, "every %s", key);
    for (size_t i = 0; i < AH_LENGTH(informational); i++)
        if (strcmp(informational[i], line) == 0 || strcmp(informational[i], every) == 0)
            return true;
    return false;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static struct ah_model *model_of(const struct row *row)
{
    char text[2048];
    struct ah_model *model;
    snprintf(text, sizeof text, "{\"model_type\": \"%s\", %s}", row->type, row->keys);
    assert_ok(ah__model_parse(&model, text, strlen(text), "config.json"));
    return model;
}

/* Keys, and what else the configuration is read from. */
static void write(const char *path, const struct ah_model *model)
{
    static const float zeros[8 * 32] = {0};
    const struct ah_shape matrix = ah_shape2(8, 32);
    bool tied = strstr(ah_model_get(model)->config, "\"tie_word_embeddings\": true");
    struct ah_gguf_factors factors[2];
    struct ah_gguf_writer *writer;
    assert_ok(ah__gguf_rope_factors(factors, ah_model_get(model)));
    assert_ok(ah__gguf_writer_new(&writer));
    assert_ok(ah__gguf_put_config(writer, ah_model_get(model)));
    for (int i = 0; i < 2 - tied; i++)
        ah__gguf_put_tensor(writer, i ? "output.weight" : "token_embd.weight", ah__gguf_type(AH_GGUF_F32), &matrix);
    for (int i = 0; i < 2 && factors[i].name; i++) {
        const struct ah_shape shape = ah_shape1(factors[i].count);
        ah__gguf_put_tensor(writer, factors[i].name, ah__gguf_type(AH_GGUF_F32), &shape);
    }
    assert_ok(ah__gguf_writer_open(writer, path));
    for (int i = 0; i < 2 - tied; i++)
        assert_ok(ah__gguf_writer_add(writer, zeros, sizeof zeros));
    for (int i = 0; i < 2; i++) {
        if (factors[i].name)
            assert_ok(ah__gguf_writer_add(writer, factors[i].values, (size_t)factors[i].count * sizeof(float)));
        ah__free(factors[i].values);
    }
    assert_ok(ah__gguf_writer_close(writer));
    ah__gguf_writer_free(writer);
}

static struct ah_gguf *file_of(const struct row *row)
{
    char path[512];
    struct ah_gguf *file;
    struct ah_model *model = model_of(row);
    snprintf(path, sizeof path, "%s/keys.gguf", ah_test_folder());
    write(path, model);
    ah_model_free(model);
    assert_ok(ah__gguf_open(&file, path));
    return file;
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static void expect_written_keys_are_read(const struct ah_gguf *file, const char *arch)
{
    size_t length = strlen(arch);
    for (size_t i = 0; ah__gguf_key(file, i); i++) {
        const char *key = ah__gguf_key(file, i);
        bool own = strncmp(key, arch, length) == 0 && key[length] == '.';
        const char *name = own ? key + length + 1 : key;
        if (own ? !in_table(arch, name, "") && !in_table("every", name, "") && !is_informational(arch, name)
                : !in_table("file", name, ""))
            fail_msg("%s: llama.cpp does not read it", key);
    }
}

/* Lines of the table or of a list, "SCOPE KEY" at their start. */
static void expect_there(const struct ah_gguf *file, const char *arch, const char *line)
{
    char scope[32], key[128], name[192];
    assert_int_equal(sscanf(line, "%31s %127s", scope, key), 2);
    bool llamas = strcmp(scope, "llamas") == 0 && strncmp(arch, "gpt", 3) != 0;
    if (strcmp(scope, arch) != 0 && strcmp(scope, "every") != 0 && !llamas)
        return;
    snprintf(name, sizeof name, "%s.%s", arch, key);
    if (!ah__gguf_has(file, name))
        fail_msg("%s: llama.cpp needs it, and it is not written", name);
}

static void keys_are_llama_cpps(void **state)
{
    table_read();
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_gguf *file = file_of(&rows[i]);
        const char *arch = NULL;
        assert_ok(ah__gguf_text(&arch, file, "general.architecture"));
        expect_written_keys_are_read(file, arch);
        for (size_t k = 0; k < AH_LENGTH(always); k++)
            expect_there(file, arch, always[k]);
        for (const char *line = table; (line = strchr(line, '\n')) != NULL && line[1]; line++) {
            char need[16] = "";
            sscanf(line, "%*s %*s %15s", need);
            if (strcmp(need, "required") == 0)
                expect_there(file, arch, line);
        }
        ah__gguf_close(file);
    }
    ah__free(table);
}

static void configurations_come_back(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_model *model = model_of(&rows[i]), *again;
        struct ah_gguf *file = file_of(&rows[i]);
        char *text;
        assert_ok(ah__gguf_config(&text, file));
        assert_ok(ah__model_parse(&again, text, strlen(text), "keys.gguf"));
        assert_string_equal(ah_model_get(model)->config, ah_model_get(again)->config);
        assert_null(ah_model_note(again));
        ah__free(text);
        ah__gguf_close(file);
        ah_model_free(again);
        ah_model_free(model);
    }
}

/* The names of gguf-py's constants.TENSOR_NAMES. One parameter of Granite's is two tensors. */
static void experts_have_llama_cpps_names(void **state)
{
    static const struct {
        const char *type, *param, *name, *second;
    } names[] = {
        {"qwen3_moe", "mlp.gate", "ffn_gate_inp", NULL},
        {"qwen3_moe", "mlp.experts.*.gate_proj", "ffn_gate_exps", NULL},
        {"qwen3_moe", "mlp.experts.*.up_proj", "ffn_up_exps", NULL},
        {"qwen3_moe", "mlp.experts.*.down_proj", "ffn_down_exps", NULL},
        {"mixtral", "block_sparse_moe.gate", "ffn_gate_inp", NULL},
        {"mixtral", "block_sparse_moe.experts.*.w1", "ffn_gate_exps", NULL},
        {"mixtral", "block_sparse_moe.experts.*.w3", "ffn_up_exps", NULL},
        {"mixtral", "block_sparse_moe.experts.*.w2", "ffn_down_exps", NULL},
        {"qwen2_moe", "mlp.experts.*.up_proj", "ffn_up_exps", NULL},
        {"qwen2_moe", "mlp.shared_expert_gate", "ffn_gate_inp_shexp", NULL},
        {"qwen2_moe", "mlp.shared_expert.gate_proj", "ffn_gate_shexp", NULL},
        {"qwen2_moe", "mlp.shared_expert.up_proj", "ffn_up_shexp", NULL},
        {"qwen2_moe", "mlp.shared_expert.down_proj", "ffn_down_shexp", NULL},
        {"granitemoe", "block_sparse_moe.router.layer", "ffn_gate_inp", NULL},
        {"granitemoe", "block_sparse_moe.input_linear", "ffn_gate_exps", "ffn_up_exps"},
        {"granitemoe", "block_sparse_moe.output_linear", "ffn_down_exps", NULL},
        {"gpt_oss", "mlp.router", "ffn_gate_inp", NULL},
        {"gpt_oss", "mlp.experts.gate_up_proj^T2", "ffn_gate_exps", "ffn_up_exps"},
        {"gpt_oss", "mlp.experts.down_proj^T", "ffn_down_exps", NULL},
        {"gpt_oss", "self_attn.sinks^", "attn_sinks", NULL},
        {"gpt_oss", "post_attention_layernorm", "post_attention_norm", NULL},
    };
    for (size_t i = 0; i < AH_LENGTH(names); i++) {
        const struct row *row = rows;
        while (strcmp(row->type, names[i].type) != 0)
            row++;
        struct ah_model *model = model_of(row);
        char param[AH_GGUF_NAME_SIZE], name[AH_GGUF_NAME_SIZE] = "", expected[AH_GGUF_NAME_SIZE];
        snprintf(param, sizeof param, "model.layers.1.%s.weight", names[i].param);
        snprintf(expected, sizeof expected, "blk.1.%s.weight", names[i].name);
        assert_true(ah__gguf_name(name, ah_model_get(model), param));
        assert_string_equal(name, expected);
        assert_int_equal(ah__gguf_second(name, ah_model_get(model), param), names[i].second != NULL);
        if (names[i].second) {
            snprintf(expected, sizeof expected, "blk.1.%s.weight", names[i].second);
            assert_string_equal(name, expected);
        }
        ah_model_free(model);
    }
}

static void what_it_computes_otherwise_is_noted(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_model *model = model_of(&rows[i]);
        struct ah_buf notes = {0};
        assert_ok(ah__gguf_note_config(&notes, ah_model_get(model)));
        if (rows[i].note ? !notes.text || !strstr(notes.text, rows[i].note) : notes.text != NULL)
            fail_msg("%s: found note '%s', expected '%s'", rows[i].keys, notes.text ? notes.text : "none",
                     rows[i].note ? rows[i].note : "none");
        ah__buf_free(&notes);
        ah_model_free(model);
    }
}

static void what_it_has_no_key_for_is_refused(void **state)
{
    static const struct row refused[] = {
        {"gemma2", SIZES ", \"head_dim\": 10",
         "key 'query_pre_attn_scalar': found 256, expected 10, which llama.cpp takes"},
        {"gemma2", SIZES ", \"head_dim\": 10, \"query_pre_attn_scalar\": 10, " MIXED,
         "key 'layer_types': found others, expected every second block to see all"},
        {"smollm3", SIZES ", \"no_rope_layer_interval\": 2", "key 'no_rope_layers': found others"},
        {"olmo3", SIZES ", \"sliding_window\": 8, \"rope_theta\": 10000",
         "key 'rope_theta': found 10000, expected 500000"},
        {"olmo3", SIZES ", \"sliding_window\": null, " YARN "}",
         "key 'sliding_window': found null beside 'rope_scaling'"},
        {"olmo3", SIZES ", " MIXED, "key 'layer_types': found others, expected every fourth block to see all"},
        {"llama", SIZES ", " YARN ", \"beta_fast\": 16}",
         "key 'rope_scaling.beta_fast': found 16, expected 32, which llama.cpp takes"},
        {"llama", SIZES ", " YARN ", \"beta_slow\": 2}", "key 'rope_scaling.beta_slow': found 2, expected 1"},
        {"llama", SIZES ", " YARN ", \"truncate\": false}", "key 'rope_scaling.truncate': found false, expected true"},
        {"qwen3_moe", SIZES ", " OLMOE_EXPERTS ", \"moe_intermediate_size\": 24, \"norm_topk_prob\": false",
         "key 'norm_topk_prob': found false, expected true, as llama.cpp has it"},
        {"olmoe", SIZES ", " OLMOE_EXPERTS,
         "key 'num_key_value_heads': found 2, expected 4, as many as num_attention_heads: llama.cpp has no others"},
        {"olmoe", OLMOE_SIZES ", \"head_dim\": 10, " OLMOE_EXPERTS,
         "key 'head_dim': found 10, expected 8, as llama.cpp has it"},
        {"olmoe", OLMOE_SIZES ", " OLMOE_EXPERTS ", \"norm_topk_prob\": true",
         "key 'norm_topk_prob': found true, expected false, as llama.cpp has it"},
        {"qwen2_moe", SIZES ", " SHARED_EXPERTS ", \"norm_topk_prob\": true",
         "key 'norm_topk_prob': found true, expected false, as llama.cpp has it"},
        {"qwen2_moe", SIZES ", \"head_dim\": 10, " SHARED_EXPERTS,
         "key 'head_dim': found 10, expected 8, as llama.cpp has it"},
        {"gpt_oss", SIZES ", " MIXTRAL_EXPERTS ", \"head_dim\": 8, \"swiglu_limit\": 6",
         "key 'swiglu_limit': found 6, expected 7, as llama.cpp has it"},
        {"gpt_oss", SIZES ", " MIXTRAL_EXPERTS ", \"head_dim\": 8, \"sliding_window\": null",
         "key 'sliding_window': found null, expected a number: llama.cpp wants one"},
        {"gpt_oss", SIZES ", " MIXTRAL_EXPERTS ", \"head_dim\": 8, \"attention_bias\": false",
         "key 'attention_bias': found false, expected true, as llama.cpp has it"},
        {"gpt_oss", SIZES ", " MIXTRAL_EXPERTS ", \"head_dim\": 8, " YARN ", \"truncate\": true}",
         "key 'rope_scaling.truncate': found true, expected false, as readers of this architecture have it"},
        {"mixtral", SIZES ", \"num_local_experts\": 1, \"num_experts_per_tok\": 1",
         "key 'num_local_experts': found 1, expected 2 to 1024, as llama.cpp has"},
        {"opt", SIZES ", \"ffn_dim\": 48, \"word_embed_proj_dim\": 32",
         "model 'opt': GGUF is written of llama, mistral,"},
    };
    for (size_t i = 0; i < AH_LENGTH(refused); i++) {
        struct ah_model *model = model_of(&refused[i]);
        struct ah_gguf_writer *writer;
        assert_ok(ah__gguf_writer_new(&writer));
        assert_fails(ah__gguf_put_config(writer, ah_model_get(model)), AH_EINPUT, refused[i].note);
        ah__gguf_writer_free(writer);
        ah_model_free(model);
    }
}

AH_TEST_CASES("gguf/llamacpp", what_it_has_no_key_for_is_refused, keys_are_llama_cpps, configurations_come_back,
              experts_have_llama_cpps_names, what_it_computes_otherwise_is_noted)
