#include "model/rope.h"

#include <math.h>
#include <string.h>

#include "base/format.h"
#include "graph/graph.h"
#include "model/config.h"

static int parse_llama3(struct ah_rope *rope, const struct ah_json *json, int64_t positions)
{
    AH_TRY(ah__json_double(&rope->factor, json, "factor", 1e-3, 1e6));
    AH_TRY(ah__json_double(&rope->low, json, "low_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_double(&rope->high, json, "high_freq_factor", 1e-6, 1e6));
    rope->original = positions;
    AH_TRY(ah__config_int(&rope->original, json, "original_max_position_embeddings", 1, 1 << 24));
    if (rope->low >= rope->high)
        return ah__fail(AH_EINPUT, "%s: key '%s.low_freq_factor': found %g, expected less than high_freq_factor %g",
                        json->path, json->where, rope->low, rope->high);
    return AH_OK;
}

/* Returns the factor by which queries and keys grow if positions are stretched. */
static double growth(double factor, double times)
{
    return factor > 1 ? 0.1 * times * log(factor) + 1 : 1;
}

/* Reads attention_factor, or computes it from the other keys as transformers does if it is missing. */
static int parse_magnitude(struct ah_rope *rope, const struct ah_json *json)
{
    double times = 0, all = 0;
    AH_TRY(ah__config_double(&times, json, "mscale", 0, 1e3));
    AH_TRY(ah__config_double(&all, json, "mscale_all_dim", 0, 1e3));
    rope->magnitude = growth(rope->factor, 1);
    if (times > 0 && all > 0)
        rope->magnitude = growth(rope->factor, times) / growth(rope->factor, all);
    return ah__config_double(&rope->magnitude, json, "attention_factor", 1e-6, 1e6);
}

static int parse_yarn(struct ah_rope *rope, const struct ah_json *json, int64_t positions)
{
    rope->original = positions;
    rope->low = 1;
    rope->high = 32;
    rope->whole = true;
    AH_TRY(ah__config_int(&rope->original, json, "original_max_position_embeddings", 1, 1 << 24));
    rope->factor = (double)positions / (double)rope->original;
    AH_TRY(ah__config_double(&rope->factor, json, "factor", 1, 1e6));
    AH_TRY(ah__config_double(&rope->low, json, "beta_slow", 1e-6, 1e6));
    AH_TRY(ah__config_double(&rope->high, json, "beta_fast", 1e-6, 1e6));
    AH_TRY(ah__config_bool(&rope->whole, json, "truncate"));
    if (rope->low >= rope->high)
        return ah__fail(AH_EINPUT, "%s: key '%s.beta_slow': found %g, expected less than beta_fast %g", json->path,
                        json->where, rope->low, rope->high);
    return parse_magnitude(rope, json);
}

/* ---- longrope ---------------------------------------------------------------------------------------------------- */

/* Reads an array of numbers above 0; *count receives their number. */
static int parse_stretches(int *count, float *out, const struct ah_json *json, const char *key)
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(json->node, key), *item;
    const char *dot = json->where[0] ? "." : "";
    *count = 0;
    if (!cJSON_IsArray(array))
        return ah__fail(AH_EINPUT, "%s: key '%s%s%s': found %s, expected an array of numbers", json->path, json->where,
                        dot, key, array ? "something else" : "nothing");
    cJSON_ArrayForEach(item, array)
    {
        if (*count == AH_ROPE_MOST_PAIRS)
            return ah__fail(AH_EINPUT, "%s: key '%s%s%s': found %d numbers, expected at most %d", json->path,
                            json->where, dot, key, cJSON_GetArraySize(array), AH_ROPE_MOST_PAIRS);
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1e-6 && item->valuedouble <= 1e6))
            return ah__fail(AH_EINPUT, "%s: key '%s%s%s.%d': found another value, expected a number above 0",
                            json->path, json->where, dot, key, *count);
        out[(*count)++] = (float)item->valuedouble;
    }
    return AH_OK;
}

static double long_growth(double factor, int64_t original)
{
    return factor > 1 ? sqrt(1 + log(factor) / log((double)original)) : 1;
}

/* Reads LongRoPE's keys as transformers' _compute_longrope_parameters does. */
static int parse_longrope(struct ah_rope *rope, const struct ah_json *json, const struct ah_rope_keys *keys,
                          int64_t positions)
{
    int more;
    double factor;
    if (!keys->original) {
        rope->original = positions;
        AH_TRY(ah__config_int(&rope->original, json, "original_max_position_embeddings", 2, 1 << 24));
    }
    factor = (double)positions / (double)rope->original;
    AH_TRY(parse_stretches(&rope->stretches, rope->brief, json, "short_factor"));
    AH_TRY(parse_stretches(&more, rope->lengthy, json, "long_factor"));
    if (rope->stretches == 0 || rope->stretches != more)
        return ah__fail(AH_EINPUT, "%s: key '%s.long_factor': found %d numbers, expected as many as short_factor has",
                        json->path, json->where, more);
    rope->usual = long_growth(factor, rope->original);
    AH_TRY(ah__config_double(&factor, json, "factor", 1e-3, 1e6));
    rope->magnitude = long_growth(factor, rope->original);
    return ah__config_double(&rope->magnitude, json, "attention_factor", 1e-6, 1e6);
}

int64_t ah__rope_switch(const struct ah_rope *rope)
{
    return rope->stretches > 0 ? rope->original : 0;
}

/* Returns the number of the fewest digits that give the same float again. */
static double as_written(float value)
{
    char text[32];
    for (int digits = 6; digits < 9; digits++) {
        ah__snprintf(text, sizeof text, "%.*g", digits, (double)value);
        float again = ah__strtof(text, NULL);
        if (memcmp(&again, &value, sizeof value) == 0)
            return ah__strtod(text, NULL);
    }
    return (double)value;
}

static int add_stretches(cJSON *object, const char *key, const float *stretches, int count)
{
    cJSON *array = cJSON_AddArrayToObject(object, key);
    for (int i = 0; i < count; i++)
        AH_TRY(ah__config_append_real(array, as_written(stretches[i])));
    return AH_OK;
}

/* Adds only three keys if they suffice, as transformers 4 requires. */
static int add_longrope(cJSON *tree, const struct ah_rope *rope, const struct ah_rope_keys *keys)
{
    cJSON *object = cJSON_AddObjectToObject(tree, "rope_scaling");
    AH_TRY(ah__json_add_string(object, "type", "longrope"));
    AH_TRY(add_stretches(object, "short_factor", rope->brief, rope->stretches));
    AH_TRY(add_stretches(object, "long_factor", rope->lengthy, rope->stretches));
    if (rope->magnitude > rope->usual || rope->magnitude < rope->usual)
        AH_TRY(ah__config_add_real(object, "attention_factor", rope->magnitude));
    return ah__json_add_int(keys->original ? tree : object, "original_max_position_embeddings", rope->original);
}

/* ---- config.json -> rotation ------------------------------------------------------------------------------------- */

/* Reads an object with the rotation's keys; `type` is the older name of rope_type. */
static int parse_object(struct ah_rope *rope, const struct ah_json *json, const struct ah_rope_keys *keys,
                        int64_t positions)
{
    static const char *const types[] = {"default", "linear", "dynamic", "llama3", "yarn", "longrope", "su", NULL};
    const char *type = "default", *type_key = ah__json_has(json, "rope_type") ? "rope_type" : "type";
    if (ah__json_has(json, type_key))
        AH_TRY(ah__config_word(&type, json, type_key, types));
    AH_TRY(ah__config_double(&rope->theta, json, "rope_theta", 1e-3, 1e12));
    AH_TRY(ah__config_double(&rope->part, json, "partial_rotary_factor", keys->part ? 0 : 1, 1));
    if (strcmp(type, "linear") == 0)
        return ah__json_double(&rope->factor, json, "factor", 1e-3, 1e6);
    if (strcmp(type, "dynamic") == 0)
        return ah__json_double(&rope->dynamic, json, "factor", 1e-3, 1e6);
    if (strcmp(type, "llama3") == 0)
        return parse_llama3(rope, json, positions);
    if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0 || ah__json_has(json, "short_factor"))
        return parse_longrope(rope, json, keys, positions);
    return strcmp(type, "yarn") == 0 ? parse_yarn(rope, json, positions) : AH_OK;
}

int ah__rope_parse(struct ah_rope *rope, const struct ah_json *json, const struct ah_rope_keys *keys, int64_t positions)
{
    const char *key = ah__json_has(json, "rope_parameters") ? "rope_parameters" : "rope_scaling";
    struct ah_json object;
    if (ah__json_has(json, "rope_parameters") && ah__json_has(json, "rope_scaling"))
        return ah__fail(AH_EINPUT, "%s: key 'rope_scaling': found beside 'rope_parameters', expected one of them",
                        json->path);
    if (keys->theta)
        AH_TRY(ah__config_double(&rope->theta, json, keys->theta, 1e-3, 1e12));
    if (keys->part)
        AH_TRY(ah__config_double(&rope->part, json, keys->part, 0, 1));
    if (keys->original)
        AH_TRY(ah__config_int(&rope->original, json, keys->original, 2, 1 << 24));
    if (!ah__json_has(json, key))
        return AH_OK;
    AH_TRY(ah__json_object(&object, json, key));
    if (keys->type && ah__json_has(&object, keys->type)) {
        struct ah_json typed;
        AH_TRY(ah__json_object(&typed, &object, keys->type));
        return parse_object(rope, &typed, keys, positions);
    }
    return keys->local ? AH_OK : parse_object(rope, &object, keys, positions);
}

int ah__rope_dims(int64_t *dims, const struct ah_rope *rope, const struct ah_json *json,
                  const struct ah_rope_keys *keys, int64_t size)
{
    *dims = (int64_t)((double)size * rope->part);
    if (rope->stretches > 0 && 2 * rope->stretches != *dims)
        return ah__fail(AH_EINPUT, "%s: key '%s.short_factor': found %d numbers, expected %lld: a head's pairs",
                        json->path, ah__json_has(json, "rope_parameters") ? "rope_parameters" : "rope_scaling",
                        rope->stretches, (long long)(*dims / 2));
    if (*dims % 2 == 0)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: key '%s': %lld of %lld channels of a head rotate, expected an even number",
                    json->path, keys->part ? keys->part : "head_dim", (long long)*dims, (long long)size);
}

static int add_yarn(cJSON *object, const struct ah_rope *rope)
{
    AH_TRY(ah__config_add_real(object, "beta_slow", rope->low));
    AH_TRY(ah__config_add_real(object, "beta_fast", rope->high));
    AH_TRY(ah__config_add_real(object, "attention_factor", rope->magnitude));
    AH_TRY(ah__json_add_bool(object, "truncate", rope->whole));
    return ah__json_add_int(object, "original_max_position_embeddings", rope->original);
}

static int add_scaling(cJSON *tree, const struct ah_rope *rope)
{
    cJSON *object = cJSON_AddObjectToObject(tree, "rope_scaling");
    bool yarn = rope->magnitude > 0;
    const char *type = yarn ? "yarn" : rope->dynamic > 0 ? "dynamic" : rope->high > 0 ? "llama3" : "linear";
    AH_TRY(ah__json_add_string(object, "rope_type", type));
    AH_TRY(ah__config_add_real(object, "factor", rope->dynamic > 0 ? rope->dynamic : rope->factor));
    if (yarn)
        return add_yarn(object, rope);
    if (!(rope->high > 0))
        return AH_OK;
    AH_TRY(ah__config_add_real(object, "low_freq_factor", rope->low));
    AH_TRY(ah__config_add_real(object, "high_freq_factor", rope->high));
    return ah__json_add_int(object, "original_max_position_embeddings", rope->original);
}

/* Adds the rotation's keys in the form that every version of transformers reads. */
int ah__rope_add(cJSON *tree, const struct ah_rope *rope, const struct ah_rope_keys *keys)
{
    AH_TRY(ah__config_add_real(tree, keys->theta, rope->theta));
    if (keys->part)
        AH_TRY(ah__config_add_real(tree, keys->part, rope->part));
    if (rope->stretches > 0)
        return add_longrope(tree, rope, keys);
    return rope->factor > 0 || rope->dynamic > 0 ? add_scaling(tree, rope) : AH_OK;
}

/* Returns the pair, of `dims` / 2, whose wave fits the original positions `times` times. */
static double pair_of(const struct ah_rope *rope, double dims, double times)
{
    const double two_pi = 6.283185307179586476925;
    return dims * log((double)rope->original / (times * two_pi)) / (2 * log(rope->theta));
}

/* Sets the pairs between which YaRN goes from unchanged waves to stretched ones. */
static void ramp(struct ah_rotary_options *options, const struct ah_rope *rope, double dims)
{
    double low = pair_of(rope, dims, rope->high), high = pair_of(rope, dims, rope->low);
    low = fmax(rope->whole ? floor(low) : low, 0);
    high = fmin(rope->whole ? ceil(high) : high, dims - 1);
    options->ramp = true;
    options->low = (float)low;
    options->high = (float)(high > low ? high : low + 0.001);
    options->magnitude = (float)rope->magnitude;
}

/* Returns the length of the sequences for which x is recorded: the cache's capacity, or x's own length without a
 * cache. */
static int64_t rope_length(const struct ah_graph *graph, struct ah_tensor x)
{
    if (graph->cache || x.id < 0)
        return graph->cache;
    return graph->values[x.id].meta.shape.dim[1];
}

struct ah_tensor ah__rope_record(struct ah_graph *graph, struct ah_tensor x, int64_t heads, int64_t dims,
                                 const struct ah_rope *rope, bool by_head)
{
    struct ah_rotary_options options = {.by_head = by_head,
                                        .factor = (float)rope->factor,
                                        .low = (float)rope->low,
                                        .high = (float)rope->high,
                                        .original = (int)rope->original};
    if (dims == 0)
        return x;
    if (rope->stretches > 0) {
        options.stretches = rope_length(graph, x) > rope->original ? rope->lengthy : rope->brief;
        options.magnitude = (float)rope->magnitude;
    } else if (rope->magnitude > 0 && dims > 0)
        ramp(&options, rope, (double)dims);
    return ah_graph_rotary(graph, x, (int)heads, (float)rope->theta, (int)dims, &options);
}
