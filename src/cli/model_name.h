/* Names of the models that come with AutoHete, where a model's path is expected. */
#ifndef AH_CLI_MODEL_NAME_H
#define AH_CLI_MODEL_NAME_H

#include "cli/args.h"

/* Writes the name of the model at `path`: "llama-3.1-8b" for "models/llama-3.1-8b.json"; the folder's name for
 * "smollm/config.json" and "smollm/". */
void ah__model_name(char *name, size_t size, const char *path);

/* Sets *path (free) to the file of the model of that name; null: there is none. Returns AH_OK or AH_ENOMEM. */
int ah__model_named(char **path, const char *name);

/* Puts the model's file in place of a name after --model of the command, which was parsed. An existing path stays.
 * AH_EINPUT: the name is unknown, and the message lists names close to it. */
int ah__model_names_resolve(const struct ah_command *command);

#endif
