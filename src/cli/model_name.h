/* Names of the models that come with AutoHete, where a model's path is expected. */
#ifndef AH_CLI_MODEL_NAME_H
#define AH_CLI_MODEL_NAME_H

#include "cli/args.h"

/* "llama-3.1-8b" of "models/llama-3.1-8b.json"; the folder's name of "smollm/config.json" and "smollm/". */
void ah__model_name(char *name, size_t size, const char *path);

/* The file of the model of that name into *path (free), null: there is none. AH_ENOMEM. */
int ah__model_named(char **path, const char *name);

/* Puts the file in place of a name after --model of the command, which was parsed; what is there as a path stays.
 * AH_EINPUT lists the names that one which is none is close to. */
int ah__model_names_resolve(const struct ah_command *command);

#endif
