/* Training data: one data source (data/tokens.h), or a mixture of several. Takes the text of --data, gives batches.
 * Knows no models and keeps no position: batch n is a function of n and the seed.
 *
 *     FILE                         one source
 *     FILE,FILE,..                 sources in proportion to their size: every window of all of them once per epoch
 *     FILE:WEIGHT,FILE:WEIGHT,..   by weights, positive numbers of any scale
 *
 * A text that names an existing file is that file, with any commas and colons; the same holds for the longest such part
 * of it.
 *
 * Samples come in cycles. A cycle has 1024 slots, divided by the weights (largest remainder), or, without weights, one
 * slot for each window of all training parts. Seed and cycle choose a permutation of the slots. A sample belongs to the
 * source whose slots contain the sample's permuted number. With weights, its index within the source is the number of
 * earlier samples of that source in the cycle; without, it is the index of its slot, so that a cycle is an epoch. So
 * each cycle holds the shares exactly, each source goes through its own epochs in its own order, and resuming anywhere
 * needs no history. Validation goes through the sources' validation parts in the same shares. */
#ifndef AH_DATA_MIXTURE_H
#define AH_DATA_MIXTURE_H

#include "data/tokens.h"

struct ah_mixture;

struct ah_mixture_source {
    char *path;
    double weight; /* as given; 0: not given, or a single source */
    int64_t slots; /* number of slots in a cycle */
    struct ah_tokens *tokens;
};

/* Identity of a source, by which a resumed training recognizes it; one for each, in order. */
struct ah_mixture_mark {
    char *path;
    int64_t slots, tokens;
    uint64_t signature;
};

/* Opens all sources of the text, each in its own format unless options give one. options->known is not used: known[i],
 * i < known_count, belongs to source i. AH_EINPUT: a name that is empty or missing, weights for some names only, a
 * weight that is not a positive number or too small for a slot; else as ah__tokens_open, which names the file. */
int ah__mixture_open(struct ah_mixture **out, const char *text, const struct ah_tokenizer *tokenizer,
                     int64_t vocab_size, const struct ah_tokens_options *options, const struct ah_tokens_known *known,
                     size_t known_count);
/* Null is fine. */
void ah__mixture_close(struct ah_mixture *mixture);

size_t ah__mixture_count(const struct ah_mixture *mixture);
const struct ah_mixture_source *ah__mixture_source(const struct ah_mixture *mixture, size_t source);
/* Returns the slots of a cycle; 1 for one source. */
int64_t ah__mixture_cycle(const struct ah_mixture *mixture);
/* Returns the information of a single source, or for several the sums: the signature covers all of them and their
 * slots, there is no stamp, and the format is "several" if formats differ. */
const struct ah_tokens_info *ah__mixture_info(const struct ah_mixture *mixture);
/* Makes the text that opens the same sources from any folder: real paths, if they have one, and weights. AH_EINPUT:
 * names with commas or colons that would be parsed as other files; AH_ENOMEM. */
int ah__mixture_text(char **out, const struct ah_mixture *mixture);
/* Makes a mark for each source, [ah__mixture_count], freed by ah__mixture_marks_free. AH_ENOMEM. */
int ah__mixture_marks(struct ah_mixture_mark **out, const struct ah_mixture *mixture);
/* Null is fine. */
void ah__mixture_marks_free(struct ah_mixture_mark *marks, size_t count);

/* Fill a batch like ah__tokens_batch and ah__tokens_val_batch, whose results they have for one source. */
int ah__mixture_batch(const struct ah_mixture *mixture, int64_t n, int64_t batch, uint64_t seed,
                      const struct ah_batch *to);
int ah__mixture_val_batch(const struct ah_mixture *mixture, int64_t n, int64_t batch, const struct ah_batch *to);
/* Returns how many of the first `samples` samples are the source's. Slow for a last cycle that is not whole. */
int64_t ah__mixture_given(const struct ah_mixture *mixture, size_t source, int64_t samples, uint64_t seed);

#endif
