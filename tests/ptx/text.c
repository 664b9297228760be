/* Takes PTX text apart: words, numbers, signs; comments and white space are passed over. */
#include "text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_text_stop(struct ptx_text *t, const char *format, ...)
{
    va_list args;
    int length = snprintf(t->error, PTX_ERROR_BYTES, "%s:%d: ", t->name, t->line);
    va_start(args, format);
    vsnprintf(t->error + length, (size_t)(PTX_ERROR_BYTES - length), format, args);
    va_end(args);
    longjmp(t->stop, 1);
}

static void blanks_skip(struct ptx_text *t)
{
    for (;; t->at++) {
        if (t->at[0] == '/' && t->at[1] == '/')
            t->at += strcspn(t->at, "\n");
        if (*t->at == '\n')
            t->line++;
        else if (*t->at == 0 || !isspace((unsigned char)*t->at))
            return;
    }
}

static size_t word_length(const char *at)
{
    size_t n = 0;
    while (isalnum((unsigned char)at[n]) || (at[n] && strchr("._$%", at[n])) || (at[n] == ':' && at[n + 1] == ':') ||
           (n > 0 && at[n] == ':' && at[n - 1] == ':'))
        n++;
    return n;
}

const char *ptx_text_next(struct ptx_text *t)
{
    blanks_skip(t);
    size_t n = *t->at == '"' ? strcspn(t->at + 1, "\"\n") + 2 : word_length(t->at);
    n = n ? n : *t->at != 0;
    if (n >= WORD_BYTES)
        ptx_text_stop(t, "a word of %zu characters", n);
    memcpy(t->word, t->at, n);
    t->word[n] = 0;
    t->at += n;
    return t->word;
}

char ptx_text_peek(struct ptx_text *t)
{
    blanks_skip(t);
    return *t->at;
}

bool ptx_text_take(struct ptx_text *t, const char *token)
{
    blanks_skip(t);
    size_t n = strlen(token), word = word_length(t->at);
    if (strncmp(t->at, token, n) != 0 || (word && word != n))
        return false;
    ptx_text_next(t);
    return true;
}

void ptx_text_expect(struct ptx_text *t, const char *token)
{
    if (!ptx_text_take(t, token)) {
        ptx_text_next(t);
        ptx_text_stop(t, "found %s, expected %s", t->word[0] ? t->word : "the end", token);
    }
}

bool ptx_text_number(const char *word, uint64_t *out)
{
    char *end;
    if (!isdigit((unsigned char)word[0]))
        return false;
    bool bits = word[0] == '0' && word[1] && strchr("fFdD", word[1]);
    *out = strtoull(bits ? word + 2 : word, &end, bits ? 16 : 0);
    return *end == 0 || strcmp(end, "U") == 0;
}

long ptx_text_whole(struct ptx_text *t)
{
    uint64_t value;
    bool minus = ptx_text_take(t, "-");
    if (!ptx_text_number(ptx_text_next(t), &value))
        ptx_text_stop(t, "found %s, expected a number", t->word);
    return minus ? -(long)value : (long)value;
}

void ptx_text_skip_line(struct ptx_text *t)
{
    t->at += strcspn(t->at, "\n");
}

void ptx_text_skip_braces(struct ptx_text *t)
{
    int depth = 0;
    do {
        const char *word = ptx_text_next(t);
        depth += strcmp(word, "{") == 0;
        depth -= strcmp(word, "}") == 0;
        if (!word[0])
            ptx_text_stop(t, "the end within braces");
    } while (depth > 0);
}
