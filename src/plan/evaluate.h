/* The figures of an evaluation (struct ah_evaluation) that follow from its plan. */
#ifndef AH_PLAN_EVALUATE_H
#define AH_PLAN_EVALUATE_H

#include "plan/predict.h"

/* Speeds from out->plan's predicted step, and how busy lanes are in it, which is simulated. */
int ah__evaluation_measure(struct ah_evaluation *out, const struct ah_predictor *predictor);

/* ah_plan_evaluate by a predictor's partition, profile, policy and rule of memory. */
int ah__plan_evaluate(struct ah_evaluation *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                      const struct ah_search_options *options);

#endif
