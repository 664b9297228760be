/* adapter_config.json, as PEFT has it beside the weights of a low-rank adapter. Takes and gives what of it changes the
 * arithmetic; refuses by name what training and inference here do otherwise. Knows no models. */
#ifndef AH_IO_ADAPTER_CONFIG_H
#define AH_IO_ADAPTER_CONFIG_H

#include "base/json.h"

#define AH_ADAPTER_CONFIG "adapter_config.json"
#define AH_ADAPTER_FILE "adapter_model.safetensors"
/* What PEFT puts before the names of a model's parameters. */
#define AH_ADAPTER_PREFIX "base_model.model."

enum { AH_ADAPTER_TARGETS = 512 };

struct ah_adapter_config {
    int rank;
    double alpha;
    bool rslora;
    char targets[AH_ADAPTER_TARGETS]; /* names with commas between them, or AH_LORA_ALL; where the file has a regular
                                       * expression or excludes modules, those that the weights beside it are of */
    char *base;                       /* of the model that is adapted: a path, or a name on a hub; null: unknown */
    double dropout;                   /* of what goes into the adapter, in training */
};

/* Whether FOLDER/adapter_config.json is there. */
bool ah__adapter_config_exists(const char *folder);
/* Freed by ah__adapter_config_free. AH_EINPUT names file and key; AH_EIO. */
int ah__adapter_config_load(struct ah_adapter_config *out, const char *folder);
/* `transposed`: the adapted weights are [I, O] (fan_in_fan_out). */
int ah__adapter_config_save(const struct ah_adapter_config *config, bool transposed, const char *folder);
/* Zero-initialised is fine. */
void ah__adapter_config_free(struct ah_adapter_config *config);

#endif
