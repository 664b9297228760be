#include "model/rope.h"

#include <string.h>

#include "model/config.h"

static int parse_scaling(struct ah_rope *rope, const struct ah_json *json, bool llama3, int64_t positions)
{
    rope->factor = 1;
    AH_TRY(ah__json_double(&rope->factor, json, "factor", 1e-3, 1e6));
    if (!llama3)
        return AH_OK;
    AH_TRY(ah__json_double(&rope->low, json, "low_freq_factor", 1e-6, 1e6));
    AH_TRY(ah__json_double(&rope->high, json, "high_freq_factor", 1e-6, 1e6));
    rope->original = positions;
    AH_TRY(ah__config_int(&rope->original, json, "original_max_position_embeddings", 1, 1 << 24));
    if (rope->low >= rope->high)
        return ah__fail(AH_EINPUT, "%s: key '%s.low_freq_factor': found %g, expected less than high_freq_factor %g",
                        json->path, json->where, rope->low, rope->high);
    return AH_OK;
}

/* An object with what is said of the rotation; `type` is its older name for rope_type. */
static int parse_object(struct ah_rope *rope, const struct ah_json *json, const struct ah_rope_keys *keys,
                        int64_t positions)
{
    static const char *const types[] = {"default", "linear", "llama3", NULL};
    const char *type = "default", *type_key = ah__json_has(json, "rope_type") ? "rope_type" : "type";
    if (ah__json_has(json, type_key))
        AH_TRY(ah__config_word(&type, json, type_key, types));
    AH_TRY(ah__config_double(&rope->theta, json, "rope_theta", 1e-3, 1e12));
    AH_TRY(ah__config_double(&rope->part, json, "partial_rotary_factor", keys->part ? 0 : 1, 1));
    if (strcmp(type, "default") == 0)
        return AH_OK;
    return parse_scaling(rope, json, strcmp(type, "llama3") == 0, positions);
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
    if (*dims % 2 == 0)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: key '%s': %lld of %lld channels of a head rotate, expected an even number",
                    json->path, keys->part ? keys->part : "head_dim", (long long)*dims, (long long)size);
}

static int add_scaling(cJSON *tree, const struct ah_rope *rope)
{
    cJSON *object = cJSON_AddObjectToObject(tree, "rope_scaling");
    AH_TRY(ah__json_add_string(object, "rope_type", rope->high > 0 ? "llama3" : "linear"));
    AH_TRY(ah__json_add_double(object, "factor", rope->factor));
    if (!(rope->high > 0))
        return AH_OK;
    AH_TRY(ah__json_add_double(object, "low_freq_factor", rope->low));
    AH_TRY(ah__json_add_double(object, "high_freq_factor", rope->high));
    return ah__json_add_int(object, "original_max_position_embeddings", rope->original);
}

/* In the form that every version of transformers reads. */
int ah__rope_add(cJSON *tree, const struct ah_rope *rope, const struct ah_rope_keys *keys)
{
    AH_TRY(ah__json_add_double(tree, keys->theta, rope->theta));
    if (keys->part)
        AH_TRY(ah__json_add_double(tree, keys->part, rope->part));
    return rope->factor > 0 ? add_scaling(tree, rope) : AH_OK;
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
    return ah_graph_rotary(graph, x, (int)heads, (float)rope->theta, (int)dims, &options);
}
