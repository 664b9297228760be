/* The paper's experiments as points: a model, a machine, a batch, a budget; each evaluated under the systems it
 * compares. Takes points, gives evaluations. Prints nothing; exits with a message when a call of the library fails. */
#ifndef AH_BENCH_PAPER_GRID_H
#define AH_BENCH_PAPER_GRID_H

#include "autohete.h"

/* PAPER_BEST: StrongHold with the fastest window; PAPER_PLAIN: AutoHete as published. */
enum paper_policy {
    PAPER_ZERO,
    PAPER_PATRICKSTAR,
    PAPER_STRONGHOLD,
    PAPER_BEST,
    PAPER_FIFO,
    PAPER_PLAIN,
    PAPER_AUTOHETE,
    PAPER_POLICIES
};
/* As `--policy` knows it, as a column or a series is called, and as what AutoHete is compared with. */
struct paper_system {
    const char *policy, *name, *over;
};
extern const struct paper_system paper_systems[PAPER_POLICIES];

enum { PAPER_PUBLISHED = 3 };
extern const enum paper_policy paper_published[PAPER_PUBLISHED]; /* the others' systems, by their own rules */

enum { PAPER_MODELS = 11, PAPER_SEQ = 1024 };
extern const int paper_billions[PAPER_MODELS]; /* table 1 */

/* Whether memory is counted as published systems need it (published.h), and whose rates hold. */
struct paper_world {
    bool published;
    const char *optimizer; /* as ah_estimate_options takes it */
    const char *tag, *name;
};
enum { PAPER_RATES = 3, PAPER_WORLDS = 2 * PAPER_RATES };
extern const struct paper_world paper_worlds[PAPER_WORLDS];

struct paper_point {
    int billions, world_size;
    int64_t batch;        /* of all ranks */
    int64_t device_bytes; /* at most the machine's; 0: the machine's */
    const struct paper_world *world;
    double compute, link, host; /* rates times this: device, both directions, host optimizer */
};

struct paper_cell {
    struct paper_point point;
    int layers;
    int64_t params, hidden;
    int64_t host_bytes;       /* the budget of one rank */
    double adam_params_per_s; /* of the whole host */
    struct ah_evaluation of[PAPER_POLICIES];
    double same_plan; /* step of autohete's plan run without priorities / its step; NaN when it does not fit */
};

/* With all rates as the machine's file has them. */
struct paper_point paper_point(int billions, int ranks, int64_t batch, const struct paper_world *world);
void paper_evaluate(struct paper_cell *out, const struct paper_point *point);
/* Tokens per second of autohete over a policy's; NaN when either does not fit. */
double paper_ratio(const struct paper_cell *cell, enum paper_policy policy);

#endif
