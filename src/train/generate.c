/* ah_generate: one full forward over the last tokens for every new one. */
#include <inttypes.h>
#include <string.h>

#include "bind/bind.h"
#include "io/tokenizer.h"
#include "sched/sched.h"
#include "train/checkpoint.h"
#include "train/sample.h"

struct generator {
    const struct ah_generate_options *options;
    struct ah_checkpoint checkpoint;
    struct ah_model *model;
    const struct ah_tokenizer *tokenizer;
    struct ah_token_stream stream; /* what was told so far */
    int32_t *prompt;      /* [prompt_count] */
    int64_t prompt_count;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_dev *dev;
    struct ah_run *run;
    struct ah_sampler sampler;
    int64_t seq, count;    /* window length; tokens in it */
    int32_t *window;       /* [seq]; what lies behind `count` does not matter to a causal model */
    float *logits;         /* [vocab] */
};

static int check(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    const struct ah_model_def *def = ah_model_get(gen->model);
    if (options->tokens < 0)
        return ah__fail(AH_EINPUT, "tokens: found %" PRId64 ", expected 0 or more", options->tokens);
    if (gen->tokenizer->text_is_ids && def->vocab_size > gen->tokenizer->vocab_size)
        return ah__fail(AH_EINPUT,
                        "%s: found vocab_size %" PRId64 ", expected at most %d: there is no tokenizer in the folder, "
                        "so its tokens would be bytes", gen->checkpoint.folder, def->vocab_size,
                        gen->tokenizer->vocab_size);
    return AH_OK;
}

static int encode_prompt(struct generator *gen)
{
    const char *given = gen->options->prompt, *text = given && given[0] ? given : "\n";
    const struct ah_tokenizer *tokenizer = gen->tokenizer;
    int64_t vocab = ah_model_get(gen->model)->vocab_size;
    AH_TRY(tokenizer->encode_prompt(&gen->prompt, &gen->prompt_count, tokenizer, text, strlen(text)));
    if (gen->prompt_count == 0)
        return ah__fail(AH_EINPUT, "prompt: found a text without tokens, expected one at least");
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
    int64_t length = gen->prompt_count, max_seq = gen->checkpoint.settings.seq;
    gen->seq = gen->options->tokens < max_seq - length ? length + gen->options->tokens : max_seq;
    gen->count = length < gen->seq ? length : gen->seq;
    AH_TRY(ah__new(&gen->window, (size_t)gen->seq, sizeof *gen->window));
    memcpy(gen->window, gen->prompt + length - gen->count, (size_t)gen->count * sizeof *gen->window);
    return AH_OK;
}

/* Everything on the device, activations dropped: nothing here needs a profile or a search. */
static int open_run(struct generator *gen)
{
    static const struct ah_run_hooks no_hooks;
    static const struct ah_step_options step = {.infers = true};
    struct ah_dev_options options = {.threads = gen->options->threads};
    AH_TRY(ah_model_record(&gen->graph, gen->model, 1, gen->seq, AH_F32));
    AH_TRY(ah_partition_new(&gen->partition, gen->graph, &step));
    int layers = gen->partition->layers;
    struct ah_plan plan = {
        .switches = {.layers = layers, .ranks = 1, .checkpoint = layers, .tiles = 1, .refetch_ahead = 1},
        .policy = "resident",
    };
    struct ah_sched_config config = {.switches = plan.switches, .policy = &ah__policy_resident};
    plan.switches.slots = ah__sched_min_slots(&config);
    AH_TRY(ah_dev_open(&gen->dev, gen->options->device ? gen->options->device : "auto", &options));
    AH_TRY(ah__workspace_bytes(&plan.workspace_bytes, gen->partition, gen->dev));
    AH_TRY(ah__run_new(&gen->run, gen->partition, &plan, gen->dev, &no_hooks));
    return ah__checkpoint_load(&gen->checkpoint, gen->partition, gen->run, false);
}

static void append(struct generator *gen, int token)
{
    if (gen->count == gen->seq)
        memmove(gen->window, gen->window + 1, (size_t)--gen->count * sizeof *gen->window);
    gen->window[gen->count++] = token;
}

static bool is_stop(const struct ah_tokenizer *tokenizer, int32_t token)
{
    for (int32_t i = 0; i < tokenizer->stop_count; i++)
        if (tokenizer->stops[i] == token)
            return true;
    return false;
}

/* What the token adds to the text: whole characters, and behind the last token what there is. Special tokens, and ids
 * beyond the tokenizer's that a model may have, stand for no text. */
static int token_text(struct ah_buf *text, struct generator *gen, int32_t token, bool last)
{
    const struct ah_tokenizer *tokenizer = gen->tokenizer;
    if (token < tokenizer->vocab_size && !tokenizer->is_special(tokenizer, token))
        AH_TRY(ah__token_stream_next(text, &gen->stream, token));
    if (last)
        AH_TRY(ah__token_stream_end(text, &gen->stream));
    ah__buf_add(text, "", 0); /* a text even of nothing */
    return text->status;
}

/* Nonzero in *stop: the caller has heard enough. */
static int tell(int *stop, struct generator *gen, int32_t token, bool last)
{
    const struct ah_generate_options *options = gen->options;
    struct ah_buf text = {0};
    *stop = 0;
    if (!options->on_token)
        return AH_OK;
    int status = token_text(&text, gen, token, last);
    if (status == AH_OK)
        *stop = options->on_token(token, text.text, text.length, options->context);
    ah__buf_free(&text);
    return status;
}

static int generate(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    int stop = 0;
    for (int64_t i = 0; i < options->tokens && !stop; i++) {
        int token;
        AH_TRY(ah__run_logits(gen->run, gen->window, gen->count - 1, gen->logits));
        AH_TRY(ah__sampler_draw(&token, &gen->sampler, gen->logits, (uint64_t)i));
        append(gen, token);
        bool ends = is_stop(gen->tokenizer, token);
        AH_TRY(tell(&stop, gen, token, ends || i + 1 == options->tokens));
        stop = stop || ends;
    }
    return AH_OK;
}

static int open_and_generate(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    if (!options->model_dir)
        return ah__fail(AH_EINPUT, "model: found none, expected a checkpoint folder");
    AH_TRY(ah__checkpoint_open(&gen->checkpoint, options->model_dir, false));
    AH_TRY(ah_model_load(&gen->model, gen->checkpoint.folder));
    AH_TRY(ah__tokenizer_open(&gen->tokenizer, gen->checkpoint.folder));
    gen->stream = (struct ah_token_stream){.tokenizer = gen->tokenizer, .started = true};
    AH_TRY(check(gen));
    AH_TRY(encode_prompt(gen));
    AH_TRY(fill_window(gen));
    AH_TRY(open_run(gen));
    AH_TRY(ah__new(&gen->logits, (size_t)gen->partition->vocab, sizeof *gen->logits));
    AH_TRY(ah__sampler_init(&gen->sampler, (int)ah_model_get(gen->model)->vocab_size, options->temperature,
                            options->top_k, options->seed));
    return generate(gen);
}

int ah_generate(const struct ah_generate_options *options)
{
    struct generator gen = {.options = options};
    int status = open_and_generate(&gen);
    ah__sampler_fini(&gen.sampler);
    ah__run_free(gen.run);
    ah_dev_close(gen.dev);
    ah_partition_free(gen.partition);
    ah_graph_free(gen.graph);
    ah_model_free(gen.model);
    ah__tokenizer_close(gen.tokenizer);
    ah__free(gen.prompt);
    ah__free(gen.window);
    ah__free(gen.logits);
    ah__checkpoint_close(&gen.checkpoint);
    return status;
}
