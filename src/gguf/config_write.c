/* Writes the keys of a model to GGUF files. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "gguf/arch_internal.h"
#include "gguf/by_name.h"
#include "gguf/config.h"

/* Integers that are copied. */
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

int ah__gguf_def_open(struct ah_json *json, const struct ah_model_def *def)
{
    return ah__json_parse(json, def->config, strlen(def->config), def->name);
}

static void put_unusual(const struct ah_gguf_written *to, const char *key, double value, double usual)
{
    char room[AH_GGUF_KEY_SIZE];
    if (fabs(value - usual) > 1e-6 * usual)
        ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, key), (float)value);
}

/* Checks the ends of YaRN's ramp: llama.cpp has keys for them, but reads them only for other architectures. */
static int betas_check(const struct ah_gguf_written *to, const struct ah_json *rope)
{
    static const struct {
        const char *key;
        double expected;
    } betas[] = {{"beta_fast", 32}, {"beta_slow", 1}};
    for (size_t i = 0; i < AH_LENGTH(betas); i++) {
        double found;
        AH_TRY(ah__json_double(&found, rope, betas[i].key, 1e-6, 1e6));
        if (found < betas[i].expected || found > betas[i].expected)
            return ah__fail(AH_EINPUT, "%s: key 'rope_scaling.%s': found %g, expected %g, which llama.cpp takes",
                            to->json.path, betas[i].key, found, betas[i].expected);
    }
    return AH_OK;
}

/* Writes YaRN's keys. llama.cpp computes the attention factor from the scaling factor, multiplied by a key, and rounds
 * the ends of the ramp. */
static int put_yarn(const struct ah_gguf_written *to, const struct ah_json *rope)
{
    char room[AH_GGUF_KEY_SIZE];
    double factor, attention;
    int64_t original;
    bool truncate;
    AH_TRY(ah__json_double(&factor, rope, "factor", 1, 1e6));
    AH_TRY(betas_check(to, rope));
    AH_TRY(ah__json_double(&attention, rope, "attention_factor", 1e-6, 1e6));
    AH_TRY(ah__json_bool(&truncate, rope, "truncate"));
    AH_TRY(ah__json_int(&original, rope, "original_max_position_embeddings", 1, 1 << 24));
    if (!truncate)
        return ah__fail(AH_EINPUT, "%s: key 'rope_scaling.truncate': found false, expected true, as llama.cpp does it",
                        to->json.path);
    ah__gguf_put_text(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.type"), "yarn");
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.factor"), (float)factor);
    put_unusual(to, "rope.scaling.attn_factor", attention / ah__gguf_yarn_growth(factor), 1);
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.original_context_length"),
                     (uint32_t)original);
    return AH_OK;
}

static int llama3_read(struct ah_gguf_llama3 *out, int64_t *pairs, const struct ah_json *json,
                       const struct ah_json *rope)
{
    int64_t original, size;
    AH_TRY(ah__json_double(&out->factor, rope, "factor", 1e-3, 1e6));
    AH_TRY(ah__json_double(&out->low, rope, "low_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_double(&out->high, rope, "high_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_int(&original, rope, "original_max_position_embeddings", 1, 1 << 24));
    AH_TRY(ah__json_int(&size, json, "head_dim", 2, 1 << 16));
    AH_TRY(ah__json_double(&out->theta, json, "rope_theta", 1e-3, 1e12));
    out->original = (double)original;
    *pairs = size / 2;
    return AH_OK;
}

/* Writes the parameters of Llama 3's factors for other readers; llama.cpp computes with a tensor of the factors. */
static int put_llama3(const struct ah_gguf_written *to, const struct ah_json *rope)
{
    char room[AH_GGUF_KEY_SIZE];
    struct ah_gguf_llama3 found;
    int64_t pairs;
    AH_TRY(llama3_read(&found, &pairs, &to->json, rope));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.original_context_length"),
                     (uint32_t)found.original);
    put_unusual(to, AH_GGUF_LLAMA3_LOW, found.low, 1);
    put_unusual(to, AH_GGUF_LLAMA3_HIGH, found.high, 4);
    put_unusual(to, AH_GGUF_LLAMA3_FACTOR, found.factor, ah__gguf_llama3(&found, pairs - 1, pairs));
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
    if (strcmp(type, "llama3") == 0)
        return put_llama3(to, &rope);
    bool longrope = strcmp(type, "longrope") == 0 && to->arch->partial;
    if (longrope) /* the factors are tensors */
        ah__gguf_put_text(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.type"), type);
    if (longrope)
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

/* Writes the number of a head's channels that rotate. */
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

/* Writes the keys that most families' config.json has. */
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
    for (const struct ah_gguf_size *at = to->arch->sizes ? to->arch->sizes : copied; at->gguf; at++)
        AH_TRY(put_size(to, at->ours, at->gguf));
    AH_TRY(put_size(to, "vocab_size", "vocab_size"));
    if (!to->arch->sizes)
        AH_TRY(put_decoder(to));
    return to->arch->write ? to->arch->write(to) : AH_OK;
}

static int fail_architecture(const struct ah_model_def *def)
{
    return ah__fail(AH_EINPUT,
                    "model '%s': GGUF is written of llama, mistral, ministral, qwen2, qwen3, gemma, gemma2, "
                    "gemma3_text, phi3, granite, olmo2, olmo3, smollm3, gpt2 and gpt_neox; llama.cpp "
                    "has no architecture for it",
                    def->name);
}

int ah__gguf_put_architecture(struct ah_gguf_writer *writer, const struct ah_model_def *def)
{
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    if (!arch)
        return fail_architecture(def);
    ah__gguf_put_text(writer, "general.architecture", arch->name);
    return AH_OK;
}

int ah__gguf_put_config(struct ah_gguf_writer *writer, const struct ah_model_def *def)
{
    struct ah_gguf_written to = {.writer = writer, .arch = ah__gguf_arch_of(def->name)};
    AH_TRY(ah__gguf_put_architecture(writer, def));
    AH_TRY(ah__gguf_def_open(&to.json, def));
    int status = put_keys(&to);
    ah__json_free(&to.json);
    return status;
}

/* Notes that llama.cpp chooses between LongRoPE's factors by the size of its context, not by the text's length. */
static int note_longrope(struct ah_buf *notes, const struct ah_json *json)
{
    int64_t original, positions;
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(json->node, "rope_scaling");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rope, "type"));
    if (!type || strcmp(type, "longrope") != 0 || !ah__json_has(json, "original_max_position_embeddings"))
        return AH_OK;
    AH_TRY(ah__json_int(&original, json, "original_max_position_embeddings", 1, 1 << 24));
    AH_TRY(ah__json_int(&positions, json, "max_position_embeddings", 1, INT32_MAX));
    if (positions <= original)
        return AH_OK;
    ah__buf_printf(
        ah__gguf_clause(notes),
        "llama.cpp takes LongRoPE's long factors for all texts where its context (--ctx-size) is above %lld, "
        "and the short ones else; the model takes the short ones for texts up to that",
        (long long)original);
    return AH_OK;
}

int ah__gguf_note_config(struct ah_buf *notes, const struct ah_model_def *def)
{
    struct ah_json json;
    AH_TRY(ah__gguf_def_open(&json, def));
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    int status = arch ? ah__gguf_note_window(notes, &json, arch) : AH_OK;
    if (status == AH_OK)
        status = note_longrope(notes, &json);
    ah__json_free(&json);
    return status;
}

static int llama3_make(struct ah_gguf_factors *out, const struct ah_json *json, const struct ah_json *rope)
{
    struct ah_gguf_llama3 found;
    int64_t pairs;
    AH_TRY(llama3_read(&found, &pairs, json, rope));
    *out = (struct ah_gguf_factors){.name = AH_GGUF_FACTORS, .count = pairs};
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

int ah__gguf_rope_factors(struct ah_gguf_factors factors[2], const struct ah_model_def *def)
{
    struct ah_json json;
    factors[0] = factors[1] = (struct ah_gguf_factors){.name = NULL};
    AH_TRY(ah__gguf_def_open(&json, def));
    int status = factors_make(factors, &json);
    ah__json_free(&json);
    return status;
}
