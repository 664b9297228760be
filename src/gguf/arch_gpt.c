/* Architectures of GGUF files that have little in common with Llama: GPT-2 and GPT-NeoX, with LayerNorm, biases, and
 * queries, keys and values in one product. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "gguf/arch_internal.h"
#include "gguf/config.h"

#define EPSILON "attention.layer_norm_epsilon"
/* A key of llama.cpp that it does not read for these architectures: written if a model's activation is not the usual
 * one. */
#define ACTIVATION "hidden_activation"

static const struct ah_gguf_rename gpt2_blocks[] = {
    {"attn_norm", "ln_1"}, {"attn_qkv", "attn.c_attn"}, {"attn_output", "attn.c_proj"},
    {"ffn_norm", "ln_2"},  {"ffn_up", "mlp.c_fc"},      {"ffn_down", "mlp.c_proj"},
    {NULL, NULL}};
static const struct ah_gguf_rename gpt2_outer[] = {{"token_embd", "transformer.wte"},
                                                   {"position_embd", "transformer.wpe"},
                                                   {"output_norm", "transformer.ln_f"},
                                                   {"output", "lm_head"},
                                                   {NULL, NULL}};
static const struct ah_gguf_ordered gpt2_ordered[] = {{"attn_qkv", AH_GGUF_TURNED},
                                                      {"attn_output", AH_GGUF_TURNED},
                                                      {"ffn_up", AH_GGUF_TURNED},
                                                      {"ffn_down", AH_GGUF_TURNED},
                                                      {NULL, AH_GGUF_AS_OURS}};
static const struct ah_gguf_size gpt2_sizes[] = {{"context_length", "n_positions"},  {"embedding_length", "n_embd"},
                                                 {"block_count", "n_layer"},         {"feed_forward_length", "n_inner"},
                                                 {"attention.head_count", "n_head"}, {NULL, NULL}};
static const char *const gpt2_keys[] = {EPSILON, ACTIVATION, NULL};

static const struct ah_gguf_rename neox_blocks[] = {{"attn_qkv", "attention.query_key_value"},
                                                    {"attn_output", "attention.dense"},
                                                    {"ffn_up", "mlp.dense_h_to_4h"},
                                                    {"ffn_down", "mlp.dense_4h_to_h"},
                                                    {NULL, NULL}};
static const struct ah_gguf_rename neox_outer[] = {{"token_embd", "gpt_neox.embed_in"},
                                                   {"output_norm", "gpt_neox.final_layer_norm"},
                                                   {"output", "embed_out"},
                                                   {NULL, NULL}};
static const struct ah_gguf_ordered neox_ordered[] = {{"attn_qkv", AH_GGUF_BY_PART}, {NULL, AH_GGUF_AS_OURS}};
static const struct ah_gguf_size neox_sizes[] = {{"context_length", "max_position_embeddings"},
                                                 {"embedding_length", "hidden_size"},
                                                 {"block_count", "num_hidden_layers"},
                                                 {"feed_forward_length", "intermediate_size"},
                                                 {"attention.head_count", "num_attention_heads"},
                                                 {NULL, NULL}};
static const char *const neox_keys[] = {EPSILON, ACTIVATION, "use_parallel_residual", NULL};

/* ---- both -------------------------------------------------------------------------------------------------------- */

static int read_activation(const struct ah_gguf_config *config, const char *as)
{
    char room[AH_GGUF_KEY_SIZE];
    const char *word = NULL;
    AH_TRY(ah__gguf_text(&word, config->file, ah__gguf_key_of(room, config->arch, ACTIVATION)));
    return word ? ah__json_add_string(config->tree, as, word) : AH_OK;
}

/* Writes the activation. llama.cpp computes GELU by a tanh and a table in F16, whose error exceeds the difference
 * between the tanh form and the exact form, so both are accepted. */
static int put_activation(const struct ah_gguf_written *to, const char *as, const char *usual)
{
    char room[AH_GGUF_KEY_SIZE];
    const char *word;
    AH_TRY(ah__json_string(&word, &to->json, as));
    if (strncmp(word, "gelu", 4) != 0)
        return ah__fail(AH_EINPUT, "%s: key '%s': found '%s', expected gelu or gelu_new: llama.cpp has no other here",
                        to->json.path, as, word);
    if (strcmp(word, usual) != 0)
        ah__gguf_put_text(to->writer, ah__gguf_key_of(room, to->arch, ACTIVATION), word);
    return AH_OK;
}

static int put_epsilon(const struct ah_gguf_written *to, const char *as)
{
    char room[AH_GGUF_KEY_SIZE];
    double eps;
    AH_TRY(ah__json_double(&eps, &to->json, as, 0, 1));
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, EPSILON), (float)eps);
    return AH_OK;
}

/* ---- gpt2 -------------------------------------------------------------------------------------------------------- */

static int gpt2_read(const struct ah_gguf_config *config)
{
    AH_TRY(read_activation(config, "activation_function"));
    return ah__gguf_add_needed(config, EPSILON, "layer_norm_epsilon");
}

static int gpt2_write(const struct ah_gguf_written *to)
{
    AH_TRY(put_activation(to, "activation_function", "gelu_new"));
    return put_epsilon(to, "layer_norm_epsilon");
}

/* ---- gptneox ----------------------------------------------------------------------------------------------------- */

static int neox_read(const struct ah_gguf_config *config)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t hidden, heads, rotating;
    bool parallel = true;
    AH_TRY(ah__gguf_read_int(&hidden, config, "embedding_length"));
    AH_TRY(ah__gguf_read_int(&heads, config, "attention.head_count"));
    AH_TRY(ah__gguf_read_int(&rotating, config, "rope.dimension_count"));
    int64_t size = heads > 0 ? hidden / heads : 0;
    if (rotating > size || (size > 0 && rotating == 0))
        return ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected 1 to a head's %lld", ah__gguf_path(config->file),
                        ah__gguf_key_of(room, config->arch, "rope.dimension_count"), (long long)rotating,
                        (long long)size);
    AH_TRY(
        ah__json_add_double(config->tree, "rotary_pct", size > 0 && rotating > 0 ? ah__gguf_part(rotating, size) : 1));
    AH_TRY(ah__gguf_bool(&parallel, config->file, ah__gguf_key_of(room, config->arch, "use_parallel_residual")));
    AH_TRY(ah__json_add_bool(config->tree, "use_parallel_residual", parallel));
    AH_TRY(ah__gguf_add_needed(config, EPSILON, "layer_norm_eps"));
    AH_TRY(ah__gguf_add_rope(config, size));
    cJSON *theta = cJSON_DetachItemFromObjectCaseSensitive(config->tree, "rope_theta");
    if (!cJSON_AddItemToObject(config->tree, "rotary_emb_base", theta))
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    return read_activation(config, "hidden_act");
}

/* Refuses models for which llama.cpp expects other tensors or another rotation. */
static int neox_check(const struct ah_gguf_written *to)
{
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(to->json.node, "rope_scaling");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rope, "rope_type"));
    if (type && strcmp(type, "llama3") == 0)
        return ah__fail(AH_EINPUT,
                        "%s: key 'rope_scaling.rope_type': found 'llama3', expected linear or yarn: llama.cpp reads no "
                        "factors of frequencies here",
                        to->json.path);
    if (cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(to->json.node, "attention_bias")))
        return ah__fail(AH_EINPUT, "%s: key 'attention_bias': found false, expected true, as llama.cpp has it",
                        to->json.path);
    return AH_OK;
}

static int neox_write(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    double part, theta;
    int64_t hidden, heads;
    bool parallel;
    AH_TRY(neox_check(to));
    AH_TRY(ah__json_int(&hidden, &to->json, "hidden_size", 1, INT32_MAX));
    AH_TRY(ah__json_int(&heads, &to->json, "num_attention_heads", 1, 1 << 16));
    AH_TRY(ah__json_double(&part, &to->json, "rotary_pct", 0, 1));
    AH_TRY(ah__json_double(&theta, &to->json, "rotary_emb_base", 0, 1e12));
    AH_TRY(ah__json_bool(&parallel, &to->json, "use_parallel_residual"));
    uint32_t rotating = (uint32_t)((double)(hidden / heads) * part);
    if (!rotating)
        return ah__fail(AH_EINPUT, "%s: key 'rotary_pct': found %g, expected some channels to rotate", to->json.path,
                        part);
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.dimension_count"), rotating);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.freq_base"), (float)theta);
    ah__gguf_put_bool(to->writer, ah__gguf_key_of(room, to->arch, "use_parallel_residual"), parallel);
    AH_TRY(put_activation(to, "hidden_act", "gelu"));
    AH_TRY(put_epsilon(to, "layer_norm_eps"));
    return ah__gguf_put_rope(to);
}

const struct ah_gguf_arch ah__gguf_gpts[AH_GGUF_GPTS] = {
    AH_GGUF_ARCH("gpt2", "gpt2", .own = gpt2_blocks, .blocks = "transformer.h.", .outer = gpt2_outer,
                 .ordered = gpt2_ordered, .sizes = gpt2_sizes, .honoured = gpt2_keys, .read = gpt2_read,
                 .write = gpt2_write),
    AH_GGUF_ARCH("gptneox", "gpt_neox", .yarn = true, .head_apart = true, .own = neox_blocks,
                 .blocks = "gpt_neox.layers.", .outer = neox_outer, .ordered = neox_ordered, .sizes = neox_sizes,
                 .honoured = neox_keys, .read = neox_read, .write = neox_write),
};
