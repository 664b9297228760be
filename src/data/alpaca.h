/* The layout in which Stanford Alpaca's instructions are published: what a model without a chat template learns from
 * such records. Takes the parts, gives the prompt. */
#ifndef AH_DATA_ALPACA_H
#define AH_DATA_ALPACA_H

#include <cjson/cJSON.h>

#include "base/buf.h"

struct ah_alpaca {
    const char *system; /* stands in the place of the first sentences; "": they stand there */
    const char *instruction;
    const char *input;    /* what it is about; "": nothing */
    const cJSON *history; /* [[instruction, answer], ..], or null */
};

/* Appends all up to "### Response:"; the answer follows as it is. Of history, each turn stands before as instruction
 * and response. The buffer has the status. */
void ah__alpaca_layout(struct ah_buf *to, const struct ah_alpaca *alpaca);

#endif
