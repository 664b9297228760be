/* ah_generate runs the prompt at once, then token by token; each token attends to the cached keys and values of those
 * before it. If the window is full, it slides by one token: all positions change then, and the whole window is run
 * again. A text that outgrows the length up to which the model rotates positions alike is run again, too. */
#include <inttypes.h>
#include <string.h>

#include "infer/inference.h"
#include "infer/sample.h"

struct generator {
    const struct ah_generate_options *options;
    struct ah_inference from;
    int32_t *prompt; /* [prompt_count] */
    int64_t prompt_count;
    struct ah_sampler sampler;
    int64_t seq, count; /* window length; tokens in the window */
    int64_t kept;       /* tokens with cached keys and values, from the first on */
    int64_t room;       /* positions of the cache; 0: the model is not started */
    int32_t *window;    /* [seq]; a causal model ignores entries behind `count` */
    float *logits;      /* [vocab] */
    struct ah_token_stream stream;
    struct ah_buf text; /* text of the last token */
};

/* Checks the options. Rows of the LM head beyond the tokenizer's tokens are never drawn. */
static int check(const struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    if (options->tokens < 0)
        return ah__fail(AH_EINPUT, "tokens: found %" PRId64 ", expected 0 or more", options->tokens);
    return ah__tokenizer_check(gen->from.tokenizer);
}

/* Makes the prompt's ids if the prompt is empty: BOS, else EOS, else a line break. */
static int encode_nothing(struct generator *gen)
{
    const struct ah_tokenizer *tokenizer = gen->from.tokenizer;
    if (!tokenizer->has_bos && !tokenizer->has_eos)
        return tokenizer->encode(&gen->prompt, &gen->prompt_count, tokenizer, "\n", 1);
    AH_TRY(ah__new(&gen->prompt, 1, sizeof *gen->prompt));
    gen->prompt[0] = tokenizer->has_bos ? tokenizer->bos : tokenizer->eos;
    gen->prompt_count = 1;
    return AH_OK;
}

/* Encodes the prompt as a user's message. */
static int encode_message(struct generator *gen)
{
    const struct ah_chat *chat = NULL;
    cJSON *messages = cJSON_CreateArray(), *message = cJSON_CreateObject();
    bool made = message && cJSON_AddStringToObject(message, "role", "user") &&
                cJSON_AddStringToObject(message, "content", gen->options->prompt) &&
                cJSON_AddItemToArray(messages, message);
    int status = made ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: a message");
    if (!made)
        cJSON_Delete(message);
    if (status == AH_OK)
        status = ah__inference_chat(&chat, &gen->from, gen->options);
    if (status == AH_OK)
        status = ah__inference_render(&gen->prompt, &gen->prompt_count, &gen->from, chat, messages);
    ah__chat_close(chat);
    cJSON_Delete(messages);
    return status;
}

static int encode_text(struct generator *gen)
{
    const char *text = gen->options->prompt;
    const struct ah_tokenizer *tokenizer = gen->from.tokenizer;
    if (!text || !text[0])
        return AH_OK;
    int status = tokenizer->encode_prompt(&gen->prompt, &gen->prompt_count, tokenizer, text, strlen(text));
    return status == AH_OK ? AH_OK : ah__fail_prefix(status, "prompt, by the tokenizer of %s", gen->options->model_dir);
}

static int encode_prompt(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    const struct ah_tokenizer *tokenizer = gen->from.tokenizer;
    int64_t vocab = ah_model_get(gen->from.model)->vocab_size;
    if (options->chat && (!options->prompt || !options->prompt[0]))
        return ah__fail(AH_EINPUT, "prompt: found none, expected what a user says");
    AH_TRY(options->chat ? encode_message(gen) : encode_text(gen));
    if (!gen->prompt_count) {
        ah__free(gen->prompt);
        AH_TRY(encode_nothing(gen));
    }
    for (int64_t i = 0; i < gen->prompt_count; i++)
        if (gen->prompt[i] >= vocab)
            return ah__fail(AH_EINPUT,
                            "prompt: found %s %d at %" PRId64 ", expected below the model's vocab_size %" PRId64,
                            tokenizer->unit, gen->prompt[i], i, vocab);
    return AH_OK;
}

/* Fills the window with the prompt's last tokens. The window is no longer than the tokens that there will be, nor than
 * the sequences that the model was trained on: it has learned nothing about positions beyond. */
static int fill_window(struct generator *gen)
{
    int64_t length = gen->prompt_count, most = gen->from.longest_seq;
    gen->seq = gen->options->tokens < most - length ? length + gen->options->tokens : most;
    gen->count = length < gen->seq ? length : gen->seq;
    AH_TRY(ah__new(&gen->window, (size_t)gen->seq, sizeof *gen->window));
    memcpy(gen->window, gen->prompt + length - gen->count, (size_t)gen->count * sizeof *gen->window);
    return AH_OK;
}

/* Removes the window's first token. Every other token gets a new position, so the cache is void. */
static void slide(struct generator *gen)
{
    memmove(gen->window, gen->window + 1, (size_t)--gen->count * sizeof *gen->window);
    gen->kept = 0;
}

static void append(struct generator *gen, int token)
{
    if (gen->count == gen->seq)
        slide(gen);
    gen->window[gen->count++] = token;
}

/* Gives the caller the characters that the token completes. *stop becomes nonzero if the caller wants no more. */
static int tell(int *stop, struct generator *gen, int32_t token)
{
    const struct ah_generate_options *options = gen->options;
    const struct ah_tokenizer *tokenizer = gen->from.tokenizer;
    gen->text.length = 0;
    if (!tokenizer->is_special(tokenizer, token))
        AH_TRY(ah__token_stream_next(&gen->text, &gen->stream, token));
    if (options->on_token)
        *stop = options->on_token(token, gen->text.length ? gen->text.text : "", gen->text.length, options->context);
    return AH_OK;
}

/* Gives the caller the bytes of a character that was never completed. */
static int tell_rest(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    gen->text.length = 0;
    AH_TRY(ah__token_stream_end(&gen->text, &gen->stream));
    if (gen->text.length && options->on_token)
        options->on_token(-1, gen->text.text, gen->text.length, options->context);
    return AH_OK;
}

/* Starts the model, or starts it again with another cache. A prefill runs the tokens of the window, or a whole window
 * if the window will slide. */
static int make_ready(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    int64_t room = ah__inference_room(&gen->from, gen->count, gen->seq);
    bool slides = room == gen->seq && gen->prompt_count + options->tokens > gen->seq;
    if (room == gen->room)
        return AH_OK;
    ah__inference_stop(&gen->from);
    gen->kept = 0;
    gen->room = room;
    return ah__inference_start_decoding(&gen->from, slides ? gen->seq : gen->count, room, options->device,
                                        options->threads);
}

/* Computes the logits after the last token. */
static int foretell(struct generator *gen)
{
    AH_TRY(make_ready(gen));
    if (gen->kept + 1 < gen->count)
        AH_TRY(ah__run_prefill(gen->from.run, gen->window));
    AH_TRY(ah__run_decode(gen->from.run, gen->window[gen->count - 1], (int32_t)gen->count - 1));
    gen->kept = gen->count;
    return ah__run_logits(gen->from.run, 0, gen->logits);
}

static int generate(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    int stop = 0;
    gen->stream.tokenizer = gen->from.tokenizer;
    gen->stream.started = true; /* the text continues the prompt */
    for (int64_t i = 0; i < options->tokens && !stop; i++) {
        int token;
        AH_TRY(foretell(gen));
        AH_TRY(ah__sampler_draw(&token, &gen->sampler, gen->logits, gen->window, gen->count, (uint64_t)i));
        append(gen, token);
        if (ah__inference_ends(&gen->from, token))
            break;
        AH_TRY(tell(&stop, gen, token));
    }
    return tell_rest(gen);
}

static int open_and_generate(struct generator *gen)
{
    const struct ah_generate_options *options = gen->options;
    const struct ah_sampling sampling = {options->temperature,        options->top_k, options->top_p, options->min_p,
                                         options->repetition_penalty, options->seed};
    if (!options->model_dir)
        return ah__fail(AH_EINPUT, "model: found none, expected a folder with a model");
    AH_TRY(ah__inference_open(&gen->from, options->model_dir, options->adapter_dir));
    AH_TRY(check(gen));
    int64_t vocab = ah_model_get(gen->from.model)->vocab_size, known = gen->from.tokenizer->vocab_size;
    AH_TRY(ah__sampler_init(&gen->sampler, (int)(vocab < known ? vocab : known), &sampling));
    AH_TRY(encode_prompt(gen));
    AH_TRY(fill_window(gen));
    AH_TRY(make_ready(gen));
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
    ah__buf_free(&gen.text);
    return status;
}
