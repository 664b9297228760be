/* Results that an iteration has brought to the host, and how long lanes have worked. */
#include "run/internal.h"

double ah__run_loss(const struct ah_run *run, int64_t iteration)
{
    const char *results = ah__host_results(&run->memory, iteration);
    bool totals = run->comm->world_size > 1 && !run->evaluates;
    const float *loss = (const float *)(const void *)(results + (totals ? ah__results_totals(run->partition)
                                                                        : ah__results_losses(run->partition)));
    double sum = 0;
    for (int i = 0; i < ah__micro_batches(run->partition); i++)
        sum += (double)loss[i];
    return sum;
}

const float *ah__run_flag_counts(const struct ah_run *run, int64_t iteration)
{
    const char *totals = ah__host_results(&run->memory, iteration) + ah__results_totals(run->partition);
    return (const float *)(const void *)totals + ah__micro_batches(run->partition);
}

const double *ah__run_norms(const struct ah_run *run, int64_t iteration)
{
    return (const double *)(const void *)(ah__host_results(&run->memory, iteration) + AH_RESULTS_NORMS);
}

float *ah__run_scale(const struct ah_run *run, int64_t iteration)
{
    return (float *)(void *)(ah__host_results(&run->memory, iteration) + AH_RESULTS_SCALE);
}

void ah__run_busy(int64_t busy_ns[AH_LANE_COUNT], const struct ah_run *run)
{
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        busy_ns[lane] = run->busy_ns[lane];
}
