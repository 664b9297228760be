/* Everything the experiments gave, and what is said about it. */
#ifndef AH_BENCH_PAPER_RESULTS_H
#define AH_BENCH_PAPER_RESULTS_H

#include "paper/grid.h"

enum { PAPER_MACHINES = 2, PAPER_BATCHES = 3, PAPER_SWEPT = 2, PAPER_STEPS = 16, PAPER_VARIANTS = 7 };
extern const int paper_ranks[PAPER_MACHINES];
extern const int64_t paper_batches[PAPER_BATCHES];

/* One quantity over several points, for one model. */
struct paper_sweep {
    int billions;
    size_t count;
    double x[PAPER_STEPS]; /* batch, or GB */
    struct paper_cell cells[PAPER_STEPS];
};

struct paper_variant {
    const char *name;
    double compute, link, host;
};
extern const struct paper_variant paper_variants[PAPER_VARIANTS];

struct paper_results {
    struct paper_cell models[PAPER_WORLDS][PAPER_MACHINES][PAPER_BATCHES][PAPER_MODELS];
    struct paper_sweep batch[PAPER_WORLDS][PAPER_SWEPT], memory[PAPER_WORLDS][PAPER_SWEPT];
    struct paper_cell varied[PAPER_RATES][PAPER_VARIANTS][PAPER_MODELS]; /* one device, batch 8, our memory */
};

/* The appendix's example of memory over a step, three SVG files. */
void paper_memory_save(const char *folder);
/* summary.md. AH_EIO. */
int paper_summary_save(const struct paper_results *results, const char *folder); /* summary.md and appendix.md */

#endif
