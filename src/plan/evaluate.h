/* The figures of an evaluation (struct ah_evaluation) that follow from its plan. */
#ifndef AH_PLAN_EVALUATE_H
#define AH_PLAN_EVALUATE_H

#include "plan/predict.h"

/* Speeds from out->plan's predicted step, and how busy lanes are in it, which is simulated. */
int ah__evaluation_measure(struct ah_evaluation *out, const struct ah_predictor *predictor);

#endif
