#include "train/sample.h"

#include <math.h>
#include <stdlib.h>

#include "base/hash.h"

int ah__sampler_init(struct ah_sampler *out, int vocab, double temperature, int top_k, uint64_t seed)
{
    if (!(temperature >= 0) || isinf(temperature))
        return ah__fail(AH_EINPUT, "temperature: found %g, expected 0 or more", temperature);
    if (top_k < 0)
        return ah__fail(AH_EINPUT, "top_k: found %d, expected 0 or more", top_k);
    struct ah_sampler sampler = {.vocab = vocab, .temperature = temperature, .top_k = top_k, .seed = seed};
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

/* The first candidate whose share of the line from 0 to the total holds the point u * total. */
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

int ah__sampler_draw(int *token, struct ah_sampler *sampler, const float *logits, uint64_t position)
{
    struct ah_candidate *candidates = sampler->candidates;
    for (int i = 0; i < sampler->vocab; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return ah__fail(AH_ENUMERIC, "the model's logit of token %d is %g", i, (double)logits[i]);
        candidates[i] = (struct ah_candidate){(double)logits[i], i};
    }
    qsort(candidates, (size_t)sampler->vocab, sizeof *candidates, likelier);
    double most = candidates[0].weight;
    if (isinf(most))
        return ah__fail(AH_ENUMERIC, "the model's logits are all minus infinity");
    if (sampler->temperature == 0) {
        *token = candidates[0].token;
        return AH_OK;
    }
    int count = sampler->top_k > 0 && sampler->top_k < sampler->vocab ? sampler->top_k : sampler->vocab;
    for (int i = 0; i < count; i++)
        candidates[i].weight = exp((candidates[i].weight - most) / sampler->temperature);
    *token = draw(candidates, count, ah__random_uniform(sampler->seed, position));
    return AH_OK;
}
