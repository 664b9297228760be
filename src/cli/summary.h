/* What `autohete train` says when it is over: a few lines, or one JSON object. Knows no training but its result. */
#ifndef AH_CLI_SUMMARY_H
#define AH_CLI_SUMMARY_H

#include "autohete.h"

/* Model, data and steps in two lines. */
void ah__training_print(FILE *to, const struct ah_train_summary *facts);
/* What each source of data gave, where there are several; nothing else. */
void ah__sources_print(FILE *to, const struct ah_trainer *trainer);
/* Loss, step time, memory and where things lie; `unit` is what a token is. */
void ah__summary_print(FILE *to, const struct ah_train_result *result, const struct ah_train_options *train,
                       const char *unit);
/* One line on standard output. The library's status. */
int ah__summary_json(const struct ah_train_result *result, const struct ah_trainer *trainer);

#endif
