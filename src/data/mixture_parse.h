/* Parses the text of --data: FILE or FILE[:WEIGHT],FILE[:WEIGHT],... Checks which files exist, opens none of them. */
#ifndef AH_DATA_MIXTURE_PARSE_H
#define AH_DATA_MIXTURE_PARSE_H

#include "base/status.h"

struct ah_mixture_item {
    char *path;
    double weight; /* above 0; 0: not given */
};

struct ah_mixture_items {
    struct ah_mixture_item *item;
    size_t count, room;
};

/* Parses to at least one item. Either all items have weights or none of them. AH_EINPUT, AH_ENOMEM. Freed by
 * ah__mixture_items_free, also after failure. */
int ah__mixture_parse(struct ah_mixture_items *out, const char *text);
/* Zero-initialised is fine. */
void ah__mixture_items_free(struct ah_mixture_items *items);

#endif
