#include "cli/nearest.h"

#include <string.h>

static size_t least(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Returns the insertions, deletions and replacements between two names; LONGEST if one is longer than that. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    size_t row[LONGEST + 1], n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t here = least(corner + (a[i - 1] != b[j - 1]), row[j] + 1, row[j - 1] + 1);
            corner = row[j];
            row[j] = here;
        }
    }
    return row[m];
}

const char *ah__name_nearest(const char *text, const char *const *names, size_t count)
{
    const char *best = NULL;
    size_t best_distance = 1 + (strlen(text) > 5 ? 3 : strlen(text) / 2);
    for (size_t i = 0; i < count; i++) {
        size_t d = distance(text, names[i]);
        /* people abbreviate: the beginning of a name is near */
        if (strlen(text) >= 3 && strncmp(text, names[i], strlen(text)) == 0)
            d = d < 2 ? d : 2;
        if (d < best_distance) {
            best = names[i];
            best_distance = d;
        }
    }
    return best;
}
