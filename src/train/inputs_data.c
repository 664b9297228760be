/* The data of a training: opening them, checking that a resumed training has the same, and notes about them. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "source/adapter_files.h"
#include "source/model_tokenizer.h"
#include "train/training.h"

/* Share of each source that is held out for evaluation. It is part of the training's meaning: changing it would break
 * resuming bit for bit. */
static const double val_fraction = 0.1;

/* Returns a description of the parts of examples that are learned. */
static const char *learned_of(const struct ah_tokens_info *info, enum ah_train_on train_on)
{
    static const char *const words[] = {
        [AH_TRAIN_ON_ASSISTANT] = "what assistants say",
        [AH_TRAIN_ON_ALL] = "everything",
        [AH_TRAIN_ON_LAST] = "the last messages",
    };
    if (info->templated)
        return words[train_on];
    return info->form == AH_DATA_IDS ? "what labels do not leave out" : "the completions";
}

/* Notes that the template writes a turn differently once more messages follow. */
static void tell_turns(const struct ah_training *training, const struct ah_tokens_info *info, const char *name)
{
    if (info->apart)
        ah__training_note(training,
                          "%sthe chat template is not prefix-stable: it writes %" PRId64 " of %" PRId64
                          " turns otherwise "
                          "once others follow, and each of them is an example of its own",
                          name, info->apart, info->turns);
}

static void tell_examples(const struct ah_training *training, const struct ah_tokens_info *info, const char *name)
{
    char placed[64] = "one in each sequence";
    enum ah_train_on train_on = AH_TRAIN_ON_ASSISTANT;
    (void)ah__train_on_parse(&train_on, training->options->train_on); /* was checked before */
    bool layout =
        !info->templated && (info->form == AH_DATA_ALPACA || info->form == AH_DATA_DOLLY || info->form == AH_DATA_ORCA);
    if (training->settings.pack)
        snprintf(placed, sizeof placed, "packed into %" PRId64 " sequences",
                 info->train_windows + (info->held_out ? info->val_windows : 0));
    ah__training_note(training, "%s%" PRId64 " examples (%s)%s, %s; the loss is of %s", name, info->examples,
                      info->form == AH_DATA_AUTO ? "of several forms" : ah__data_format_words[info->form],
                      layout            ? " in the layout of Stanford Alpaca"
                      : info->templated ? " by the chat template"
                                        : "",
                      placed, learned_of(info, train_on));
    tell_turns(training, info, name);
}

/* Notes padding that packing would save: positions without a token cost as much as others. */
static int tell_padding(const struct ah_training *training, const struct ah_mixture_source *source, const char *name)
{
    static const double worth = 0.1; /* least share of padding, and of sequences that packing saves, for a note */
    const struct ah_tokens_info *info = ah__tokens_info(source->tokens);
    double windows = (double)info->train_windows, filled = (double)info->train_filled / (windows * (double)info->seq);
    int64_t packed;
    if (training->settings.pack || filled > 1 - worth)
        return AH_OK;
    AH_TRY(ah__tokens_packed(&packed, source->tokens));
    if (packed > 0 && (double)packed < (1 - worth) * windows)
        ah__training_note(training,
                          "%s%.0f%% of the places in sequences of %" PRId64 " are padding: --pack makes %" PRId64
                          " sequences of %" PRId64,
                          name, 100 * (1 - filled), info->seq, packed, info->train_windows);
    return AH_OK;
}

/* Notes facts of one source that a user may not expect; `name` is "" or "FILE: ". */
static int tell_source(const struct ah_training *training, const struct ah_mixture_source *source, const char *name)
{
    const struct ah_tokens_info *info = ah__tokens_info(source->tokens);
    int64_t given = training->settings.seq;
    char bytes[32];
    if (strcmp(info->format, "nanogpt") == 0)
        ah__training_note(training, "%s is read as nanoGPT's 16-bit tokens", source->path);
    if (info->examples)
        tell_examples(training, info, name);
    if (info->cut)
        ah__training_note(training, "%s%" PRId64 " examples are longer than %" PRId64 " tokens and were cut there",
                          name, info->cut, given);
    if (info->left_out)
        ah__training_note(training,
                          "%s%" PRId64 " examples are left out: in %" PRId64 " tokens there is no room for "
                          "anything that is learned of them",
                          name, info->left_out, given);
    if (info->unlearned)
        ah__training_note(training, "%s%" PRId64 " examples are left out: nothing of them is learned", name,
                          info->unlearned);
    if (info->bad)
        ah__training_note(training, "%s%" PRId64 " examples are left out: '%s' says that their answers are bad ones",
                          name, info->bad, info->bad_key);
    if (info->unread)
        ah__training_note(training, "%skeys that nothing reads: %s", name, info->unread);
    if (info->memory_bytes)
        ah__training_note(training, "%stokens of %" PRId64 " documents take %s of memory", name, info->documents,
                          ah_size_format(bytes, sizeof bytes, info->memory_bytes));
    return tell_padding(training, source, name);
}

/* Notes each file's share of the whole. */
static void tell_share(const struct ah_training *training, const struct ah_mixture_source *source)
{
    const struct ah_tokens_info *info = ah__tokens_info(source->tokens);
    char tokens[32];
    double share = (double)source->slots / (double)ah__mixture_cycle(training->data);
    ah__training_note(training, "%s: %.4g%% of the samples; %s, %s tokens, %" PRId64 " samples an epoch", source->path,
                      100 * share, ah__tokens_format(info), ah_count_format(tokens, sizeof tokens, info->tokens),
                      info->train_windows);
}

static int tell_data(const struct ah_training *training)
{
    size_t count = ah__mixture_count(training->data);
    for (size_t i = 0; i < count; i++) {
        const struct ah_mixture_source *source = ah__mixture_source(training->data, i);
        char *name;
        if (count > 1)
            tell_share(training, source);
        AH_TRY(count > 1 ? ah__sprintf(&name, "%s: ", source->path) : ah__strdup(&name, ""));
        int status = tell_source(training, source, name);
        ah__free(name);
        AH_TRY(status);
    }
    return AH_OK;
}

const struct ah_tokens_info *ah__training_data(const struct ah_training *training)
{
    static const struct ah_tokens_info none = {.format = "none"};
    return training->data ? ah__mixture_info(training->data) : &none;
}

/* Makes a list of the facts that run.json has about each source. */
static int known_of(struct ah_tokens_known **out, const struct ah_run_config *run_config)
{
    AH_TRY(ah__new(out, run_config->data_count, sizeof **out));
    for (size_t i = 0; i < run_config->data_count; i++)
        (*out)[i] = run_config->data[i].known;
    return AH_OK;
}

static int open_with(struct ah_training *training, const char *path, const struct ah_tokens_options *options)
{
    const struct ah_run_config *run_config = &training->run_config;
    struct ah_tokens_known *known;
    AH_TRY(known_of(&known, run_config));
    int status = ah__mixture_open(&training->data, path, training->tokenizer, ah_model_get(training->model)->vocab_size,
                                  options, known, training->has_run_config ? run_config->data_count : 0);
    ah__free(known);
    return status;
}

/* Decides and notes whether text is read as bytes: a model that was trained on bytes reads bytes until it is trained on
 * something else. */
static int tell_bytes(struct ah_training *training, const char *model_path, bool asked)
{
    bool before = false;
    if (!asked && training->tokenizer == &ah__tokenizer_bytes)
        AH_TRY(ah__trained_on_bytes(&before, model_path));
    training->bytes = asked || before;
    if (before)
        ah__training_note(training, "text is read as bytes, which %s was trained on", model_path);
    return AH_OK;
}

/* Checks that a resumed training has the same data. If an option makes them read differently, the message names it, not
 * the file. */
static int check_resumed(const struct ah_training *training, const char *path)
{
    const struct ah_train_options *now = training->options;
    const struct ah_train_options *then = &training->run_config.asked;
    const struct {
        const char *name, *found, *expected;
    } asked[] = {{"data_format", now->data_format, then->data_format ? then->data_format : "auto"},
                 {"train_on", now->train_on, then->train_on ? then->train_on : "assistant"},
                 {"eos", now->eos, then->eos ? then->eos : "none"}};
    int status = ah__checkpoint_check_data(&training->resumed, training->data, path);
    for (size_t i = 0; training->has_run_config && status == AH_ESTALE && i < AH_LENGTH(asked); i++)
        if (asked[i].found && strcmp(asked[i].found, asked[i].expected) != 0)
            return ah__fail(AH_ESTALE, "%s: found %s, expected %s as when the training began", asked[i].name,
                            asked[i].found, asked[i].expected);
    return status;
}

int ah__training_open_data(struct ah_training *training)
{
    const char *path = training->options->data_path ? training->options->data_path : training->resumed.data_path;
    const char *model_path = training->options->model_path ? training->options->model_path : training->resumed.folder;
    if (training->options->own_batches)
        return AH_OK;
    if (!path || !path[0])
        return ah__fail(AH_EINPUT, "data: found none, expected text, JSON lines, a folder of them or a token file");
    enum ah_data_format format;
    const char *adapter =
        training->settings.tuning.lora_rank && training->resumed.folder ? training->resumed.folder : training->adapter;
    struct ah_corpus_chat chat = {model_path, training->options->chat_template, AH_TRAIN_ON_ASSISTANT, adapter};
    AH_TRY(ah__train_on_parse(&chat.train_on, training->options->train_on));
    bool bytes = training->resumed.bytes || ah__data_as_bytes(training->options->data_format);
    AH_TRY(ah__adapter_tokenizer_open(&training->tokenizer, model_path, adapter,
                                      ah_model_get(training->model)->vocab_size, bytes));
    AH_TRY(tell_bytes(training, model_path, bytes));
    AH_TRY(ah__tokenizer_end_set(training->tokenizer, training->options->eos));
    AH_TRY(ah__data_format_parse(&format, training->options->data_format));
    const struct ah_tokens_options options = {
        .format = format,
        .pack = training->settings.pack,
        .seq = training->settings.seq,
        .val_fraction = val_fraction,
        .chat = &chat,
        .stop = training->options->stop,
    };
    AH_TRY(open_with(training, path, &options));
    AH_TRY(tell_data(training));
    return training->resumed.folder ? check_resumed(training, path) : AH_OK;
}
