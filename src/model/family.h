/* The families of models that are read from Hugging Face's config.json: one row each in family.c, found by model_type.
 * A family is one file: it reads its config keys, writes them canonically and records itself. It must not know memory,
 * partitions or devices; model.c must not know a family. */
#ifndef AH_MODEL_FAMILY_H
#define AH_MODEL_FAMILY_H

#include "base/json.h"

struct ah_decoder;

/* Every member but the last two is required. A configuration is one block of memory; the model that was made from it
 * frees it with ah__free. */
struct ah_family {
    const char *model_type;   /* as in config.json */
    const char *architecture; /* the class of transformers that reads the keys of write() */
    const char *const *keys;  /* null-terminated keys that parse() reads; model/keys.h judges other keys */
    /* Makes a new configuration from config keys. AH_EINPUT names file, key, found and expected. AH_ENOMEM. */
    int (*parse)(void **config, const struct ah_family *family, const struct ah_json *json);
    /* Sets vocab_size, max_seq, layers and the rate of dropout. */
    void (*describe)(struct ah_model_def *def, const void *config);
    /* Adds all keys but the architecture and model_type: equal configurations give equal text. AH_ENOMEM. */
    int (*write)(cJSON *tree, const void *config);
    /* ah_model_def.record; the context is the configuration. */
    int (*record)(struct ah_graph *graph, int64_t batch, int64_t seq, void *config);
    /* Differences and defaults of a family with decoder blocks (AH_DECODER_FAMILY). Null in other families. */
    const struct ah_decoder *decoder;
    /* Returns the family that keys other than model_type describe. Null: always this one. */
    const struct ah_family *(*refine)(const struct ah_json *json);
};

extern const struct ah_family ah__family_gemma, ah__family_gemma2, ah__family_gemma3_text, ah__family_gpt2,
    ah__family_gpt_neox, ah__family_gpt_oss, ah__family_granite, ah__family_granitemoe, ah__family_llama,
    ah__family_ministral, ah__family_mistral, ah__family_mixtral, ah__family_olmo2, ah__family_olmo3, ah__family_olmoe,
    ah__family_opt, ah__family_phi3, ah__family_qwen2, ah__family_qwen2_moe, ah__family_qwen3, ah__family_qwen3_moe,
    ah__family_smollm3;

/* Finds the family that the key model_type names. AH_EINPUT lists the known ones. */
int ah__family_find(const struct ah_family **out, const struct ah_json *json);

#endif
