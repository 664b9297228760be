/* Finds faults that cJSON accepts although they are not JSON. Private to base/. */
#ifndef AH_BASE_JSON_SCAN_H
#define AH_BASE_JSON_SCAN_H

#include "base/status.h"

/* A fault: what was found and where in the text. */
struct ah_json_fault {
    size_t at;
    bool cut; /* the text may only be cut short: more bytes might mend it */
    char found[96];
};

/* Checks every string, number and word of the text, which need not be terminated: strings are well-formed UTF-8 without
 * control characters, with known escapes and no \u0000 (which would end them early); numbers are JSON's (not 016, 16.,
 * +1, .5); between them are only white space and punctuation. Their order is left to the parser. AH_EINPUT with path,
 * line, column (in bytes) and what was found. */
int ah__json_scan(const char *text, size_t length, const char *path);
/* Skips the string, number or word that begins at text[*at], accepting what Python accepts (base/json_python.h): *at
 * moves behind it. AH_EINPUT fills `fault` and sets no message. */
int ah__json_scan_atom(size_t *at, const char *text, size_t length, struct ah_json_fault *fault);
/* Fails with AH_EINPUT and a message with the line and column of `at` and what was found there. */
int ah__json_fail_at(const char *path, const char *text, const char *at, const char *found);
/* Fails likewise about JSON that Python reads and this library does not. */
int ah__json_unread_at(const char *path, const char *text, const char *at, const char *found);

#endif
