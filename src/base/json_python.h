/* JSON as Python's json module takes it: NaN, Infinity, halves of surrogate pairs, \u0000, numbers of any size and keys
 * that are there twice. For records of data, of which a few members are wanted and all others are left alone.
 * Takes text that need not be terminated; gives places in it, or a tree of what is wanted. Nothing recurses but the
 * building of wanted values, which has a limit. */
#ifndef AH_BASE_JSON_PYTHON_H
#define AH_BASE_JSON_PYTHON_H

#include <cjson/cJSON.h>

#include "base/json_scan.h"
#include "base/status.h"

/* Bytes of white space that JSON allows. */
size_t ah__json_blank(const char *text, size_t length);

/* The value that begins at text[*at]: *at moves behind it. AH_EINPUT fills `fault` and sets no message. */
int ah__json_value_end(size_t *at, const char *text, size_t length, struct ah_json_fault *fault);

/* The members of an object, one after the other; text[0] is its brace. */
struct ah_json_members {
    const char *text;
    size_t length, at; /* of the text; what was read of it. Begin with 0 */
    const char *key;   /* [key_length] as it stands there, without quotes */
    size_t key_length;
    size_t value; /* where the member's value begins */
};
/* The key and the beginning of its value; the caller moves `at` behind it with ah__json_value_end(&members->at, ..). At
 * the object's end *more is false and `at` behind it. Fails as above. */
int ah__json_members_next(bool *more, struct ah_json_members *members, struct ah_json_fault *fault);

/* The tree of a value that ah__json_value_end has accepted; of a key that an object has twice the last one counts.
 * A number's text is its valuestring. AH_EINPUT: a string that no C string and no UTF-8 can hold, or nesting of more
 * than 100: fault; AH_ENOMEM. */
int ah__json_value_build(cJSON **out, const char *text, size_t length, struct ah_json_fault *fault);
/* The same of a whole text. AH_EINPUT: one line with name, line and column. Freed with cJSON_Delete. */
int ah__json_value_parse(cJSON **out, const char *text, size_t length, const char *name);

#endif
