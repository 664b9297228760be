/* The same bits under every plan, on any device: trainings of a tiny model whose outcome is compared with
 * resident's. */
#ifndef AH_TESTS_RUN_EXACT_H
#define AH_TESTS_RUN_EXACT_H

#include "run/tiny.h"
#include "sched/sched.h"

struct exact_device {
    int (*open)(struct ah_dev **out, const struct ah_dev_options *options);
    bool is_cpu; /* with threads, a link that can be slowed down, and memory that can be looked at */
};

struct ah_plan exact_resident(const struct tiny *tiny);

/* A training under the plan: nothing is allocated meanwhile, the peaks are as predicted, the timeline is possible. */
void exact_train(struct outcome *outcome, const struct exact_device *device, struct tiny *tiny,
                 const struct ah_plan *given, const struct ah_dev_options *options);
/* The same, or the case fails and prints what the second was trained with. */
void exact_same(const struct outcome *a, const struct outcome *b, const struct ah_plan *plan,
                const struct ah_dev_options *options);
/* The middle one of the norms that `resident` gives without clipping: some steps exceed it, others do not. */
double exact_limit(const struct exact_device *device, struct tiny *tiny);
/* Every (c, p, o) and every (c, selective) under the policy, the other switches and the device's options drawn, with
 * clipping where the tiny model clips: all as resident. Of these one in `of`, others in each loop of a case. */
void exact_every_plan(const struct exact_device *device, struct tiny *tiny, const char *policy, int of);
/* Of every (c, p, o) one in `of`, for tests that take long: `part` is added to the number of the first. A sample of one
 * plan is EXACT_HEAVY, of four layers the one that recomputes all, c = o = 4, p = 2. */
enum { EXACT_HEAVY = 72 };
void exact_some_plans(const struct exact_device *device, struct tiny *tiny, const char *policy, int part, int of);
/* A number in [from, to], another each time and in each case. */
int exact_draw(int from, int to);
/* What is drawn next is this plan's, whatever was drawn before: a plan is the same in a sample and among all. */
void exact_draws_begin(int loop, int plan);
/* Draws the switches but those of `keep` (bits), within what model and policy allow and with buffers enough. */
void exact_switches(struct ah_switches *switches, uint32_t keep, const struct ah_partition *partition,
                    const struct ah_policy *policy);
/* c, p and o. */
enum { EXACT_GIVEN = 1 << AH_SWITCH_checkpoint | 1 << AH_SWITCH_offload_params | 1 << AH_SWITCH_offload_optimizer };

#endif
