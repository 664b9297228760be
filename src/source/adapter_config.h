/* adapter_config.json, PEFT's file beside the weights of a low-rank adapter. Takes and gives the settings that change
 * the computation; refuses by name those that are not supported. Knows no models. */
#ifndef AH_SOURCE_ADAPTER_CONFIG_H
#define AH_SOURCE_ADAPTER_CONFIG_H

#include "base/json.h"

#define AH_ADAPTER_CONFIG "adapter_config.json"
#define AH_ADAPTER_FILE "adapter_model.safetensors"
/* The file of an adapter's checkpoint with its model's configuration. It has a name of our own, since transformers
 * takes a folder with config.json for a whole model. */
#define AH_ADAPTER_MODEL "autohete_model.json"
/* PEFT's prefix of the names of a model's parameters. */
#define AH_ADAPTER_PREFIX "base_model.model."

enum { AH_ADAPTER_TARGETS = 512 };

struct ah_adapter_config {
    int rank;     /* rank of the widest module; zeros can make the others as wide */
    double alpha; /* relates to `rank` as the file's own alpha to its own rank */
    bool rslora;
    /* Names separated by commas, or AH_LORA_ALL. If the file has a regular expression, names layers or excludes
     * modules, these are the modules of the weights beside it. */
    char targets[AH_ADAPTER_TARGETS];
    bool by_file; /* true then, or if some layers have no adapter: only modules with weights in the file are adapted */
    char *base;   /* the adapted model: a path, or a name on a hub; null: unknown */
    double dropout; /* dropout of the adapter's input, in training */
    /* Contents of the file that was read. Nodes belong to its tree; null: missing. */
    struct ah_json json;
    char *path;
    int own_rank;
    double own_alpha;
    struct ah_adapter_patterns {
        const cJSON *object;        /* patterns and their numbers; null: no patterns */
        struct ah_regex **compiled; /* in the object's order */
    } ranks, alphas;
    const cJSON *layers; /* one number or a list */
    const cJSON *whole;  /* a list of modules that are saved whole */
};

/* Returns true if FOLDER/adapter_config.json exists. */
bool ah__adapter_config_exists(const char *folder);
/* Loads FOLDER/adapter_config.json; freed by ah__adapter_config_free. AH_EINPUT names file and key, and for adapters in
 * other forms a way to convert them; AH_EIO. */
int ah__adapter_config_load(struct ah_adapter_config *out, const char *folder);
/* Gives the rank of one module ("model.layers.0.self_attn.q_proj"), and its scale divided by the scale of all: exactly
 * 1 without a pattern for it. AH_EINPUT: a pattern that is not a regular expression. */
int ah__adapter_config_module(int *rank, double *factor, const struct ah_adapter_config *config, const char *module);
/* Returns true if the layer of this number, from 0, has adapters. */
bool ah__adapter_config_layer(const struct ah_adapter_config *config, int layer);
/* Returns true if a tensor of this name is a factor: MODULE.lora_A.weight or MODULE.lora_B.weight, or torch's form with
 * the adapter's name before "weight". *module: bytes of the module's name; *which: 'A' or 'B'. */
bool ah__adapter_factor(size_t *module, char *which, const char *tensor);
/* Saves a configuration. `transposed`: the adapted weights are [I, O] (fan_in_fan_out). Ignores the members of a file
 * that was read. */
int ah__adapter_config_save(const struct ah_adapter_config *config, bool transposed, const char *folder);
/* Zero-initialised is fine. */
void ah__adapter_config_free(struct ah_adapter_config *config);

#endif
