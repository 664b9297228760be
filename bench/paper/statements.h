/* What the results say of the paper's claims: which sentences (claims.h) are made, from which cells. */
#ifndef AH_BENCH_PAPER_STATEMENTS_H
#define AH_BENCH_PAPER_STATEMENTS_H

#include "base/buf.h"
#include "paper/results.h"

/* A section for each set of rules and rates. */
void paper_statements(struct ah_buf *buf, const struct paper_results *results);

#endif
