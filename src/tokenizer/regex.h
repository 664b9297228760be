/* Regular expressions of tokenizers, by Oniguruma, which the tokenizers library uses too: a pattern means the same here
 * and there. What a letter is follows the Unicode version of the Oniguruma that is installed: 14.0 in 6.9.8 of Debian
 * 12, 16.0 in 6.9.10. Takes a pattern and well-formed UTF-8; knows no tokenizers. */
#ifndef AH_TOKENIZER_REGEX_H
#define AH_TOKENIZER_REGEX_H

#include "base/status.h"

struct ah_regex;

/* `literal`: the pattern stands for itself. AH_EINPUT: it does not compile, or has flags like "(?i)" before
 * "|"; AH_ENOMEM. */
int ah__regex_new(struct ah_regex **out, const char *pattern, bool literal);
void ah__regex_free(struct ah_regex *regex);
/* The next match that starts at `from` or later: *found, and [*start, *end). AH_EINPUT: this match, or all of this text
 * since the call with `from` 0, took too many steps or too much memory. Not from two threads at a time. */
int ah__regex_next(bool *found, size_t *start, size_t *end, struct ah_regex *regex, const char *text, size_t length,
                   size_t from);

#endif
