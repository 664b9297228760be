/* What people give as a model and what is none: names of the hub, files of weights, pointers of Git LFS, links whose
 * file is gone, folders in other forms. Takes a path, gives the line that says what it is and what to do. */
#ifndef AH_SOURCE_MODEL_PATH_H
#define AH_SOURCE_MODEL_PATH_H

#include "base/status.h"

/* Where the weights of what is given as a model are: itself, or of a config.json its folder. Freed with ah__free.
 * AH_EINPUT: a file that has none; what is not there is the reader's fault to tell. */
int ah__model_place(char **place, const char *path);
/* AH_EINPUT for what is known to be no model; AH_OK for everything else, missing files too. AH_ENOMEM. */
int ah__model_path_check(const char *path);

enum { AH_MODEL_NAME_SIZE = 160 };
/* The name on the hub, "OWNER/NAME", of what lies at a path in Hugging Face's cache; false: it does not say. */
bool ah__model_cached_name(char out[AH_MODEL_NAME_SIZE], const char *path);

#endif
