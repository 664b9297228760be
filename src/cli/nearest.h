/* Whoever mistypes a name is asked about the one that is nearest. */
#ifndef AH_CLI_NEAREST_H
#define AH_CLI_NEAREST_H

#include <stddef.h>

/* The nearest of `count` names to `text` by insertions, deletions and replacements; null when none is near. */
const char *ah__name_nearest(const char *text, const char *const *names, size_t count);

#endif
