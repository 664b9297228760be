/* SentencePiece: how a normalized text is cut into pieces, by BPE (neighbours that make the piece of the highest score
 * become one, the first of them where scores are equal) or by unigrams (the pieces whose scores add up to most). Takes
 * a model, gives ids as the sentencepiece library does. Knows no files. */
#ifndef AH_TOKENIZER_SENTENCEPIECE_H
#define AH_TOKENIZER_SENTENCEPIECE_H

#include "tokenizer/bpe.h"
#include "tokenizer/sentencepiece_model.h"

struct ah_sentencepiece;

/* Copies what it needs of the model. AH_EINPUT, naming `path`; AH_ENOMEM. */
int ah__sentencepiece_new(struct ah_sentencepiece **out, const struct ah_sentencepiece_model *model, const char *path);
void ah__sentencepiece_free(struct ah_sentencepiece *pieces);
/* Appends the ids of a text of well-formed UTF-8. `adds`: with the space that the model adds to texts. AH_ENOMEM;
 * AH_EINPUT: the text is over 2^30 bytes, or cannot be normalized. Not from two threads at a time. */
int ah__sentencepiece_encode(struct ah_ids *to, struct ah_sentencepiece *pieces, const char *text, size_t length,
                             bool adds);

#endif
