#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/format.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

enum { MESSAGE_BYTES = 1024 };

static _Thread_local char message[MESSAGE_BYTES];

const char *ah_version(void)
{
    return TEXT(AH_VERSION_MAJOR) "." TEXT(AH_VERSION_MINOR) "." TEXT(AH_VERSION_PATCH);
}

const char *ah_error(void)
{
    return message;
}

/* Keeps the message as one line of UTF-8; file names and JSON values may hold any bytes. */
static void message_set(const char *text)
{
    size_t length = strnlen(text, MESSAGE_BYTES - 1);
    memcpy(message, text, length);
    message[length] = 0;
    ah_text_plain(message);
}

/* Composes the message elsewhere first, since the arguments may point into the old one. */
int ah__fail(int status, const char *format, ...)
{
    char text[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    ah__vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    message_set(text);
    return status;
}

int ah__fail_prefix(int status, const char *format, ...)
{
    char text[2 * MESSAGE_BYTES + 2];
    va_list arguments;
    va_start(arguments, format);
    ah__vsnprintf(text, MESSAGE_BYTES, format, arguments);
    va_end(arguments);
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, ": %s", message);
    message_set(text);
    return status;
}

static const struct status_row {
    const char *name;
    int value;
    bool input;
} status_rows[] = {
#define STATUS_ROW(name, value, input, text) {#name, value, input},
    AH_STATUS_TABLE(STATUS_ROW)
#undef STATUS_ROW
};

static const struct status_row *status_find(int status)
{
    for (size_t i = 0; i < AH_LENGTH(status_rows); i++)
        if (status_rows[i].value == status)
            return &status_rows[i];
    return NULL;
}

const char *ah_status_name(int status)
{
    const struct status_row *row = status_find(status);
    return row ? row->name : "unknown status";
}

bool ah_status_is_input(int status)
{
    const struct status_row *row = status_find(status);
    return row && row->input;
}
