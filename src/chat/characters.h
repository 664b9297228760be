/* Python's view of well-formed UTF-8: characters are code points, white space and case as Unicode has them. Texts are
 * (bytes, length), not terminated. */
#ifndef AH_CHAT_CHARACTERS_H
#define AH_CHAT_CHARACTERS_H

#include "base/buf.h"
#include "tokenizer/utf8.h"

/* How many characters the text has. */
size_t ah__characters(const char *text, size_t length);
/* The byte at which character `index` begins; `length` for what lies behind the last. */
size_t ah__characters_at(const char *text, size_t length, size_t index);
/* The first place of `part` (of any length) in the text, null: none; the same from the end. */
const char *ah__text_find(const char *text, size_t length, const char *part, size_t part_length);
const char *ah__text_find_last(const char *text, size_t length, const char *part, size_t part_length);
/* What looking for `part` in a text is worth in bytes that are looked at, from either end. */
size_t ah__text_find_cost(size_t length, size_t part_length);
/* str.isspace() of a character. */
bool ah__is_space(uint32_t code);
/* Takes from the ends of the text what is white space or, where `set` is not null, one of its characters. */
void ah__text_strip(const char **text, size_t *length, const char *set, size_t set_length, bool left, bool right);

enum ah_case { AH_CASE_UPPER, AH_CASE_LOWER, AH_CASE_TITLE, AH_CASE_CAPITAL };
/* Appends the text in that case. TITLE: the first letter of each run of letters, as str.title(); CAPITAL: the first
 * character. */
void ah__text_case(struct ah_buf *to, const char *text, size_t length, enum ah_case how);

bool ah__is_printable(uint32_t code);

#endif
