/* ah_generate: one full forward over the last tokens for every new one. */
#include <inttypes.h>
#include <string.h>

#include "train/inference.h"
#include "train/sample.h"

struct generator {
    const struct ah_generate_options *options;
    struct ah_inference from;
    int32_t *prompt; /* [prompt_count] */
    int64_t prompt_count;
    struct ah_sampler sampler;
    int64_t seq, count; /* window length; tokens in it */
    int32_t *window;    /* [seq]; what lies behind `count` does not matter to a causal model */
    float *logits;      /* [vocab] */
};

static int check(const struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    const struct ah_tokenizer *tokenizer = gen->from.tokenizer;
    int64_t vocab = ah_model_get(gen->from.model)->vocab_size;
    if (options->tokens < 0)
        return ah__fail(AH_EINPUT, "tokens: found %" PRId64 ", expected 0 or more", options->tokens);
    if (vocab > tokenizer->vocab_size)
        return ah__fail(AH_EINPUT,
                        "%s: found vocab_size %" PRId64 ", expected at most %d: text prompts need a %s model",
                        ah__inference_folder(&gen->from, options->model_dir), vocab, tokenizer->vocab_size,
                        tokenizer->name);
    return AH_OK;
}

static int encode_prompt(struct generator *gen)
{
    const char *given = gen->options->prompt, *text = given && given[0] ? given : "\n";
    const struct ah_tokenizer *tokenizer = gen->from.tokenizer;
    int64_t vocab = ah_model_get(gen->from.model)->vocab_size;
    AH_TRY(tokenizer->encode(&gen->prompt, &gen->prompt_count, tokenizer, text, strlen(text)));
    for (int64_t i = 0; i < gen->prompt_count; i++)
        if (gen->prompt[i] >= vocab)
            return ah__fail(AH_EINPUT,
                            "prompt: found %s %d at %" PRId64 ", expected below the model's vocab_size %" PRId64,
                            tokenizer->unit, gen->prompt[i], i, vocab);
    return AH_OK;
}

/* The prompt's last tokens, in a window no longer than there will be tokens, nor than the sequences the model was
 * trained on: it has learned nothing about the positions beyond. */
static int fill_window(struct generator *gen)
{
    int64_t length = gen->prompt_count, most = gen->from.longest_seq;
    gen->seq = gen->options->tokens < most - length ? length + gen->options->tokens : most;
    gen->count = length < gen->seq ? length : gen->seq;
    AH_TRY(ah__new(&gen->window, (size_t)gen->seq, sizeof *gen->window));
    memcpy(gen->window, gen->prompt + length - gen->count, (size_t)gen->count * sizeof *gen->window);
    return AH_OK;
}

static void append(struct generator *gen, int token)
{
    if (gen->count == gen->seq)
        memmove(gen->window, gen->window + 1, (size_t)--gen->count * sizeof *gen->window);
    gen->window[gen->count++] = token;
}

/* Nonzero in *stop: the caller has heard enough. */
static int tell(int *stop, const struct generator *gen, int32_t token)
{
    const struct ah_generate_options *options = gen->options;
    char *text;
    size_t length;
    *stop = 0;
    if (!options->on_token)
        return AH_OK;
    AH_TRY(gen->from.tokenizer->decode(&text, &length, gen->from.tokenizer, &token, 1));
    *stop = options->on_token(token, text, length, options->context);
    ah__free(text);
    return AH_OK;
}

static int generate(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    int stop = 0;
    for (int64_t i = 0; i < options->tokens && !stop; i++) {
        int token;
        AH_TRY(ah__run_infer(gen->from.run, gen->window));
        AH_TRY(ah__run_logits(gen->from.run, gen->count - 1, gen->logits));
        AH_TRY(ah__sampler_draw(&token, &gen->sampler, gen->logits, gen->window, gen->count, (uint64_t)i));
        append(gen, token);
        AH_TRY(tell(&stop, gen, token));
    }
    return AH_OK;
}

static int open_and_generate(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    const struct ah_sampling sampling = {options->temperature, options->top_k, options->top_p, options->min_p,
                                         options->repetition_penalty, options->seed};
    if (!options->model_dir)
        return ah__fail(AH_EINPUT, "model: found none, expected a folder with a model");
    AH_TRY(ah__inference_open(&gen->from, options->model_dir));
    AH_TRY(check(gen));
    AH_TRY(ah__sampler_init(&gen->sampler, (int)ah_model_get(gen->from.model)->vocab_size, &sampling));
    AH_TRY(encode_prompt(gen));
    AH_TRY(fill_window(gen));
    AH_TRY(ah__inference_start(&gen->from, 1, gen->seq, true, options->device, options->threads));
    AH_TRY(ah__new(&gen->logits, (size_t)gen->from.partition->vocab, sizeof *gen->logits));
    return generate(gen);
}

int ah_generate(const struct ah_generate_options *options)
{
    struct generator gen = {.options = options};
    int status = open_and_generate(&gen);
    ah__sampler_fini(&gen.sampler);
    ah__inference_close(&gen.from);
    ah__free(gen.prompt);
    ah__free(gen.window);
    ah__free(gen.logits);
    return status;
}
