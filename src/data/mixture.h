/* What a training learns from: one data source (data/tokens.h), or several that are mixed. Takes the text of --data,
 * gives batches. Knows no models and keeps no position: batch n is a function of n and the seed.
 *
 *     FILE                         one source
 *     FILE,FILE,..                 each as often as it is large: every window of all of them once per epoch
 *     FILE:WEIGHT,FILE:WEIGHT,..   by weights, positive numbers of any scale
 *
 * A text that names something that exists is that file, whatever commas and colons are in it; so is a part of it, the
 * longest that does.
 *
 * Samples come in cycles. A cycle has 1024 slots, shared out by the weights (largest remainder), or, without weights,
 * as many as all training parts have windows, each source as many as its own. Seed and cycle choose a permutation; a
 * sample belongs to the source in whose slots its permuted place falls, and how many before it in the cycle do says
 * which of the source's own samples it is (without weights its place among the slots does: a cycle is an epoch). So
 * each cycle holds the shares exactly, each source goes through its own epochs in its own order, and no history is
 * needed to go on anywhere. Validation goes through the sources' validation parts in the same shares. */
#ifndef AH_DATA_MIXTURE_H
#define AH_DATA_MIXTURE_H

#include "data/tokens.h"

struct ah_mixture;

struct ah_mixture_source {
    char *path;
    double weight; /* as given; 0: none was, or there is one source */
    int64_t slots; /* of a cycle */
    struct ah_tokens *tokens;
};

/* What tells sources apart that a training goes on with: of each, by its place. */
struct ah_mixture_mark {
    char *path;
    int64_t slots, tokens;
    uint64_t signature;
};

/* Opens all sources of the text, each of its own format unless options say one. options->known is not used: known[i]
 * [known_count] is of source i, as far as there are any. AH_EINPUT: a name that is empty or missing, weights beside
 * names without, a weight that is no positive number or too small for a slot; as ah__tokens_open, which names the
 * file. */
int ah__mixture_open(struct ah_mixture **out, const char *text, const struct ah_tokenizer *tokenizer,
                     int64_t vocab_size, const struct ah_tokens_options *options, const struct ah_tokens_known *known,
                     size_t known_count);
/* Null is fine. */
void ah__mixture_close(struct ah_mixture *mixture);

size_t ah__mixture_count(const struct ah_mixture *mixture);
const struct ah_mixture_source *ah__mixture_source(const struct ah_mixture *mixture, size_t source);
/* Slots of a cycle; of one source 1. */
int64_t ah__mixture_cycle(const struct ah_mixture *mixture);
/* Of one source its own; of several their sums, signature of all of them and their slots, no stamp, and "several" where
 * formats differ. */
const struct ah_tokens_info *ah__mixture_info(const struct ah_mixture *mixture);
/* The text that opens the same from anywhere: real paths, where there is one, and weights. AH_EINPUT: names with commas
 * or colons that would be read as others; AH_ENOMEM. */
int ah__mixture_text(char **out, const struct ah_mixture *mixture);
/* [ah__mixture_count], freed by ah__mixture_marks_free. AH_ENOMEM. */
int ah__mixture_marks(struct ah_mixture_mark **out, const struct ah_mixture *mixture);
/* Null is fine. */
void ah__mixture_marks_free(struct ah_mixture_mark *marks, size_t count);

/* As ah__tokens_batch and ah__tokens_val_batch. Of one source the same. */
int ah__mixture_batch(const struct ah_mixture *mixture, int64_t n, int64_t batch, uint64_t seed,
                      const struct ah_batch *to);
int ah__mixture_val_batch(const struct ah_mixture *mixture, int64_t n, int64_t batch, const struct ah_batch *to);
/* How many of the first `samples` samples are the source's. Takes time for a last cycle that is not whole. */
int64_t ah__mixture_given(const struct ah_mixture *mixture, size_t source, int64_t samples, uint64_t seed);

#endif
