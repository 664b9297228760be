/* Architectures with mixtures of experts. The matrices of all experts of a block are one tensor [E, out, in]. */
#include <math.h>
#include <string.h>

#include "gguf/arch_internal.h"
#include "gguf/config.h"

static const struct ah_gguf_rename names[] = {{"ffn_gate_inp", "mlp.gate"},
                                              {"ffn_gate_exps", "mlp.experts.*.gate_proj"},
                                              {"ffn_up_exps", "mlp.experts.*.up_proj"},
                                              {"ffn_down_exps", "mlp.experts.*.down_proj"},
                                              {NULL, NULL}};
static const struct ah_gguf_rename mixtral_names[] = {{"ffn_gate_inp", "block_sparse_moe.gate"},
                                                      {"ffn_gate_exps", "block_sparse_moe.experts.*.w1"},
                                                      {"ffn_up_exps", "block_sparse_moe.experts.*.w3"},
                                                      {"ffn_down_exps", "block_sparse_moe.experts.*.w2"},
                                                      {NULL, NULL}};
static const struct ah_gguf_rename shared_names[] = {{"ffn_gate_inp", "mlp.gate"},
                                                     {"ffn_gate_exps", "mlp.experts.*.gate_proj"},
                                                     {"ffn_up_exps", "mlp.experts.*.up_proj"},
                                                     {"ffn_down_exps", "mlp.experts.*.down_proj"},
                                                     {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
                                                     {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
                                                     {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
                                                     {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
                                                     {NULL, NULL}};
static const struct ah_gguf_rename granite_names[] = {{"ffn_gate_inp", "block_sparse_moe.router.layer"},
                                                      {"ffn_gate_exps", "block_sparse_moe.input_linear"},
                                                      {"ffn_up_exps", "block_sparse_moe.input_linear" AH_GGUF_PART},
                                                      {"ffn_down_exps", "block_sparse_moe.output_linear"},
                                                      {NULL, NULL}};

static const struct ah_gguf_rename oss_names[] = {{"ffn_gate_inp", "mlp.router"},
                                                  {"ffn_gate_exps", "mlp.experts.gate_up_proj^T2"},
                                                  {"ffn_up_exps", "mlp.experts.gate_up_proj^T2" AH_GGUF_PART},
                                                  {"ffn_down_exps", "mlp.experts.down_proj^T"},
                                                  {"attn_sinks", "self_attn.sinks^"},
                                                  {"post_attention_norm", "post_attention_layernorm"},
                                                  {NULL, NULL}};

#define COUNT "expert_count"
#define USED "expert_used_count"
#define WIDTH "expert_feed_forward_length"
#define SHARED "expert_shared_feed_forward_length"
#define WINDOW "attention.sliding_window"
#define PATTERN "attention.sliding_window_pattern"
static const struct ah_gguf_size qwen_sizes[] = {
    {COUNT, "num_experts"}, {USED, "num_experts_per_tok"}, {WIDTH, "moe_intermediate_size"}, {NULL, NULL}};
static const struct ah_gguf_size olmoe_sizes[] = {{COUNT, "num_experts"}, {USED, "num_experts_per_tok"}, {NULL, NULL}};
static const struct ah_gguf_size mixtral_sizes[] = {
    {COUNT, "num_local_experts"}, {USED, "num_experts_per_tok"}, {NULL, NULL}};
static const struct ah_gguf_size shared_sizes[] = {{COUNT, "num_experts"},
                                                   {USED, "num_experts_per_tok"},
                                                   {WIDTH, "moe_intermediate_size"},
                                                   {SHARED, "shared_expert_intermediate_size"},
                                                   {NULL, NULL}};
static const char *const oss_keys[] = {COUNT, USED, WIDTH, WINDOW, PATTERN, NULL};
static const char *const shared_keys[] = {COUNT, USED, WIDTH, SHARED, WINDOW, PATTERN, NULL};
static const char *const qwen_keys[] = {COUNT, USED, WIDTH, WINDOW, PATTERN, NULL};
static const char *const olmoe_keys[] = {COUNT, USED, NULL};
static const char *const granite_keys[] = {COUNT, USED, AH_GGUF_GRANITE_KEYS, NULL};
static const char *const mixtral_keys[] = {COUNT, USED, WINDOW, PATTERN, NULL};

/* Files do not say whether the weights of a token's experts sum to 1. llama.cpp has Qwen's so, and OLMoE's not. */
static int qwen_read(const struct ah_gguf_config *config)
{
    int64_t window;
    AH_TRY(ah__json_add_bool(config->tree, "norm_topk_prob", true));
    AH_TRY(ah__gguf_add_window(&window, config));
    if (window <= 0)
        return AH_OK;
    AH_TRY(ah__json_add_int(config->tree, "max_window_layers", 0));
    return ah__json_add_bool(config->tree, "use_sliding_window", true);
}

/* llama.cpp takes one expert for none, and has room for so many. */
static int count_check(const struct ah_gguf_written *to)
{
    enum { MOST = 1024 };
    const char *key = to->arch->experts[0].ours;
    int64_t count;
    AH_TRY(ah__json_int(&count, &to->json, key, 1, INT32_MAX));
    return count > 1 && count <= MOST
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected 2 to %d, as llama.cpp has", to->json.path, key,
                          (long long)count, MOST);
}

static int normalised_check(const struct ah_gguf_written *to, bool expected)
{
    bool found = false;
    AH_TRY(ah__json_bool(&found, &to->json, "norm_topk_prob"));
    return found == expected
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key 'norm_topk_prob': found %s, expected %s, as llama.cpp has it",
                          to->json.path, found ? "true" : "false", expected ? "true" : "false");
}

static int qwen_write(const struct ah_gguf_written *to)
{
    AH_TRY(count_check(to));
    AH_TRY(normalised_check(to, true));
    return ah__gguf_put_window(to);
}

static int olmoe_read(const struct ah_gguf_config *config)
{
    return ah__json_add_bool(config->tree, "norm_topk_prob", false);
}

static int width_check(const struct ah_gguf_written *to)
{
    int64_t heads, size, hidden;
    AH_TRY(ah__json_int(&heads, &to->json, "num_attention_heads", 1, INT32_MAX));
    AH_TRY(ah__json_int(&size, &to->json, "head_dim", 1, INT32_MAX));
    AH_TRY(ah__json_int(&hidden, &to->json, "hidden_size", 1, INT32_MAX));
    return size * heads == hidden
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key 'head_dim': found %lld, expected %lld, as llama.cpp has it",
                          to->json.path, (long long)size, (long long)(hidden / heads));
}

/* llama.cpp has the norms of OLMoE's queries and keys as wide as the model. */
static int heads_check(const struct ah_gguf_written *to)
{
    int64_t heads, others;
    AH_TRY(ah__json_int(&heads, &to->json, "num_attention_heads", 1, INT32_MAX));
    AH_TRY(ah__json_int(&others, &to->json, "num_key_value_heads", 1, INT32_MAX));
    if (others != heads)
        return ah__fail(AH_EINPUT,
                        "%s: key 'num_key_value_heads': found %lld, expected %lld, as many as num_attention_heads: "
                        "llama.cpp has no others",
                        to->json.path, (long long)others, (long long)heads);
    return width_check(to);
}

static int olmoe_write(const struct ah_gguf_written *to)
{
    AH_TRY(count_check(to));
    AH_TRY(heads_check(to));
    return normalised_check(to, false);
}

static int shared_read(const struct ah_gguf_config *config)
{
    int64_t window;
    AH_TRY(ah__json_add_bool(config->tree, "norm_topk_prob", false));
    if (ah__gguf_find(config->file, "blk.0.attn_q.weight") && !ah__gguf_find(config->file, "blk.0.attn_q.bias"))
        AH_TRY(ah__json_add_bool(config->tree, "qkv_bias", false));
    AH_TRY(ah__gguf_add_window(&window, config));
    if (window <= 0)
        return AH_OK;
    AH_TRY(ah__json_add_bool(config->tree, "use_sliding_window", true));
    return cJSON_HasObjectItem(config->tree, "layer_types") ? AH_OK : ah__gguf_add_types(config, 0);
}

static int shared_write(const struct ah_gguf_written *to)
{
    AH_TRY(count_check(to));
    AH_TRY(width_check(to));
    AH_TRY(normalised_check(to, false));
    return ah__gguf_put_window(to);
}

static int granite_write(const struct ah_gguf_written *to)
{
    AH_TRY(count_check(to));
    return ah__gguf_granite_write(to);
}

static int mixtral_read(const struct ah_gguf_config *config)
{
    int64_t window;
    return ah__gguf_add_window(&window, config);
}

static int mixtral_write(const struct ah_gguf_written *to)
{
    AH_TRY(count_check(to));
    return ah__gguf_put_window(to);
}

/* Adds truncate to YaRN's keys: files do not say it, and the published model has it false. */
static int oss_rope_read(const struct ah_gguf_config *config)
{
    cJSON *rope = cJSON_GetObjectItemCaseSensitive(config->tree, "rope_scaling");
    bool yarn = rope && strcmp(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rope, "rope_type")), "yarn") == 0;
    if (!rope)
        return ah__json_add_string(cJSON_AddObjectToObject(config->tree, "rope_scaling"), "rope_type", "default");
    return yarn ? ah__json_add_bool(rope, "truncate", false) : AH_OK;
}

/* In llama.cpp every second block has the window, from the first one on, where the file does not say which. */
static int oss_read(const struct ah_gguf_config *config)
{
    int64_t window;
    AH_TRY(oss_rope_read(config));
    AH_TRY(ah__gguf_add_window(&window, config));
    return window > 0 && !cJSON_HasObjectItem(config->tree, "layer_types") ? ah__gguf_add_types(config, 2) : AH_OK;
}

/* Checks a number that llama.cpp has in its code. */
static int constant_check(const struct ah_gguf_written *to, const char *key, double expected)
{
    double found;
    AH_TRY(ah__json_double(&found, &to->json, key, -1e30, 1e30));
    return fabs(found - expected) <= 1e-9
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key '%s': found %g, expected %g, as llama.cpp has it", to->json.path, key,
                          found, expected);
}

static int oss_write(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t width;
    bool biased;
    AH_TRY(count_check(to));
    AH_TRY(ah__json_bool(&biased, &to->json, "attention_bias"));
    if (!biased)
        return ah__fail(AH_EINPUT, "%s: key 'attention_bias': found false, expected true, as llama.cpp has it",
                        to->json.path);
    AH_TRY(constant_check(to, "swiglu_alpha", 1.702));
    AH_TRY(constant_check(to, "swiglu_limit", 7));
    AH_TRY(ah__json_int(&width, &to->json, "intermediate_size", 1, INT32_MAX));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, WIDTH), (uint32_t)width);
    if (!cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(to->json.node, "sliding_window")))
        return ah__fail(AH_EINPUT, "%s: key 'sliding_window': found null, expected a number: llama.cpp wants one",
                        to->json.path);
    if (!ah__gguf_types_are(&to->json, 2))
        ah__gguf_put_types(to);
    return ah__gguf_put_window(to);
}

const struct ah_gguf_arch ah__gguf_mixtures[AH_GGUF_MIXTURES] = {
    AH_GGUF_ARCH("qwen3moe", "qwen3_moe", .states_bias = true, .yarn = true, .own = names, .experts = qwen_sizes,
                 .honoured = qwen_keys, .read = qwen_read, .write = qwen_write),
    AH_GGUF_ARCH("olmoe", "olmoe", .states_bias = true, .yarn = true, .own = names, .experts = olmoe_sizes,
                 .honoured = olmoe_keys, .read = olmoe_read, .write = olmoe_write),
    AH_GGUF_ARCH("llama", "mixtral", .permuted = true, .yarn = true, .own = mixtral_names, .experts = mixtral_sizes,
                 .honoured = mixtral_keys, .read = mixtral_read, .write = mixtral_write),
    AH_GGUF_ARCH("granitemoe", "granitemoe", .permuted = true, .states_bias = true, .yarn = true, .own = granite_names,
                 .experts = mixtral_sizes, .honoured = granite_keys, .read = ah__gguf_granite_read,
                 .write = granite_write),
    AH_GGUF_ARCH("gpt-oss", "gpt_oss", .yarn = true, .windows = true, .own = oss_names, .experts = mixtral_sizes,
                 .honoured = oss_keys, .rounded_apart = true, .read = oss_read, .write = oss_write),
    AH_GGUF_ARCH("qwen2moe", "qwen2_moe", .yarn = true, .own = shared_names, .experts = shared_sizes,
                 .honoured = shared_keys, .read = shared_read, .write = shared_write),
};
