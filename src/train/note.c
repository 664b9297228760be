#include <stdarg.h>
#include <stdio.h>

#include "base/format.h"
#include "train/training.h"

void ah__training_note(const struct ah_training *training, const char *format, ...)
{
    char line[1200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    ah__text_plain(line);
    if (training->options->on_note)
        training->options->on_note(line, training->options->context);
}
