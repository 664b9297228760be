/* Draws a token from a distribution: selects the tokens that may be drawn, and uses counter-based randomness. Has no
 * state but its own scratch. The same seed, position, context and logits give the same token. */
#ifndef AH_INFER_SAMPLE_H
#define AH_INFER_SAMPLE_H

#include "base/alloc.h"

/* Options in the order in which they apply, as in Hugging Face's generation. If all are zero, the likeliest token is
 * drawn. */
struct ah_sampling {
    double temperature; /* 0: always draws the likeliest token */
    int top_k;          /* keeps so many of the likeliest tokens; 0: all */
    double top_p;       /* keeps the fewest likeliest tokens of together this probability; 0 or 1: all */
    double min_p;       /* keeps tokens at least this share as likely as the likeliest; 0: all */
    /* Divides positive and multiplies negative logits of tokens in the context; 0 or 1: changes nothing. It applies
     * before all others. */
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
    struct ah_candidate *candidates; /* [vocab] */
};

/* AH_EINPUT names the option that is out of range; AH_ENOMEM. */
int ah__sampler_init(struct ah_sampler *out, int vocab, const struct ah_sampling *sampling);
void ah__sampler_fini(struct ah_sampler *sampler);

/* Draws from softmax(logits [vocab] / temperature) among the tokens that the options leave; equal logits are ordered by
 * token. `context` has the [count] tokens so far, all below vocab; `position` is the draw's counter. A logit of minus
 * infinity is never drawn. AH_ENUMERIC: a logit is NaN or infinity, or none is above minus infinity. */
int ah__sampler_draw(int *token, struct ah_sampler *sampler, const float *logits, const int32_t *context, int64_t count,
                     uint64_t position);

#endif
