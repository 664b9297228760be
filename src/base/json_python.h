/* Reads JSON as Python's json module does: NaN, Infinity, halves of surrogate pairs, \u0000, numbers of any size and
 * duplicate keys are accepted. For records of data, of which only a few members are read. Takes text that need not be
 * terminated; gives positions in it, or the tree of a value. Only building a tree recurses, to a limited depth. */
#ifndef AH_BASE_JSON_PYTHON_H
#define AH_BASE_JSON_PYTHON_H

#include <cjson/cJSON.h>

#include "base/json_scan.h"
#include "base/status.h"

/* Returns the bytes of JSON white space at the beginning of the text. */
size_t ah__json_blank(const char *text, size_t length);

/* Skips the value that begins at text[*at]: *at moves behind it. AH_EINPUT fills `fault` and sets no message. */
int ah__json_value_end(size_t *at, const char *text, size_t length, struct ah_json_fault *fault);

/* Iterates over the members of an object; text[0] is its brace. */
struct ah_json_members {
    const char *text;
    size_t length, at; /* bytes of the text, and how many of them were read: begin with 0 */
    const char *key;   /* [key_length] as in the text, escapes included, without quotes */
    size_t key_length;
    size_t value; /* position of the member's value */
};
/* Reads the next key and finds its value; the caller then moves `at` behind the value with
 * ah__json_value_end(&members->at, ..). At the object's end *more is false and `at` behind it. Fails as above. */
int ah__json_members_next(bool *more, struct ah_json_members *members, struct ah_json_fault *fault);

/* Builds the tree of a value that ah__json_value_end has accepted. If a key occurs twice in an object, the last value
 * counts. A number's valuestring is its text. AH_EINPUT fills `fault`: a string that a C string or UTF-8 cannot hold,
 * or nesting of more than 100 levels. AH_ENOMEM. */
int ah__json_value_build(cJSON **out, const char *text, size_t length, struct ah_json_fault *fault);
/* Builds the tree of a whole text. AH_EINPUT: one line with name, line and column. Freed with cJSON_Delete. */
int ah__json_value_parse(cJSON **out, const char *text, size_t length, const char *name);

#endif
