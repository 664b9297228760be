/* ah_eval computes how well a model predicts a text. ah_eval_logits writes the logits that it gives after each
 * token. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "data/mixture_parse.h"
#include "infer/inference.h"
#include "io/safetensors.h"
#include "io/stream.h"

enum { BATCH = 8, MOST_SEQ = 1024 };

struct data {
    const char *path;
    struct ah_tokens *tokens;
    bool examples; /* the data are examples, each a window; else one text or row of tokens */
    bool lead;     /* each window of the text begins with `bos`, the tokenizer's BOS */
    int32_t bos;
    int64_t batch, seq, windows;
};

struct evaluator {
    const struct ah_eval_options *options;
    struct ah_inference model;
    struct data *all; /* [count] files, all opened before the first is evaluated */
    size_t count;
    struct data *data;      /* the file being evaluated */
    int32_t *ids, *targets; /* [batch, seq] of `data` */
    int64_t started[2];     /* batch and seq of the running model; 0: not started */
    double nats;            /* total loss of the tokens predicted so far, in all files */
    int64_t done, bytes;    /* number of these tokens, and the bytes that they stand for */
    bool led, textless;     /* windows of a file began with BOS; a file is no text of known length */
};

static int64_t seq_of(const struct evaluator *eval, int64_t most)
{
    int64_t longest = eval->model.longest_seq;
    if (eval->options->seq)
        return eval->options->seq;
    longest = longest < MOST_SEQ ? longest : MOST_SEQ;
    return longest < most ? longest : most;
}

static int check(const struct ah_eval_options *options)
{
    if (!options->data_path)
        return ah__fail(AH_EINPUT, "data: found none, expected a text or a token file");
    if (options->batch < 0 || options->seq < 0)
        return ah__fail(AH_EINPUT, "%s: found %" PRId64 ", expected 1 or more", options->batch < 0 ? "batch" : "seq",
                        options->batch < 0 ? options->batch : options->seq);
    return AH_OK;
}

static int tokens_open(struct evaluator *eval, int64_t seq)
{
    int64_t vocab = ah_model_get(eval->model.model)->vocab_size;
    ah__tokens_close(eval->data->tokens);
    eval->data->tokens = NULL;
    struct ah_corpus_chat chat = {ah__inference_folder(&eval->model), eval->options->chat_template,
                                  AH_TRAIN_ON_ASSISTANT, eval->model.adapter};
    AH_TRY(ah__train_on_parse(&chat.train_on, eval->options->train_on));
    const struct ah_tokens_options options = {.seq = seq, .chat = &chat};
    return ah__tokens_open_with(&eval->data->tokens, eval->data->path, eval->model.tokenizer, vocab, &options);
}

/* Sets data->lead if prompts of the model begin with BOS. The tokenizer's template decides that, not the token's id. */
static int lead_find(struct evaluator *eval)
{
    const struct ah_tokenizer *tokenizer = eval->model.tokenizer;
    int32_t *plain, *with;
    int64_t plain_count, count;
    AH_TRY(tokenizer->encode(&plain, &plain_count, tokenizer, "a", 1));
    int status = tokenizer->encode_prompt(&with, &count, tokenizer, "a", 1);
    if (status == AH_OK) {
        eval->data->lead = count > plain_count && plain_count && with[0] != plain[0] && with[1] == plain[0] &&
                           with[0] < ah_model_get(eval->model.model)->vocab_size;
        eval->data->bos = with[0];
        ah__free(with);
    }
    ah__free(plain);
    return status;
}

/* Opens eval->data. One row of tokens is cut into windows here, so that its end is not lost; examples are windows
 * already. */
static int open_data(struct evaluator *eval)
{
    eval->data->lead = false;
    eval->data->seq = seq_of(eval, INT64_MAX);
    const bool opened = tokens_open(eval, eval->data->seq) == AH_OK;
    eval->data->examples = opened && strcmp(ah__tokens_info(eval->data->tokens)->format, "examples") == 0;
    if (!opened) /* the data may be shorter than a window; a pipe cannot be read again */
        AH_TRY(ah__stream_is_pipe(eval->data->path) ? AH_EINPUT : tokens_open(eval, 1));
    if (!eval->data->examples && !eval->model.tokenizer->missing)
        AH_TRY(lead_find(eval));
    int64_t predicted = ah__tokens_info(eval->data->tokens)->tokens - !eval->data->lead;
    if (!eval->data->examples)
        eval->data->seq = seq_of(eval, predicted);
    eval->data->windows = eval->data->examples ? ah__tokens_info(eval->data->tokens)->val_windows
                                               : (predicted + eval->data->seq - 1) / eval->data->seq;
    eval->data->batch = eval->options->batch ? eval->options->batch : BATCH;
    if (eval->data->batch > eval->data->windows)
        eval->data->batch = eval->data->windows;
    return AH_OK;
}

/* Fills a row with a window. The last window may be shorter. Targets beyond the data are ignored. */
static int fill_row(const struct evaluator *eval, int64_t window, int32_t *ids, int32_t *targets)
{
    int64_t first = window * eval->data->seq,
            left = ah__tokens_info(eval->data->tokens)->tokens - !eval->data->lead - first;
    int64_t count = left < eval->data->seq ? left : eval->data->seq;
    if (window < eval->data->windows && eval->data->examples)
        return ah__tokens_val_batch(eval->data->tokens, window, 1, &(struct ah_batch){ids, targets, NULL});
    count = window < eval->data->windows ? count : 0;
    if (count) {
        ids[0] = eval->data->bos;
        AH_TRY(ah__tokens_read(eval->data->tokens, first, count - eval->data->lead, ids + eval->data->lead));
        AH_TRY(ah__tokens_read(eval->data->tokens, first + !eval->data->lead, count, targets));
    }
    for (int64_t i = count; i < eval->data->seq; i++) {
        ids[i] = 0;
        targets[i] = AH_TARGET_IGNORED;
    }
    return AH_OK;
}

/* Returns the number of tokens of the batch that count, and adds the length of their text to eval->bytes. */
static int64_t count_targets(struct evaluator *eval)
{
    const struct ah_tokenizer *tokenizer = eval->model.tokenizer;
    int64_t asked = 0;
    for (int64_t i = 0; i < eval->data->batch * eval->data->seq; i++) {
        size_t length = 0;
        if (eval->targets[i] == AH_TARGET_IGNORED)
            continue;
        asked++;
        if (eval->targets[i] < tokenizer->vocab_size && !tokenizer->is_special(tokenizer, eval->targets[i]))
            tokenizer->piece(&length, tokenizer, eval->targets[i], false);
        eval->bytes += (int64_t)length;
    }
    return asked;
}

static int evaluate_batch(struct evaluator *eval, int64_t first_window)
{
    double loss;
    for (int64_t row = 0; row < eval->data->batch; row++)
        AH_TRY(fill_row(eval, first_window + row, eval->ids + row * eval->data->seq,
                        eval->targets + row * eval->data->seq));
    const struct ah_batch batch = {eval->ids, eval->targets, NULL};
    AH_TRY(ah__run_eval(eval->model.run, &batch, &loss));
    int64_t asked = count_targets(eval);
    if (!isfinite(loss))
        return ah__fail(AH_ENUMERIC, "the loss of windows %" PRId64 " to %" PRId64 " is %g", first_window + 1,
                        first_window + eval->data->batch, loss);
    eval->nats += loss * (double)asked;
    eval->done += asked;
    return AH_OK;
}

static int evaluate(struct evaluator *eval)
{
    const struct ah_eval_options *options = eval->options;
    for (int64_t window = 0; window < eval->data->windows; window += eval->data->batch) {
        int64_t end =
            window + eval->data->batch < eval->data->windows ? window + eval->data->batch : eval->data->windows;
        AH_TRY(evaluate_batch(eval, window));
        if (options->on_progress && options->on_progress(end, eval->data->windows, options->context))
            return ah__fail(AH_ESTOP, "stopped after %" PRId64 " of %" PRId64 " windows", end, eval->data->windows);
    }
    return AH_OK;
}

/* Returns true if the predicted tokens are a text of known length. */
static bool is_text(const struct evaluator *eval)
{
    const struct ah_tokens_info *info = ah__tokens_info(eval->data->tokens);
    return eval->bytes && (info->text || eval->data->examples || strcmp(info->format, "documents") == 0);
}

/* Starts the model for the file's shape. A running model is kept for windows of the same shape. */
static int start(struct evaluator *eval)
{
    const struct ah_eval_options *options = eval->options;
    if (eval->started[0] == eval->data->batch && eval->started[1] == eval->data->seq)
        return AH_OK;
    ah__inference_stop(&eval->model);
    eval->started[0] = eval->data->batch;
    eval->started[1] = eval->data->seq;
    return ah__inference_start(&eval->model, eval->data->batch, eval->data->seq, false, options->device,
                               options->threads);
}

static void data_close(struct data *data)
{
    ah__tokens_close(data->tokens);
    data->tokens = NULL;
}

/* Evaluates the file, with rows of its batch and sequence length. */
static int rows_evaluate(struct evaluator *eval)
{
    size_t count = (size_t)(eval->data->batch * eval->data->seq);
    int status = ah__new(&eval->ids, count, sizeof *eval->ids);
    if (status == AH_OK)
        status = ah__new(&eval->targets, count, sizeof *eval->targets);
    if (status == AH_OK)
        status = evaluate(eval);
    ah__free(eval->ids);
    ah__free(eval->targets);
    eval->ids = eval->targets = NULL;
    return status;
}

static int evaluate_file(struct evaluator *eval)
{
    int64_t bytes = eval->bytes;
    AH_TRY(start(eval));
    AH_TRY(rows_evaluate(eval));
    eval->led = eval->led || eval->data->lead;
    eval->textless = eval->textless || !is_text(eval) || eval->bytes == bytes;
    data_close(eval->data);
    return AH_OK;
}

/* Evaluates the files. Every token counts alike, whichever file has it. A file that cannot be read fails before any is
 * evaluated. */
static int evaluate_files(struct evaluator *eval, const struct ah_mixture_items *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (files->item[i].weight > 0)
            return ah__fail(AH_EINPUT, "%s: weight: found %g, expected none: every token counts alike",
                            files->item[i].path, files->item[i].weight);
    AH_TRY(ah__new(&eval->all, files->count, sizeof *eval->all));
    eval->count = files->count;
    for (size_t i = 0; i < files->count; i++) {
        eval->data = &eval->all[i];
        eval->data->path = files->item[i].path;
        AH_TRY(open_data(eval));
    }
    for (size_t i = 0; i < files->count; i++) {
        eval->data = &eval->all[i];
        AH_TRY(evaluate_file(eval));
    }
    return AH_OK;
}

static void evaluator_close(struct evaluator *eval)
{
    for (size_t i = 0; i < eval->count; i++)
        data_close(&eval->all[i]);
    ah__free(eval->all);
    ah__inference_close(&eval->model);
}

static int open_and_evaluate(struct evaluator *eval)
{
    const struct ah_eval_options *options = eval->options;
    struct ah_mixture_items files;
    if (!options->model_dir)
        return ah__fail(AH_EINPUT, "model: found none, expected a folder with a model");
    AH_TRY(ah__inference_open(&eval->model, options->model_dir, options->adapter_dir));
    AH_TRY(ah__tokenizer_end_set(eval->model.tokenizer, options->eos));
    AH_TRY(check(options));
    int status = ah__mixture_parse(&files, options->data_path);
    if (status == AH_OK)
        status = evaluate_files(eval, &files);
    ah__mixture_items_free(&files);
    return status;
}

int ah_eval(struct ah_eval_result *out, const struct ah_eval_options *options)
{
    struct evaluator eval = {.options = options};
    int status = open_and_evaluate(&eval);
    double loss = eval.done ? eval.nats / (double)eval.done : NAN;
    if (status == AH_OK)
        *out = (struct ah_eval_result){
            .loss = loss,
            .perplexity = exp(loss),
            .bits_per_byte = eval.textless ? NAN : eval.nats / log(2) / (double)eval.bytes,
            .tokens = eval.done,
            .bos = eval.led,
        };
    evaluator_close(&eval);
    return status;
}

/* ---- logits ------------------------------------------------------------------------------------------------------ */

static int check_ids(const struct ah_inference *model, const int32_t *ids, int64_t count)
{
    const struct ah_model_def *def = ah_model_get(model->model);
    if (count < 1 || count > def->max_seq)
        return ah__fail(AH_EINPUT, "ids: found %" PRId64 ", expected 1 to %" PRId64 ", as many as the model takes",
                        count, def->max_seq);
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= def->vocab_size)
            return ah__fail(AH_EINPUT, "ids: found %d at %" PRId64 ", expected 0 to %" PRId64, ids[i], i,
                            def->vocab_size - 1);
    return AH_OK;
}

/* Writes the logits of the vocabulary's tokens. The LM head may have more rows than that. */
static int write_logits(struct ah_safetensors_writer *writer, const struct ah_inference *model, const int32_t *ids,
                        int64_t count)
{
    size_t bytes = (size_t)ah_model_get(model->model)->vocab_size * sizeof(float);
    float *row;
    AH_TRY(ah__new(&row, (size_t)model->partition->vocab, sizeof *row));
    int status = ah__run_infer(model->run, ids);
    for (int64_t i = 0; i < count && status == AH_OK; i++) {
        status = ah__run_logits(model->run, i, row);
        if (status == AH_OK)
            status = ah__safetensors_writer_append(writer, row, bytes);
    }
    ah__free(row);
    return status == AH_OK ? ah__safetensors_writer_close(writer, NULL, NULL) : status;
}

static int open_and_write(struct ah_inference *model, const char *path, const int32_t *ids, int64_t count,
                          const struct ah_eval_options *options)
{
    const char *const inputs[] = {options->model_dir, options->adapter_dir};
    struct ah_safetensors_writer *writer;
    AH_TRY(ah_output_check(path, inputs, AH_LENGTH(inputs)));
    AH_TRY(ah__inference_open(model, options->model_dir, options->adapter_dir));
    AH_TRY(check_ids(model, ids, count));
    AH_TRY(ah__inference_start(model, 1, count, true, options->device, options->threads));
    const struct ah_safetensors_decl decl = {"logits", AH_F32,
                                             ah_shape2(count, ah_model_get(model->model)->vocab_size)};
    AH_TRY(ah__safetensors_writer_open(&writer, path, &decl, 1));
    int status = write_logits(writer, model, ids, count);
    ah__safetensors_writer_free(writer);
    return status;
}

int ah_eval_logits(const char *path, const int32_t *ids, int64_t count, const struct ah_eval_options *options)
{
    struct ah_inference model = {.ids_alone = true};
    if (!options->model_dir)
        return ah__fail(AH_EINPUT, "model: found none, expected a folder with a model");
    int status = open_and_write(&model, path, ids, count, options);
    ah__inference_close(&model);
    return status;
}
