/* Shows examples whose tokens are bytes. */
#ifndef AH_TESTS_DATA_LEARNED_H
#define AH_TESTS_DATA_LEARNED_H

#include <stdio.h>

#include "data/corpus.h"

/* Every example's text, what is learned in brackets, with " / " between them. */
static inline void show(char *to, const struct ah_corpus *corpus)
{
    *to = 0;
    for (int64_t e = 0; e < corpus->example_count; e++) {
        const struct ah_example *example = &corpus->examples[e];
        to += sprintf(to, "%s", e ? " / " : "");
        for (int64_t i = 0; i <= example->length; i++) {
            bool now = i < example->length && corpus->learned[example->first + i];
            bool before = i > 0 && corpus->learned[example->first + i - 1];
            to += sprintf(to, "%s", now && !before ? "[" : before && !now ? "]" : "");
            to += i < example->length ? sprintf(to, "%c", (char)corpus->ids[example->first + i]) : 0;
        }
    }
}

#endif
