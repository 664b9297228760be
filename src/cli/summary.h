/* The result of `autohete train`: a few lines, or one JSON object. Knows no training but its result. */
#ifndef AH_CLI_SUMMARY_H
#define AH_CLI_SUMMARY_H

#include "autohete.h"

/* Prints model, data and steps, one line each. */
void ah__training_print(FILE *to, const struct ah_train_summary *facts);
/* Prints what each source of data gave if there are several, else nothing. */
void ah__sources_print(FILE *to, const struct ah_trainer *trainer);
/* Prints loss, step time, memory and where files were saved. `unit`: what a token is, as "byte". */
void ah__summary_print(FILE *to, const struct ah_train_result *result, const struct ah_train_options *train,
                       const char *unit);
/* Prints one JSON object as a line on standard output. Returns the library's status. */
int ah__summary_json(const struct ah_train_result *result, const struct ah_trainer *trainer);

#endif
