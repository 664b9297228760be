/* DIR/metrics.jsonl, one line per training step, and DIR/val.jsonl, one line per evaluation; on request the same as CSV
 * and as TensorBoard's event files. Numbers in lines have 17 significant digits, so that reading them back gives the
 * same bits. Nothing is allocated after opening. Knows the format of lines, not the source of their numbers. */
#ifndef AH_TRAIN_METRICS_H
#define AH_TRAIN_METRICS_H

#include "base/alloc.h"

/* Bits: formats written beside the JSON lines. */
enum { AH_LOG_CSV = 1, AH_LOG_TENSORBOARD = 2 };

enum {
    AH_METRICS_STEPS,
    AH_METRICS_VALS,
    AH_METRICS_STEPS_CSV,
    AH_METRICS_VALS_CSV,
    AH_METRICS_EVENTS,
    AH_METRICS_FILES
};

struct ah_metrics {
    struct ah_metrics_file {
        char *path; /* null: not written */
        int fd;
    } files[AH_METRICS_FILES];
};

/* Parses "csv", "tensorboard", both with a comma between them, or "none" into bits. AH_EINPUT. */
int ah__log_parse(int *logs, const char *words);
/* Returns the words for bits; the text is static. */
const char *ah__log_words(int logs);

/* Opens the files in an existing folder for appending. First drops lines of steps beyond `keep_steps` and a last line
 * that was cut short; a new event file declares later steps of older ones void. A new training keeps 0 steps: existing
 * files are renamed to NAME.1, NAME.2, ... On failure nothing is open. AH_EIO. */
int ah__metrics_open(struct ah_metrics *out, const char *folder, int logs, int64_t keep_steps);
/* A zero-initialised or closed struct is fine. */
void ah__metrics_close(struct ah_metrics *metrics);

/* Writes {"step":1,"loss":..,"grad_norm":..,"clip_factor":..,"lr":..,"tokens_per_s":..}; a number that is not finite is
 * null (in CSV: empty). AH_EIO. */
int ah__metrics_step(const struct ah_metrics *metrics, const struct ah_step *step);
/* Writes {"step":1,"val_loss":..}. AH_EIO. */
int ah__metrics_val(const struct ah_metrics *metrics, int64_t step, double val_loss);
/* Makes everything written so far durable; called before a checkpoint that promises these lines. */
int ah__metrics_sync(const struct ah_metrics *metrics);

#endif
