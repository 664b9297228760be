#include "train/tuning.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "op/codes.h"
#include "source/adapter_config.h"
#include "source/adapter_files.h"

struct ah_tuning ah__tuning_view(const struct ah_tuning_settings *settings)
{
    return (struct ah_tuning){
        .freeze = settings->freeze[0] ? settings->freeze : NULL,
        .lora_rank = settings->lora_rank,
        .lora_alpha = settings->lora_alpha,
        .lora_rslora = settings->lora_rslora,
        .lora_targets = settings->lora_targets[0] ? settings->lora_targets : NULL,
        .frozen = settings->frozen[0] ? settings->frozen : NULL,
    };
}

/* ---- from options ------------------------------------------------------------------------------------------------ */

static int check_alpha(double alpha)
{
    return alpha >= 0 ? AH_OK : ah__fail(AH_EINPUT, "lora_alpha: found %g, expected a number above 0", alpha);
}

static int take_text(char *to, size_t size, const char *text, const char *name, bool kept)
{
    if (!text)
        return AH_OK;
    if (kept && strcmp(to, text) != 0)
        return ah__fail(AH_ESTALE, "%s: found '%.80s', expected '%.80s' as in the checkpoint", name, text, to);
    if (strlen(text) >= size)
        return ah__fail(AH_EINPUT, "%s: found %zu bytes, expected at most %zu", name, strlen(text), size - 1);
    snprintf(to, size, "%s", text);
    return AH_OK;
}

static int take_frozen(struct ah_tuning_settings *out, const char *word, bool kept)
{
    if (kept && word && !out->frozen[0])
        return ah__fail(AH_ESTALE, "frozen: found '%.40s', expected nothing as in the checkpoint", word);
    enum ah_codes codes;
    AH_TRY(ah__codes_parse(&codes, word));
    return take_text(out->frozen, sizeof out->frozen, word, "frozen", kept);
}

static int check_kept(const char *name, double asked, double saved)
{
    if (asked < saved || asked > saved)
        return ah__fail(AH_ESTALE, "%s: found %g, expected %g as in the checkpoint", name, asked, saved);
    return AH_OK;
}

/* Fills alpha and targets of adapters where they are not given, so that a checkpoint records the values used. */
static void fill(struct ah_tuning_settings *out)
{
    if (!out->lora_rank)
        return;
    if (!(out->lora_alpha > 0))
        out->lora_alpha = out->lora_rank;
    if (!out->lora_targets[0])
        snprintf(out->lora_targets, sizeof out->lora_targets, "%s", AH_LORA_ALL);
}

int ah__tuning_resolve(struct ah_tuning_settings *out, const struct ah_tuning *asked,
                       const struct ah_tuning_settings *saved, bool resumed)
{
    struct ah_tuning_settings settings = {.lora_rank = 0};
    AH_TRY(check_alpha(asked->lora_alpha));
    if (saved)
        settings = *saved;
    if (!resumed && asked->lora_rank && settings.lora_alpha <= settings.lora_rank &&
        settings.lora_alpha >= settings.lora_rank) /* the saved alpha was the default for the saved rank */
        settings.lora_alpha = 0;
    AH_TRY(take_text(settings.freeze, AH_TUNING_TEXT, asked->freeze, "freeze", resumed));
    AH_TRY(take_text(settings.lora_targets, AH_TUNING_TEXT, asked->lora_targets, "lora_targets", resumed));
    AH_TRY(take_frozen(&settings, asked->frozen, resumed));
    if (resumed && asked->lora_rank)
        AH_TRY(check_kept("lora_rank", asked->lora_rank, settings.lora_rank));
    if (resumed && asked->lora_alpha > 0)
        AH_TRY(check_kept("lora_alpha", asked->lora_alpha, settings.lora_alpha));
    if (resumed && asked->lora_rslora)
        AH_TRY(check_kept("lora_rslora", 1, settings.lora_rslora));
    settings.lora_rank = asked->lora_rank ? asked->lora_rank : settings.lora_rank;
    settings.lora_alpha = asked->lora_alpha > 0 ? asked->lora_alpha : settings.lora_alpha;
    settings.lora_rslora = settings.lora_rslora || asked->lora_rslora;
    fill(&settings);
    *out = settings;
    return AH_OK;
}

static int of_config(struct ah_tuning_settings *out, const struct ah_adapter_config *config, bool no_dropout)
{
    if (config->dropout > 0 && !no_dropout)
        return ah__fail(AH_EINPUT,
                        "%s: key 'lora_dropout': found %g, expected 0: training drops nothing; "
                        "--no-dropout (no_dropout) takes it as 0",
                        config->path, config->dropout);
    *out = (struct ah_tuning_settings){
        .lora_rank = config->rank, .lora_alpha = config->alpha, .lora_rslora = config->rslora};
    snprintf(out->lora_targets, sizeof out->lora_targets, "%s", config->targets);
    return AH_OK;
}

int ah__tuning_of_adapter(struct ah_tuning_settings *out, const struct ah_tuning *asked, const char *folder,
                          bool no_dropout)
{
    struct ah_adapter_config config;
    char *found;
    AH_TRY(check_alpha(asked->lora_alpha));
    if (asked->lora_rank || asked->lora_alpha > 0 || asked->lora_rslora || asked->lora_targets || asked->freeze)
        return ah__fail(AH_EINPUT, "adapter: found %s beside other settings of what is trained, expected one of them",
                        folder);
    AH_TRY(ah__adapter_find(&found, folder));
    int status = ah__adapter_config_load(&config, found);
    if (status == AH_OK)
        status = of_config(out, &config, no_dropout);
    ah__free(found);
    if (status == AH_OK)
        status = take_frozen(out, asked->frozen, false);
    ah__adapter_config_free(&config);
    return status;
}

/* ---- state.json -------------------------------------------------------------------------------------------------- */

int ah__tuning_save(cJSON *object, const struct ah_tuning_settings *settings)
{
    if (settings->freeze[0])
        AH_TRY(ah__json_add_string(object, "freeze", settings->freeze));
    if (!settings->lora_rank)
        return AH_OK;
    AH_TRY(ah__json_add_int(object, "lora_rank", settings->lora_rank));
    AH_TRY(ah__json_add_double(object, "lora_alpha", settings->lora_alpha));
    AH_TRY(ah__json_add_bool(object, "lora_rslora", settings->lora_rslora));
    if (settings->frozen[0])
        AH_TRY(ah__json_add_string(object, "frozen", settings->frozen));
    return ah__json_add_string(object, "lora_targets", settings->lora_targets);
}

static int load_text(char *to, size_t size, const struct ah_json *json, const char *key)
{
    const char *text;
    if (!ah__json_has(json, key))
        return AH_OK;
    AH_TRY(ah__json_string(&text, json, key));
    if (strlen(text) >= size)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %zu bytes, expected at most %zu", json->path, key, strlen(text),
                        size - 1);
    snprintf(to, size, "%s", text);
    return AH_OK;
}

int ah__tuning_load(struct ah_tuning_settings *out, const struct ah_json *json)
{
    enum { RANK_MOST = 1 << 20 };
    struct ah_tuning_settings settings = {.lora_rank = 0};
    int64_t rank;
    double alpha;
    AH_TRY(load_text(settings.freeze, AH_TUNING_TEXT, json, "freeze"));
    if (ah__json_has(json, "lora_rank")) {
        AH_TRY(ah__json_int(&rank, json, "lora_rank", 1, RANK_MOST));
        AH_TRY(ah__json_double(&alpha, json, "lora_alpha", 1e-30, 1e30));
        AH_TRY(ah__json_bool(&settings.lora_rslora, json, "lora_rslora"));
        AH_TRY(load_text(settings.lora_targets, AH_TUNING_TEXT, json, "lora_targets"));
        AH_TRY(load_text(settings.frozen, sizeof settings.frozen, json, "frozen"));
        settings.lora_rank = (int)rank;
        settings.lora_alpha = alpha;
    }
    *out = settings;
    return AH_OK;
}
