/* Learning rate and Adam constants of a step: pure functions of the hyperparameters and the step's number. Knows no
 * models, no devices, no files. Has no state, so a resumed training computes the same bits. */
#ifndef AH_TRAIN_SCHEDULE_H
#define AH_TRAIN_SCHEDULE_H

#include "dev/dev.h"

enum ah_decay { AH_DECAY_COSINE, AH_DECAY_LINEAR, AH_DECAY_CONSTANT, AH_DECAY_COUNT };
extern const char *const ah__decay_names[AH_DECAY_COUNT];

struct ah_schedule {
    enum ah_decay decay;
    double lr;            /* peak rate */
    double min_lr_ratio;  /* the decay ends at lr * min_lr_ratio (not used by the constant schedule) */
    int64_t warmup_steps; /* 0: no warm-up */
    int64_t steps;        /* the decay ends here */
};

struct ah_adamw {
    double beta1, beta2, eps, weight_decay;
};

/* Finds a decay by its name. AH_EINPUT: the message lists the names. */
int ah__decay_find(enum ah_decay *out, const char *name);

/* The rate of `step`, 1-based; r = min_lr_ratio, x = (step - warmup) / (steps - warmup), at most 1:
 *     step <= warmup   lr * (step / warmup)
 *     cosine           lr * (r + (1 - r) * (1 + cos(pi * x)) / 2)
 *     linear           lr * (r + (1 - r) * (1 - x))
 *     constant         lr
 * so that the last warm-up step has exactly lr, and step `steps` and everything after it exactly lr * r. */
double ah__schedule_lr(const struct ah_schedule *schedule, int64_t step);

/* Computes the constants of update number t (1-based) as dev.h defines them, in double, rounded to float once. */
void ah__adam_init(struct ah_adam *out, const struct ah_adamw *hyper, double lr, int64_t t);

#endif
