/* Normalizers of tokenizers, which change a text before it is split. They take and return well-formed UTF-8, and know
 * no tokenizers. */
#ifndef AH_TOKENIZER_NORMALIZE_H
#define AH_TOKENIZER_NORMALIZE_H

#include "base/buf.h"

enum ah_normal_kind {
    AH_NORMAL_NFC,
    AH_NORMAL_NFD,
    AH_NORMAL_NFKC,
    AH_NORMAL_NFKD,
    AH_NORMAL_PREPEND, /* puts `to` before a text that is not empty */
    AH_NORMAL_REPLACE, /* replaces every `from`, which is not empty, by `to` */
};

struct ah_normal_step {
    enum ah_normal_kind kind;
    const char *from, *to; /* terminated; owned by the creator of the normalizer */
};

enum { AH_NORMAL_STEPS = 16 };
struct ah_normalizer {
    struct ah_normal_step steps[AH_NORMAL_STEPS];
    int count; /* 0: texts do not change */
};

/* Applies the steps in order. *text and *length become the result: unchanged, or one of the two buffers, which the
 * caller frees. Buffers may be reused; they are emptied first. AH_ENOMEM. */
int ah__normalize(const char **text, size_t *length, struct ah_buf buffers[2], const struct ah_normalizer *normalizer);

#endif
