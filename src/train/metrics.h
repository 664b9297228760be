/* DIR/metrics.jsonl, one line per training step, and DIR/val.jsonl, one line per evaluation; on request the same as CSV
 * and as TensorBoard's event files. Numbers of lines have 17 significant digits, so that reading them back gives the
 * same bits. Nothing is allocated after opening. Knows what a line looks like, not where its numbers come from. */
#ifndef AH_TRAIN_METRICS_H
#define AH_TRAIN_METRICS_H

#include "base/alloc.h"

/* Bits: what is written beside the JSON lines. */
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

/* "csv", "tensorboard", both with a comma between them, or "none" -> bits. AH_EINPUT. */
int ah__log_parse(int *logs, const char *words);
/* The other way round; the text is static. */
const char *ah__log_words(int logs);

/* Opens the files in an existing folder for appending. Lines of steps beyond `keep_steps`, and a last line that was
 * cut short, are dropped first; an event file is a new one that declares later steps of older ones void. A new training
 * keeps 0 steps: files that are there are renamed to NAME.1, NAME.2, ... On failure nothing is open. AH_EIO. */
int ah__metrics_open(struct ah_metrics *out, const char *folder, int logs, int64_t keep_steps);
/* A zero-initialised or closed struct is fine. */
void ah__metrics_close(struct ah_metrics *metrics);

/* {"step":1,"loss":..,"grad_norm":..,"clip_factor":..,"lr":..,"tokens_per_s":..}; null: not finite (in CSV: empty).
 * AH_EIO. */
int ah__metrics_step(const struct ah_metrics *metrics, const struct ah_step *step);
/* {"step":1,"val_loss":..} */
int ah__metrics_val(const struct ah_metrics *metrics, int64_t step, double val_loss);
/* Makes everything written so far durable; called before a checkpoint that promises these lines. */
int ah__metrics_sync(const struct ah_metrics *metrics);

#endif
