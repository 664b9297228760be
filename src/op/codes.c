#include "op/codes.h"

#include <string.h>

#include "base/status.h"

static const char *const words[] = {[AH_CODES_INT8] = "int8", [AH_CODES_NF4] = "nf4", [AH_CODES_MXFP4] = "mxfp4"};

int ah__codes_parse(enum ah_codes *out, const char *word)
{
    *out = AH_CODES_NONE;
    for (size_t i = AH_CODES_INT8; word && i < AH_LENGTH(words); i++)
        if (strcmp(words[i], word) == 0)
            *out = (enum ah_codes)i;
    if (word && *out == AH_CODES_NONE)
        return ah__fail(AH_EINPUT, "frozen: found '%.40s', expected int8, nf4 or mxfp4", word);
    return AH_OK;
}

const char *ah__codes_word(enum ah_codes codes)
{
    return words[codes];
}
