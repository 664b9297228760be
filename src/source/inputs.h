/* That nothing is written over what is read. Takes the path of an output and those of what an operation reads: files,
 * folders of models and trainings, folders of data. Files are told apart by what they are, not by their names. */
#ifndef AH_SOURCE_INPUTS_H
#define AH_SOURCE_INPUTS_H

#include "base/status.h"

/* AH_EINPUT: the file that writing to `path` would replace is the file `input` (null: none; "-": standard input), or
 * one of the folder `input`: a model's or a training's own files, those of its step folders, and the same of the model
 * that it is an adapter of. Other files there may be replaced. AH_ENOMEM. */
int ah__output_apart(const char *path, const char *input);
/* The same with each file of the folder `input`, at any depth. */
int ah__output_apart_of_all(const char *path, const char *input);

#endif
