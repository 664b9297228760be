/* What the results say of the paper's claims: which sentences (claims.h) are made, from which cells. */
#ifndef AH_BENCH_PAPER_STATEMENTS_H
#define AH_BENCH_PAPER_STATEMENTS_H

#include "base/buf.h"
#include "paper/results.h"

/* Of a policy over the models that both can train. */
struct paper_spread {
    double mean, least, most;
    int count;
};

struct paper_reported {
    double mean, most; /* 0: not reported */
};
extern const struct paper_reported paper_reported[PAPER_MACHINES][PAPER_POLICIES];

struct paper_spread paper_spread_of(const struct paper_cell *cells, enum paper_policy policy);
int paper_largest_model(const struct paper_cell *cells, enum paper_policy policy);
double paper_last_that_fits(const struct paper_sweep *sweep, enum paper_policy policy);
double paper_first_that_fits(const struct paper_sweep *sweep, enum paper_policy policy);
/* `ours` with 12 GiB over the fastest of the published systems with 40. */
double paper_small_over_large(const struct paper_sweep *sweep, enum paper_policy ours);

/* A section for each set of rules and rates. */
void paper_statements(struct ah_buf *buf, const struct paper_results *results);

#endif
