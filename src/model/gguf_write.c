/* The keys of a model for GGUF files. */
#include <string.h>

#include "base/alloc.h"
#include "model/gguf.h"
#include "model/gguf_internal.h"

/* What becomes a key as it is. */
static const struct {
    const char *ours, *gguf;
} copied[] = {
    {"max_position_embeddings", "context_length"},
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"intermediate_size", "feed_forward_length"},
    {"num_attention_heads", "attention.head_count"},
    {"num_key_value_heads", "attention.head_count_kv"},
    {"head_dim", "attention.key_length"},
    {"head_dim", "attention.value_length"},
    {"head_dim", "rope.dimension_count"},
    {"vocab_size", "vocab_size"},
};

struct written {
    struct ah_gguf_writer *writer;
    const struct ah_gguf_arch *arch;
    struct ah_json json;
};

/* The model's canonical configuration, to be freed. */
static int config_open(struct ah_json *json, const struct ah_model *model)
{
    const struct ah_model_def *def = ah_model_get(model);
    return ah__json_parse(json, def->config, strlen(def->config), def->name);
}

static int put_rope(const struct written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    struct ah_json rope;
    const char *type;
    double factor;
    if (!ah__json_has(&to->json, "rope_scaling"))
        return AH_OK;
    AH_TRY(ah__json_object(&rope, &to->json, "rope_scaling"));
    AH_TRY(ah__json_string(&type, &rope, "rope_type"));
    if (strcmp(type, "llama3") == 0) /* a tensor has its factors */
        return AH_OK;
    if (strcmp(type, "linear") != 0)
        return ah__fail(AH_EINPUT, "%s: key 'rope_scaling.rope_type': found '%.40s', expected linear or llama3",
                        to->json.path, type);
    AH_TRY(ah__json_double(&factor, &rope, "factor", 1e-3, 1e6));
    ah__gguf_put_text(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.type"), type);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.factor"), (float)factor);
    return AH_OK;
}

static int put_keys(const struct written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    double eps, theta;
    int64_t value;
    ah__gguf_put_text(to->writer, "general.architecture", to->arch->name);
    for (size_t i = 0; i < AH_LENGTH(copied); i++) {
        AH_TRY(ah__json_int(&value, &to->json, copied[i].ours, 0, INT32_MAX));
        ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, copied[i].gguf), (uint32_t)value);
    }
    AH_TRY(ah__json_double(&eps, &to->json, "rms_norm_eps", 0, 1));
    AH_TRY(ah__json_double(&theta, &to->json, "rope_theta", 0, 1e12));
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "attention.layer_norm_rms_epsilon"), (float)eps);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.freq_base"), (float)theta);
    return put_rope(to);
}

/* llama.cpp has Mistral as a Llama. */
static const struct ah_gguf_arch *arch_of(const struct ah_json *json)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json->node, "model_type"));
    return type ? ah__gguf_arch_of(strcmp(type, "mistral") == 0 ? "llama" : type) : NULL;
}

int ah__gguf_put_config(struct ah_gguf_writer *writer, const struct ah_model *model)
{
    struct written to = {.writer = writer};
    AH_TRY(config_open(&to.json, model));
    bool uses = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(to.json.node, "use_sliding_window"));
    const char *name = ah_model_get(model)->name;
    bool window = ah__json_has(&to.json, "sliding_window") && (uses || strcmp(name, "mistral") == 0);
    to.arch = arch_of(&to.json);
    int status = !to.arch ? ah__fail(AH_EINPUT, "model '%s': GGUF is written of llama, mistral, qwen2 and qwen3", name)
                 : window ? ah__fail(AH_EINPUT, "%s: key 'sliding_window': found a window, expected null", name)
                          : put_keys(&to);
    ah__json_free(&to.json);
    return status;
}

int64_t ah__gguf_permutes(const struct ah_model *model, const char *param)
{
    struct ah_json json;
    int64_t heads = 0;
    const char *key = strstr(param, ".q_proj.")   ? "num_attention_heads"
                      : strstr(param, ".k_proj.") ? "num_key_value_heads"
                                                  : NULL;
    if (!key || config_open(&json, model) != AH_OK)
        return 0;
    const struct ah_gguf_arch *arch = arch_of(&json);
    if (arch && arch->permuted && ah__json_int(&heads, &json, key, 1, 1 << 16) != AH_OK)
        heads = 0;
    ah__json_free(&json);
    return heads;
}

static int factors_make(float **factors, int64_t *count, const struct ah_json *json)
{
    struct ah_json rope;
    struct ah_gguf_llama3 found;
    int64_t original, size;
    AH_TRY(ah__json_object(&rope, json, "rope_scaling"));
    AH_TRY(ah__json_double(&found.factor, &rope, "factor", 1e-3, 1e6));
    AH_TRY(ah__json_double(&found.low, &rope, "low_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_double(&found.high, &rope, "high_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_int(&original, &rope, "original_max_position_embeddings", 1, 1 << 24));
    AH_TRY(ah__json_int(&size, json, "head_dim", 2, 1 << 16));
    AH_TRY(ah__json_double(&found.theta, json, "rope_theta", 1e-3, 1e12));
    found.original = (double)original;
    *count = size / 2;
    AH_TRY(ah__new(factors, (size_t)*count, sizeof **factors));
    for (int64_t i = 0; i < *count; i++)
        (*factors)[i] = (float)ah__gguf_llama3(&found, i, *count);
    return AH_OK;
}

int ah__gguf_rope_factors(float **factors, int64_t *count, const struct ah_model *model)
{
    struct ah_json json;
    *factors = NULL;
    AH_TRY(config_open(&json, model));
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(json.node, "rope_scaling");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rope, "rope_type"));
    int status = type && strcmp(type, "llama3") == 0 ? factors_make(factors, count, &json) : AH_OK;
    ah__json_free(&json);
    return status;
}
