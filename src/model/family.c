#include "model/family.h"

#include <string.h>

#include "model/config.h"

static const struct ah_family *const families[] = {
    &ah__family_gemma,     &ah__family_gemma2,  &ah__family_gemma3_text, &ah__family_gpt2,      &ah__family_gpt_neox,
    &ah__family_gpt_oss,   &ah__family_granite, &ah__family_granitemoe,  &ah__family_llama,     &ah__family_ministral,
    &ah__family_mistral,   &ah__family_mixtral, &ah__family_olmo2,       &ah__family_olmo3,     &ah__family_olmoe,
    &ah__family_opt,       &ah__family_phi3,    &ah__family_qwen2,       &ah__family_qwen2_moe, &ah__family_qwen3,
    &ah__family_qwen3_moe, &ah__family_smollm3,
};

int ah__family_find(const struct ah_family **out, const struct ah_json *json)
{
    const char *types[AH_LENGTH(families) + 1] = {NULL}, *found;
    for (size_t i = 0; i < AH_LENGTH(families); i++)
        types[i] = families[i]->model_type;
    AH_TRY(ah__config_word(&found, json, "model_type", types));
    for (size_t i = 0; i < AH_LENGTH(families); i++)
        if (strcmp(families[i]->model_type, found) == 0)
            *out = families[i];
    if ((*out)->refine)
        *out = (*out)->refine(json);
    return AH_OK;
}
