/* Choosing a token from a distribution: temperature, top-k, counter-based randomness. Pure but for its own scratch.
 * The same seed, position and logits give the same token. */
#ifndef AH_TRAIN_SAMPLE_H
#define AH_TRAIN_SAMPLE_H

#include "base/alloc.h"

struct ah_candidate {
    double weight;
    int token;
};

struct ah_sampler {
    int vocab;
    double temperature; /* 0: the likeliest */
    int top_k;          /* 0: all */
    uint64_t seed;
    struct ah_candidate *candidates; /* vocab of them */
};

/* temperature >= 0, top_k >= 0; AH_EINPUT, AH_ENOMEM. */
int ah__sampler_init(struct ah_sampler *out, int vocab, double temperature, int top_k, uint64_t seed);
void ah__sampler_fini(struct ah_sampler *sampler);

/* Draws from softmax(logits [vocab] / temperature) among the top_k likeliest (equal ones by number); `position` is the
 * draw's counter. A logit of minus infinity is never drawn. AH_ENUMERIC when a logit is NaN or infinity, or none is
 * above minus infinity. */
int ah__sampler_draw(int *token, struct ah_sampler *sampler, const float *logits, uint64_t position);

#endif
