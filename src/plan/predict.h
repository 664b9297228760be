/* Predicts a plan's times and peaks: the real scheduler on the simulated device, and bounds that no schedule can beat.
 * Takes a plan with all its switches set. Chooses nothing. */
#ifndef AH_PLAN_PREDICT_H
#define AH_PLAN_PREDICT_H

#include "plan/plan_internal.h"
#include "profile/profile.h"
#include "sched/drive.h"
#include "timeline/timeline.h"

/* Number of simulated iterations for a predicted step: lanes and buffers have filled by its end. */
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
    bool no_shadows;       /* the search makes plans in which every update waits for the norm: for comparisons */
    int effort;            /* of a search: factor of the simulated items; 0: 1 */
    struct ah_fixed fixed; /* of a search: switches that plans have; none of those that the policy does not know */
};

/* Makes a predictor. AH_ESTALE if the profile was made for another partition, AH_EINPUT for an unknown policy. Closed
 * by fini. */
int ah__predictor_init(struct ah_predictor *out, const struct ah_partition *partition, const struct ah_profile *profile,
                       const char *policy);
void ah__predictor_fini(struct ah_predictor *predictor);

/* Returns true if the search may make plans with staged updates: the policy allows them, and the profile has their
 * times. */
bool ah__predictor_stages(const struct ah_predictor *predictor);

/* Returns true if the search may keep blocks on disk: the policy allows it, and the profile has a drive. */
bool ah__predictor_spills(const struct ah_predictor *predictor);
/* Return how many fetches of blocks a step makes for forward; how many, for forward and backward, from disk. */
int ah__plan_fetches(const struct ah_switches *switches, const struct ah_predictor *predictor);
int ah__plan_disk_fetches(const struct ah_switches *switches, const struct ah_predictor *predictor);

/* Returns ah__switches_lowest() for the partition and the profile's ranks. */
struct ah_switches ah__predictor_lowest(const struct ah_predictor *predictor);

/* Returns the profile's world size, at least 1. */
int ah__predictor_world_size(const struct ah_predictor *predictor);

/* Returns the number of rounds over the model in which a plan runs a step. */
static inline int ah__plan_rounds(const struct ah_switches *switches, const struct ah_predictor *predictor)
{
    return ah__rounds(switches, ah__micro_batches(predictor->partition));
}

/* Returns the time of a lane's work in one iteration of a plan, without slowdown by other lanes. */
int64_t ah__plan_lane_ns(const struct ah_switches *switches, const struct ah_predictor *predictor, enum ah_lane lane);
/* Computes bound_ns, bound_lane_ns, bound_cycle_ns and bound_lane: the busiest lane, and cycles between iterations.
 * Takes constant time for plans without staged updates. */
void ah__plan_bound(struct ah_plan *plan, const struct ah_predictor *predictor);
/* Returns the same bound with the time that a barrier between iterations adds, for pruning; equals bound_ns for
 * policies without a barrier. */
int64_t ah__plan_policy_bound(const struct ah_plan *plan, const struct ah_predictor *predictor);
/* Computes the steady-state step time by simulating `iterations` iterations, 3 to AH_PREDICT_ITERATIONS. */
int ah__plan_step_ns(int64_t *step_ns, const struct ah_plan *plan, const struct ah_predictor *predictor,
                     int iterations);
/* Computes the step time by simulating AH_PREDICT_ITERATIONS if it is below below_ns and the time between the ends of
 * the first two iterations is, too; else sets *step_ns to some time that is not below it, and simulates less. The first
 * step reveals most plans that are too slow: it is hardly ever longer than later steps. It may be too optimistic: waits
 * begin when buffers and lanes have filled. Adds the items simulated for the first step to *items. */
int ah__plan_step_below(int64_t *step_ns, int64_t *items, const struct ah_plan *plan,
                        const struct ah_predictor *predictor, int64_t below_ns);
/* Computes both peaks of a plan whose switches are set. */
void ah__plan_measure(struct ah_plan *plan, const struct ah_predictor *predictor);
/* Computes all predicted fields, policy and signature included. */
int ah__plan_predict(struct ah_plan *plan, const struct ah_predictor *predictor);
/* Simulates a plan and records it in a new timeline. */
int ah__plan_timeline(struct ah_timeline **out, const struct ah_plan *plan, const struct ah_predictor *predictor,
                      int iterations);

/* Sets a timeline's byte scale and title from its plan. */
void ah__timeline_describe(struct ah_timeline *timeline, const struct ah_partition *partition,
                           const struct ah_plan *plan, bool predicted);

#endif
