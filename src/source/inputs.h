/* Checks that an output does not overwrite an input. Takes the path of an output and the paths that an operation reads:
 * files, folders of models and trainings, folders of data. Compares files by identity, not by name. */
#ifndef AH_SOURCE_INPUTS_H
#define AH_SOURCE_INPUTS_H

#include "base/status.h"

/* Fails with AH_EINPUT if the file that writing to `path` would replace is the file `input` (null: none; "-": standard
 * input), or belongs to the folder `input`: a model's or a training's own files, those of its step folders, and those
 * of the model that it is an adapter of. Other files there may be replaced. AH_ENOMEM. */
int ah__output_apart(const char *path, const char *input);
/* Compares with every file of the folder `input`, at any depth. */
int ah__output_apart_of_all(const char *path, const char *input);

#endif
