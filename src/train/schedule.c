#include "train/schedule.h"

#include <math.h>
#include <string.h>

const char *const ah__decay_names[AH_DECAY_COUNT] = {"cosine", "linear", "constant"};

int ah__decay_find(enum ah_decay *out, const char *name)
{
    for (int i = 0; i < AH_DECAY_COUNT; i++)
        if (strcmp(name, ah__decay_names[i]) == 0) {
            *out = (enum ah_decay)i;
            return AH_OK;
        }
    return ah__fail(AH_EINPUT, "schedule: found \"%s\", expected cosine, linear or constant", name);
}

/* Returns the remaining share of the way from lr down to lr * r after the fraction x of the decay. */
static double remaining(enum ah_decay decay, double x)
{
    switch (decay) {
    case AH_DECAY_COSINE:
        return 0.5 * (1.0 + cos(3.14159265358979323846 * x));
    case AH_DECAY_LINEAR:
        return 1.0 - x;
    default:
        return 1.0;
    }
}

double ah__schedule_lr(const struct ah_schedule *schedule, int64_t step)
{
    if (step <= schedule->warmup_steps)
        return schedule->lr * ((double)step / (double)schedule->warmup_steps);
    if (schedule->decay == AH_DECAY_CONSTANT)
        return schedule->lr;
    double x = step >= schedule->steps
                   ? 1.0
                   : (double)(step - schedule->warmup_steps) / (double)(schedule->steps - schedule->warmup_steps);
    double r = schedule->min_lr_ratio;
    return schedule->lr * (r + (1.0 - r) * remaining(schedule->decay, x));
}

void ah__adam_init(struct ah_adam *out, const struct ah_adamw *hyper, double lr, int64_t t)
{
    double bias1 = 1.0 - pow(hyper->beta1, (double)t), bias2 = 1.0 - pow(hyper->beta2, (double)t);
    *out = (struct ah_adam){
        .beta1 = (float)hyper->beta1,
        .one_minus_beta1 = (float)(1.0 - hyper->beta1),
        .beta2 = (float)hyper->beta2,
        .one_minus_beta2 = (float)(1.0 - hyper->beta2),
        .eps = (float)hyper->eps,
        .decay_factor = (float)(1.0 - lr * hyper->weight_decay),
        .step_size = (float)(lr / bias1),
        .inv_sqrt_bias2 = (float)(1.0 / sqrt(bias2)),
    };
}
