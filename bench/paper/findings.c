#include "paper/findings.h"

#include <math.h>

const struct paper_reported paper_reported[PAPER_MACHINES][PAPER_POLICIES] = {{[PAPER_ZERO] = {1.85, 2.08},
                                                                               [PAPER_PATRICKSTAR] = {1.63, 1.91},
                                                                               [PAPER_STRONGHOLD] = {1.32, 1.41},
                                                                               [PAPER_FIFO] = {1.16, 1.24}},
                                                                              {[PAPER_ZERO] = {2.23, 2.67},
                                                                               [PAPER_PATRICKSTAR] = {1.65, 1.79},
                                                                               [PAPER_STRONGHOLD] = {1.44, 1.52},
                                                                               [PAPER_FIFO] = {1.21, 1.30}}};

void paper_spread_add(struct paper_spread *spread, double ratio)
{
    if (!isfinite(ratio))
        return;
    spread->least = spread->count ? fmin(spread->least, ratio) : ratio;
    spread->most = spread->count ? fmax(spread->most, ratio) : ratio;
    spread->mean = (spread->mean * spread->count + ratio) / (spread->count + 1);
    spread->count++;
}

struct paper_spread paper_spread_of(const struct paper_cell *cells, enum paper_policy policy)
{
    struct paper_spread spread = {0};
    for (int model = 0; model < PAPER_MODELS; model++)
        paper_spread_add(&spread, paper_ratio(&cells[model], policy));
    return spread;
}

int paper_largest_model(const struct paper_cell *cells, enum paper_policy policy)
{
    int largest = 0;
    for (int model = 0; model < PAPER_MODELS; model++)
        largest = cells[model].of[policy].fits ? cells[model].point.billions : largest;
    return largest;
}

double paper_last_that_fits(const struct paper_sweep *sweep, enum paper_policy policy)
{
    double last = 0;
    for (size_t i = 0; i < sweep->count; i++)
        last = sweep->cells[i].of[policy].fits ? sweep->x[i] : last;
    return last;
}

double paper_first_that_fits(const struct paper_sweep *sweep, enum paper_policy policy)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->cells[i].of[policy].fits)
            return sweep->x[i];
    return NAN;
}

double paper_small_over_large(const struct paper_sweep *sweep, enum paper_policy ours)
{
    double best = 0;
    for (int i = 0; i < PAPER_PUBLISHED; i++)
        best = fmax(best, sweep->cells[sweep->count - 1].of[paper_published[i]].tokens_per_s);
    return sweep->cells[1].of[ours].tokens_per_s / best;
}
