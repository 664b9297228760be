/* Choosing a token from a distribution: which tokens are left, and counter-based randomness. Pure but for its own
 * scratch. The same seed, position, context and logits give the same token. */
#ifndef AH_INFER_SAMPLE_H
#define AH_INFER_SAMPLE_H

#include "base/alloc.h"

/* In the order in which they apply, as in Hugging Face's generation. Zeros are the likeliest token always. */
struct ah_sampling {
    double temperature; /* 0: the likeliest */
    int top_k;          /* the likeliest so many; 0: all */
    double top_p;       /* the likeliest that together have this probability, at least one; 0 or 1: all */
    double min_p;       /* those at least this share as likely as the likeliest; 0: all */
    /* What logits of tokens in the context are divided by when positive, multiplied by when negative; 0 or 1: nothing.
     * It comes before all others. */
    double repetition_penalty;
    uint64_t seed;
};

struct ah_candidate {
    double weight;
    int token;
};

struct ah_sampler {
    int vocab;
    struct ah_sampling sampling;
    struct ah_candidate *candidates; /* vocab of them */
};

/* AH_EINPUT names what is out of range; AH_ENOMEM. */
int ah__sampler_init(struct ah_sampler *out, int vocab, const struct ah_sampling *sampling);
void ah__sampler_fini(struct ah_sampler *sampler);

/* Draws from softmax(logits [vocab] / temperature) among those that are left (equal ones by number); `context` is what
 * was said so far, [count] tokens below vocab, `position` the draw's counter. A logit of minus infinity is never drawn.
 * AH_ENUMERIC when a logit is NaN or infinity, or none is above minus infinity. */
int ah__sampler_draw(int *token, struct ah_sampler *sampler, const float *logits, const int32_t *context, int64_t count,
                     uint64_t position);

#endif
