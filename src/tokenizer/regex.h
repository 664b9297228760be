/* Regular expressions of tokenizers: PCRE2 with Unicode, where it means what Oniguruma, which the tokenizers library
 * uses, means. Takes a pattern and well-formed UTF-8; knows no tokenizers. */
#ifndef AH_TOKENIZER_REGEX_H
#define AH_TOKENIZER_REGEX_H

#include "base/status.h"

struct ah_regex;

/* \s and \w become what Oniguruma takes for spaces and words. What the two read differently is refused (\b, \h, \R, \X,
 * \K, \G, \N, classes in classes, {n,m}+, inline flags other than i); so is what does not compile. The message names
 * the part; `literal`: the pattern stands for itself. AH_EINPUT, AH_ENOMEM. */
int ah__regex_new(struct ah_regex **out, const char *pattern, bool literal);
void ah__regex_free(struct ah_regex *regex);
/* The next match that starts at `from` or later: *found, and [*start, *end). AH_EINPUT: its limits were exceeded. Not
 * from two threads at a time. */
int ah__regex_next(bool *found, size_t *start, size_t *end, struct ah_regex *regex, const char *text, size_t length,
                   size_t from);

#endif
