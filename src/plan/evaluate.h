/* The figures of an evaluation (struct ah_evaluation) that follow from its plan. */
#ifndef AH_PLAN_EVALUATE_H
#define AH_PLAN_EVALUATE_H

#include "plan/predict.h"

/* Computes speeds from the predicted step of out->plan, and simulates how busy each lane is in it. */
int ah__evaluation_measure(struct ah_evaluation *out, const struct ah_predictor *predictor);

/* Does the work of ah_plan_evaluate with a predictor's partition, profile, policy and memory count. */
int ah__plan_evaluate(struct ah_evaluation *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                      const struct ah_search_options *options);

#endif
