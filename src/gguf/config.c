#include "gguf/config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/format.h"
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

const char *ah__gguf_key_of(char room[AH_GGUF_KEY_SIZE], const struct ah_gguf_arch *arch, const char *key)
{
    snprintf(room, AH_GGUF_KEY_SIZE, "%s.%s", arch->name, key);
    return room;
}

/* ---- configuration ----------------------------------------------------------------------------------------------- */

double ah__gguf_shortest(double value)
{
    char text[64];
    for (int digits = 1; digits < 9; digits++) {
        ah__snprintf(text, sizeof text, "%.*g", digits, value);
        double back = ah__strtod(text, NULL);
        if (!((float)back < (float)value || (float)back > (float)value))
            return back;
    }
    return value;
}

int ah__gguf_read_int(int64_t *out, const struct ah_gguf_config *config, const char *key)
{
    char room[AH_GGUF_KEY_SIZE];
    *out = -1;
    return ah__gguf_int(out, config->file, ah__gguf_key_of(room, config->arch, key), 0, INT32_MAX);
}

static int add_int(const struct ah_gguf_config *config, const char *key, const char *as)
{
    int64_t value;
    char room[AH_GGUF_KEY_SIZE];
    AH_TRY(ah__gguf_read_int(&value, config, key));
    if (value < 0)
        return ah__fail(AH_EINPUT, "%s: key '%s': found nothing, expected an integer", ah__gguf_path(config->file),
                        ah__gguf_key_of(room, config->arch, key));
    return ah__json_add_int(config->tree, as, value);
}

int ah__gguf_add_double(const struct ah_gguf_config *config, const char *key, const char *as)
{
    char room[AH_GGUF_KEY_SIZE];
    double value = 0;
    if (!ah__gguf_has(config->file, ah__gguf_key_of(room, config->arch, key)))
        return AH_OK;
    AH_TRY(ah__gguf_double(&value, config->file, room, -1e30, 1e30));
    return ah__json_add_double(config->tree, as, ah__gguf_shortest(value));
}

int ah__gguf_add_needed(const struct ah_gguf_config *config, const char *key, const char *as)
{
    char room[AH_GGUF_KEY_SIZE];
    if (ah__gguf_has(config->file, ah__gguf_key_of(room, config->arch, key)))
        return ah__gguf_add_double(config, key, as);
    return ah__fail(AH_EINPUT, "%s: key '%s': found nothing, expected a number", ah__gguf_path(config->file), room);
}

static int add_double(const struct ah_gguf_config *config, const char *key, const char *as, double otherwise)
{
    char room[AH_GGUF_KEY_SIZE];
    double value = otherwise;
    AH_TRY(ah__gguf_double(&value, config->file, ah__gguf_key_of(room, config->arch, key), -1e30, 1e30));
    return ah__json_add_double(config->tree, as, ah__gguf_shortest(value));
}

/* Sets vocab_size to the rows of the embedding: the file's own number of tokens may be less. */
static int add_vocab(const struct ah_gguf_config *config)
{
    const struct ah_gguf_tensor *table = ah__gguf_find(config->file, "token_embd.weight");
    if (!table || table->rank != 2)
        return ah__fail(AH_ECORRUPT, "%s: tensor 'token_embd.weight': found %s, expected a matrix",
                        ah__gguf_path(config->file), table ? "another shape" : "nothing");
    return ah__json_add_int(config->tree, "vocab_size", table->dim[0]);
}

double ah__gguf_part(int64_t dims, int64_t size)
{
    double part = (double)dims / (double)size;
    return (int64_t)((double)size * part) < dims ? nextafter(part, 2) : part;
}

static int add_heads(const struct ah_gguf_config *config)
{
    int64_t heads, kv_heads, hidden, size, values, rotating;
    AH_TRY(add_int(config, "attention.head_count", "num_attention_heads"));
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

/* ---- rotation ---------------------------------------------------------------------------------------------------- */

double ah__gguf_llama3(const struct ah_gguf_llama3 *rope, int64_t i, int64_t pairs)
{
    double length = 2 * acos(-1.0) * pow(rope->theta, (double)i / (double)pairs);
    if (length < rope->original / rope->high)
        return 1;
    if (length > rope->original / rope->low)
        return rope->factor;
    double smooth = (rope->original / length - rope->low) / (rope->high - rope->low);
    return 1 / ((1 - smooth) / rope->factor + smooth);
}

static bool is_llama3(const float *factors, int64_t pairs, const struct ah_gguf_llama3 *rope)
{
    for (int64_t i = 0; i < pairs; i++) {
        double expected = ah__gguf_llama3(rope, i, pairs);
        if (!(fabs((double)factors[i] - expected) <= 1e-4 * expected))
            return false;
    }
    return true;
}

static int add_llama3(const struct ah_gguf_config *config, const struct ah_gguf_llama3 *found)
{
    cJSON *rope = cJSON_AddObjectToObject(config->tree, "rope_scaling");
    AH_TRY(ah__json_add_string(rope, "rope_type", "llama3"));
    AH_TRY(ah__json_add_double(rope, "factor", ah__gguf_shortest(found->factor)));
    AH_TRY(ah__json_add_double(rope, "low_freq_factor", ah__gguf_shortest(found->low)));
    AH_TRY(ah__json_add_double(rope, "high_freq_factor", ah__gguf_shortest(found->high)));
    return ah__json_add_int(rope, "original_max_position_embeddings", (int64_t)found->original);
}

/* Reads the file's keys about Llama 3's factors; *said is false if the original context length is missing. */
static int llama3_said(struct ah_gguf_llama3 *rope, bool *said, const struct ah_gguf_config *config)
{
    char room[AH_GGUF_KEY_SIZE];
    const struct ah_gguf *file = config->file;
    AH_TRY(ah__gguf_double(&rope->theta, file, ah__gguf_key_of(room, config->arch, "rope.freq_base"), 1e-3, 1e12));
    AH_TRY(ah__gguf_double(&rope->low, file, ah__gguf_key_of(room, config->arch, AH_GGUF_LLAMA3_LOW), 1e-6, 1e6));
    AH_TRY(ah__gguf_double(&rope->high, file, ah__gguf_key_of(room, config->arch, AH_GGUF_LLAMA3_HIGH), 1e-6, 1e6));
    AH_TRY(ah__gguf_double(&rope->factor, file, ah__gguf_key_of(room, config->arch, AH_GGUF_LLAMA3_FACTOR), 1e-3, 1e6));
    *said = ah__gguf_has(file, ah__gguf_key_of(room, config->arch, "rope.scaling.original_context_length"));
    return ah__gguf_double(&rope->original, file, room, 1, 1 << 24);
}

/* Recovers the parameters from the factors, which is all that llama.cpp's converter writes. The last, longest factor is
 * `factor`. Llama 3's rise for wavelengths between 1/4 and all of 8192 positions; other models have another power of
 * two. */
static int factors_find(struct ah_gguf_llama3 *rope, bool *found, const struct ah_gguf_config *config,
                        const float *factors, int64_t pairs)
{
    bool said;
    *rope = (struct ah_gguf_llama3){10000, (double)factors[pairs - 1], 1, 4, 8192};
    AH_TRY(llama3_said(rope, &said, config));
    *found = is_llama3(factors, pairs, rope);
    for (double original = 64; !said && !*found && original <= 1 << 20; original *= 2) {
        rope->original = original;
        *found = is_llama3(factors, pairs, rope);
    }
    return AH_OK;
}

static int add_factors(const struct ah_gguf_config *config, const struct ah_gguf_tensor *tensor, int64_t size)
{
    float *factors;
    struct ah_gguf_llama3 rope;
    bool found;
    int64_t pairs = tensor->dim[tensor->rank - 1];
    if (tensor->rank != 1 || tensor->type->id != AH_GGUF_F32 || 2 * pairs != size)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%s': found another shape or type, expected %lld numbers in F32",
                        ah__gguf_path(config->file), AH_GGUF_FACTORS, (long long)size / 2);
    AH_TRY(ah__new(&factors, (size_t)pairs, sizeof *factors));
    memcpy(factors, tensor->data, tensor->bytes);
    int status = factors_find(&rope, &found, config, factors, pairs);
    ah__free(factors);
    AH_TRY(status);
    return found ? add_llama3(config, &rope)
                 : ah__fail(AH_EINPUT, "%s: tensor '%s': found other factors, expected Llama 3's",
                            ah__gguf_path(config->file), AH_GGUF_FACTORS);
}

/* Reads the factor by which positions are divided: its key, or the key of old files; 0 means no scaling, too. */
static int rope_factor(double *factor, const struct ah_gguf_config *config)
{
    static const char *const keys[] = {"rope.scaling.factor", "rope.scale_linear"};
    char room[AH_GGUF_KEY_SIZE];
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        *factor = 1;
        if (!ah__gguf_has(config->file, ah__gguf_key_of(room, config->arch, keys[i])))
            continue;
        AH_TRY(ah__gguf_double(factor, config->file, room, 0, 1e6));
        break;
    }
    *factor = *factor > 0 ? *factor : 1;
    return AH_OK;
}

static int add_linear(const struct ah_gguf_config *config, double factor)
{
    cJSON *rope = cJSON_AddObjectToObject(config->tree, "rope_scaling");
    AH_TRY(ah__json_add_string(rope, "rope_type", "linear"));
    return ah__json_add_double(rope, "factor", ah__gguf_shortest(factor));
}

double ah__gguf_yarn_growth(double factor)
{
    return factor > 1 ? 0.1 * log(factor) + 1 : 1;
}

/* Adds attention_factor. The key multiplies the factor that transformers computes from `factor`; some converters write
 * that factor itself for OLMo 3. In this case, and if the key is 1, the model has the computed one and nothing is
 * added. */
static int add_yarn_attention(const struct ah_gguf_config *config, cJSON *rope, double factor)
{
    char room[AH_GGUF_KEY_SIZE];
    double found = 1, usual = ah__gguf_yarn_growth(factor);
    AH_TRY(ah__gguf_double(&found, config->file, ah__gguf_key_of(room, config->arch, "rope.scaling.attn_factor"), 1e-6,
                           1e6));
    return fabs(found - 1) <= 1e-6 || fabs(found - usual) <= 1e-6 * usual
               ? AH_OK
               : ah__json_add_double(rope, "attention_factor", ah__gguf_shortest(found * usual));
}

static int add_yarn(const struct ah_gguf_config *config, double factor)
{
    static const char *const betas[][2] = {{"rope.scaling.yarn_beta_fast", "beta_fast"},
                                           {"rope.scaling.yarn_beta_slow", "beta_slow"}};
    int64_t original;
    AH_TRY(ah__gguf_read_int(&original, config, "rope.scaling.original_context_length"));
    if (original <= 0)
        AH_TRY(ah__gguf_read_int(&original, config, "context_length"));
    cJSON *rope = cJSON_AddObjectToObject(config->tree, "rope_scaling");
    AH_TRY(ah__json_add_string(rope, "rope_type", "yarn"));
    AH_TRY(ah__json_add_double(rope, "factor", ah__gguf_shortest(factor)));
    AH_TRY(add_yarn_attention(config, rope, factor));
    for (size_t i = 0; i < AH_LENGTH(betas); i++) {
        const struct ah_gguf_config inner = {config->file, config->arch, rope};
        AH_TRY(ah__gguf_add_double(&inner, betas[i][0], betas[i][1]));
    }
    return ah__json_add_int(rope, "original_max_position_embeddings", original);
}

/* Adds rope_theta and rope_scaling. A file without a type of scaling has a linear one, as in llama.cpp; a factor of 1
 * means no scaling. */
int ah__gguf_add_rope(const struct ah_gguf_config *config, int64_t size)
{
    const struct ah_gguf_tensor *factors = ah__gguf_find(config->file, AH_GGUF_FACTORS);
    const char *type = "linear";
    char room[AH_GGUF_KEY_SIZE];
    double factor;
    AH_TRY(add_double(config, "rope.freq_base", "rope_theta", 10000));
    AH_TRY(ah__gguf_text(&type, config->file, ah__gguf_key_of(room, config->arch, "rope.scaling.type")));
    AH_TRY(rope_factor(&factor, config));
    bool longrope = strcmp(type, "longrope") == 0 && config->arch->partial, none = strcmp(type, "none") == 0;
    bool yarn = strcmp(type, "yarn") == 0 && config->arch->yarn;
    if (!longrope && !none && !yarn && strcmp(type, "linear") != 0)
        return ah__fail(AH_EINPUT, "%s: key '%s': found '%.40s', expected none%s or linear",
                        ah__gguf_path(config->file), room, type, config->arch->yarn ? ", yarn" : "");
    bool scaled = !none && (yarn || factor < 1 || factor > 1);
    if (scaled && (factors || longrope))
        return ah__fail(AH_EINPUT, "%s: key '%s': found %g beside factors of each frequency, expected 1",
                        ah__gguf_path(config->file), ah__gguf_key_of(room, config->arch, "rope.scaling.factor"),
                        factor);
    if (factors)
        return add_factors(config, factors, size);
    return yarn ? add_yarn(config, factor) : scaled ? add_linear(config, factor) : AH_OK;
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
    AH_TRY(add_int(config, "embedding_length", "hidden_size"));
    AH_TRY(add_int(config, "feed_forward_length", "intermediate_size"));
    AH_TRY(add_int(config, "block_count", "num_hidden_layers"));
    AH_TRY(add_int(config, "context_length", "max_position_embeddings"));
    AH_TRY(add_heads(config));
    AH_TRY(ah__gguf_add_needed(config, "attention.layer_norm_rms_epsilon", "rms_norm_eps"));
    AH_TRY(ah__gguf_add_rope(config, head_size(config)));
    return add_biases(config);
}

static int sizes_fill(const struct ah_gguf_config *config)
{
    for (const struct ah_gguf_size *at = config->arch->sizes; at->gguf; at++)
        AH_TRY(add_int(config, at->gguf, at->ours));
    return AH_OK;
}

static int config_fill(const struct ah_gguf_config *config)
{
    AH_TRY(ah__json_add_string(config->tree, "model_type", config->arch->model_type));
    AH_TRY(add_vocab(config));
    AH_TRY(config->arch->sizes ? sizes_fill(config) : decoder_fill(config));
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
