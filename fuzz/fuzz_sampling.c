/* Any settings of a sampler and any logits: refused with a line, or a token that may be drawn, the same one twice. */
#include "fuzz.h"
#include "infer/sample.h"

#include <math.h>
#include <string.h>

enum { VOCAB_MOST = 64, CONTEXT = 4 };

struct sampling_input {
    double temperature, top_p, min_p, repetition_penalty;
    int32_t top_k;
    uint64_t seed, position;
    uint8_t context[CONTEXT];
};

static int sampling_draw(int *token, const struct sampling_input *in, const float *logits, int vocab)
{
    const struct ah_sampling sampling = {in->temperature,        in->top_k, in->top_p, in->min_p,
                                         in->repetition_penalty, in->seed};
    struct ah_sampler sampler;
    int32_t context[CONTEXT];
    for (int i = 0; i < CONTEXT; i++)
        context[i] = in->context[i] % vocab;
    int status = ah__sampler_init(&sampler, vocab, &sampling);
    if (status != AH_OK)
        return status;
    status = ah__sampler_draw(token, &sampler, logits, context, CONTEXT, in->position);
    ah__sampler_fini(&sampler);
    return status;
}

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    struct sampling_input in;
    float logits[VOCAB_MOST];
    if (size < sizeof in + sizeof *logits)
        return 0;
    memcpy(&in, data, sizeof in);
    size_t vocab = (size - sizeof in) / sizeof *logits;
    vocab = vocab < VOCAB_MOST ? vocab : VOCAB_MOST;
    memcpy(logits, data + sizeof in, vocab * sizeof *logits);
    int token = -1, again = -1;
    int status = sampling_draw(&token, &in, logits, (int)vocab);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT || status == AH_ENUMERIC);
    FUZZ_CHECK(sampling_draw(&again, &in, logits, (int)vocab) == status && again == token);
    if (status != AH_OK)
        FUZZ_CHECK(token == -1 && !strpbrk(ah_error(), "\n\r"));
    else
        FUZZ_CHECK(token >= 0 && token < (int)vocab && logits[token] > -INFINITY);
    return 0;
}
