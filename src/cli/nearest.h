/* Suggests the nearest name for a mistyped one. */
#ifndef AH_CLI_NEAREST_H
#define AH_CLI_NEAREST_H

#include <stddef.h>

/* Returns the nearest of `count` names to `text` by insertions, deletions and replacements; null: none is near. */
const char *ah__name_nearest(const char *text, const char *const *names, size_t count);

#endif
