/* adapter_config.json, as PEFT has it beside the weights of a low-rank adapter. Takes and gives what of it changes the
 * arithmetic; refuses by name what training and inference here do otherwise. Knows no models. */
#ifndef AH_SOURCE_ADAPTER_CONFIG_H
#define AH_SOURCE_ADAPTER_CONFIG_H

#include "base/json.h"

#define AH_ADAPTER_CONFIG "adapter_config.json"
#define AH_ADAPTER_FILE "adapter_model.safetensors"
/* What a checkpoint of adapters has of its model's configuration, under a name of our own: transformers takes a folder
 * with config.json for a whole model. */
#define AH_ADAPTER_MODEL "autohete_model.json"
/* What PEFT puts before the names of a model's parameters. */
#define AH_ADAPTER_PREFIX "base_model.model."

enum { AH_ADAPTER_TARGETS = 512 };

struct ah_adapter_config {
    int rank;     /* of the widest module: all can be made as wide by zeros */
    double alpha; /* to that rank as the file's own alpha is to its own rank */
    bool rslora;
    char targets[AH_ADAPTER_TARGETS]; /* names with commas between them, or AH_LORA_ALL; where the file has a regular
                                       * expression, names layers or excludes modules, those that the weights beside it
                                       * are of */
    bool by_file;                     /* then, and where some layers have none: what the weights lack is not adapted */
    char *base;                       /* of the model that is adapted: a path, or a name on a hub; null: unknown */
    double dropout;                   /* of what goes into the adapter, in training */
    /* Of the file that was read. Nodes belong to its tree; null: nothing. */
    struct ah_json json;
    char *path;
    int own_rank;
    double own_alpha;
    struct ah_adapter_patterns {
        const cJSON *object;        /* of patterns and what they say; null: none */
        struct ah_regex **compiled; /* in its order */
    } ranks, alphas;
    const cJSON *layers; /* a number, or several */
    const cJSON *whole;  /* a list of modules that are saved whole */
};

/* Whether FOLDER/adapter_config.json is there. */
bool ah__adapter_config_exists(const char *folder);
/* Freed by ah__adapter_config_free. AH_EINPUT names file and key, and adapters in other forms with what to do about
 * them; AH_EIO. */
int ah__adapter_config_load(struct ah_adapter_config *out, const char *folder);
/* The rank of one module ("model.layers.0.self_attn.q_proj"), and its scale beside alpha / rank of all: exactly 1 where
 * no pattern says otherwise. AH_EINPUT: a pattern that is no regular expression. */
int ah__adapter_config_module(int *rank, double *factor, const struct ah_adapter_config *config, const char *module);
/* Whether the layer of this number, from 0, has adapters. */
bool ah__adapter_config_layer(const struct ah_adapter_config *config, int layer);
/* Whether a tensor of this name is a factor: MODULE.lora_A.weight or MODULE.lora_B.weight, or with the adapter's name
 * before "weight", as torch has it. *module: bytes of the module's name; *which: 'A' or 'B'. */
bool ah__adapter_factor(size_t *module, char *which, const char *tensor);
/* `transposed`: the adapted weights are [I, O] (fan_in_fan_out). Of the file that was read nothing is taken. */
int ah__adapter_config_save(const struct ah_adapter_config *config, bool transposed, const char *folder);
/* Zero-initialised is fine. */
void ah__adapter_config_free(struct ah_adapter_config *config);

#endif
