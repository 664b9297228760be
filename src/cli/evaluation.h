/* Evaluations of policies as rows of a table and as JSON. Computes nothing but ratios of what it is given. */
#ifndef AH_CLI_EVALUATION_H
#define AH_CLI_EVALUATION_H

#include "autohete.h"

int ah__evaluation_count(const char *const *policies);
/* The table's head. */
void ah__evaluation_head(FILE *to);
/* One row for each, under a line with `label` ("": none). */
void ah__evaluation_rows(FILE *to, const struct ah_evaluation *evaluations, int count, const char *label);
/* A second table: buffers, bound and how busy each lane is. */
void ah__evaluation_lanes(FILE *to, const struct ah_evaluation *evaluations, int count);
/* What the columns mean, and the policies when there are several. */
void ah__evaluation_foot(FILE *to, const char *const *policies);
/* An array. */
void ah__evaluation_json(FILE *to, const struct ah_evaluation *evaluations, int count);

#endif
