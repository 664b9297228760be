#include "gguf/config.h"

#include <string.h>

#include "base/alloc.h"
#include "gguf/arch_internal.h"

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Keys behind "ARCH." that are read below or do not affect the computation. */
static const char *const known[] = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.key_length",
    "attention.head_count_kv",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.dimension_count",
    "attention.value_length",
    "rope.scaling.finetuned",
    "attention.layer_norm_rms_epsilon",
    "rope.scaling.original_context_length",
    AH_GGUF_LLAMA3_FACTOR,
    AH_GGUF_LLAMA3_LOW,
    AH_GGUF_LLAMA3_HIGH,
};

/* Keys that change the arithmetic of other models, with the value that changes nothing. */
static const struct {
    const char *key;
    double neutral;
} neutrals[] = {
    {"expert_count", 0},
    {"expert_used_count", 0},
    {"expert_shared_count", 0},
    {"expert_shared_feed_forward_length", 0},
    {"expert_gating_func", 1}, /* softmax */
    {"attention.sliding_window", 0},
    {"logit_scale", 1},
    {"embedding_scale", 1},
    {"residual_scale", 1},
    {"attention.scale", 0},
    {"attention.clamp_kqv", 0},
    {"attention.max_alibi_bias", 0},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"rope.scaling.attn_factor", 1},
    {"rope.scaling.yarn_ext_factor", 1},
    {"rope.scaling.yarn_attn_factor", 1},
    {"rope.scaling.yarn_log_multiplier", 0},
};

/* ---- configuration ----------------------------------------------------------------------------------------------- */

/* Sets vocab_size to the rows of the embedding: the file's own number of tokens may be less. */
static int add_vocab(const struct ah_gguf_config *config)
{
    const struct ah_gguf_tensor *table = ah__gguf_find(config->file, "token_embd.weight");
    if (!table || table->rank != 2)
        return ah__fail(AH_ECORRUPT, "%s: tensor 'token_embd.weight': found %s, expected a matrix",
                        ah__gguf_path(config->file), table ? "another shape" : "nothing");
    return ah__json_add_int(config->tree, "vocab_size", table->dim[0]);
}

static int add_heads(const struct ah_gguf_config *config)
{
    int64_t heads, kv_heads, hidden, size, values, rotating;
    AH_TRY(ah__gguf_add_int(config, "attention.head_count", "num_attention_heads"));
    AH_TRY(ah__gguf_read_int(&heads, config, "attention.head_count"));
    AH_TRY(ah__gguf_read_int(&kv_heads, config, "attention.head_count_kv"));
    AH_TRY(ah__gguf_read_int(&hidden, config, "embedding_length"));
    AH_TRY(ah__gguf_read_int(&size, config, "attention.key_length"));
    AH_TRY(ah__gguf_read_int(&values, config, "attention.value_length"));
    AH_TRY(ah__gguf_read_int(&rotating, config, "rope.dimension_count"));
    size = size > 0 ? size : heads > 0 ? hidden / heads : 0;
    bool part = config->arch->partial && rotating > 0 && rotating < size;
    if ((values >= 0 && values != size) || (rotating >= 0 && rotating != size && !part))
        return ah__fail(AH_EINPUT,
                        "%s: keys '%s.attention.key_length', 'value_length' and 'rope.dimension_count': found %lld, "
                        "%lld and %lld, expected the same",
                        ah__gguf_path(config->file), config->arch->name, (long long)size, (long long)values,
                        (long long)rotating);
    if (kv_heads == 0)
        return ah__fail(AH_EINPUT, "%s: key '%s.attention.head_count_kv': found 0, expected at least 1",
                        ah__gguf_path(config->file), config->arch->name);
    if (part)
        AH_TRY(ah__json_add_double(config->tree, "partial_rotary_factor", ah__gguf_part(rotating, size)));
    AH_TRY(ah__json_add_int(config->tree, "num_key_value_heads", kv_heads > 0 ? kv_heads : heads));
    return ah__json_add_int(config->tree, "head_dim", size);
}

static int add_biases(const struct ah_gguf_config *config)
{
    if (!config->arch->states_bias)
        return AH_OK;
    AH_TRY(ah__json_add_bool(config->tree, "attention_bias", ah__gguf_find(config->file, "blk.0.attn_q.bias") != NULL));
    return config->arch->states_mlp_bias
               ? ah__json_add_bool(config->tree, "mlp_bias", ah__gguf_find(config->file, "blk.0.ffn_gate.bias") != NULL)
               : AH_OK;
}

/* ---- other keys -------------------------------------------------------------------------------------------------- */

static bool is_honoured(const struct ah_gguf_arch *arch, const char *key)
{
    for (const char *const *at = arch->honoured; at && *at; at++)
        if (strcmp(*at, key) == 0)
            return true;
    return false;
}

static int neutral_check(const struct ah_gguf_config *config, size_t i)
{
    char room[AH_GGUF_KEY_SIZE];
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(config->tree, "rope_scaling");
    const char *scaling = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rope, "rope_type"));
    bool of_yarn = scaling && strcmp(scaling, "yarn") == 0 && strcmp(neutrals[i].key, "rope.scaling.attn_factor") == 0;
    if (is_honoured(config->arch, neutrals[i].key) || of_yarn)
        return AH_OK;
    double value = neutrals[i].neutral;
    AH_TRY(ah__gguf_double(&value, config->file, ah__gguf_key_of(room, config->arch, neutrals[i].key), -1e30, 1e30));
    if (value < neutrals[i].neutral || value > neutrals[i].neutral)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %.9g, expected %g", ah__gguf_path(config->file), room, value,
                        neutrals[i].neutral);
    return AH_OK;
}

static bool is_known(const struct ah_gguf_arch *arch, const char *key)
{
    if (is_honoured(arch, key))
        return true;
    for (size_t i = 0; i < AH_LENGTH(known); i++)
        if (strcmp(known[i], key) == 0)
            return true;
    for (size_t i = 0; i < AH_LENGTH(neutrals); i++)
        if (strcmp(neutrals[i].key, key) == 0)
            return true;
    return false;
}

static int add_others(const struct ah_gguf_config *config)
{
    size_t length = strlen(config->arch->name);
    bool causal = true, turns = true, granite = strcmp(config->arch->name, "granite") == 0;
    char room[AH_GGUF_KEY_SIZE];
    for (size_t i = 0; i < AH_LENGTH(neutrals); i++)
        AH_TRY(neutral_check(config, i));
    AH_TRY(ah__gguf_bool(&turns, config->file, ah__gguf_key_of(room, config->arch, "rope.scaling.finetuned")));
    if (granite && !turns) /* for Granite it says whether positions rotate at all */
        return ah__fail(AH_EINPUT, "%s: key '%s': found false, expected true", ah__gguf_path(config->file), room);
    AH_TRY(ah__gguf_bool(&causal, config->file, ah__gguf_key_of(room, config->arch, "attention.causal")));
    if (!causal)
        return ah__fail(AH_EINPUT, "%s: key '%s': found false, expected true", ah__gguf_path(config->file), room);
    for (size_t i = 0; ah__gguf_key(config->file, i); i++) {
        const char *key = ah__gguf_key(config->file, i);
        if (strncmp(key, config->arch->name, length) == 0 && key[length] == '.' &&
            !is_known(config->arch, key + length + 1))
            AH_TRY(ah__json_add_string(config->tree, key, ""));
    }
    return AH_OK;
}

static int add_ids(const struct ah_gguf_config *config)
{
    static const char *const keys[][2] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"},
                                          {"tokenizer.ggml.eos_token_id", "eos_token_id"}};
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        int64_t id = -1;
        AH_TRY(ah__gguf_int(&id, config->file, keys[i][0], 0, INT32_MAX));
        if (id >= 0)
            AH_TRY(ah__json_add_int(config->tree, keys[i][1], id));
    }
    return AH_OK;
}

static int64_t head_size(const struct ah_gguf_config *config)
{
    const cJSON *size = cJSON_GetObjectItemCaseSensitive(config->tree, "head_dim");
    return (int64_t)cJSON_GetNumberValue(size);
}

/* Adds the keys of config.json that most families have. */
static int decoder_fill(const struct ah_gguf_config *config)
{
    AH_TRY(ah__gguf_add_int(config, "embedding_length", "hidden_size"));
    AH_TRY(ah__gguf_add_int(config, "feed_forward_length", "intermediate_size"));
    AH_TRY(ah__gguf_add_int(config, "block_count", "num_hidden_layers"));
    AH_TRY(ah__gguf_add_int(config, "context_length", "max_position_embeddings"));
    AH_TRY(add_heads(config));
    AH_TRY(ah__gguf_add_needed(config, "attention.layer_norm_rms_epsilon", "rms_norm_eps"));
    AH_TRY(ah__gguf_add_rope(config, head_size(config)));
    return add_biases(config);
}

static int sizes_fill(const struct ah_gguf_config *config, const struct ah_gguf_size *sizes)
{
    for (const struct ah_gguf_size *at = sizes; at && at->gguf; at++)
        AH_TRY(ah__gguf_add_int(config, at->gguf, at->ours));
    return AH_OK;
}

static int config_fill(const struct ah_gguf_config *config)
{
    AH_TRY(ah__json_add_string(config->tree, "model_type", config->arch->model_type));
    AH_TRY(add_vocab(config));
    AH_TRY(config->arch->sizes ? sizes_fill(config, config->arch->sizes) : decoder_fill(config));
    AH_TRY(sizes_fill(config, config->arch->experts));
    AH_TRY(ah__json_add_bool(config->tree, "tie_word_embeddings", !ah__gguf_find(config->file, "output.weight")));
    AH_TRY(add_ids(config));
    if (config->arch->read)
        AH_TRY(config->arch->read(config));
    return add_others(config);
}

/* Checks that the file is a whole model. */
static int kind_check(const struct ah_gguf *file)
{
    const char *kind = "model";
    int64_t parts = 1;
    AH_TRY(ah__gguf_text(&kind, file, "general.type"));
    AH_TRY(ah__gguf_int(&parts, file, "split.count", 0, INT32_MAX));
    if (strcmp(kind, "model") != 0)
        return ah__fail(AH_EINPUT, "%s: key 'general.type': found '%.40s', expected 'model'%s", ah__gguf_path(file),
                        kind,
                        strcmp(kind, "adapter") == 0  ? ": merge it into its model (llama-export-lora) first"
                        : strcmp(kind, "mmproj") == 0 ? ": it has what sees images; the language model is another file"
                                                      : "");
    if (parts > 1)
        return ah__fail(
            AH_EINPUT,
            "%s: key 'split.count': found %lld, expected a whole model: llama-gguf-split --merge FIRST-PART "
            "NEW-FILE makes one of its parts",
            ah__gguf_path(file), (long long)parts);
    return AH_OK;
}

int ah__gguf_config(char **text, const struct ah_gguf *file)
{
    struct ah_gguf_config config = {.file = file};
    AH_TRY(kind_check(file));
    AH_TRY(ah__gguf_arch_find(&config.arch, file));
    config.tree = cJSON_CreateObject();
    int status = config.tree ? config_fill(&config) : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    if (status == AH_OK)
        status = ah__json_text(text, config.tree, false);
    cJSON_Delete(config.tree);
    return status;
}
