/* Sentences about what was found, made from the numbers they speak of: a claim that does not hold turns into its
 * opposite. Knows no simulator. */
#ifndef AH_BENCH_PAPER_CLAIMS_H
#define AH_BENCH_PAPER_CLAIMS_H

#include <stdbool.h>

#include "base/buf.h"

/* AutoHete's mean speed over a system, beside what the paper reports. NaN (nothing fits): no sentence. */
void paper_claim_ratio(struct ah_buf *buf, const char *system, double found, double reported);

/* The last (or first) value at which a system still trains. `part`: of its memory budget that it takes at the first
 * value at which the paper's does not (or does), 0: not asked. */
void paper_claim_limit(struct ah_buf *buf, const char *what, double found, double reported, double part);

/* Whether a ratio is above one, as the paper says of it. */
void paper_claim_above_one(struct ah_buf *buf, const char *what, double found);

/* Whether host memory runs out, as the paper says: what is needed over what there is. */
void paper_claim_runs_out(struct ah_buf *buf, const char *what, double part);

/* What a change gains on average and at most, and whether that is the aim. */
void paper_claim_gain(struct ah_buf *buf, const char *what, double mean, double most, double aim);

/* The window StrongHold's rule takes, and what the fastest one would be worth. 0 blocks: nothing fits, no sentence. */
void paper_claim_window(struct ah_buf *buf, const char *where, int blocks, int fastest_blocks, double gain);

/* Which system is the fastest of those compared: `names` and `speeds` of `count`. */
void paper_claim_fastest(struct ah_buf *buf, const char *where, const char *const *names, const double *speeds,
                         int count);

#endif
