/* Recognizes paths that people give as a model but that are not: names of the hub, files of weights, pointers of Git
 * LFS, links whose file is gone, folders in other forms. Takes a path, gives the line that says what it is and what to
 * do. */
#ifndef AH_SOURCE_MODEL_PATH_H
#define AH_SOURCE_MODEL_PATH_H

#include "base/status.h"

/* Returns AH_EINPUT for a path that is known not to be a model; AH_OK for everything else, missing files too.
 * AH_ENOMEM. */
int ah__model_path_check(const char *path);

enum { AH_MODEL_NAME_SIZE = 160 };
/* Gives the name on the hub, "OWNER/NAME", of a path in Hugging Face's cache; false if the path does not contain it. */
bool ah__model_cached_name(char out[AH_MODEL_NAME_SIZE], const char *path);

#endif
