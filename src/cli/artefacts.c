#include "cli/artefacts.h"

#include <stdlib.h>
#include <string.h>

#include "cli/out.h"

void ah__micro_batch_print(FILE *to, int64_t size, int64_t count, bool chosen)
{
    if (count > 1 || chosen)
        fprintf(to, "micro-batches: %lld of %lld sequence%s%s\n", (long long)count, (long long)size,
                size == 1 ? "" : "s", chosen ? ", the fastest" : "");
}

void ah__device_print(FILE *to, const struct ah_device *device)
{
    char memory[32];
    if (device->why[0])
        fprintf(stderr, "autohete: note: no GPU is used: %s\n", device->why);
    if (strcmp(device->name, "cpu") != 0)
        fprintf(to, "device: %s, %s, %s\n", device->name, device->model,
                ah_size_format(memory, sizeof memory, device->memory_bytes));
}

void ah__formats_print(FILE *to, const char *dtype, const struct ah_session_options *options)
{
    const struct ah_tuning *tuning = &options->tuning;
    fputs(dtype, to);
    if (options->master)
        fprintf(to, ", masters in %s", options->master);
    if (options->moments)
        fprintf(to, ", moments in %s", options->moments);
    if (tuning->lora_rank)
        fprintf(to, ", adapters of rank %d", tuning->lora_rank);
    if (tuning->freeze)
        fprintf(to, ", frozen %s", tuning->freeze);
    if (tuning->frozen)
        fprintf(to, " beside %s", tuning->frozen);
}

const char *ah__cache_folder(void)
{
    static char path[4096];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && cache[0] == '/') /* the XDG standard says to ignore a relative path */
        length = snprintf(path, sizeof path, "%s/autohete", cache);
    else if (home && home[0] == '/')
        length = snprintf(path, sizeof path, "%s/.cache/autohete", home);
    return length > 0 && (size_t)length < sizeof path ? path : NULL;
}

void ah__profile_age_print(FILE *to, int64_t kept_s)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};
    size_t i = 0;
    if (kept_s < 0)
        return;
    while (i + 1 < sizeof units / sizeof units[0] && kept_s < units[i].seconds)
        i++;
    int64_t count = kept_s / units[i].seconds;
    fprintf(to, "profile: cached %lld %s%s ago (--no-cache measures again)\n", (long long)count, units[i].name,
            count == 1 ? "" : "s");
}

static int advance(struct ah_session *session, const struct ah_session_options *given, enum ah_session_stage stage,
                   FILE *text)
{
    const struct ah_session_info *info = ah_session_get(session);
    bool measures = stage >= AH_SESSION_PROFILE && !given->hardware && !given->profile_path;
    int status = measures ? ah_session_reach(session, AH_SESSION_DEVICE) : AH_OK;
    if (status == AH_OK && measures && text)
        ah__device_print(text, &info->device);
    if (status == AH_OK)
        status = ah_session_reach(session, stage);
    if (status == AH_OK && text)
        ah__profile_age_print(text, info->profile_kept_s);
    return status;
}

int ah__session_start(struct ah_session **out, const struct ah_session_options *options, enum ah_session_stage stage,
                      FILE *text)
{
    struct ah_session_options filled = *options;
    filled.size = sizeof filled;
    filled.profile.cache = ah__cache_folder();
    *out = NULL;
    int status = ah_session_open(out, &filled);
    if (status == AH_OK && text && ah_model_note(ah_session_model(*out)))
        fprintf(stderr, "autohete: note: %s\n", ah_model_note(ah_session_model(*out)));
    if (status == AH_OK)
        status = advance(*out, options, stage, text);
    const struct ah_partition *partition = text && *out ? ah_session_partition(*out) : NULL;
    if (partition && ah_partition_note(partition))
        fprintf(stderr, "autohete: note: %s\n", ah_partition_note(partition));
    if (status == AH_OK)
        return AH_OK;
    ah_session_close(*out);
    *out = NULL;
    return status;
}
