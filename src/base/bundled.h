/* Files that come with AutoHete, in folders of one kind ("hardware", "models"): beside the program or the library,
 * in the current folder, in the installed data. Knows nothing of what is in them. */
#ifndef AH_BASE_BUNDLED_H
#define AH_BASE_BUNDLED_H

#include "base/status.h"

/* The first of these folders that has NAME.json; null into *out: none. Freed with ah__free. AH_ENOMEM. */
int ah__bundled_find(char **out, const char *kind, const char *name);

/* Names without ".json", sorted, each once. Zero-initialised is empty. */
struct ah_bundled_names {
    size_t count, capacity;
    char (*name)[64];
};
/* What is in these folders; longer names are left out. AH_ENOMEM. */
int ah__bundled_list(struct ah_bundled_names *out, const char *kind);
void ah__bundled_names_free(struct ah_bundled_names *names);

#endif
