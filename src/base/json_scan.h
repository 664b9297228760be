/* Inside base: what cJSON lets through although it is no JSON. */
#ifndef AH_BASE_JSON_SCAN_H
#define AH_BASE_JSON_SCAN_H

#include "base/status.h"

/* What is wrong with a text, and where in it. */
struct ah_json_fault {
    size_t at;
    bool cut; /* it is the text's end that is wrong: more of it might mend that */
    char found[96];
};

/* Looks at every string, number and word of the text, which need not be terminated: strings are well-formed UTF-8
 * without control characters, with escapes that mean something and no \u0000 (which would end them early); numbers are
 * JSON's (not 016, 16., +1, .5); nothing else stands between them but white space and punctuation. What stands where is
 * left to the parser. AH_EINPUT with path, line, column (in bytes) and what was found. */
int ah__json_scan(const char *text, size_t length, const char *path);
/* The string, number or word that begins at text[*at], as Python's reader takes it (base/json_python.h): *at moves
 * behind it. AH_EINPUT fills `fault` and sets no message. */
int ah__json_scan_atom(size_t *at, const char *text, size_t length, struct ah_json_fault *fault);
/* The one line about what stands at `at` in the text: AH_EINPUT. */
int ah__json_fail_at(const char *path, const char *text, const char *at, const char *found);

#endif
