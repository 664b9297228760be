/* Handles well-formed UTF-8 as Python does: characters are code points, white space and case are Unicode's. Texts are
 * (bytes, length), not terminated. */
#ifndef AH_CHAT_CHARACTERS_H
#define AH_CHAT_CHARACTERS_H

#include "base/buf.h"
#include "tokenizer/utf8.h"

/* Returns the number of characters in the text. */
size_t ah__characters(const char *text, size_t length);
/* Returns the byte at which character `index` begins, or `length` if the text has no such character. */
size_t ah__characters_at(const char *text, size_t length, size_t index);
/* Returns the first place of `part` (of any length) in the text, null: not found. The second function returns the last
 * place. */
const char *ah__text_find(const char *text, size_t length, const char *part, size_t part_length);
const char *ah__text_find_last(const char *text, size_t length, const char *part, size_t part_length);
/* Returns the cost of searching a text for `part` from either end, in bytes for ah__heap_touch. */
size_t ah__text_find_cost(size_t length, size_t part_length);
/* Returns str.isspace() of a character. */
bool ah__is_space(uint32_t code);
/* Removes white space from the ends of the text; if `set` is not null, the characters of `set`. */
void ah__text_strip(const char **text, size_t *length, const char *set, size_t set_length, bool left, bool right);

enum ah_case { AH_CASE_UPPER, AH_CASE_LOWER, AH_CASE_TITLE, AH_CASE_CAPITAL };
/* Appends the text in that case. TITLE: the first letter of each run of letters is a capital, as in str.title().
 * CAPITAL: the first character is. */
void ah__text_case(struct ah_buf *to, const char *text, size_t length, enum ah_case how);

bool ah__is_printable(uint32_t code);

#endif
