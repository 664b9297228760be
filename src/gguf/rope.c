/* The rotation of positions in GGUF files: read as rope_scaling of config.json, written from it. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "gguf/arch_internal.h"
#include "gguf/by_name.h"
#include "gguf/config.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int add_double(const struct ah_gguf_config *config, const char *key, const char *as, double otherwise)
{
    char room[AH_GGUF_KEY_SIZE];
    double value = otherwise;
    AH_TRY(ah__gguf_double(&value, config->file, ah__gguf_key_of(room, config->arch, key), -1e30, 1e30));
    return ah__json_add_double(config->tree, as, ah__gguf_shortest(value));
}

/* Llama 3's factors, as the model's authors publish them. */
struct llama3 {
    double theta, factor, low, high, original;
};

/* Returns the factor of the i-th of `pairs` frequencies. */
static double llama3_at(const struct llama3 *rope, int64_t i, int64_t pairs)
{
    double length = 2 * acos(-1.0) * pow(rope->theta, (double)i / (double)pairs);
    if (length < rope->original / rope->high)
        return 1;
    if (length > rope->original / rope->low)
        return rope->factor;
    double smooth = (rope->original / length - rope->low) / (rope->high - rope->low);
    return 1 / ((1 - smooth) / rope->factor + smooth);
}

static bool is_llama3(const float *factors, int64_t pairs, const struct llama3 *rope)
{
    for (int64_t i = 0; i < pairs; i++) {
        double expected = llama3_at(rope, i, pairs);
        if (!(fabs((double)factors[i] - expected) <= 1e-4 * expected))
            return false;
    }
    return true;
}

static int add_llama3(const struct ah_gguf_config *config, const struct llama3 *found)
{
    cJSON *rope = cJSON_AddObjectToObject(config->tree, "rope_scaling");
    AH_TRY(ah__json_add_string(rope, "rope_type", "llama3"));
    AH_TRY(ah__json_add_double(rope, "factor", ah__gguf_shortest(found->factor)));
    AH_TRY(ah__json_add_double(rope, "low_freq_factor", ah__gguf_shortest(found->low)));
    AH_TRY(ah__json_add_double(rope, "high_freq_factor", ah__gguf_shortest(found->high)));
    return ah__json_add_int(rope, "original_max_position_embeddings", (int64_t)found->original);
}

/* Reads the file's keys about Llama 3's factors; *said is false if the original context length is missing. */
static int llama3_said(struct llama3 *rope, bool *said, const struct ah_gguf_config *config)
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
static int factors_find(struct llama3 *rope, bool *found, const struct ah_gguf_config *config, const float *factors,
                        int64_t pairs)
{
    bool said;
    *rope = (struct llama3){10000, (double)factors[pairs - 1], 1, 4, 8192};
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
    struct llama3 rope;
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

/* Returns the factor by which YaRN enlarges queries and keys. */
static double yarn_growth(double factor)
{
    return factor > 1 ? 0.1 * log(factor) + 1 : 1;
}

/* Adds attention_factor. The key multiplies the factor that transformers computes from `factor`; some converters write
 * that factor itself for OLMo 3. In this case, and if the key is 1, the model has the computed one and nothing is
 * added. */
static int add_yarn_attention(const struct ah_gguf_config *config, cJSON *rope, double factor)
{
    char room[AH_GGUF_KEY_SIZE];
    double found = 1, usual = yarn_growth(factor);
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

/* ---- writing ----------------------------------------------------------------------------------------------------- */

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
    if (truncate == to->arch->rounded_apart)
        return ah__fail(AH_EINPUT, "%s: key 'rope_scaling.truncate': found %s, expected %s, as %s", to->json.path,
                        truncate ? "true" : "false", truncate ? "false" : "true",
                        truncate ? "readers of this architecture have it" : "llama.cpp does it");
    ah__gguf_put_text(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.type"), "yarn");
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.factor"), (float)factor);
    put_unusual(to, "rope.scaling.attn_factor", attention / yarn_growth(factor), 1);
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.original_context_length"),
                     (uint32_t)original);
    return AH_OK;
}

static int llama3_read(struct llama3 *out, int64_t *pairs, const struct ah_json *json, const struct ah_json *rope)
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
    struct llama3 found;
    int64_t pairs;
    AH_TRY(llama3_read(&found, &pairs, &to->json, rope));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.original_context_length"),
                     (uint32_t)found.original);
    put_unusual(to, AH_GGUF_LLAMA3_LOW, found.low, 1);
    put_unusual(to, AH_GGUF_LLAMA3_HIGH, found.high, 4);
    put_unusual(to, AH_GGUF_LLAMA3_FACTOR, found.factor, llama3_at(&found, pairs - 1, pairs));
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
    if (strcmp(type, "default") == 0)
        return AH_OK;
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

/* ---- factors as tensors ------------------------------------------------------------------------------------------ */

static int llama3_make(struct ah_gguf_factors *out, const struct ah_json *json, const struct ah_json *rope)
{
    struct llama3 found;
    int64_t pairs;
    AH_TRY(llama3_read(&found, &pairs, json, rope));
    *out = (struct ah_gguf_factors){.name = AH_GGUF_FACTORS, .count = pairs};
    AH_TRY(ah__new(&out->values, (size_t)out->count, sizeof *out->values));
    for (int64_t i = 0; i < out->count; i++)
        out->values[i] = (float)llama3_at(&found, i, out->count);
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
