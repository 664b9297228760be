/* The keys of a model for GGUF files. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "model/gguf.h"
#include "model/gguf_internal.h"

/* What becomes a key as it is. */
static const struct ah_gguf_size copied[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", "head_dim"},
    {NULL, NULL},
};

/* The model's canonical configuration, to be freed. */
static int config_open(struct ah_json *json, const struct ah_model *model)
{
    const struct ah_model_def *def = ah_model_get(model);
    return ah__json_parse(json, def->config, strlen(def->config), def->name);
}

/* llama.cpp makes the attention's factor of the other one, and rounds the ends of the ramp. */
static int put_yarn(const struct ah_gguf_written *to, const struct ah_json *rope)
{
    char room[AH_GGUF_KEY_SIZE];
    double factor, fast, slow, attention;
    int64_t original;
    bool truncate;
    AH_TRY(ah__json_double(&factor, rope, "factor", 1, 1e6));
    AH_TRY(ah__json_double(&fast, rope, "beta_fast", 1e-6, 1e6));
    AH_TRY(ah__json_double(&slow, rope, "beta_slow", 1e-6, 1e6));
    AH_TRY(ah__json_double(&attention, rope, "attention_factor", 1e-6, 1e6));
    AH_TRY(ah__json_bool(&truncate, rope, "truncate"));
    AH_TRY(ah__json_int(&original, rope, "original_max_position_embeddings", 1, 1 << 24));
    double usual = ah__gguf_yarn_growth(factor);
    if (!truncate)
        return ah__fail(AH_EINPUT, "%s: key 'rope_scaling.truncate': found false, expected true, as llama.cpp does it",
                        to->json.path);
    if (fabs(attention - usual) > 1e-6 * usual)
        return ah__fail(AH_EINPUT,
                        "%s: key 'rope_scaling.attention_factor': found %g, expected %.9g, which llama.cpp takes",
                        to->json.path, attention, usual);
    ah__gguf_put_text(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.type"), "yarn");
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.factor"), (float)factor);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.yarn_beta_fast"), (float)fast);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.yarn_beta_slow"), (float)slow);
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.original_context_length"),
                     (uint32_t)original);
    return AH_OK;
}

int ah__gguf_put_rope(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    struct ah_json rope;
    const char *type;
    double factor;
    if (!ah__json_has(&to->json, "rope_scaling"))
        return AH_OK;
    AH_TRY(ah__json_object(&rope, &to->json, "rope_scaling"));
    AH_TRY(ah__json_string(&type, &rope, ah__json_has(&rope, "type") ? "type" : "rope_type"));
    if (strcmp(type, "llama3") == 0 || (strcmp(type, "longrope") == 0 && to->arch->partial)) /* tensors have factors */
        return AH_OK;
    if (strcmp(type, "yarn") == 0 && to->arch->yarn)
        return put_yarn(to, &rope);
    if (strcmp(type, "linear") != 0)
        return ah__fail(AH_EINPUT, "%s: key 'rope_scaling.rope_type': found '%.40s', expected linear%s or llama3",
                        to->json.path, type, to->arch->yarn ? ", yarn" : "");
    AH_TRY(ah__json_double(&factor, &rope, "factor", 1e-3, 1e6));
    ah__gguf_put_text(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.type"), type);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.factor"), (float)factor);
    return AH_OK;
}

/* How many channels of a head rotate. */
static int put_turning(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t size;
    double part = 1;
    AH_TRY(ah__json_int(&size, &to->json, "head_dim", 1, 1 << 16));
    if (ah__json_has(&to->json, "partial_rotary_factor"))
        AH_TRY(ah__json_double(&part, &to->json, "partial_rotary_factor", 0, 1));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.dimension_count"),
                     (uint32_t)((double)size * part));
    return AH_OK;
}

static int put_size(const struct ah_gguf_written *to, const char *ours, const char *gguf)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t value;
    AH_TRY(ah__json_int(&value, &to->json, ours, 0, INT32_MAX));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, gguf), (uint32_t)value);
    return AH_OK;
}

/* What most families' config.json has. */
static int put_decoder(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    double eps, theta;
    AH_TRY(ah__json_double(&eps, &to->json, "rms_norm_eps", 0, 1));
    AH_TRY(ah__json_double(&theta, &to->json, "rope_theta", 0, 1e12));
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "attention.layer_norm_rms_epsilon"), (float)eps);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.freq_base"), (float)theta);
    AH_TRY(put_turning(to));
    return ah__gguf_put_rope(to);
}

static int put_keys(const struct ah_gguf_written *to)
{
    ah__gguf_put_text(to->writer, "general.architecture", to->arch->name);
    for (const struct ah_gguf_size *at = to->arch->sizes ? to->arch->sizes : copied; at->gguf; at++)
        AH_TRY(put_size(to, at->ours, at->gguf));
    AH_TRY(put_size(to, "vocab_size", "vocab_size"));
    if (!to->arch->sizes)
        AH_TRY(put_decoder(to));
    return to->arch->write ? to->arch->write(to) : AH_OK;
}

static const struct ah_gguf_arch *arch_of(const struct ah_json *json)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json->node, "model_type"));
    return type ? ah__gguf_arch_of(type) : NULL;
}

int ah__gguf_put_config(struct ah_gguf_writer *writer, const struct ah_model *model)
{
    struct ah_gguf_written to = {.writer = writer};
    AH_TRY(config_open(&to.json, model));
    const char *name = ah_model_get(model)->name;
    to.arch = arch_of(&to.json);
    int status = to.arch ? put_keys(&to)
                         : ah__fail(AH_EINPUT,
                                    "model '%s': GGUF is written of llama, mistral, qwen2, qwen3, gemma, gemma2, "
                                    "gemma3_text, phi3, granite, olmo2, olmo3, smollm3, gpt2 and gpt_neox; llama.cpp "
                                    "has no architecture for it",
                                    name);
    ah__json_free(&to.json);
    return status;
}

static int llama3_make(struct ah_gguf_factors *out, const struct ah_json *json, const struct ah_json *rope)
{
    struct ah_gguf_llama3 found;
    int64_t original, size;
    AH_TRY(ah__json_double(&found.factor, rope, "factor", 1e-3, 1e6));
    AH_TRY(ah__json_double(&found.low, rope, "low_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_double(&found.high, rope, "high_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_int(&original, rope, "original_max_position_embeddings", 1, 1 << 24));
    AH_TRY(ah__json_int(&size, json, "head_dim", 2, 1 << 16));
    AH_TRY(ah__json_double(&found.theta, json, "rope_theta", 1e-3, 1e12));
    found.original = (double)original;
    *out = (struct ah_gguf_factors){.name = AH_GGUF_FACTORS, .count = size / 2};
    AH_TRY(ah__new(&out->values, (size_t)out->count, sizeof *out->values));
    for (int64_t i = 0; i < out->count; i++)
        out->values[i] = (float)ah__gguf_llama3(&found, i, out->count);
    return AH_OK;
}

static int longrope_make(struct ah_gguf_factors *out, const struct ah_json *rope, const char *key, const char *name)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(rope->node, key), *item;
    int64_t i = 0;
    *out = (struct ah_gguf_factors){.name = name, .count = cJSON_GetArraySize(array)};
    AH_TRY(ah__new(&out->values, (size_t)out->count, sizeof *out->values));
    cJSON_ArrayForEach(item, array)
    {
        out->values[i++] = (float)item->valuedouble;
    }
    return AH_OK;
}

static int factors_make(struct ah_gguf_factors factors[2], const struct ah_json *json)
{
    struct ah_json rope;
    const char *type;
    if (!ah__json_has(json, "rope_scaling"))
        return AH_OK;
    AH_TRY(ah__json_object(&rope, json, "rope_scaling"));
    AH_TRY(ah__json_string(&type, &rope, ah__json_has(&rope, "type") ? "type" : "rope_type"));
    if (strcmp(type, "llama3") == 0)
        return llama3_make(&factors[0], json, &rope);
    if (strcmp(type, "longrope") != 0)
        return AH_OK;
    AH_TRY(longrope_make(&factors[0], &rope, "long_factor", AH_GGUF_LONG_FACTORS));
    return longrope_make(&factors[1], &rope, "short_factor", AH_GGUF_SHORT_FACTORS);
}

int ah__gguf_rope_factors(struct ah_gguf_factors factors[2], const struct ah_model *model)
{
    struct ah_json json;
    factors[0] = factors[1] = (struct ah_gguf_factors){.name = NULL};
    AH_TRY(config_open(&json, model));
    int status = factors_make(factors, &json);
    ah__json_free(&json);
    return status;
}
