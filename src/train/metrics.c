#include "train/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/format.h"
#include "report/events.h"

static const size_t file_most_bytes = (size_t)1 << 30;

/* Name, format of a line's start (its step) and header of each kind of file. */
static const struct {
    const char *name, *line, *header;
    int log; /* bit of the format; 0: always written */
} kinds[AH_METRICS_EVENTS] = {
    [AH_METRICS_STEPS] = {"metrics.jsonl", "{\"step\":%" SCNd64 ",", "", 0},
    [AH_METRICS_VALS] = {"val.jsonl", "{\"step\":%" SCNd64 ",", "", 0},
    [AH_METRICS_STEPS_CSV] = {"metrics.csv", "%" SCNd64 ",", "step,loss,grad_norm,clip_factor,lr,tokens_per_s\n",
                              AH_LOG_CSV},
    [AH_METRICS_VALS_CSV] = {"val.csv", "%" SCNd64 ",", "step,val_loss\n", AH_LOG_CSV},
};

/* ---- which ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *words;
    int logs;
} choices[] = {
    {"none", 0},
    {"csv", AH_LOG_CSV},
    {"tensorboard", AH_LOG_TENSORBOARD},
    {"csv,tensorboard", AH_LOG_CSV | AH_LOG_TENSORBOARD},
    {"tensorboard,csv", AH_LOG_CSV | AH_LOG_TENSORBOARD},
};

int ah__log_parse(int *logs, const char *words)
{
    for (size_t i = 0; i < AH_LENGTH(choices); i++)
        if (strcmp(words, choices[i].words) == 0) {
            *logs = choices[i].logs;
            return AH_OK;
        }
    return ah__fail(AH_EINPUT, "log: found '%.40s', expected csv, tensorboard, csv,tensorboard or none", words);
}

const char *ah__log_words(int logs)
{
    size_t i = 0;
    while (choices[i].logs != logs)
        i++;
    return choices[i].words;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Returns the length of the header and the whole lines after it whose steps are at most keep_steps. */
static size_t kept_length(int kind, const char *text, size_t length, int64_t keep_steps)
{
    size_t kept = strlen(kinds[kind].header);
    const char *end;
    if (length < kept || memcmp(text, kinds[kind].header, kept) != 0)
        return 0;
    while (kept < length && (end = memchr(text + kept, '\n', length - kept)) != NULL) {
        int64_t step = 0;
        if (sscanf(text + kept, kinds[kind].line, &step) != 1 || step < 1 || step > keep_steps)
            break;
        kept = (size_t)(end - text) + 1;
    }
    return kept;
}

/* Renames a file that an earlier start without a checkpoint left, to PATH.1 or the next free name. */
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

static int cut(int kind, const char *path, int64_t keep_steps)
{
    struct stat info;
    if (stat(path, &info) != 0 || info.st_size == 0)
        return AH_OK;
    if (keep_steps == 0)
        return put_aside(path);
    char *text;
    size_t length;
    AH_TRY(ah__file_read(&text, &length, path, file_most_bytes));
    size_t kept = kept_length(kind, text, length, keep_steps);
    int status = kept < length ? ah__file_write(path, text, kept) : AH_OK;
    ah__free(text);
    return status;
}

/* Opens a file of lines for appending, cut to keep_steps; an empty one gets its header. */
static int open_lines(struct ah_metrics_file *out, int kind, const char *folder, int64_t keep_steps)
{
    const char *header = kinds[kind].header;
    AH_TRY(ah__sprintf(&out->path, "%s/%s", folder, kinds[kind].name));
    AH_TRY(ah__file_own(out->path));
    AH_TRY(cut(kind, out->path, keep_steps));
    out->fd = open(out->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (out->fd < 0)
        return ah__fail(AH_EIO, "%s: %s", out->path, strerror(errno));
    return lseek(out->fd, 0, SEEK_END) == 0 ? ah__file_put(out->fd, header, strlen(header), out->path) : AH_OK;
}

static double wall_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Opens a new event file. TensorBoard reads the files of a folder in the order of their names, so they begin with the
 * time. */
static int open_events(struct ah_metrics_file *out, const char *folder, int64_t keep_steps)
{
    char host[64] = "host", name[160];
    unsigned char start[2 * AH_EVENT_BYTES];
    gethostname(host, sizeof host - 1);
    for (long long second = time(NULL); out->fd < 0; second++) {
        snprintf(name, sizeof name, "events.out.tfevents.%lld.%s", second, host);
        ah__free(out->path);
        out->path = NULL;
        AH_TRY(ah__sprintf(&out->path, "%s/%s", folder, name));
        out->fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (out->fd < 0 && errno != EEXIST)
            return ah__fail(AH_EIO, "%s: %s", out->path, strerror(errno));
    }
    size_t length = ah__events_start(start, sizeof start, wall_s(), keep_steps + 1);
    return ah__file_put(out->fd, start, length, out->path);
}

static int open_all(struct ah_metrics *metrics, const char *folder, int logs, int64_t keep_steps)
{
    for (int kind = 0; kind < AH_METRICS_EVENTS; kind++)
        if (!kinds[kind].log || logs & kinds[kind].log)
            AH_TRY(open_lines(&metrics->files[kind], kind, folder, keep_steps));
    if (logs & AH_LOG_TENSORBOARD)
        AH_TRY(open_events(&metrics->files[AH_METRICS_EVENTS], folder, keep_steps));
    return ah__folder_sync(folder);
}

int ah__metrics_open(struct ah_metrics *out, const char *folder, int logs, int64_t keep_steps)
{
    struct ah_metrics metrics = {0};
    for (int kind = 0; kind < AH_METRICS_FILES; kind++)
        metrics.files[kind].fd = -1;
    int status = open_all(&metrics, folder, logs, keep_steps);
    if (status == AH_OK)
        *out = metrics;
    else
        ah__metrics_close(&metrics);
    return status;
}

void ah__metrics_close(struct ah_metrics *metrics)
{
    for (int kind = 0; kind < AH_METRICS_FILES; kind++) {
        struct ah_metrics_file *file = &metrics->files[kind];
        if (file->path && file->fd >= 0)
            close(file->fd);
        ah__free(file->path);
    }
    *metrics = (struct ah_metrics){0};
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct figure {
    const char *name;
    double value;
};
enum { MOST_FIGURES = 8, NUMBER_SIZE = 40, LINE_SIZE = 64 + MOST_FIGURES * (NUMBER_SIZE + 20) };

/* Returns a number with all its digits; `otherwise` if it is not finite. */
static const char *number(char out[NUMBER_SIZE], double value, const char *otherwise)
{
    if (!isfinite(value))
        return otherwise;
    ah__snprintf(out, NUMBER_SIZE, "%.17g", value);
    return out;
}

static int put_json(const struct ah_metrics_file *file, int64_t step, const struct figure *figures, int count)
{
    char line[LINE_SIZE], digits[NUMBER_SIZE];
    size_t used = (size_t)snprintf(line, sizeof line, "{\"step\":%" PRId64, step);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, ",\"%s\":%s", figures[i].name,
                                 number(digits, figures[i].value, "null"));
    used += (size_t)snprintf(line + used, sizeof line - used, "}\n");
    return ah__file_put(file->fd, line, used, file->path);
}

static int put_csv(const struct ah_metrics_file *file, int64_t step, const struct figure *figures, int count)
{
    char line[LINE_SIZE], digits[NUMBER_SIZE];
    size_t used = (size_t)snprintf(line, sizeof line, "%" PRId64, step);
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, ",%s", number(digits, figures[i].value, ""));
    used += (size_t)snprintf(line + used, sizeof line - used, "\n");
    return ah__file_put(file->fd, line, used, file->path);
}

static int put_event(const struct ah_metrics_file *file, int64_t step, const struct figure *figures, int count)
{
    unsigned char record[AH_EVENT_BYTES + MOST_FIGURES * (AH_EVENT_TAG_BYTES + 16)];
    struct ah_event_scalar scalars[MOST_FIGURES];
    for (int i = 0; i < count; i++)
        scalars[i] = (struct ah_event_scalar){figures[i].name, figures[i].value};
    size_t length = ah__events_scalars(record, sizeof record, wall_s(), step, scalars, (size_t)count);
    return ah__file_put(file->fd, record, length, file->path);
}

/* Writes figures of a step as a line of JSON, and as CSV and as an event if those files are open. */
static int put(const struct ah_metrics *metrics, int json, int csv, int64_t step, const struct figure *figures,
               int count)
{
    const struct ah_metrics_file *files = metrics->files;
    AH_TRY(put_json(&files[json], step, figures, count));
    if (files[csv].path)
        AH_TRY(put_csv(&files[csv], step, figures, count));
    return files[AH_METRICS_EVENTS].path ? put_event(&files[AH_METRICS_EVENTS], step, figures, count) : AH_OK;
}

int ah__metrics_step(const struct ah_metrics *metrics, const struct ah_step *step)
{
    const struct figure figures[] = {
        {"loss", step->loss}, {"grad_norm", step->grad_norm},       {"clip_factor", step->clip_factor},
        {"lr", step->lr},     {"tokens_per_s", step->tokens_per_s},
    };
    return put(metrics, AH_METRICS_STEPS, AH_METRICS_STEPS_CSV, step->step, figures, (int)AH_LENGTH(figures));
}

int ah__metrics_val(const struct ah_metrics *metrics, int64_t step, double val_loss)
{
    const struct figure figure = {"val_loss", val_loss};
    return put(metrics, AH_METRICS_VALS, AH_METRICS_VALS_CSV, step, &figure, 1);
}

int ah__metrics_sync(const struct ah_metrics *metrics)
{
    for (int kind = 0; kind < AH_METRICS_FILES; kind++) {
        const struct ah_metrics_file *file = &metrics->files[kind];
        if (file->path && fsync(file->fd) != 0)
            return ah__fail(AH_EIO, "%s: %s", file->path, strerror(errno));
    }
    return AH_OK;
}
