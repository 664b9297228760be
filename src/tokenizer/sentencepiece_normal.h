/* Normalizes a text as SentencePiece does before it cuts it into pieces: replaces characters, removes, adds and marks
 * spaces. Takes and returns well-formed UTF-8. Knows no ids. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_NORMAL_H
#define AH_TOKENIZER_SENTENCEPIECE_NORMAL_H

#include "base/buf.h"
#include "tokenizer/piece_index.h"
#include "tokenizer/sentencepiece_model.h"

/* The character that replaces a space. */
#define AH_SPACE_MARK "\xe2\x96\x81"

struct ah_sentencepiece_normalizer {
    bool adds_space, space_behind, removes_spaces, escapes_spaces;
    /* Replacements, by the text that they replace: a double array in the layout of the Darts library, whose values are
     * places in `texts`. Copied from the file; null: no replacements. */
    uint32_t *units;
    size_t unit_count;
    char *texts; /* terminated texts, one behind the other */
    size_t texts_length;
    const struct ah_piece_index *kept; /* pieces that are not changed; must outlive the normalizer */
};

/* Reads the model's rules. AH_EINPUT: they are invalid; AH_ENOMEM. */
int ah__sentencepiece_normalizer_init(struct ah_sentencepiece_normalizer *normalizer,
                                      const struct ah_sentencepiece_model *model, const struct ah_piece_index *kept,
                                      const char *path);
void ah__sentencepiece_normalizer_fini(struct ah_sentencepiece_normalizer *normalizer);
/* Appends the normalized text. `adds`: includes the space that the model adds. AH_ENOMEM; AH_EINPUT: the result is far
 * longer than the text, or no UTF-8. */
int ah__sentencepiece_normalize(struct ah_buf *to, const struct ah_sentencepiece_normalizer *normalizer,
                                const char *text, size_t length, bool adds);

#endif
