/* Mistral: the decoder with a sliding window. */
#include "base/alloc.h"
#include "model/decoder.h"
#include "model/family.h"

static const char *const keys[] = {AH_DECODER_KEYS, "sliding_window", NULL};

static int parse(void **out, const struct ah_json *json)
{
    struct ah_decoder decoder = {0};
    AH_TRY(ah__decoder_parse(&decoder, json));
    AH_TRY(ah__decoder_parse_window(&decoder, json));
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
