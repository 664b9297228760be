#include "infer/sample.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

static int check_share(const char *name, double value)
{
    if (value >= 0 && value <= 1)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: found %.10g, expected 0 to 1", name, value);
}

int ah__sampler_init(struct ah_sampler *out, int vocab, const struct ah_sampling *sampling)
{
    if (!(sampling->temperature >= 0) || isinf(sampling->temperature))
        return ah__fail(AH_EINPUT, "temperature: found %g, expected 0 or more", sampling->temperature);
    if (sampling->top_k < 0)
        return ah__fail(AH_EINPUT, "top_k: found %d, expected 0 or more", sampling->top_k);
    AH_TRY(check_share("top_p", sampling->top_p));
    AH_TRY(check_share("min_p", sampling->min_p));
    if (!(sampling->repetition_penalty >= 0) || isinf(sampling->repetition_penalty))
        return ah__fail(AH_EINPUT, "repetition_penalty: found %g, expected 0 or more", sampling->repetition_penalty);
    struct ah_sampler sampler = {.vocab = vocab, .sampling = *sampling};
    AH_TRY(ah__new(&sampler.candidates, (size_t)vocab, sizeof *sampler.candidates));
    *out = sampler;
    return AH_OK;
}

void ah__sampler_fini(struct ah_sampler *sampler)
{
    ah__free(sampler->candidates);
    *sampler = (struct ah_sampler){0};
}

static int likelier(const void *left, const void *right)
{
    const struct ah_candidate *a = left, *b = right;
    if (a->weight != b->weight)
        return a->weight > b->weight ? -1 : 1;
    return a->token - b->token;
}

/* Returns the first candidate that reaches the point u * total on the line on which the candidates' weights follow each
 * other. */
static int draw(const struct ah_candidate *candidates, int count, double u)
{
    double total = 0, passed = 0;
    for (int i = 0; i < count; i++)
        total += candidates[i].weight;
    for (int i = 0; i < count; i++) {
        passed += candidates[i].weight;
        if (u * total < passed)
            return candidates[i].token;
    }
    return candidates[0].token;
}

static int fill(struct ah_sampler *sampler, const float *logits)
{
    for (int i = 0; i < sampler->vocab; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return ah__fail(AH_ENUMERIC, "the model's logit of token %d is %g", i, (double)logits[i]);
        sampler->candidates[i] = (struct ah_candidate){(double)logits[i], i};
    }
    return AH_OK;
}

/* Applies the repetition penalty once for each token, however often the context has it. */
static void penalise(struct ah_sampler *sampler, const float *logits, const int32_t *context, int64_t count)
{
    double penalty = sampler->sampling.repetition_penalty;
    for (int64_t i = 0; i < count && penalty != 0; i++) {
        double logit = (double)logits[context[i]];
        sampler->candidates[context[i]].weight = logit > 0 ? logit / penalty : logit * penalty;
    }
}

/* Returns how many of the sorted candidates top_k, top_p and min_p leave. Turns their weights into probabilities times
 * a common factor. */
static int keep(struct ah_sampler *sampler)
{
    const struct ah_sampling *sampling = &sampler->sampling;
    struct ah_candidate *candidates = sampler->candidates;
    int count = sampling->top_k > 0 && sampling->top_k < sampler->vocab ? sampling->top_k : sampler->vocab, kept = 0;
    double most = candidates[0].weight, total = 0, passed = 0;
    for (int i = 0; i < count; i++) {
        candidates[i].weight = exp((candidates[i].weight - most) / sampling->temperature);
        total += candidates[i].weight;
    }
    double enough = sampling->top_p > 0 && sampling->top_p < 1 ? sampling->top_p * total : INFINITY;
    for (; kept < count && (kept == 0 || passed < enough); kept++)
        passed += candidates[kept].weight;
    while (kept > 1 && candidates[kept - 1].weight < sampling->min_p) /* the likeliest has weight 1 */
        kept--;
    return kept;
}

int ah__sampler_draw(int *token, struct ah_sampler *sampler, const float *logits, const int32_t *context, int64_t count,
                     uint64_t position)
{
    const struct ah_sampling *sampling = &sampler->sampling;
    AH_TRY(fill(sampler, logits));
    penalise(sampler, logits, context, count);
    qsort(sampler->candidates, (size_t)sampler->vocab, sizeof *sampler->candidates, likelier);
    if (isinf(sampler->candidates[0].weight))
        return ah__fail(AH_ENUMERIC, "the model's logits are all minus infinity");
    if (sampling->temperature == 0)
        *token = sampler->candidates[0].token;
    else
        *token = draw(sampler->candidates, keep(sampler), ah__random_uniform(sampling->seed, position));
    return AH_OK;
}
