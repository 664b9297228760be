/* Regular expressions of tokenizers, by Oniguruma. The tokenizers library uses it too, so a pattern means the same. The
 * installed Oniguruma's version of Unicode decides what a letter is: 14.0 in 6.9.8 of Debian 12, 16.0 in 6.9.10. Takes
 * a pattern and well-formed UTF-8; knows no tokenizers. */
#ifndef AH_TOKENIZER_REGEX_H
#define AH_TOKENIZER_REGEX_H

#include "base/status.h"

struct ah_regex;

/* Compiles a pattern. `literal`: all its characters stand for themselves. AH_EINPUT: it does not compile, or has flags
 * like "(?i)" before "|"; AH_ENOMEM. */
int ah__regex_new(struct ah_regex **out, const char *pattern, bool literal);
void ah__regex_free(struct ah_regex *regex);
/* Finds the next match that starts at `from` or later: *found, and [*start, *end). AH_EINPUT: this match, or this text
 * since the call with `from` 0, took too many steps or too much memory. Not from two threads at a time. */
int ah__regex_next(bool *found, size_t *start, size_t *end, struct ah_regex *regex, const char *text, size_t length,
                   size_t from);

#endif
