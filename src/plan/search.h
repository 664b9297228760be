/* Chooses a plan. The only place that decides. */
#ifndef AH_PLAN_SEARCH_H
#define AH_PLAN_SEARCH_H

#include "plan/predict.h"

struct ah_search_report {
    int64_t seeds;     /* plans completed by the cost model; the best of each kind may be simulated */
    int64_t unseen;    /* best plans of a kind that were not simulated, because the effort was spent */
    int64_t simulated; /* plans simulated */
    int64_t bounded;   /* plans skipped because their bound is no better than the best step */
    bool exhausted;    /* every plan of a small model was simulated or skipped by its bound */
    /* After AH_EBUDGET: the plan (switches and peaks) that lacks least memory, and how much it lacks. */
    struct ah_plan least;
    int64_t least_device_over_bytes, least_host_over_bytes, least_disk_over_bytes;
    /* If that plan lacks one memory, and more of only the other would suffice too: how much more; else 0. */
    int64_t or_device_over_bytes, or_host_over_bytes;
};

/* Finds the best plan under `budget` by simulated step time. AH_EBUDGET: the message names the smallest budget that
 * works and its speed. */
int ah__plan_search(struct ah_plan *out, struct ah_search_report *report, const struct ah_predictor *predictor,
                    const struct ah_budget *budget);
/* Does the same with options (null: none). The plan is no slower than a warm start that can run. */
int ah__plan_search_with(struct ah_plan *out, struct ah_search_report *report, const struct ah_predictor *predictor,
                         const struct ah_budget *budget, const struct ah_search_options *options);
/* As ah_plan_search, of the predictor's fixed switches and effort. */
int ah__plan_search_fixed(struct ah_plan *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                          const struct ah_search_options *options);

/* Returns true if `text`, as after --plan, names a file. */
bool ah__plan_is_file(const char *text);
/* The switches of an open text, as ah_plan_is_open says; none of another. AH_EINPUT as ah_plan_check. */
int ah__plan_fixed(struct ah_fixed *fixed, const char *text, int layers);
/* The passes that a text names; 0: none. */
int ah__plan_passes_given(const char *text);
/* AH_EINPUT: "passes=4: found policy X, ..."; the caller prefixes. */
int ah__plan_passes_check(int passes, const struct ah_policy *policy, int world_size, int64_t micro_batches);
/* Checks a plan against model, policy and machine. AH_EINPUT names a switch. */
int ah__plan_check_policy(const struct ah_plan *plan, const struct ah_predictor *predictor);
/* Does the same for the fixed switches before a search. AH_EINPUT names one. */
int ah__plan_check_fixed(const struct ah_predictor *predictor);
/* Makes a plan: as ah_plan_search if `text` is "auto" or null, else as ah_plan_parse. */
int ah__plan_make(struct ah_plan *out, const char *text, const struct ah_partition *partition,
                  const struct ah_profile *profile, const struct ah_budget *budget, const char *policy,
                  const struct ah_search_options *options);

/* Sets *fits to true if the policy has a plan within the budget, however slow. Only workspace and ranks of the
 * predictor's profile matter. */
int ah__plan_any_fits(bool *fits, const struct ah_predictor *predictor, const struct ah_budget *budget);

#endif
