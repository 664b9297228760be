/* SentencePiece cuts a normalized text into pieces, by BPE (joins the neighbours that make the piece of the highest
 * score, the first of them if scores are equal) or by unigrams (chooses the pieces with the highest sum of scores).
 * Takes a model, returns ids as the sentencepiece library does. Knows no files. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_H
#define AH_TOKENIZER_SENTENCEPIECE_H

#include "tokenizer/bpe.h"
#include "tokenizer/sentencepiece_model.h"

struct ah_sentencepiece;

/* Makes a tokenizer, and copies the parts of the model that it needs. AH_EINPUT, naming `path`; AH_ENOMEM. */
int ah__sentencepiece_new(struct ah_sentencepiece **out, const struct ah_sentencepiece_model *model, const char *path);
void ah__sentencepiece_free(struct ah_sentencepiece *pieces);
/* Appends the ids of a text of well-formed UTF-8. `adds`: includes the space that the model adds to texts. AH_ENOMEM;
 * AH_EINPUT: the text is over 2^30 bytes, or cannot be normalized. Not from two threads at a time. */
int ah__sentencepiece_encode(struct ah_ids *to, struct ah_sentencepiece *pieces, const char *text, size_t length,
                             bool adds);

#endif
