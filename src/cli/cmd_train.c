/* autohete train: profiles, plans, trains, saves. */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/artefacts.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/summary.h"

struct train_args {
    int64_t accumulation; /* 0: not given */
    struct ah_train_options options;
    const char *save_every; /* steps or a time */
    bool json, quiet;
};
#define AT(field) offsetof(struct train_args, field)

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
#define AH_OF(train, plan, profile, simulate, fit, inspect) train
#define AH_AT(field) AT(options.field)
#include "cli/rows.h"
    {"gradient-accumulation", AH_ARG_COUNT, AT(accumulation), "N", .min = 1, .max = 1048576, .group = "step",
     .help = "the same as a --micro-batch of an Nth of the batch"},
    {"save-every", AH_ARG_TEXT, AT(save_every), "N", .group = "files",
     .help = "between checkpoints: steps, or a time like 30s, 10min or 2h (default 10min)"},
    {"json", AH_ARG_FLAG, AT(json), .group = "output",
     .help = "print the result as one JSON object in the last line; text goes to standard error"},
    {"quiet", AH_ARG_FLAG, AT(quiet), .group = "output", .help = "print errors only"},
};

static void init(void *given)
{
    struct train_args *args = given;
    *args = (struct train_args){0};
    ah_train_options_init(&args->options, sizeof args->options);
}

/* ---- while it runs ----------------------------------------------------------------------------------------------- */

static volatile int stop;

/* Signals that ask a training to stop. They come from a user, a shutdown, a closed terminal and a batch system. */
static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/* Asks for a stop; a second signal of any kind ends the program at once. */
static void on_signal(int number)
{
    static const char words[] = "\nautohete: stopping after this step, then saving; a second signal quits at once\n";
    (void)number;
    stop = 1;
    for (size_t i = 0; i < sizeof stop_signals / sizeof stop_signals[0]; i++)
        signal(stop_signals[i], SIG_DFL);
    if (write(STDERR_FILENO, words, sizeof words - 1) < 0)
        return;
}

static void signals_init(void)
{
    struct sigaction before, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof stop_signals / sizeof stop_signals[0]; i++)
        if (sigaction(stop_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) /* as under nohup */
            sigaction(stop_signals[i], &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* if the reader of the progress exits, the training goes on */
}

static void on_note(const char *line, void *context)
{
    const struct ah_progress *progress = context;
    if (!progress->quiet)
        fprintf(stderr, "autohete: note: %s\n", line);
}

/* Prints a fault, also with --quiet. */
static void on_fault(const char *line, void *context)
{
    (void)context;
    fprintf(stderr, "autohete: %s\n", line);
}

/* Returns what a token is: a model of at most 256 tokens reads bytes. */
static const char *token_unit(const char *model_path)
{
    struct ah_model *model;
    if (!model_path || ah_model_load(&model, model_path) != AH_OK)
        return "token";
    bool bytes = ah_model_get(model)->vocab_size <= 256;
    ah_model_free(model);
    return bytes ? "byte" : "token";
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* Prints device, model, data, micro-batches and plan, before the first step. `chosen`: the planner chose the size of
 * micro-batches. */
static int show_plan(FILE *to, const struct ah_trainer *trainer, bool chosen)
{
    struct ah_device device;
    struct ah_train_summary summary;
    struct ah_plan plan;
    struct ah_budget budget;
    ah_trainer_device(trainer, &device);
    ah_trainer_summary(trainer, &summary);
    ah_trainer_plan(trainer, &plan, &budget);
    if (!plan.switches.layers) /* stopped before there was a plan */
        return AH_OK;
    ah__device_print(to, &device);
    ah__training_print(to, &summary);
    if (!summary.profile_given)
        ah__profile_age_print(to, summary.profile_kept_s);
    ah__micro_batch_print(to, summary.micro_batch, summary.micro_batches, chosen);
    int status = ah_plan_print(&plan, &budget, to);
    fputc('\n', to);
    fflush(to);
    return status;
}

static int steps_take(struct ah_trainer *trainer, struct ah_progress *progress, const char *unit)
{
    struct ah_step step;
    struct ah_train_result result;
    bool evaluated = false;
    int status;
    while ((status = ah_trainer_step(trainer, &step)) == AH_OK) {
        ah__progress_step(progress, &step);
        evaluated |= !isnan(step.val_loss);
        if (!isnan(step.val_loss))
            ah__progress_val(progress, step.step, step.val_loss, unit);
    }
    if (status != AH_EEND)
        return status;
    ah_trainer_result(trainer, &result);
    if (!evaluated && !isnan(result.val_loss)) /* there was no step to take */
        ah__progress_val(progress, result.steps_done, result.val_loss, unit);
    return AH_OK;
}

static int train_all(struct ah_train_result *result, struct ah_trainer *trainer, const struct ah_train_options *train,
                     struct ah_progress *progress, const char *unit)
{
    int status = AH_OK;
    bool chosen = train->micro_batch == AH_MICRO_BATCH_AUTO && !train->resume_dir;
    if (!progress->quiet)
        status = show_plan(progress->to, trainer, chosen);
    if (status == AH_OK)
        status = steps_take(trainer, progress, unit);
    ah__progress_end(progress);
    if (status == AH_OK)
        ah_trainer_result(trainer, result);
    return status;
}

/* Shows the result of the training: as text, and with --json as one object. */
static int show_result(const struct ah_train_result *result, const struct ah_trainer *trainer,
                       const struct train_args *given, FILE *to, const char *unit)
{
    if (!given->quiet)
        ah__summary_print(to, result, &given->options, unit);
    if (!given->quiet && result->steps_timed)
        ah__sources_print(to, trainer);
    return given->json ? ah__summary_json(result, trainer) : AH_OK;
}

static int stopped_unsaved(void)
{
    fprintf(stderr, "autohete: stopped before the first step: nothing was trained or saved\n");
    return 1;
}

static int missing(const char *name)
{
    fprintf(stderr, "autohete: --%s is missing: only a training that goes on with --resume needs none\n", name);
    return 2;
}

/* Parses --save-every: "500" is steps, "10min" a time. False: the text is neither. */
static bool parse_interval(struct ah_train_options *train, const char *text)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"min", 60}, {"h", 3600}};
    char *end;
    long long whole = strtoll(text, &end, 10);
    if (end == text || whole < 0 || whole > (long long)1e9 || *text < '0' || *text > '9')
        return false;
    if (!*end)
        train->save_every = whole;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].name) == 0)
            train->save_seconds = (double)whole * units[i].seconds;
    return !*end || !isnan(train->save_seconds);
}

static int check_dtype(const char *option, const char *word)
{
    enum ah_dtype dtype;
    if (!word || ah_dtype_parse(&dtype, word) == AH_OK)
        return AH_OK;
    return ah__out_fault("--%s: found '%.40s', expected bf16 or fp32", option, word);
}

static int check_moments(const char *word)
{
    enum ah_dtype dtype;
    if (!word || ah_moments_parse(&dtype, word) == AH_OK)
        return AH_OK;
    return ah__out_fault("--%s", ah_error());
}

/* Sets the size of micro-batches from their number in a step, `count` (0: not given). */
static int accumulation_take(struct ah_train_options *train, int64_t count)
{
    enum { BATCH_DEFAULT = 8 };
    int64_t batch = train->batch != AH_UNSET ? train->batch : BATCH_DEFAULT;
    if (!count)
        return AH_OK;
    if (train->micro_batch != AH_UNSET)
        return ah__out_fault("--gradient-accumulation: found --micro-batch beside it, expected one of them");
    if (train->batch == AH_UNSET && (train->resume_dir || train->like_dir))
        return ah__out_fault("--gradient-accumulation: found no --batch beside it, expected one");
    if (batch % count != 0)
        return ah__out_fault("--gradient-accumulation: found %lld, expected a divisor of the batch of %lld",
                             (long long)count, (long long)batch);
    train->micro_batch = batch / count;
    return AH_OK;
}

/* Says what --gradient-accumulation stands for, if a refusal advises other batches. */
static int open_fail(int status, const struct train_args *args, const struct ah_train_options *train)
{
    status = ah_ranks_end(status);
    if (status == AH_EBUDGET && args->accumulation && strstr(ah_error(), "batch "))
        ah__out_fault(
            "%s; give --micro-batch in place of --gradient-accumulation %lld, which is --micro-batch %lld here",
            ah_error(), (long long)args->accumulation, (long long)train->micro_batch);
    return ah__out_fail(status);
}

static int run(const void *given)
{
    const struct train_args *args = given;
    struct ah_train_options train = args->options;
    const char *unit = token_unit(train.model_path ? train.model_path : train.resume_dir);
    struct ah_progress progress;
    struct ah_train_result result;
    struct ah_trainer *trainer;
    if (!train.model_path && !train.resume_dir && !train.like_dir)
        return missing("model");
    if (!train.data_path && !train.resume_dir && !train.like_dir)
        return missing("data");
    if (args->save_every && !parse_interval(&train, args->save_every))
        return ah__out_fail(ah__out_fault("--save-every: found '%.100s', expected steps like 500, or a time like 30s, "
                                          "10min or 2h",
                                          args->save_every));
    if (check_dtype("dtype", train.dtype) != AH_OK || check_dtype("save-dtype", train.save_dtype) != AH_OK ||
        check_dtype("master", train.master) != AH_OK || check_moments(train.moments) != AH_OK)
        return ah__out_fail(AH_EINPUT);
    if (accumulation_take(&train, args->accumulation) != AH_OK)
        return ah__out_fail(AH_EINPUT);
    train.profile.cache = ah__cache_folder();
    ah__progress_init(&progress, args->json ? stderr : stdout, args->quiet);
    train.on_note = on_note;
    train.on_fault = on_fault;
    train.context = &progress;
    train.stop = &stop;
    signals_init();
    int status = ah_trainer_open(&trainer, &train);
    if (status != AH_OK)
        return open_fail(status, args, &train);
    status = train_all(&result, trainer, &train, &progress, unit);
    bool unsaved = status == AH_OK && result.stopped && !result.saved && (train.out_dir || train.resume_dir);
    if (status == AH_OK && !unsaved)
        status = show_result(&result, trainer, args, progress.to, unit);
    int code = status != AH_OK ? ah__out_fail(status) : unsaved ? stopped_unsaved() : 0;
    ah_trainer_close(trainer);
    return code;
}

static struct train_args args;
const struct ah_command ah__command_train = {
    .name = "train",
    .usage = "--model FILE --data FILE [--device-memory SIZE] [--out DIR] [option ...]",
    .summary = "Profile, plan, train within the memory budget, and save checkpoints.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .together = true,
    .unset = true,
    .init = init,
    .run = run,
};
