/* Files that come with AutoHete, in folders of one kind ("hardware", "models"): beside the program or the library, in
 * the current folder, in the installed data. Knows nothing of the files' contents. */
#ifndef AH_BASE_BUNDLED_H
#define AH_BASE_BUNDLED_H

#include "base/status.h"

/* Finds NAME.json in the first of these folders that has it; *out is its path, freed with ah__free, or null if no
 * folder has it. AH_ENOMEM. */
int ah__bundled_find(char **out, const char *kind, const char *name);

/* Names without ".json", sorted, each name once. A zero-initialised list is empty. */
struct ah_bundled_names {
    size_t count, capacity;
    char (*name)[64];
};
/* Lists the files of these folders; names of 64 bytes or more are left out. AH_ENOMEM. */
int ah__bundled_list(struct ah_bundled_names *out, const char *kind);
void ah__bundled_names_free(struct ah_bundled_names *names);

#endif
