#include "tokenizer/regex.h"

#include <oniguruma.h>
#include <string.h>

#include "base/alloc.h"

/* A match may backtrack so many times; most need a handful. A match that needs more than FREE_TRIES is tried again with
 * the next limit, whose tries count against the text's limit text_tries: so a text takes a bounded time, too. */
enum { FREE_TRIES = 256, MOST_TRIES = 1 << 24, TRIES_GROWTH = 16, STACK_MOST = 1 << 22 };
static const int64_t text_tries = (int64_t)1 << 28;

struct ah_regex {
    regex_t *code;
    OnigRegion *region;
    OnigMatchParam *limits;
    int64_t spent; /* tries on this text beyond the free ones */
};

/* onig_initialize is not thread-safe, so it runs before main. */
__attribute__((constructor)) static void engine_start(void)
{
    OnigEncoding encodings[] = {ONIG_ENCODING_UTF8};
    onig_initialize(encodings, AH_LENGTH(encodings));
}

static int no_memory(void)
{
    return ah__fail(AH_ENOMEM, "out of host memory: a regular expression");
}

/* Returns the end of the part at `at`: a character, an escape or a class. */
static const char *part_end(const char *at)
{
    if (*at == '\\' && at[1])
        return at + 2;
    if (*at != '[')
        return at + 1;
    for (at++; *at && *at != ']'; at = part_end(at))
        ;
    return *at ? at + 1 : at;
}

/* Refuses "(?i)" before a "|". Engines, and files written for them, disagree about its scope: Oniguruma reads it as a
 * group up to the end, Perl and its relatives as a flag of all branches. No tokenizer in use needs it. */
static int flags_check(const char *pattern)
{
    for (const char *at = pattern; *at; at = part_end(at)) {
        size_t flags = strncmp(at, "(?", 2) == 0 ? strspn(at + 2, "imsxn-") : 0;
        if (flags == 0 || at[2 + flags] != ')')
            continue;
        int depth = 0;
        for (const char *behind = at + flags + 3; *behind && depth >= 0; behind = part_end(behind)) {
            depth += (*behind == '(') - (*behind == ')');
            if (*behind == '|' && depth == 0)
                return ah__fail(AH_EINPUT, "found '%.*s' before '|' in a regular expression, expected '(?i:...)'",
                                (int)flags + 3, at);
        }
    }
    return AH_OK;
}

static int compile(struct ah_regex *regex, const char *pattern, bool literal)
{
    OnigErrorInfo info;
    const OnigUChar *start = (const OnigUChar *)pattern;
    int code = onig_new(&regex->code, start, start + strlen(pattern), ONIG_OPTION_NONE, ONIG_ENCODING_UTF8,
                        literal ? ONIG_SYNTAX_ASIS : ONIG_SYNTAX_DEFAULT, &info);
    if (code == ONIGERR_MEMORY)
        return no_memory();
    if (code != ONIG_NORMAL) {
        OnigUChar text[ONIG_MAX_ERROR_MESSAGE_LEN] = "";
        onig_error_code_to_str(text, code, &info);
        return ah__fail(AH_EINPUT, "found a regular expression that does not compile: %s", (const char *)text);
    }
    regex->region = onig_region_new();
    regex->limits = onig_new_match_param();
    if (!regex->region || !regex->limits)
        return no_memory();
    onig_initialize_match_param(regex->limits);
    onig_set_match_stack_limit_size_of_match_param(regex->limits, STACK_MOST);
    return AH_OK;
}

int ah__regex_new(struct ah_regex **out, const char *pattern, bool literal)
{
    struct ah_regex *regex;
    if (!literal)
        AH_TRY(flags_check(pattern));
    AH_TRY(ah__new(&regex, 1, sizeof *regex));
    int status = compile(regex, pattern, literal);
    if (status != AH_OK) {
        ah__regex_free(regex);
        return status;
    }
    *out = regex;
    return AH_OK;
}

void ah__regex_free(struct ah_regex *regex)
{
    if (!regex)
        return;
    if (regex->limits)
        onig_free_match_param(regex->limits);
    if (regex->region)
        onig_region_free(regex->region, 1);
    if (regex->code)
        onig_free(regex->code);
    ah__free(regex);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static int search(struct ah_regex *regex, const char *text, size_t length, size_t from, int tries)
{
    const OnigUChar *start = (const OnigUChar *)text, *end = start + length;
    onig_set_retry_limit_in_match_of_match_param(regex->limits, (unsigned long)tries);
    onig_set_retry_limit_in_search_of_match_param(regex->limits, 0);
    onig_region_clear(regex->region);
    return onig_search_with_param(regex->code, start, end, start + from, end, regex->region, ONIG_OPTION_NONE,
                                  regex->limits);
}

int ah__regex_next(bool *found, size_t *start, size_t *end, struct ah_regex *regex, const char *text, size_t length,
                   size_t from)
{
    int tries = FREE_TRIES, at = search(regex, text, length, from, tries);
    regex->spent = from == 0 ? 0 : regex->spent;
    while (at == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER && tries < MOST_TRIES && regex->spent < text_tries) {
        tries *= TRIES_GROWTH;
        regex->spent += tries;
        at = search(regex, text, length, from, tries);
    }
    *found = at >= 0;
    if (at == ONIGERR_MEMORY)
        return no_memory();
    if (at < 0 && at != ONIG_MISMATCH)
        return ah__fail(AH_EINPUT, "the regular expression needs too %s at byte %zu of a text",
                        at == ONIGERR_RETRY_LIMIT_IN_MATCH_OVER ? "many steps" : "much memory", from);
    if (at >= 0) {
        *start = (size_t)regex->region->beg[0];
        *end = (size_t)regex->region->end[0];
    }
    return AH_OK;
}
