/* How SentencePiece normalizes a text before it is cut into pieces: replacements of characters, spaces that are taken
 * away, added and marked. Takes well-formed UTF-8, gives it. Knows no ids. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_NORMAL_H
#define AH_TOKENIZER_SENTENCEPIECE_NORMAL_H

#include "base/buf.h"
#include "tokenizer/piece_index.h"
#include "tokenizer/sentencepiece_model.h"

/* What a space becomes. */
#define AH_SPACE_MARK "\xe2\x96\x81"

struct ah_sentencepiece_normalizer {
    bool adds_space, space_behind, removes_spaces, escapes_spaces;
    /* Replacements by what is replaced: a double array as the Darts library lays it out, whose values are places in
     * `texts`. Copies of what the file has; null: there are none. */
    uint32_t *units;
    size_t unit_count;
    char *texts; /* terminated ones, one behind the other */
    size_t texts_length;
    const struct ah_piece_index *kept; /* pieces that are left as they are; outlives the normalizer */
};

/* AH_EINPUT: the rules are none; AH_ENOMEM. */
int ah__sentencepiece_normalizer_init(struct ah_sentencepiece_normalizer *normalizer,
                                      const struct ah_sentencepiece_model *model, const struct ah_piece_index *kept,
                                      const char *path);
void ah__sentencepiece_normalizer_fini(struct ah_sentencepiece_normalizer *normalizer);
/* Appends the normalized text. `adds`: with the space that the model adds. AH_ENOMEM; AH_EINPUT: it would become far
 * longer, or no UTF-8. */
int ah__sentencepiece_normalize(struct ah_buf *to, const struct ah_sentencepiece_normalizer *normalizer,
                                const char *text, size_t length, bool adds);

#endif
