/* What a plan costs: the real scheduler on the simulated device, and the bounds no schedule can beat.
 * Takes a plan with all its switches set, gives times and peaks. Chooses nothing. */
#ifndef AH_PLAN_PREDICT_H
#define AH_PLAN_PREDICT_H

#include "plan/plan_internal.h"
#include "profile/profile.h"
#include "sched/drive.h"
#include "timeline/timeline.h"

/* Of a step that is told: until then lanes and buffers have filled. */
enum { AH_PREDICT_ITERATIONS = 8 };

/* Everything a prediction is made from; partition and profile are borrowed. */
struct ah_predictor {
    const struct ah_partition *partition;
    const struct ah_profile *profile;
    const struct ah_policy *policy;
    struct ah_costs costs; /* the profile's, for this partition's layers */
    struct ah_dev *sim;
    /* Counts peak bytes of device and host as other systems need them, for comparisons; null: the layout's. */
    void (*count_bytes)(int64_t *device, int64_t *host, const struct ah_partition *partition,
                        const struct ah_switches *switches, const struct ah_policy *policy);
    bool no_shadows; /* the search lets every update wait for the norm: for comparison only */
    int effort;      /* of a search: so many times as many simulated items; 0: once */
    int passes;      /* of a search: this number alone, where the policy knows them; 0: any */
};

/* AH_ESTALE when the profile was made for another partition, AH_EINPUT for an unknown policy. Closed by fini. */
int ah__predictor_init(struct ah_predictor *out, const struct ah_partition *partition, const struct ah_profile *profile,
                       const char *policy);
void ah__predictor_fini(struct ah_predictor *predictor);

/* Whether the search may let states are staged: its policy knows that, and the profile has times of it. */
bool ah__predictor_stages(const struct ah_predictor *predictor);

/* Of the profile; at least 1. */
int ah__predictor_world_size(const struct ah_predictor *predictor);

/* Rounds over the model in which a plan runs a step. */
int ah__plan_rounds(const struct ah_switches *switches, const struct ah_predictor *predictor);

/* What a lane has to do in one iteration of a plan, at full speed. */
int64_t ah__plan_lane_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, enum ah_lane lane);
/* Fills bound_ns, bound_lane_ns, bound_cycle_ns and bound_lane: the busiest lane, and cycles between iterations. Where
 * nothing streams, in constant time. */
void ah__plan_bound(struct ah_plan *plan, const struct ah_predictor *predictor);
/* The same bound with what a barrier between iterations adds, for pruning; equals bound_ns for policies without one. */
int64_t ah__plan_policy_bound(const struct ah_plan *plan, const struct ah_predictor *predictor);
/* The steady-state step time by simulating `iterations` of them, from 3 to AH_PREDICT_ITERATIONS. */
int ah__plan_step_ns(int64_t *step_ns, const struct ah_plan *plan, const struct ah_predictor *predictor,
                     int iterations);
/* The same of AH_PREDICT_ITERATIONS where it is below below_ns, and where the step between the ends of the first two
 * iterations is, too; else any time that is not, for which less is simulated. That first step tells most plans that are
 * too slow: it is hardly ever longer than later ones. It takes some for fast that are not: what need not wait at first
 * does later, when buffers and lanes have filled. Adds to *items what was simulated for the first step. */
int ah__plan_step_below(int64_t *step_ns, int64_t *items, const struct ah_plan *plan,
                        const struct ah_predictor *predictor, int64_t below_ns);
/* Both peaks of a plan whose switches are set. */
void ah__plan_measure(struct ah_plan *plan, const struct ah_predictor *predictor);
/* All predicted fields, policy and signature included. */
int ah__plan_predict(struct ah_plan *plan, const struct ah_predictor *predictor);
/* Simulates into a new timeline. */
int ah__plan_timeline(struct ah_timeline **out, const struct ah_plan *plan, const struct ah_predictor *predictor,
                      int iterations);

/* Gives a record of this plan its byte scale and title. */
void ah__timeline_describe(struct ah_timeline *timeline, const struct ah_partition *partition,
                           const struct ah_plan *plan, bool predicted);

#endif
