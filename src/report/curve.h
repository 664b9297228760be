/* Reads the curves of a training from the metrics in its folder, and draws the loss. Decides nothing. */
#ifndef AH_REPORT_CURVE_H
#define AH_REPORT_CURVE_H

#include "report/chart.h"

struct ah_curves {
    struct ah_series loss, val_loss, grad_norm, lr, tokens_per_s;
};

/* Reads metrics.jsonl and val.jsonl of a training's folder. A missing file counts as empty, and a line that is no JSON
 * object ends the file. Freed by fini, also after a failure. AH_EIO, AH_ENOMEM. */
int ah__curves_load(struct ah_curves *out, const char *folder);
void ah__curves_fini(struct ah_curves *curves);

/* Appends the training and validation loss as one <svg> element. `caption`: model, batch, machine; may be null.
 * `vocab_size`: draws the loss of a uniform guess among so many tokens; 0: unknown, no line. */
void ah__curves_loss(struct ah_buf *buf, const struct ah_curves *curves, const char *caption, int64_t vocab_size);

#endif
