/* Single figures that the results come to, and those that the paper reports. */
#ifndef AH_BENCH_PAPER_FINDINGS_H
#define AH_BENCH_PAPER_FINDINGS_H

#include "paper/results.h"

/* Of a policy over the models that both can train. */
struct paper_spread {
    double mean, least, most;
    int count;
};

/* By the paper, of AutoHete's speed over a system at batch 8. */
struct paper_reported {
    double mean, most; /* 0: not reported */
};
extern const struct paper_reported paper_reported[PAPER_MACHINES][PAPER_POLICIES];

void paper_spread_add(struct paper_spread *spread, double ratio); /* unless it is not finite */
struct paper_spread paper_spread_of(const struct paper_cell *cells, enum paper_policy policy);
int paper_largest_model(const struct paper_cell *cells, enum paper_policy policy);
double paper_last_that_fits(const struct paper_sweep *sweep, enum paper_policy policy);
double paper_first_that_fits(const struct paper_sweep *sweep, enum paper_policy policy);
/* `ours` with 12 GiB over the fastest of the published systems with 40. */
double paper_small_over_large(const struct paper_sweep *sweep, enum paper_policy ours);

#endif
