/* Mistral: the decoder with a sliding window. */
#include <string.h>

#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {AH_DECODER_KEYS, "sliding_window", "layer_types", NULL};

/* Blocks are all alike: transformers gives a window to all of them, whatever stands there. Others are refused. */
static int types_check(const struct ah_decoder *decoder, const struct ah_json *json)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(json->node, "layer_types"), *type;
    const char *first = types ? cJSON_GetStringValue(types->child) : NULL;
    const char *expected = decoder->kind[0].window ? "sliding_attention" : "full_attention";
    if (!types || cJSON_IsNull(types))
        return AH_OK;
    if (!cJSON_IsArray(types))
        return ah__fail(AH_EINPUT, "%s: key 'layer_types': found no list, expected one", json->path);
    cJSON_ArrayForEach(type, types)
    {
        const char *word = cJSON_GetStringValue(type);
        if (!word || strcmp(word, first) != 0 || (strcmp(word, expected) != 0 && strcmp(word, "full_attention") != 0))
            return ah__fail(AH_EINPUT, "%s: key 'layer_types': found %.40s, expected '%s' for all blocks", json->path,
                            word && strcmp(word, first) != 0 ? "several types"
                            : word                           ? word
                                                             : "no word",
                            expected);
    }
    return AH_OK;
}

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {0};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(ah__decoder_parse_window(&decoder, json));
    AH_TRY(types_check(&decoder, json));
    return ah__decoder_new(out, &decoder);
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    AH_TRY(ah__decoder_add(tree, decoder));
    if (decoder->kind[0].window == 0) /* missing would be 4096 */
        return cJSON_AddNullToObject(tree, "sliding_window") ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory");
    return ah__json_add_int(tree, "sliding_window", decoder->kind[0].window);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "MistralForCausalLM", ah__family_mistral.model_type, fill, config);
}

const struct ah_family ah__family_mistral = {
    .model_type = "mistral",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
