/* Finds which blocks of a decoder are of the second kind. */
#include <string.h>

#include "model/decoder.h"

static const char *const type_names[] = {"full_attention", "sliding_attention"};

bool ah__decoder_is_other(const struct ah_decoder *decoder, int64_t block)
{
    return decoder->others[block / 64] >> (block % 64) & 1;
}

void ah__decoder_set_other(struct ah_decoder *decoder, int64_t block, bool other)
{
    uint64_t bit = UINT64_C(1) << (block % 64);
    decoder->others[block / 64] = other ? decoder->others[block / 64] | bit : decoder->others[block / 64] & ~bit;
}

int64_t ah__decoder_others(const struct ah_decoder *decoder)
{
    int64_t count = 0;
    for (int64_t i = 0; i < decoder->layers; i++)
        count += ah__decoder_is_other(decoder, i);
    return count;
}

void ah__decoder_settle(struct ah_decoder *decoder)
{
    if (ah__decoder_others(decoder) != decoder->layers)
        return;
    decoder->kind[0] = decoder->kind[1];
    memset(decoder->others, 0, sizeof decoder->others);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

int ah__decoder_parse_window(struct ah_decoder *decoder, const struct ah_json *json)
{
    decoder->kind[0].window = cJSON_HasObjectItem(json->node, "sliding_window") ? 0 : 4096;
    return ah__config_int(&decoder->kind[0].window, json, "sliding_window", 1, 1 << 24);
}

static int fail_type(const struct ah_json *json, int64_t block, const cJSON *type)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)block);
    if (!type)
        return ah__fail(AH_EINPUT, "%s: key 'layer_types': found %s words, expected num_hidden_layers of them",
                        json->path, number);
    return ah__fail(AH_EINPUT, "%s: key 'layer_types.%s': found %s%.40s%s, expected '%s' or '%s'", json->path, number,
                    cJSON_IsString(type) ? "'" : "", cJSON_IsString(type) ? type->valuestring : "no word",
                    cJSON_IsString(type) ? "'" : "", type_names[0], type_names[1]);
}

int ah__decoder_parse_types(struct ah_decoder *decoder, const struct ah_json *json)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(json->node, "layer_types"), *type;
    int64_t block = 0;
    if (!types || cJSON_IsNull(types))
        return AH_OK;
    if (cJSON_GetArraySize(types) != decoder->layers)
        return fail_type(json, cJSON_GetArraySize(types), NULL);
    cJSON_ArrayForEach(type, types)
    {
        bool sliding = cJSON_IsString(type) && strcmp(type->valuestring, type_names[1]) == 0;
        if (!sliding && !(cJSON_IsString(type) && strcmp(type->valuestring, type_names[0]) == 0))
            return fail_type(json, block, type);
        ah__decoder_set_other(decoder, block++, sliding);
    }
    return AH_OK;
}

int ah__decoder_parse_layers(struct ah_decoder *decoder, const struct ah_json *json)
{
    bool sliding = false;
    int64_t full_layers = 28;
    AH_TRY(ah__config_bool(&sliding, json, "use_sliding_window"));
    if (sliding || !decoder->alternates) /* without use, the class of such a family saves a window of 0 */
        AH_TRY(ah__decoder_parse_window(decoder, json));
    AH_TRY(ah__config_int(&full_layers, json, "max_window_layers", 0, 1 << 24));
    for (int64_t i = 0; i < decoder->layers; i++)
        ah__decoder_set_other(decoder, i, decoder->alternates ? i % 2 == 0 && i < full_layers : i >= full_layers);
    AH_TRY(ah__decoder_parse_types(decoder, json));
    decoder->kind[1].window = sliding ? decoder->kind[0].window : 0;
    decoder->kind[0].window = 0;
    if (decoder->kind[1].window == 0)
        memset(decoder->others, 0, sizeof decoder->others);
    ah__decoder_settle(decoder);
    return AH_OK;
}

/* ---- configuration -> config.json -------------------------------------------------------------------------------- */

int ah__decoder_add_types(cJSON *tree, const struct ah_decoder *decoder)
{
    cJSON *types = cJSON_AddArrayToObject(tree, "layer_types");
    bool added = types;
    for (int64_t i = 0; added && i < decoder->layers; i++)
        added = cJSON_AddItemToArray(types, cJSON_CreateString(type_names[ah__decoder_is_other(decoder, i)]));
    return added ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

int ah__decoder_add_window(cJSON *tree, const struct ah_decoder *decoder)
{
    if (decoder->kind[1].window > 0)
        return ah__json_add_int(tree, "sliding_window", decoder->kind[1].window);
    return cJSON_AddNullToObject(tree, "sliding_window")
               ? AH_OK
               : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

int ah__decoder_add_layers(cJSON *tree, const struct ah_decoder *decoder)
{
    bool mixed = ah__decoder_others(decoder) > 0;
    int64_t window = decoder->kind[mixed].window;
    AH_TRY(ah__json_add_bool(tree, "use_sliding_window", window > 0));
    if (window == 0)
        return AH_OK;
    AH_TRY(ah__json_add_int(tree, "sliding_window", window));
    AH_TRY(ah__json_add_int(tree, "max_window_layers", mixed ? decoder->layers : 0));
    if (mixed || !decoder->alternates)
        return mixed ? ah__decoder_add_types(tree, decoder) : AH_OK;
    struct ah_decoder copy = *decoder;
    for (int64_t i = 0; i < copy.layers; i++)
        ah__decoder_set_other(&copy, i, true);
    return ah__decoder_add_types(tree, &copy);
}
