#include "train/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { NUMBER_SIZE = 40, LINE_SIZE = 256 };
static const size_t file_most_bytes = (size_t)1 << 30;

/* Length of the leading whole lines whose steps are at most keep_steps. */
static size_t kept_length(const char *text, size_t length, int64_t keep_steps)
{
    size_t kept = 0;
    const char *end;
    while (kept < length && (end = memchr(text + kept, '\n', length - kept)) != NULL) {
        int64_t step = 0;
        if (sscanf(text + kept, "{\"step\":%" SCNd64 ",", &step) != 1 || step < 1 || step > keep_steps)
            break;
        kept = (size_t)(end - text) + 1;
    }
    return kept;
}

/* What an earlier start left that came to no checkpoint: PATH.1, or the next that is free. */
static int put_aside(const char *path)
{
    char *aside = NULL;
    for (int i = 1;; i++) {
        AH_TRY(ah__sprintf(&aside, "%s.%d", path, i));
        if (!ah__path_exists(aside))
            break;
        ah__free(aside);
    }
    int status = rename(path, aside) == 0 ? AH_OK : ah__fail(AH_EIO, "%s: %s", aside, strerror(errno));
    ah__free(aside);
    return status;
}

static int cut(const char *path, int64_t keep_steps)
{
    struct stat info;
    if (stat(path, &info) != 0 || info.st_size == 0)
        return AH_OK;
    if (keep_steps == 0)
        return put_aside(path);
    char *text;
    size_t length;
    AH_TRY(ah__file_read(&text, &length, path, file_most_bytes));
    size_t kept = kept_length(text, length, keep_steps);
    int status = kept < length ? ah__file_write(path, text, kept) : AH_OK;
    ah__free(text);
    return status;
}

static int open_one(char **path, int *fd, const char *folder, const char *name, int64_t keep_steps)
{
    AH_TRY(ah__sprintf(path, "%s/%s", folder, name));
    AH_TRY(cut(*path, keep_steps));
    *fd = open(*path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return *fd < 0 ? ah__fail(AH_EIO, "%s: %s", *path, strerror(errno)) : AH_OK;
}

int ah__metrics_open(struct ah_metrics *out, const char *folder, int64_t keep_steps)
{
    struct ah_metrics metrics = {.step_fd = -1, .val_fd = -1};
    int status = open_one(&metrics.step_path, &metrics.step_fd, folder, "metrics.jsonl", keep_steps);
    if (status == AH_OK)
        status = open_one(&metrics.val_path, &metrics.val_fd, folder, "val.jsonl", keep_steps);
    if (status == AH_OK)
        status = ah__folder_sync(folder);
    if (status == AH_OK)
        *out = metrics;
    else
        ah__metrics_close(&metrics);
    return status;
}

void ah__metrics_close(struct ah_metrics *metrics)
{
    if (metrics->step_path && metrics->step_fd >= 0)
        close(metrics->step_fd);
    if (metrics->val_path && metrics->val_fd >= 0)
        close(metrics->val_fd);
    ah__free(metrics->step_path);
    ah__free(metrics->val_path);
    *metrics = (struct ah_metrics){0};
}

/* A number as JSON (null when it is not finite) whatever the locale's decimal sign is. */
static const char *number(char out[NUMBER_SIZE], double value)
{
    snprintf(out, NUMBER_SIZE, "%.17g", value);
    if (!isfinite(value))
        return strcpy(out, "null");
    char *to = out;
    for (const char *from = out; *from;) {
        size_t plain = strspn(from, "0123456789+-e");
        memmove(to, from, plain);
        to += plain;
        from += plain;
        if (*from)
            *to++ = '.';
        from += strcspn(from, "0123456789+-e");
    }
    *to = 0;
    return out;
}

int ah__metrics_step(const struct ah_metrics *metrics, const struct ah_step *step)
{
    char loss[NUMBER_SIZE], norm[NUMBER_SIZE], factor[NUMBER_SIZE], lr[NUMBER_SIZE], rate[NUMBER_SIZE];
    char line[LINE_SIZE];
    snprintf(line, sizeof line,
             "{\"step\":%" PRId64 ",\"loss\":%s,\"grad_norm\":%s,\"clip_factor\":%s,\"lr\":%s,\"tokens_per_s\":%s}\n",
             step->step, number(loss, step->loss), number(norm, step->grad_norm), number(factor, step->clip_factor),
             number(lr, step->lr), number(rate, step->tokens_per_s));
    return ah__file_put(metrics->step_fd, line, strlen(line), metrics->step_path);
}

int ah__metrics_val(const struct ah_metrics *metrics, int64_t step, double val_loss)
{
    char loss[NUMBER_SIZE], line[LINE_SIZE];
    snprintf(line, sizeof line, "{\"step\":%" PRId64 ",\"val_loss\":%s}\n", step, number(loss, val_loss));
    return ah__file_put(metrics->val_fd, line, strlen(line), metrics->val_path);
}

int ah__metrics_sync(const struct ah_metrics *metrics)
{
    if (fsync(metrics->step_fd) != 0)
        return ah__fail(AH_EIO, "%s: %s", metrics->step_path, strerror(errno));
    if (fsync(metrics->val_fd) != 0)
        return ah__fail(AH_EIO, "%s: %s", metrics->val_path, strerror(errno));
    return AH_OK;
}
