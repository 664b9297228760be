/* Pre-tokenizers split a text into the words that the tokenizer's model encodes. They take well-formed UTF-8 and return
 * one word after the other; nothing is kept for the whole text. They know no tokens. */
#ifndef AH_TOKENIZER_PRETOKENIZE_H
#define AH_TOKENIZER_PRETOKENIZE_H

#include "base/buf.h"
#include "tokenizer/regex.h"

/* Treatment of the text that a split's pattern matches. */
enum ah_split_behavior {
    AH_SPLIT_ISOLATED,
    AH_SPLIT_REMOVED,
    AH_SPLIT_MERGED_WITH_PREVIOUS,
    AH_SPLIT_MERGED_WITH_NEXT,
    AH_SPLIT_CONTIGUOUS, /* adjacent parts that match, or do not match, are joined */
};
/* When a mark for a space is put before a text that does not begin with a mark. */
enum ah_prepend_scheme { AH_PREPEND_ALWAYS, AH_PREPEND_FIRST, AH_PREPEND_NEVER };

struct ah_pre_step {
    enum { AH_PRE_SPLIT, AH_PRE_SPACE, AH_PRE_METASPACE } kind;
    /* AH_PRE_SPLIT */
    struct ah_regex *regex;
    enum ah_split_behavior behavior;
    bool invert; /* text that does not match counts as matching */
    /* AH_PRE_SPACE: puts a space before a text that does not begin with a space. AH_PRE_METASPACE: replaces spaces by
     * the mark */
    char mark[5];
    enum ah_prepend_scheme scheme;
    bool split; /* splits before each mark */
};

enum { AH_PRE_STEPS = 16 };
struct ah_pretokenizer {
    struct ah_pre_step steps[AH_PRE_STEPS];
    int count;                           /* 0: the text is one word */
    struct ah_buf scratch[AH_PRE_STEPS]; /* a buffer for each step */
};

/* Calls `word` for each word that is not empty, until it fails. at_start: the text is the beginning of the original
 * text. A word is valid during its call. */
int ah__pretokenize(struct ah_pretokenizer *pre, const char *text, size_t length, bool at_start,
                    int (*word)(const char *text, size_t length, void *context), void *context);
void ah__pretokenizer_fini(struct ah_pretokenizer *pre);

#endif
