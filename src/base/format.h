/* Numbers as text and back, with a decimal point in every locale that the calling program may have set. Everything in
 * the library that formats or reads a number with a fraction goes through here (tests/lint/numbers).
 *
 * These functions take and return what the C library's functions of the same names do. */
#ifndef AH_BASE_FORMAT_H
#define AH_BASE_FORMAT_H

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/status.h"

int ah__vsnprintf(char *text, size_t size, const char *format, va_list arguments) AH_PRINTF(3, 0);
int ah__snprintf(char *text, size_t size, const char *format, ...) AH_PRINTF(3, 4);
int ah__fprintf(FILE *to, const char *format, ...) AH_PRINTF(2, 3);
double ah__strtod(const char *text, char **end);
float ah__strtof(const char *text, char **end);

/* Give the calling thread the C locale from begin to end, around calls of a library that follows the locale. begin
 * returns the locale that end needs. */
locale_t ah__locale_begin(void);
void ah__locale_end(locale_t before);

#endif
