/* The lexer. Text outside of tags is data. The white space that is dropped beside a tag depends on the tag's kind, its
 * signs, and the text before it in its line. */
#include "chat/jinja_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "chat/characters.h"

struct lexer {
    const char *at, *stop;
    int line;
    const char *name;
    struct ah_heap *heap;
    struct ah_token *tokens;
    size_t count, room;
    bool line_starts; /* the last tag or comment ended with a line break */
};

static int wrong(const struct lexer *lexer, const char *found)
{
    return ah__fail(AH_EINPUT, "%s: line %d: found %s", lexer->name, lexer->line, found);
}

static int add(struct lexer *lexer, enum ah_token_kind kind, const char *text, size_t length)
{
    if (lexer->count == lexer->room) {
        struct ah_token *wider;
        lexer->room = lexer->room ? lexer->room * 2 : 64;
        AH_TRY(ah__heap_new(lexer->heap, &wider, lexer->room, sizeof *wider));
        if (lexer->count)
            memcpy(wider, lexer->tokens, lexer->count * sizeof *wider);
        lexer->tokens = wider;
    }
    lexer->tokens[lexer->count++] =
        (struct ah_token){.kind = kind, .line = lexer->line, .text = text, .length = length};
    return AH_OK;
}

static bool starts(const struct lexer *lexer, const char *words)
{
    size_t length = strlen(words);
    return (size_t)(lexer->stop - lexer->at) >= length && memcmp(lexer->at, words, length) == 0;
}

static void advance(struct lexer *lexer, const char *to)
{
    for (; lexer->at < to; lexer->at++)
        lexer->line += *lexer->at == '\n';
}

/* Returns the place after the white space at `at`. */
static const char *spaces_end(const char *at, const char *stop)
{
    const char *text = at;
    size_t length = (size_t)(stop - at);
    ah__text_strip(&text, &length, NULL, 0, true, false);
    return text;
}

/* ---- data between tags ------------------------------------------------------------------------------------------- */

/* Returns the length of the data that is kept in front of a tag with `sign`. A print tag keeps the blanks of its
 * line. */
static size_t data_left(const struct lexer *lexer, const char *text, size_t length, char sign, bool print)
{
    if (sign == '-') {
        ah__text_strip(&text, &length, NULL, 0, false, true);
        return length;
    }
    if (sign == '+' || print)
        return length;
    const char *break_at = length ? memrchr(text, '\n', length) : NULL;
    size_t line_at = break_at ? (size_t)(break_at - text) + 1 : 0;
    if ((line_at || lexer->line_starts) && line_at < length &&
        spaces_end(text + line_at, text + length) == text + length)
        return line_at;
    return length;
}

/* Drops text after a block or a comment: for "-" white space, for "+" nothing, else one line break if `trims`. */
static void after_end(struct lexer *lexer, char sign, bool trims)
{
    const char *begin = lexer->at;
    if (sign == '-')
        advance(lexer, spaces_end(lexer->at, lexer->stop));
    else if (sign != '+' && trims && starts(lexer, "\n"))
        advance(lexer, lexer->at + 1);
    lexer->line_starts = lexer->at > begin && lexer->at[-1] == '\n';
}

/* Returns the length of `mark` with an optional sign before it ("-%}"), or 0 if it does not follow. */
static size_t end_here(char *sign, const struct lexer *lexer, const char *mark, bool plus)
{
    const char *at = lexer->at;
    *sign = 0;
    if (at < lexer->stop && (*at == '-' || (*at == '+' && plus)))
        *sign = *at++;
    if ((size_t)(lexer->stop - at) < 2 || memcmp(at, mark, 2) != 0)
        return 0;
    return (size_t)(at - lexer->at) + 2;
}

static int comment(struct lexer *lexer)
{
    for (; lexer->at < lexer->stop; advance(lexer, lexer->at + 1)) {
        char sign;
        size_t length = end_here(&sign, lexer, "#}", true);
        if (length) {
            advance(lexer, lexer->at + length);
            after_end(lexer, sign, true);
            return AH_OK;
        }
    }
    return wrong(lexer, "the template's end in a comment, expected '#}'");
}

/* Returns the length of "{%", a sign, the word and "%}" with white space between, or 0 if that is not at `at`. */
static size_t tag_of(char *before, char *after, const char *at, const char *stop, const char *word, bool plus)
{
    const char *begin = at;
    size_t length = strlen(word);
    *before = *after = 0;
    if (stop - at < 2 || memcmp(at, "{%", 2) != 0)
        return 0;
    at += 2;
    if (at < stop && (*at == '-' || *at == '+'))
        *before = *at++;
    at = spaces_end(at, stop);
    if ((size_t)(stop - at) < length || memcmp(at, word, length) != 0)
        return 0;
    at = spaces_end(at + length, stop);
    if (at < stop && (*at == '-' || (*at == '+' && plus)))
        *after = *at++;
    return stop - at >= 2 && memcmp(at, "%}", 2) == 0 ? (size_t)(at - begin) + 2 : 0;
}

/* Reads data after {% raw %}, up to {% endraw %}. */
static int raw(struct lexer *lexer)
{
    const char *begin = lexer->at;
    for (const char *at = begin; at < lexer->stop; at++) {
        char before, after;
        size_t length = tag_of(&before, &after, at, lexer->stop, "endraw", true);
        if (!length)
            continue;
        size_t left = data_left(lexer, begin, (size_t)(at - begin), before, false);
        if (left)
            AH_TRY(add(lexer, AH_TOKEN_DATA, begin, left));
        advance(lexer, at + length);
        after_end(lexer, after, true);
        return AH_OK;
    }
    return wrong(lexer, "the template's end behind {% raw %}, expected {% endraw %}");
}

/* ---- strings ----------------------------------------------------------------------------------------------------- */

/* Reads \xhh, \uhhhh or \Uhhhhhhhh; `at` is at the letter. */
static int hexadecimal(const struct lexer *lexer, char **to, const char **at, const char *stop)
{
    size_t digits = **at == 'x' ? 2 : **at == 'u' ? 4 : 8;
    uint32_t code = 0;
    for (const char *digit = *at + 1; digit <= *at + digits; digit++) {
        if (digit >= stop || !isxdigit((unsigned char)*digit))
            return wrong(lexer, "a string's escape with too few digits");
        code = code << 4 | (uint32_t)(*digit <= '9' ? *digit - '0' : (*digit | 32) - 'a' + 10);
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return wrong(lexer, "a string's escape that is no character");
    *to += ah__utf8_put(*to, code);
    *at += digits + 1;
    return AH_OK;
}

/* Reads Python's escapes of one letter and of hexadecimal digits; `at` is after the backslash. Other escapes are kept
 * as text. */
static int escape(const struct lexer *lexer, char **to, const char **at, const char *stop)
{
    static const char letters[] = "\\'\"abfnrtv", means[] = "\\'\"\a\b\f\n\r\t\v";
    const char *known = **at ? strchr(letters, **at) : NULL;
    if (**at == 'x' || **at == 'u' || **at == 'U')
        return hexadecimal(lexer, to, at, stop);
    if (**at == 'N' || (**at >= '0' && **at <= '7'))
        return wrong(lexer, "a string's escape by name or octal digits, which is not known here");
    if (known)
        *(*to)++ = means[known - letters];
    else if (**at != '\n') {
        *(*to)++ = '\\';
        return AH_OK;
    }
    ++*at;
    return AH_OK;
}

static int string(struct lexer *lexer)
{
    char quote = *lexer->at, *text, *to;
    const char *begin = lexer->at + 1, *end = begin;
    while (end < lexer->stop && *end != quote)
        end += *end == '\\' && lexer->stop - end > 1 ? 2 : 1;
    if (end >= lexer->stop)
        return wrong(lexer, "a string without its closing quote");
    AH_TRY(ah__heap_new(lexer->heap, &text, (size_t)(end - begin) + 1, 1));
    to = text;
    for (const char *at = begin; at < end;) {
        if (*at++ != '\\' || at == end)
            *to++ = at[-1];
        else
            AH_TRY(escape(lexer, &to, &at, end));
    }
    AH_TRY(add(lexer, AH_TOKEN_STRING, text, (size_t)(to - text)));
    advance(lexer, end + 1);
    return AH_OK;
}

/* ---- inside tags ------------------------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

/* Returns the end of digits with underscores between them. */
static const char *digits_end(const char *at, const char *stop)
{
    while (at < stop && (is_digit(*at) || (*at == '_' && stop - at > 1 && is_digit(at[1]) && is_digit(at[-1]))))
        at++;
    return at;
}

/* Returns the end of a fraction and an exponent, both optional, after the whole part. */
static const char *fraction_end(const char *at, const char *stop)
{
    if (stop - at > 1 && *at == '.' && is_digit(at[1]))
        at = digits_end(at + 1, stop);
    if (at < stop && (*at == 'e' || *at == 'E')) {
        const char *power = at + 1 + (stop - at > 1 && (at[1] == '+' || at[1] == '-'));
        if (power < stop && is_digit(*power))
            at = digits_end(power, stop);
    }
    return at;
}

static int number(struct lexer *lexer)
{
    char copy[64];
    size_t length = 0;
    const char *whole = digits_end(lexer->at, lexer->stop), *end = fraction_end(whole, lexer->stop);
    bool based = *lexer->at == '0' && whole == lexer->at + 1 && whole < lexer->stop && strchr("xXbBoO", *whole);
    if (based)
        return wrong(lexer, "a number that is not decimal, expected a decimal one");
    for (const char *at = lexer->at; at < end && length + 1 < sizeof copy; at++)
        if (*at != '_')
            copy[length++] = *at;
    copy[length] = 0;
    AH_TRY(add(lexer, end > whole ? AH_TOKEN_REAL : AH_TOKEN_INT, lexer->at, (size_t)(end - lexer->at)));
    struct ah_token *token = &lexer->tokens[lexer->count - 1];
    errno = 0;
    token->integer = strtoll(copy, NULL, 10);
    if (end > whole)
        token->real = ah__strtod(copy, NULL);
    else if (errno || length + 1 == sizeof copy)
        return wrong(lexer, "a whole number that 64 bits do not hold");
    advance(lexer, end);
    return AH_OK;
}

static int sign(struct lexer *lexer, size_t *nested)
{
    static const char *const signs[] = {"//", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "<",
                                        ">",  "=",  ".",  ":",  ",",  "|",  "(", ")", "[", "]", "{", "}"};
    for (size_t i = 0; i < AH_LENGTH(signs); i++) {
        if (!starts(lexer, signs[i]))
            continue;
        size_t length = strlen(signs[i]);
        *nested += strchr("([{", *signs[i]) != NULL;
        if (strchr(")]}", *signs[i]) && (*nested)-- == 0)
            return wrong(lexer, "a closing bracket that nothing opened");
        AH_TRY(add(lexer, AH_TOKEN_SIGN, signs[i], length));
        advance(lexer, lexer->at + length);
        return AH_OK;
    }
    return ah__fail(AH_EINPUT, "%s: line %d: found '%c', expected an expression", lexer->name, lexer->line,
                    *lexer->at >= ' ' && *lexer->at < 127 ? *lexer->at : '?');
}

static int name(struct lexer *lexer)
{
    const char *end = lexer->at;
    while (end < lexer->stop && is_name(*end))
        end++;
    AH_TRY(add(lexer, AH_TOKEN_NAME, lexer->at, (size_t)(end - lexer->at)));
    advance(lexer, end);
    return AH_OK;
}

/* Reads tokens up to the tag's end. Inside brackets the tag's end may mean something else: {{ {'a': {}} }}. */
static int tag(struct lexer *lexer, bool print)
{
    size_t nested = 0;
    for (;;) {
        char end_sign;
        advance(lexer, spaces_end(lexer->at, lexer->stop));
        if (lexer->at >= lexer->stop)
            break;
        size_t end = nested ? 0 : end_here(&end_sign, lexer, print ? "}}" : "%}", !print);
        if (end) {
            AH_TRY(add(lexer, print ? AH_TOKEN_PRINT_END : AH_TOKEN_BLOCK_END, lexer->at, end));
            advance(lexer, lexer->at + end);
            after_end(lexer, end_sign, !print);
            return AH_OK;
        }
        if (is_digit(*lexer->at))
            AH_TRY(number(lexer));
        else if (is_name(*lexer->at))
            AH_TRY(name(lexer));
        else if (*lexer->at == '"' || *lexer->at == '\'')
            AH_TRY(string(lexer));
        else
            AH_TRY(sign(lexer, &nested));
    }
    return wrong(lexer, print ? "the template's end, expected '}}'" : "the template's end, expected '%}'");
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const char *tag_find(const char *at, const char *stop)
{
    for (; stop - at >= 2; at++)
        if (at[0] == '{' && (at[1] == '{' || at[1] == '%' || at[1] == '#'))
            return at;
    return NULL;
}

/* Reads data up to the next tag, and that tag. */
static int piece(struct lexer *lexer)
{
    const char *begin = lexer->at, *at = tag_find(begin, lexer->stop);
    char before, after;
    if (!at) {
        AH_TRY(add(lexer, AH_TOKEN_DATA, begin, (size_t)(lexer->stop - begin)));
        advance(lexer, lexer->stop);
        return AH_OK;
    }
    size_t raw_length = tag_of(&before, &after, at, lexer->stop, "raw", false);
    char mark = at[1], sign_here = lexer->stop - at > 2 && (at[2] == '-' || at[2] == '+') ? at[2] : 0;
    size_t left = data_left(lexer, begin, (size_t)(at - begin), sign_here, mark == '{');
    if (left)
        AH_TRY(add(lexer, AH_TOKEN_DATA, begin, left));
    advance(lexer, raw_length ? at + raw_length : at + 2 + (sign_here != 0));
    if (raw_length) {
        after_end(lexer, after, false);
        return raw(lexer);
    }
    if (mark == '#')
        return comment(lexer);
    AH_TRY(add(lexer, mark == '{' ? AH_TOKEN_PRINT_BEGIN : AH_TOKEN_BLOCK_BEGIN, at, 2));
    return tag(lexer, mark == '{');
}

/* Copies the source. Line breaks of other systems become "
 * "; the last line break is dropped. */
static int source_copy(struct lexer *lexer, const char *source, size_t length)
{
    char *copy, *to;
    AH_TRY(ah__heap_new(lexer->heap, &copy, length + 1, 1));
    to = copy;
    for (size_t i = 0; i < length; i++) {
        *to++ = source[i] == '\r' ? '\n' : source[i];
        i += source[i] == '\r' && i + 1 < length && source[i + 1] == '\n';
    }
    to -= to > copy && to[-1] == '\n';
    lexer->at = copy;
    lexer->stop = to;
    return AH_OK;
}

int ah__jinja_lex(struct ah_tokens *out, struct ah_heap *heap, const char *source, size_t length, const char *name_of)
{
    struct lexer lexer = {.line = 1, .name = name_of, .heap = heap, .line_starts = true};
    if (!ah__utf8_good(source, length))
        return ah__fail(AH_EINPUT, "%s: found bytes that are no UTF-8, expected a template", name_of);
    AH_TRY(source_copy(&lexer, source, length));
    while (lexer.at < lexer.stop)
        AH_TRY(piece(&lexer));
    AH_TRY(add(&lexer, AH_TOKEN_END, lexer.stop, 0));
    *out = (struct ah_tokens){lexer.tokens, lexer.count};
    return AH_OK;
}
