/* The curves of a training, read from the metrics in its folder, and the picture of the loss. Decides nothing. */
#ifndef AH_REPORT_CURVE_H
#define AH_REPORT_CURVE_H

#include "report/chart.h"

struct ah_curves {
    struct ah_series loss, val_loss, grad_norm, lr, tokens_per_s;
};

/* What metrics.jsonl and val.jsonl of a training's folder hold; a missing file is an empty one, and lines that are none
 * end it. Freed by fini, also after a failure. AH_EIO, AH_ENOMEM. */
int ah__curves_load(struct ah_curves *out, const char *folder);
void ah__curves_fini(struct ah_curves *curves);

/* Training and validation loss as one <svg> element. `caption`: model, batch, machine, may be null; `vocab_size`: what
 * a guess costs is drawn for it; 0: unknown. */
void ah__curves_loss(struct ah_buf *buf, const struct ah_curves *curves, const char *caption, int64_t vocab_size);

#endif
