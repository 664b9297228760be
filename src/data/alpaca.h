/* The layout in which Stanford Alpaca's instructions are published, for training a model without a chat template on
 * such records. Takes the parts, gives the prompt. */
#ifndef AH_DATA_ALPACA_H
#define AH_DATA_ALPACA_H

#include <cjson/cJSON.h>

#include "base/buf.h"

struct ah_alpaca {
    const char *system; /* replaces the first sentences; "": they stay */
    const char *instruction;
    const char *input;    /* the instruction's input; "": without one */
    const cJSON *history; /* [[instruction, answer], ..], or null */
};

/* Appends everything up to "### Response:"; the answer follows unchanged. Each turn of `history` precedes it as
 * instruction and response. The buffer has the status. */
void ah__alpaca_layout(struct ah_buf *to, const struct ah_alpaca *alpaca);

#endif
