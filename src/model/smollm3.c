/* SmolLM3: Llama in which queries and keys of some blocks do not rotate. */
#include "model/decoder.h"

/* sliding_window and max_window_layers have no effect without use_sliding_window. */
static const char *const keys[] = {AH_DECODER_KEYS,          "attention_bias", "mlp_bias",          "no_rope_layers",
                                   "no_rope_layer_interval", "sliding_window", "max_window_layers", NULL};

/* Reads an array with a 1 for each block whose queries and keys rotate; extra elements are ignored. */
static int parse_array(struct ah_decoder *decoder, const struct ah_json *json, const cJSON *array)
{
    if (cJSON_GetArraySize(array) < decoder->layers)
        return ah__fail(AH_EINPUT, "%s: key 'no_rope_layers': found %d numbers, expected num_hidden_layers %lld",
                        json->path, cJSON_GetArraySize(array), (long long)decoder->layers);
    for (int i = 0; i < (int)decoder->layers; i++) {
        const cJSON *item = cJSON_GetArrayItem(array, i);
        if (!cJSON_IsNumber(item) || (item->valueint != 0 && item->valueint != 1))
            return ah__fail(AH_EINPUT, "%s: key 'no_rope_layers.%d': found another value, expected 0 or 1", json->path,
                            i);
        ah__decoder_set_other(decoder, i, item->valueint == 0);
    }
    return AH_OK;
}

static int read(struct ah_decoder *decoder, const struct ah_json *json)
{
    int64_t interval = 4;
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(json->node, "no_rope_layers");
    AH_TRY(ah__config_int(&interval, json, "no_rope_layer_interval", 1, AH_DECODER_MOST_LAYERS));
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, (i + 1) % interval == 0);
    if (array && !cJSON_IsNull(array))
        AH_TRY(parse_array(decoder, json, array));
    decoder->kind[1].still = true;
    ah__decoder_settle(decoder);
    return AH_OK;
}

static int write(cJSON *tree, const struct ah_decoder *decoder)
{
    cJSON *array = cJSON_AddArrayToObject(tree, "no_rope_layers");
    bool added = array;
    for (int64_t i = 0; added && i < decoder->layers; i++)
        added = cJSON_AddItemToArray(array, cJSON_CreateNumber(!decoder->kind[ah__decoder_is_other(decoder, i)].still));
    return added ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

const struct ah_family ah__family_smollm3 = AH_DECODER_FAMILY("smollm3", "SmolLM3ForCausalLM", keys,
                                                              {.attention_bias_key = true,
                                                               .mlp_bias_key = true,
                                                               .pads_by_default = true,
                                                               .kv_heads = 4,
                                                               .theta = 2000000,
                                                               .tied = true,
                                                               .read = read,
                                                               .write = write});
