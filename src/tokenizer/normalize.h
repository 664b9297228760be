/* Normalizers of tokenizers: what is done to a text before it is split. Takes well-formed UTF-8, gives it. Knows no
 * tokenizers. */
#ifndef AH_TOKENIZER_NORMALIZE_H
#define AH_TOKENIZER_NORMALIZE_H

#include "base/buf.h"

enum ah_normal_kind {
    AH_NORMAL_NFC,
    AH_NORMAL_NFD,
    AH_NORMAL_NFKC,
    AH_NORMAL_NFKD,
    AH_NORMAL_PREPEND, /* `to` before a text that is not empty */
    AH_NORMAL_REPLACE, /* `from`, not empty, by `to`, wherever it stands */
};

struct ah_normal_step {
    enum ah_normal_kind kind;
    const char *from, *to; /* terminated; whoever made the normalizer owns them */
};

enum { AH_NORMAL_STEPS = 16 };
struct ah_normalizer {
    struct ah_normal_step steps[AH_NORMAL_STEPS];
    int count; /* 0: a text is left as it is */
};

/* One after the other. *text and *length become the result: what they were, or one of the two buffers, which the caller
 * frees; reused buffers are emptied first. AH_ENOMEM. */
int ah__normalize(const char **text, size_t *length, struct ah_buf buffers[2], const struct ah_normalizer *normalizer);

#endif
