#include <stdarg.h>
#include <stdio.h>

#include "base/format.h"
#include "train/training.h"

typedef void (*hearer)(const char *line, void *context);

static void tell(hearer hear, void *context, const char *format, va_list arguments) AH_PRINTF(3, 0);
static void tell(hearer hear, void *context, const char *format, va_list arguments)
{
    char line[1200];
    vsnprintf(line, sizeof line, format, arguments);
    ah_text_plain(line);
    if (hear)
        hear(line, context);
}

void ah__training_note(const struct ah_training *training, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell(training->options->on_note, training->options->context, format, arguments);
    va_end(arguments);
}

void ah__training_fault(const struct ah_training *training, const char *format, ...)
{
    const struct ah_train_options *options = training->options;
    va_list arguments;
    va_start(arguments, format);
    tell(options->on_fault ? options->on_fault : options->on_note, options->context, format, arguments);
    va_end(arguments);
}
