#include "base/format.h"

#include <stdlib.h>

static locale_t plain;

/* Gets the C locale, which the C library keeps ready: nothing is allocated or to be freed. */
__attribute__((constructor)) static void plain_make(void)
{
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

locale_t ah__locale_begin(void)
{
    return uselocale(plain);
}

void ah__locale_end(locale_t before)
{
    uselocale(before);
}

int ah__vsnprintf(char *text, size_t size, const char *format, va_list arguments)
{
    locale_t before = ah__locale_begin();
    int length = vsnprintf(text, size, format, arguments);
    ah__locale_end(before);
    return length;
}

int ah__snprintf(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = ah__vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return length;
}

int ah__fprintf(FILE *to, const char *format, ...)
{
    va_list arguments;
    locale_t before = ah__locale_begin();
    va_start(arguments, format);
    int length = vfprintf(to, format, arguments);
    va_end(arguments);
    ah__locale_end(before);
    return length;
}

double ah__strtod(const char *text, char **end)
{
    locale_t before = ah__locale_begin();
    double value = strtod(text, end);
    ah__locale_end(before);
    return value;
}

float ah__strtof(const char *text, char **end)
{
    locale_t before = ah__locale_begin();
    float value = strtof(text, end);
    ah__locale_end(before);
    return value;
}
