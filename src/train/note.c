#include <stdarg.h>
#include <stdio.h>

#include "base/format.h"
#include "train/session.h"

void ah__session_note(const struct ah_session *session, const char *format, ...)
{
    char line[1200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    ah__text_plain(line);
    if (session->options->on_note)
        session->options->on_note(line, session->options->context);
}
