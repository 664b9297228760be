#include "report/curve.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json.h"

/* Returns a number of a line, or NaN if it is null or missing. */
static double number(const cJSON *line, const char *key)
{
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(line, key);
    return cJSON_IsNumber(node) ? node->valuedouble : NAN;
}

/* A key that a line may have, and the series that takes its values. */
struct column {
    const char *key;
    struct ah_series *to;
};

static int line_add(const cJSON *line, const struct column *columns, size_t count)
{
    double step = number(line, "step");
    for (size_t i = 0; i < count; i++)
        AH_TRY(ah__series_add(columns[i].to, step, number(line, columns[i].key)));
    return AH_OK;
}

static int text_read(const char *text, size_t length, const struct column *columns, size_t count)
{
    const char *end;
    int status = AH_OK;
    for (size_t at = 0; status == AH_OK && (end = memchr(text + at, '\n', length - at));
         at = (size_t)(end - text) + 1) {
        cJSON *line = cJSON_ParseWithLength(text + at, (size_t)(end - text) - at);
        if (!cJSON_IsObject(line)) {
            cJSON_Delete(line);
            break;
        }
        status = line_add(line, columns, count);
        cJSON_Delete(line);
    }
    return status;
}

static int file_read(const char *folder, const char *name, const struct column *columns, size_t count)
{
    static const size_t most_bytes = (size_t)1 << 30;
    char *path, *text;
    size_t length;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    int status = AH_OK;
    if (ah__path_exists(path)) {
        status = ah__file_read(&text, &length, path, most_bytes);
        if (status == AH_OK) {
            locale_t before = ah__locale_begin();
            status = text_read(text, length, columns, count);
            ah__locale_end(before);
            ah__free(text);
        }
    }
    ah__free(path);
    return status;
}

int ah__curves_load(struct ah_curves *out, const char *folder)
{
    *out = (struct ah_curves){0};
    const struct column steps[] = {
        {"loss", &out->loss}, {"grad_norm", &out->grad_norm}, {"lr", &out->lr}, {"tokens_per_s", &out->tokens_per_s}};
    const struct column vals[] = {{"val_loss", &out->val_loss}};
    AH_TRY(file_read(folder, "metrics.jsonl", steps, AH_LENGTH(steps)));
    return file_read(folder, "val.jsonl", vals, AH_LENGTH(vals));
}

void ah__curves_fini(struct ah_curves *curves)
{
    ah__series_fini(&curves->loss);
    ah__series_fini(&curves->val_loss);
    ah__series_fini(&curves->grad_norm);
    ah__series_fini(&curves->lr);
    ah__series_fini(&curves->tokens_per_s);
}

void ah__curves_loss(struct ah_buf *buf, const struct ah_curves *curves, const char *caption, int64_t vocab_size)
{
    char title[128] = "Loss", guess[64];
    double guessed = vocab_size > 1 ? log((double)vocab_size) : NAN;
    if (curves->loss.count > 0) {
        size_t last = curves->loss.count - 1;
        int used = ah__snprintf(title, sizeof title, "Loss after %.15g steps: %.3f", curves->loss.step[last],
                                ah__series_smoothed(&curves->loss));
        if (curves->val_loss.count > 0)
            ah__snprintf(title + used, sizeof title - (size_t)used, ", validation %.3f",
                         curves->val_loss.value[curves->val_loss.count - 1]);
    }
    ah__snprintf(guess, sizeof guess, "a guess among %lld tokens: %.2f", (long long)vocab_size, guessed);
    struct ah_chart chart = {.title = title,
                             .note = caption,
                             .name = "training",
                             .main = &curves->loss,
                             .dots_name = "validation",
                             .dots = &curves->val_loss,
                             .reference = guessed,
                             .reference_name = guess,
                             .height = 380};
    ah__chart(buf, &chart);
}
