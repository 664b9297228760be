/* Packs examples into sequences. Takes their lengths, gives the examples of each sequence, in order. Knows no tokens.
 *
 * Each example goes whole into the fullest sequence that has room for it, the longest first ("best fit decreasing"), so
 * that few places stay empty; of equal examples the earlier goes first, so that the result follows from the lengths
 * alone. */
#ifndef AH_DATA_PACK_H
#define AH_DATA_PACK_H

#include "data/corpus.h"

struct ah_pack {
    int64_t count;    /* number of sequences */
    int64_t *first;   /* [count + 1] sequence s holds members first[s] .. first[s + 1] - 1 */
    int64_t *members; /* indexes of examples */
};

/* Packs examples [from, to), each of at most seq + 1 ids; all ids but the last need a place. The caller frees *out with
 * ah__pack_free, also after failure. AH_ENOMEM. */
int ah__pack_make(struct ah_pack *out, const struct ah_example *examples, int64_t from, int64_t to, int64_t seq);
/* Zero-initialised is fine. */
void ah__pack_free(struct ah_pack *pack);

#endif
