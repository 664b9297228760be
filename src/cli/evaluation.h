/* Evaluations of policies as rows of a table and as JSON. Computes nothing but ratios of what it is given. */
#ifndef AH_CLI_EVALUATION_H
#define AH_CLI_EVALUATION_H

#include "autohete.h"

int ah__evaluation_count(const char *const *policies);
/* Prints the table's head. `disk`, here and below: with columns of what is on disk. */
void ah__evaluation_head(FILE *to, bool disk);
/* Prints one row for each evaluation, below a line with `label` ("": no such line). */
void ah__evaluation_rows(FILE *to, const struct ah_evaluation *evaluations, int count, const char *label, bool disk);
/* Prints a second table: buffers, bound and how busy each lane is. */
void ah__evaluation_lanes(FILE *to, const struct ah_evaluation *evaluations, int count, bool disk);
/* Prints what the columns mean, and descriptions of the policies if there are several. */
void ah__evaluation_foot(FILE *to, const char *const *policies, bool disk);
/* Prints the evaluations as an array. */
void ah__evaluation_json(FILE *to, const struct ah_evaluation *evaluations, int count);

#endif
