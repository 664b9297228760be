#include "tokenizer/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

struct ah_regex {
    pcre2_general_context *memory;
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    bool jit;
};

/* ---- what Oniguruma means ---------------------------------------------------------------------------------------- */

#define SPACES "\\t-\\r\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define WORDS "\\p{Alphabetic}\\p{M}\\p{N}\\p{Pc}"

struct translation {
    struct ah_buf to;
    const char *at;
    bool in_class;
    bool class_first; /* right behind the bracket that opened it */
};

static int fail_part(const struct translation *translation, size_t length)
{
    return ah__fail(AH_EINPUT, "found '%.*s' in a regular expression, expected what PCRE2 and Oniguruma read alike",
                    (int)length, translation->at);
}

static int translate_escape(struct translation *translation)
{
    static const struct {
        char name;
        const char *outside, *inside;
    } rows[] = {{'s', "[" SPACES "]", SPACES},
                {'S', "[^" SPACES "]", NULL},
                {'w', "[" WORDS "]", WORDS},
                {'W', "[^" WORDS "]", NULL}};
    char name = translation->at[1];
    if (!name || strchr("bBhHvVRXKGNyYOQECZ", name) || (translation->in_class && strchr("SW", name)))
        return fail_part(translation, name ? 2 : 1);
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        if (name != rows[i].name)
            continue;
        const char *text = translation->in_class ? rows[i].inside : rows[i].outside;
        ah__buf_add(&translation->to, text, strlen(text));
        translation->at += 2;
        return AH_OK;
    }
    ah__buf_add(&translation->to, translation->at, 2);
    translation->at += 2;
    return AH_OK;
}

/* "(?": groups, looks around and the flag i. */
static int group_check(const struct translation *translation)
{
    static const char *const kinds[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)"};
    if (strncmp(translation->at, "(?", 2) != 0)
        return translation->at[1] == '*' ? fail_part(translation, 2) : AH_OK;
    for (size_t i = 0; i < AH_LENGTH(kinds); i++)
        if (strncmp(translation->at, kinds[i], strlen(kinds[i])) == 0)
            return AH_OK;
    return fail_part(translation, 3);
}

/* {n,m}+ takes all or nothing in one of the two, and is repeated in the other; {,m} is text in one. */
static int repeat_check(const struct translation *translation)
{
    size_t length = 1 + strspn(translation->at + 1, "0123456789,");
    bool repeat = translation->at[length] == '}' && length > 1;
    return repeat && (translation->at[length + 1] == '+' || translation->at[1] == ',')
               ? fail_part(translation, length + 2)
               : AH_OK;
}

static int translate_class(struct translation *translation)
{
    const char *at = translation->at;
    bool first = translation->class_first;
    translation->class_first = first && at[0] == '^';
    if (at[0] == '[')
        return fail_part(translation, 1);
    if (strncmp(at, "&&", 2) == 0)
        return fail_part(translation, 2);
    translation->in_class = at[0] != ']' || first;
    return AH_OK;
}

static int translate_one(struct translation *translation)
{
    if (translation->at[0] == '\\') {
        translation->class_first = false;
        return translate_escape(translation);
    }
    if (translation->in_class) {
        AH_TRY(translate_class(translation));
    } else if (translation->at[0] == '[') {
        translation->in_class = translation->class_first = true;
    } else if (translation->at[0] == '(') {
        AH_TRY(group_check(translation));
    } else if (translation->at[0] == '{') {
        AH_TRY(repeat_check(translation));
    }
    ah__buf_add(&translation->to, translation->at++, 1);
    return AH_OK;
}

static int translate(struct ah_buf *to, const char *pattern)
{
    struct translation translation = {.at = pattern};
    int status = AH_OK;
    while (*translation.at && status == AH_OK)
        status = translate_one(&translation);
    *to = translation.to;
    return status == AH_OK ? to->status : status;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static void *memory_get(size_t bytes, void *context)
{
    (void)context;
    void *memory;
    return ah__new(&memory, bytes, 1) == AH_OK ? memory : NULL;
}

static void memory_free(void *memory, void *context)
{
    (void)context;
    ah__free(memory);
}

static int no_memory(void)
{
    return ah__fail(AH_ENOMEM, "out of host memory: a regular expression");
}

static int compile(struct ah_regex *regex, const char *pattern, size_t length, uint32_t options)
{
    enum { STACK_FIRST = 32 << 10, STACK_MOST = 8 << 20 };
    int error;
    size_t at;
    regex->memory = pcre2_general_context_create(memory_get, memory_free, NULL);
    if (!regex->memory)
        return no_memory();
    pcre2_compile_context *context = pcre2_compile_context_create(regex->memory);
    if (!context)
        return no_memory();
    regex->code = pcre2_compile((PCRE2_SPTR)pattern, length, PCRE2_UTF | options, &error, &at, context);
    pcre2_compile_context_free(context);
    if (!regex->code && error == PCRE2_ERROR_HEAP_FAILED)
        return no_memory();
    if (!regex->code) {
        char text[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return ah__fail(AH_EINPUT, "found a regular expression that does not compile: %s at %zu", text, at);
    }
    regex->jit = pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) == 0;
    regex->match = pcre2_match_data_create_from_pattern(regex->code, regex->memory);
    regex->limits = pcre2_match_context_create(regex->memory);
    if (!regex->match || !regex->limits)
        return no_memory();
    if (regex->jit) {
        regex->stack = pcre2_jit_stack_create(STACK_FIRST, STACK_MOST, regex->memory);
        if (!regex->stack)
            return no_memory();
        pcre2_jit_stack_assign(regex->limits, NULL, regex->stack);
    }
    return AH_OK;
}

int ah__regex_new(struct ah_regex **out, const char *pattern, bool literal)
{
    struct ah_regex *regex;
    struct ah_buf text = {0};
    AH_TRY(ah__new(&regex, 1, sizeof *regex));
    int status = literal ? AH_OK : translate(&text, pattern);
    if (status == AH_OK && literal)
        status = compile(regex, pattern, strlen(pattern), PCRE2_LITERAL);
    else if (status == AH_OK)
        status = compile(regex, text.text ? text.text : "", text.length, PCRE2_UCP | PCRE2_MULTILINE);
    ah__buf_free(&text);
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
    pcre2_jit_stack_free(regex->stack);
    pcre2_match_context_free(regex->limits);
    pcre2_match_data_free(regex->match);
    pcre2_code_free(regex->code);
    pcre2_general_context_free(regex->memory);
    ah__free(regex);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

int ah__regex_next(bool *found, size_t *start, size_t *end, struct ah_regex *regex, const char *text, size_t length,
                   size_t from)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int count = regex->jit ? pcre2_jit_match(regex->code, subject, length, from, 0, regex->match, regex->limits)
                           : PCRE2_ERROR_JIT_STACKLIMIT;
    if (count == PCRE2_ERROR_JIT_STACKLIMIT)
        count = pcre2_match(regex->code, subject, length, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, regex->match,
                            regex->limits);
    *found = count >= 0;
    if (count == PCRE2_ERROR_NOMEMORY)
        return no_memory();
    if (count < 0 && count != PCRE2_ERROR_NOMATCH)
        return ah__fail(AH_EINPUT, "the regular expression needs too many steps at byte %zu (PCRE2 error %d)", from,
                        count);
    if (count >= 0) {
        const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(regex->match);
        *start = bounds[0];
        *end = bounds[1];
    }
    return AH_OK;
}
