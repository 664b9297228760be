#include "train/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/format.h"
#include "op/op.h"
#include "session/session.h"
#include "train/metrics.h"

/* The rows of session/options.def that state.json stores. A default of AH_UNSET: other settings decide. Whole numbers
 * up to 2^53 are exact in a double, as is AH_UNSET. */
struct row {
    const char *name; /* name in messages and in state.json */
    enum ah_option_kind kind;
    size_t option, setting; /* offsets in struct ah_train_options and struct ah_settings */
    double otherwise;
    enum ah_option_resume resume;
    double min, max;
};

static const struct row rows[] = {
#define AH_STORED(kind, field, otherwise, resume, ...)                                                                 \
    {#field,                                                                                                           \
     AH_OPTION_##kind,                                                                                                 \
     offsetof(struct ah_train_options, field),                                                                         \
     offsetof(struct ah_settings, field),                                                                              \
     (double)(otherwise),                                                                                              \
     AH_RESUME_##resume,                                                                                               \
     __VA_ARGS__},
#define AH_OPTION AH_OPTION_STORED
#include "session/options.def"
#undef AH_STORED
};

static void options_unset(struct ah_train_options *options)
{
    *options = (struct ah_train_options){.epochs = NAN};
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        if (rows[i].kind == AH_OPTION_REAL)
            *(double *)((char *)options + rows[i].option) = NAN;
        else if (rows[i].kind != AH_OPTION_FLAG)
            *(int64_t *)((char *)options + rows[i].option) = AH_UNSET;
}

void ah_train_options_init(struct ah_train_options *options, size_t size)
{
    struct ah_train_options whole;
    options_unset(&whole);
    whole.size = size;
    memset(options, 0, size);
    memcpy(options, &whole, size < sizeof whole ? size : sizeof whole);
}

/* Size of the options in the first version that had a size. */
static const size_t least_size = offsetof(struct ah_train_options, own_batches);

int ah__options_take(struct ah_train_options *out, const struct ah_train_options *given)
{
    if (given->size < least_size || given->size > sizeof *out)
        return ah__fail(AH_EINPUT,
                        "options: found a size of %zu, expected %zu to %zu, as ah_train_options_init sets it: of a "
                        "program that is no newer than the library",
                        given->size, least_size, sizeof *out);
    options_unset(out);
    memcpy(out, given, given->size);
    out->size = sizeof *out;
    return AH_OK;
}

/* ---- from options ------------------------------------------------------------------------------------------------ */

static bool is_asked(const struct row *row, const void *option)
{
    if (row->kind == AH_OPTION_REAL)
        return !isnan(*(const double *)option);
    return row->kind == AH_OPTION_FLAG ? *(const bool *)option : *(const int64_t *)option != AH_UNSET;
}

static size_t size_of(const struct row *row)
{
    return row->kind == AH_OPTION_FLAG ? sizeof(bool) : sizeof(int64_t);
}

/* Formats a value for messages. Returns text. */
static const char *shown(char *text, size_t size, const struct row *row, const void *at)
{
    if (row->kind == AH_OPTION_REAL)
        ah__snprintf(text, size, "%.10g", *(const double *)at);
    else if (row->kind == AH_OPTION_FLAG)
        ah__snprintf(text, size, "%s", *(const bool *)at ? "true" : "false");
    else
        ah__snprintf(text, size, row->kind == AH_OPTION_SEED ? "%" PRIu64 : "%" PRId64, *(const int64_t *)at);
    return text;
}

static int check_range(const struct row *row, const void *option)
{
    bool real = row->kind == AH_OPTION_REAL;
    double value = real ? *(const double *)option : (double)*(const int64_t *)option;
    char found[32];
    if (value >= row->min && value <= row->max)
        return AH_OK;
    return ah__fail(AH_EINPUT, real ? "%s: found %s, expected %.10g to %.10g" : "%s: found %s, expected %.0f to %.0f",
                    row->name, shown(found, sizeof found, row, option), row->min, row->max);
}

static int resolve_row(struct ah_settings *out, const struct row *row, const struct ah_train_options *options,
                       const struct ah_settings *saved, bool resumed)
{
    const void *option = (const char *)options + row->option;
    void *setting = (char *)out + row->setting;
    char found[32], expected[32];
    if (saved)
        memcpy(setting, (const char *)saved + row->setting, size_of(row));
    else if (row->kind == AH_OPTION_REAL)
        *(double *)setting = row->otherwise;
    else if (row->kind != AH_OPTION_FLAG) /* a flag is false in new settings */
        *(int64_t *)setting = (int64_t)row->otherwise;
    if (!is_asked(row, option))
        return AH_OK;
    if (row->min < row->max)
        AH_TRY(check_range(row, option));
    if (resumed && row->resume == AH_RESUME_KEPT && memcmp(option, setting, size_of(row)) != 0)
        return ah__fail(AH_ESTALE, "%s: found %s, expected %s as in the checkpoint", row->name,
                        shown(found, sizeof found, row, option), shown(expected, sizeof expected, row, setting));
    memcpy(setting, option, size_of(row));
    return AH_OK;
}

static int check_divides(int64_t micro_batch, int64_t batch)
{
    if (micro_batch >= 1 && batch % micro_batch == 0)
        return AH_OK;
    return ah__fail(AH_EINPUT, "micro_batch: found %" PRId64 ", expected a divisor of the batch of %" PRId64,
                    micro_batch, batch);
}

/* Resolves micro_batch. A size that was chosen once and is in a checkpoint stays. */
static int resolve_micro_batch(struct ah_settings *out, const struct ah_train_options *options,
                               const struct ah_settings *saved, bool resumed)
{
    int64_t asked = options->micro_batch, otherwise = out->batch;
    if (saved && (resumed || out->batch % saved->micro_batch == 0)) /* the options may ask for another batch */
        otherwise = saved->micro_batch;
    if (asked == AH_MICRO_BATCH_AUTO && !resumed)
        otherwise = asked;
    out->micro_batch = otherwise;
    if (asked == AH_UNSET || asked == AH_MICRO_BATCH_AUTO)
        return AH_OK;
    int64_t size = asked == AH_MICRO_BATCH_WHOLE ? out->batch : asked;
    AH_TRY(check_divides(size, out->batch));
    if (resumed && size != saved->micro_batch)
        return ah__fail(AH_ESTALE, "micro_batch: found %" PRId64 ", expected %" PRId64 " as in the checkpoint", size,
                        saved->micro_batch);
    out->micro_batch = size;
    return AH_OK;
}

static int resolve_nonfinite(struct ah_settings *out, const struct ah_train_options *options,
                             const struct ah_settings *saved)
{
    const char *word = options->nonfinite;
    out->skip_nonfinite = saved && saved->skip_nonfinite;
    if (word && strcmp(word, "stop") != 0 && strcmp(word, "skip") != 0)
        return ah__fail(AH_EINPUT, "nonfinite: found '%.40s', expected stop or skip", word);
    if (word)
        out->skip_nonfinite = strcmp(word, "skip") == 0;
    if (out->skip_nonfinite && !(out->clip > 0))
        return ah__fail(AH_EINPUT, "nonfinite: found skip with clip 0, expected a clip above 0: without it updates run "
                                   "before the norm is known");
    return AH_OK;
}

/* Resolves dtype and save_dtype. A resumed training keeps its dtype; save_dtype may change. */
static int resolve_dtypes(struct ah_settings *out, const struct ah_train_options *options,
                          const struct ah_settings *saved, bool resumed)
{
    out->dtype = saved ? saved->dtype : AH_F32;
    if (options->dtype)
        AH_TRY(ah_dtype_parse(&out->dtype, options->dtype));
    if (resumed && out->dtype != saved->dtype)
        return ah__fail(AH_ESTALE, "dtype: found %s, expected %s as in the checkpoint", options->dtype,
                        ah__dtype_word(saved->dtype));
    out->save_dtype = saved && out->dtype == saved->dtype ? saved->save_dtype : out->dtype;
    if (options->save_dtype && ah_dtype_parse(&out->save_dtype, options->save_dtype) != AH_OK)
        return ah__fail_prefix(AH_EINPUT, "save_dtype");
    return AH_OK;
}

static int resolve_tuning(struct ah_settings *out, const struct ah_train_options *options,
                          const struct ah_settings *saved, bool resumed)
{
    if (options->adapter_dir && resumed)
        return ah__fail(AH_EINPUT, "adapter: found %s beside a training to resume, which has its own",
                        options->adapter_dir);
    if (options->adapter_dir)
        return ah__tuning_of_adapter(&out->tuning, &options->tuning, options->adapter_dir, options->no_dropout);
    return ah__tuning_resolve(&out->tuning, &options->tuning, saved ? &saved->tuning : NULL, resumed);
}

static int check_kept(const char *option, enum ah_dtype found, enum ah_dtype saved, bool converts)
{
    if (found == saved || converts)
        return AH_OK;
    return ah__fail(AH_ESTALE, "%s: found %s, expected %s as in the checkpoint, or convert_states", option,
                    ah__dtype_word(found), ah__dtype_word(saved));
}

static int resolve_states(struct ah_settings *out, const struct ah_train_options *options,
                          const struct ah_settings *saved, bool resumed)
{
    out->master = saved ? saved->master : AH_F32;
    out->moments = saved ? saved->moments : AH_F32;
    AH_TRY(ah__states_parse(&out->master, &out->moments, out->dtype, options->master, options->moments));
    if (!resumed)
        return AH_OK;
    AH_TRY(check_kept("master", out->master, saved->master, options->convert_states));
    return check_kept("moments", out->moments, saved->moments, options->convert_states);
}

/* If only one kind of interval is asked for, the default of the other kind does not apply. */
static void resolve_saving(struct ah_settings *out, const struct ah_train_options *options)
{
    bool steps = options->save_every != AH_UNSET, seconds = !isnan(options->save_seconds);
    if (steps && !seconds)
        out->save_seconds = 0;
    if (seconds && !steps)
        out->save_every = 0;
}

struct ah_schedule ah__settings_schedule(const struct ah_settings *settings)
{
    int64_t end = settings->lr_steps ? settings->lr_steps : settings->steps;
    return (struct ah_schedule){settings->decay, settings->lr, settings->min_lr_ratio, settings->warmup_steps, end};
}

int ah__settings_resolve(struct ah_settings *out, const struct ah_train_options *options,
                         const struct ah_settings *saved, bool resumed, int64_t max_seq)
{
    struct ah_settings settings = {.decay = saved ? saved->decay : AH_DECAY_COSINE};
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        if (rows[i].kind != AH_OPTION_AUTO)
            AH_TRY(resolve_row(&settings, &rows[i], options, saved, resumed));
    AH_TRY(resolve_micro_batch(&settings, options, saved, resumed));
    AH_TRY(resolve_dtypes(&settings, options, saved, resumed));
    AH_TRY(resolve_states(&settings, options, saved, resumed));
    AH_TRY(resolve_tuning(&settings, options, saved, resumed));
    resolve_saving(&settings, options);
    if (options->schedule)
        AH_TRY(ah__decay_find(&settings.decay, options->schedule));
    AH_TRY(resolve_nonfinite(&settings, options, saved));
    settings.logs = saved ? saved->logs : 0;
    if (options->log)
        AH_TRY(ah__log_parse(&settings.logs, options->log));
    if (settings.seq == AH_UNSET)
        settings.seq = max_seq < 256 ? max_seq : 256;
    if (settings.seq > max_seq)
        return ah__fail(AH_EINPUT, "seq: found %" PRId64 ", expected at most %" PRId64 ", the model's longest sequence",
                        settings.seq, max_seq);
    if (settings.warmup_steps == AH_UNSET)
        settings.warmup_steps = ah__settings_schedule(&settings).steps / 20;
    *out = settings;
    return AH_OK;
}

/* ---- state.json -------------------------------------------------------------------------------------------------- */

int ah__settings_save(cJSON *object, const struct ah_settings *settings)
{
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        AH_TRY(ah__option_add(object, rows[i].name, rows[i].kind, (const char *)settings + rows[i].setting));
    AH_TRY(ah__json_add_string(object, "schedule", ah__decay_names[settings->decay]));
    AH_TRY(ah__json_add_bool(object, "skip_nonfinite", settings->skip_nonfinite));
    AH_TRY(ah__json_add_string(object, "dtype", ah__dtype_word(settings->dtype)));
    AH_TRY(ah__json_add_string(object, "save_dtype", ah__dtype_word(settings->save_dtype)));
    AH_TRY(ah__json_add_string(object, "master", ah__dtype_word(settings->master)));
    AH_TRY(ah__json_add_string(object, "moments", ah__dtype_word(settings->moments)));
    AH_TRY(ah__tuning_save(object, &settings->tuning));
    return ah__json_add_string(object, "log", ah__log_words(settings->logs));
}

static int load_dtype(enum ah_dtype *out, const struct ah_json *json, const char *key)
{
    const char *word;
    AH_TRY(ah__json_string(&word, json, key));
    if (ah_dtype_parse(out, word) != AH_OK)
        return ah__fail_prefix(AH_EINPUT, "%s: key '%s'", json->path, key);
    return AH_OK;
}

static int load_moments(enum ah_dtype *out, const struct ah_json *json)
{
    const char *word;
    AH_TRY(ah__json_string(&word, json, "moments"));
    return ah_moments_parse(out, word) == AH_OK ? AH_OK : ah__fail_prefix(AH_EINPUT, "%s", json->path);
}

static int load_logs(int *out, const struct ah_json *json)
{
    const char *words;
    *out = 0;
    AH_TRY(ah__json_string(&words, json, "log"));
    return ah__log_parse(out, words) == AH_OK ? AH_OK : ah__fail_prefix(AH_EINPUT, "%s", json->path);
}

int ah__settings_load(struct ah_settings *out, const struct ah_json *json)
{
    struct ah_settings settings = {0};
    const char *decay;
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        AH_TRY(ah__option_read((char *)&settings + rows[i].setting, json, rows[i].name, rows[i].kind, rows[i].min,
                               rows[i].max));
    if (check_divides(settings.micro_batch, settings.batch) != AH_OK)
        return ah__fail_prefix(AH_EINPUT, "%s", json->path);
    AH_TRY(ah__json_string(&decay, json, "schedule"));
    if (ah__decay_find(&settings.decay, decay) != AH_OK)
        return ah__fail_prefix(AH_EINPUT, "%s", json->path);
    AH_TRY(ah__json_bool(&settings.skip_nonfinite, json, "skip_nonfinite"));
    AH_TRY(load_dtype(&settings.dtype, json, "dtype"));
    AH_TRY(load_dtype(&settings.save_dtype, json, "save_dtype"));
    AH_TRY(load_dtype(&settings.master, json, "master"));
    AH_TRY(load_moments(&settings.moments, json));
    AH_TRY(ah__tuning_load(&settings.tuning, json));
    AH_TRY(load_logs(&settings.logs, json));
    *out = settings;
    return AH_OK;
}
