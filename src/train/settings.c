#include "train/settings.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "op/op.h"
#include "session/session.h"
#include "train/metrics.h"

/* One row per number: its name in messages and in state.json, where it is in the options and in the settings, what
 * holds when nobody says (integers: AH_UNSET where that depends on other settings), the range, and whether a resume
 * must keep it. */
struct count_row {
    const char *name;
    size_t option, setting;
    int64_t otherwise, min, max;
    bool kept;
};
struct real_row {
    const char *name;
    size_t option, setting;
    double otherwise, min, max;
};
#define AT(option, setting) offsetof(struct ah_train_options, option), offsetof(struct ah_settings, setting)

static const int64_t most = (int64_t)1 << 40;

static const struct count_row counts[] = {
    {"batch", AT(batch, batch), 8, 1, 1 << 20, true},
    {"seq", AT(seq, seq), AH_UNSET, 1, 1 << 24, true},
    {"steps", AT(steps, steps), 200, 1, most, false},
    {"lr_steps", AT(lr_steps, lr_steps), 0, 0, most, false},
    {"warmup_steps", AT(warmup_steps, schedule.warmup_steps), AH_UNSET, 0, most, false},
    {"save_every", AT(save_every, save_every), 0, 0, most, false},
    {"keep", AT(keep, keep), 2, 1, 1 << 20, false},
    {"shard_bytes", AT(shard_bytes, shard_bytes), 5000000000, 0, most, false},
    {"val_every", AT(val_every, val_every), 0, 0, most, false},
    {"val_batches", AT(val_batches, val_batches), 8, 0, most, false},
};

/* Below 1 but not 1; and an eps that float still tells from zero, since zero divides by zero where a gradient is
 * zero. */
#define UNDER_ONE 0.999999999
#define LEAST_EPS 1e-30

static const struct real_row reals[] = {
    {"lr", AT(lr, schedule.lr), 3e-4, 0, 1e3},
    {"min_lr_ratio", AT(min_lr_ratio, schedule.min_lr_ratio), 0.1, 0, 1},
    {"clip", AT(clip, clip), 1, 0, 1e30},
    {"beta1", AT(beta1, adamw.beta1), 0.9, 0, UNDER_ONE},
    {"beta2", AT(beta2, adamw.beta2), 0.95, 0, UNDER_ONE},
    {"eps", AT(eps, adamw.eps), 1e-8, LEAST_EPS, 1},
    {"weight_decay", AT(weight_decay, adamw.weight_decay), 0.1, 0, 1e3},
    {"save_seconds", AT(save_seconds, save_seconds), 600, 0, 1e9},
};

static void options_unset(struct ah_train_options *options)
{
    *options = (struct ah_train_options){.seed = (uint64_t)AH_UNSET, .micro_batch = AH_UNSET, .epochs = NAN};
    for (size_t i = 0; i < AH_LENGTH(counts); i++)
        *(int64_t *)((char *)options + counts[i].option) = AH_UNSET;
    for (size_t i = 0; i < AH_LENGTH(reals); i++)
        *(double *)((char *)options + reals[i].option) = NAN;
}

void ah_train_options_init(struct ah_train_options *options, size_t size)
{
    struct ah_train_options whole;
    options_unset(&whole);
    whole.size = size;
    memset(options, 0, size);
    memcpy(options, &whole, size < sizeof whole ? size : sizeof whole);
}

/* The options of the first version that has a size. */
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

static int resolve_count(struct ah_settings *out, const struct count_row *row, const struct ah_train_options *options,
                         const struct ah_settings *saved, bool resumed)
{
    int64_t asked = *(const int64_t *)((const char *)options + row->option), value = row->otherwise;
    if (saved)
        value = *(const int64_t *)((const char *)saved + row->setting);
    if (asked != AH_UNSET) {
        if (asked < row->min || asked > row->max)
            return ah__fail(AH_EINPUT, "%s: found %" PRId64 ", expected %" PRId64 " to %" PRId64, row->name, asked,
                            row->min, row->max);
        if (resumed && row->kept && asked != value)
            return ah__fail(AH_ESTALE, "%s: found %" PRId64 ", expected %" PRId64 " as in the checkpoint", row->name,
                            asked, value);
        value = asked;
    }
    *(int64_t *)((char *)out + row->setting) = value;
    return AH_OK;
}

static int resolve_real(struct ah_settings *out, const struct real_row *row, const struct ah_train_options *options,
                        const struct ah_settings *saved)
{
    double asked = *(const double *)((const char *)options + row->option), value = row->otherwise;
    if (saved)
        value = *(const double *)((const char *)saved + row->setting);
    if (!isnan(asked)) {
        if (asked < row->min || asked > row->max)
            return ah__fail(AH_EINPUT, "%s: found %.10g, expected %.10g to %.10g", row->name, asked, row->min,
                            row->max);
        value = asked;
    }
    *(double *)((char *)out + row->setting) = value;
    return AH_OK;
}

static int check_divides(int64_t micro_batch, int64_t batch)
{
    if (micro_batch >= 1 && batch % micro_batch == 0)
        return AH_OK;
    return ah__fail(AH_EINPUT, "micro_batch: found %" PRId64 ", expected a divisor of the batch of %" PRId64,
                    micro_batch, batch);
}

/* What a checkpoint says was chosen once stays chosen. */
static int resolve_micro_batch(struct ah_settings *out, const struct ah_train_options *options,
                               const struct ah_settings *saved, bool resumed)
{
    int64_t asked = options->micro_batch, otherwise = out->batch;
    if (saved && (resumed || out->batch % saved->micro_batch == 0)) /* another batch may be asked for */
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

static int resolve_seed(struct ah_settings *out, const struct ah_train_options *options,
                        const struct ah_settings *saved, bool resumed)
{
    bool asked = options->seed != (uint64_t)AH_UNSET;
    if (resumed && asked && options->seed != saved->seed)
        return ah__fail(AH_ESTALE, "seed: found %" PRIu64 ", expected %" PRIu64 " as in the checkpoint", options->seed,
                        saved->seed);
    out->seed = asked ? options->seed : saved ? saved->seed : 1;
    return AH_OK;
}

/* A resumed training is what it was. */
static int resolve_pack(struct ah_settings *out, const struct ah_train_options *options,
                        const struct ah_settings *saved, bool resumed)
{
    out->pack = options->pack || (saved && saved->pack);
    if (resumed && out->pack != saved->pack)
        return ah__fail(AH_ESTALE, "pack: found true, expected false as in the checkpoint");
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

static int resolve_logs(struct ah_settings *out, const struct ah_train_options *options,
                        const struct ah_settings *saved)
{
    out->logs = saved ? saved->logs : 0;
    return options->log ? ah__log_parse(&out->logs, options->log) : AH_OK;
}

/* The dtype is kept; what is written of it may change. */
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

/* Whoever asks for one kind of interval does not want the other one's default. */
static void resolve_saving(struct ah_settings *out, const struct ah_train_options *options)
{
    bool steps = options->save_every != AH_UNSET, seconds = !isnan(options->save_seconds);
    if (steps && !seconds)
        out->save_seconds = 0;
    if (seconds && !steps)
        out->save_every = 0;
}

static void schedule_end(struct ah_settings *settings)
{
    settings->schedule.steps = settings->lr_steps ? settings->lr_steps : settings->steps;
}

int ah__settings_resolve(struct ah_settings *out, const struct ah_train_options *options,
                         const struct ah_settings *saved, bool resumed, int64_t max_seq)
{
    struct ah_settings settings = {.schedule.decay = saved ? saved->schedule.decay : AH_DECAY_COSINE};
    for (size_t i = 0; i < AH_LENGTH(counts); i++)
        AH_TRY(resolve_count(&settings, &counts[i], options, saved, resumed));
    for (size_t i = 0; i < AH_LENGTH(reals); i++)
        AH_TRY(resolve_real(&settings, &reals[i], options, saved));
    AH_TRY(resolve_micro_batch(&settings, options, saved, resumed));
    AH_TRY(resolve_seed(&settings, options, saved, resumed));
    AH_TRY(resolve_dtypes(&settings, options, saved, resumed));
    AH_TRY(resolve_states(&settings, options, saved, resumed));
    AH_TRY(resolve_tuning(&settings, options, saved, resumed));
    AH_TRY(resolve_pack(&settings, options, saved, resumed));
    resolve_saving(&settings, options);
    schedule_end(&settings);
    if (options->schedule)
        AH_TRY(ah__decay_find(&settings.schedule.decay, options->schedule));
    AH_TRY(resolve_nonfinite(&settings, options, saved));
    AH_TRY(resolve_logs(&settings, options, saved));
    if (settings.seq == AH_UNSET)
        settings.seq = max_seq < 256 ? max_seq : 256;
    if (settings.seq > max_seq)
        return ah__fail(AH_EINPUT, "seq: found %" PRId64 ", expected at most %" PRId64 ", the model's longest sequence",
                        settings.seq, max_seq);
    if (settings.schedule.warmup_steps == AH_UNSET)
        settings.schedule.warmup_steps = settings.schedule.steps / 20;
    *out = settings;
    return AH_OK;
}

/* ---- state.json -------------------------------------------------------------------------------------------------- */

int ah__settings_save(cJSON *object, const struct ah_settings *settings)
{
    for (size_t i = 0; i < AH_LENGTH(counts); i++)
        AH_TRY(
            ah__json_add_int(object, counts[i].name, *(const int64_t *)((const char *)settings + counts[i].setting)));
    for (size_t i = 0; i < AH_LENGTH(reals); i++)
        AH_TRY(
            ah__json_add_double(object, reals[i].name, *(const double *)((const char *)settings + reals[i].setting)));
    AH_TRY(ah__json_add_int(object, "micro_batch", settings->micro_batch));
    AH_TRY(ah__json_add_string(object, "schedule", ah__decay_names[settings->schedule.decay]));
    AH_TRY(ah__json_add_bool(object, "skip_nonfinite", settings->skip_nonfinite));
    AH_TRY(ah__json_add_string(object, "dtype", ah__dtype_word(settings->dtype)));
    AH_TRY(ah__json_add_string(object, "save_dtype", ah__dtype_word(settings->save_dtype)));
    AH_TRY(ah__json_add_string(object, "master", ah__dtype_word(settings->master)));
    AH_TRY(ah__json_add_string(object, "moments", ah__dtype_word(settings->moments)));
    AH_TRY(ah__tuning_save(object, &settings->tuning));
    AH_TRY(ah__json_add_bool(object, "pack", settings->pack));
    AH_TRY(ah__json_add_string(object, "log", ah__log_words(settings->logs)));
    return ah__json_add_hash(object, "seed", settings->seed);
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
    for (size_t i = 0; i < AH_LENGTH(counts); i++)
        AH_TRY(ah__json_int((int64_t *)((char *)&settings + counts[i].setting), json, counts[i].name, counts[i].min,
                            counts[i].max));
    for (size_t i = 0; i < AH_LENGTH(reals); i++)
        AH_TRY(ah__json_double((double *)((char *)&settings + reals[i].setting), json, reals[i].name, reals[i].min,
                               reals[i].max));
    schedule_end(&settings);
    AH_TRY(ah__json_int(&settings.micro_batch, json, "micro_batch", 1, settings.batch));
    if (check_divides(settings.micro_batch, settings.batch) != AH_OK)
        return ah__fail_prefix(AH_EINPUT, "%s", json->path);
    AH_TRY(ah__json_string(&decay, json, "schedule"));
    if (ah__decay_find(&settings.schedule.decay, decay) != AH_OK)
        return ah__fail_prefix(AH_EINPUT, "%s", json->path);
    AH_TRY(ah__json_bool(&settings.skip_nonfinite, json, "skip_nonfinite"));
    AH_TRY(load_dtype(&settings.dtype, json, "dtype"));
    AH_TRY(load_dtype(&settings.save_dtype, json, "save_dtype"));
    AH_TRY(load_dtype(&settings.master, json, "master"));
    AH_TRY(load_moments(&settings.moments, json));
    AH_TRY(ah__tuning_load(&settings.tuning, json));
    AH_TRY(ah__json_bool(&settings.pack, json, "pack"));
    AH_TRY(load_logs(&settings.logs, json));
    AH_TRY(ah__json_hash(&settings.seed, json, "seed"));
    *out = settings;
    return AH_OK;
}
