/* SmolLM3: Llama with blocks in between whose queries and keys do not rotate. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

/* sliding_window and max_window_layers say nothing without use_sliding_window. */
static const char *const keys[] = {AH_DECODER_KEYS,          "attention_bias", "mlp_bias",          "no_rope_layers",
                                   "no_rope_layer_interval", "sliding_window", "max_window_layers", NULL};

/* A 1 where queries and keys rotate, for each block; more are passed over. */
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

static int parse_still(struct ah_decoder *decoder, const struct ah_json *json)
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

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {.kv_heads = 4, .theta = 2000000, .tied = true};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(ah__config_bool(&decoder.qkv_bias, json, "attention_bias"));
    AH_TRY(ah__config_bool(&decoder.mlp_bias, json, "mlp_bias"));
    decoder.out_bias = decoder.qkv_bias;
    AH_TRY(parse_still(&decoder, json));
    return ah__decoder_new(out, &decoder);
}

static int fill(cJSON *tree, const void *config)
{
    const struct ah_decoder *decoder = config;
    cJSON *array = cJSON_AddArrayToObject(tree, "no_rope_layers");
    bool added = array;
    for (int64_t i = 0; added && i < decoder->layers; i++)
        added = cJSON_AddItemToArray(array, cJSON_CreateNumber(!decoder->kind[ah__decoder_is_other(decoder, i)].still));
    if (!added)
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    AH_TRY(ah__decoder_add(tree, decoder));
    AH_TRY(ah__config_add_no_pad(tree));
    AH_TRY(ah__json_add_bool(tree, "attention_bias", decoder->qkv_bias));
    return ah__json_add_bool(tree, "mlp_bias", decoder->mlp_bias);
}

static int text(char **out, const void *config)
{
    return ah__config_text(out, "SmolLM3ForCausalLM", ah__family_smollm3.model_type, fill, config);
}

const struct ah_family ah__family_smollm3 = {
    .model_type = "smollm3",
    .keys = keys,
    .parse = parse,
    .describe = ah__decoder_describe,
    .text = text,
    .record = ah__decoder_record,
    .free = ah__free,
};
