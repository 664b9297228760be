/* Mistral and Ministral: the decoder with a sliding window, in all blocks or in some. */
#include <string.h>

#include "model/decoder.h"

static const char *const keys[] = {AH_DECODER_KEYS, "sliding_window", "layer_types", NULL};

/* ---- blocks that differ ------------------------------------------------------------------------------------------ */

/* Gives the window to the blocks that layer_types calls "sliding_attention", or to all without the key. */
static int parse_kinds(struct ah_decoder *decoder, const struct ah_json *json)
{
    int64_t window = decoder->kind[0].window;
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, window > 0);
    AH_TRY(ah__decoder_parse_types(decoder, json));
    if (window == 0 && ah__decoder_others(decoder) > 0)
        return ah__fail(AH_EINPUT,
                        "%s: key 'sliding_window': found null, expected the window of the blocks that layer_types "
                        "calls sliding_attention",
                        json->path);
    decoder->kind[1].window = window;
    decoder->kind[0].window = 0;
    ah__decoder_settle(decoder);
    return AH_OK;
}

static int read_ministral(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__decoder_parse_window(decoder, json));
    return parse_kinds(decoder, json);
}

/* ---- mistral ----------------------------------------------------------------------------------------------------- */

/* Returns true if the words of layer_types are not all the same. */
static bool types_mix(const struct ah_json *json)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(json->node, "layer_types"), *type;
    const char *first = types ? cJSON_GetStringValue(types->child) : NULL;
    cJSON_ArrayForEach(type, types)
    {
        const char *word = cJSON_GetStringValue(type);
        if (first && word && strcmp(word, first) != 0)
            return true;
    }
    return false;
}

/* Checks words that are all the same: transformers then gives the window to all blocks, whatever the words are. */
static int types_check(const struct ah_decoder *decoder, const struct ah_json *json)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(json->node, "layer_types"), *type;
    const char *expected = decoder->kind[0].window ? "sliding_attention" : "full_attention";
    if (!types || cJSON_IsNull(types))
        return AH_OK;
    if (!cJSON_IsArray(types))
        return ah__fail(AH_EINPUT, "%s: key 'layer_types': found no list, expected one", json->path);
    cJSON_ArrayForEach(type, types)
    {
        const char *word = cJSON_GetStringValue(type);
        if (!word || (strcmp(word, expected) != 0 && strcmp(word, "full_attention") != 0))
            return ah__fail(AH_EINPUT, "%s: key 'layer_types': found %.40s, expected '%s' for all blocks", json->path,
                            word ? word : "no word", expected);
    }
    return AH_OK;
}

static int read_mistral(struct ah_decoder *decoder, const struct ah_json *json)
{
    AH_TRY(ah__decoder_parse_window(decoder, json));
    return types_check(decoder, json);
}

/* Returns Ministral for mixed layer_types, as transformers does, which computes them under that name alone. */
static const struct ah_family *refine(const struct ah_json *json)
{
    return types_mix(json) ? &ah__family_ministral : &ah__family_mistral;
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    bool mixed = ah__decoder_others(decoder) > 0;
    int64_t window = decoder->kind[mixed].window;
    if (mixed)
        AH_TRY(ah__decoder_add_types(tree, decoder));
    if (window == 0) /* a missing key would mean 4096 */
        return cJSON_AddNullToObject(tree, "sliding_window") ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory");
    return ah__json_add_int(tree, "sliding_window", window);
}

const struct ah_family ah__family_ministral =
    AH_DECODER_FAMILY("ministral", "MinistralForCausalLM", keys, {.read = read_ministral, .write = write});

const struct ah_family ah__family_mistral = {
    .model_type = "mistral",
    .architecture = "MistralForCausalLM",
    .keys = keys,
    .parse = ah__decoder_new,
    .describe = ah__decoder_describe,
    .write = ah__decoder_write,
    .record = ah__decoder_record,
    .decoder = &(const struct ah_decoder){.read = read_mistral, .write = write},
    .refine = refine,
};
