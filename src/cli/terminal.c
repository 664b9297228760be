#include "cli/terminal.h"

#include <string.h>
#include <unistd.h>

void ah__terminal_init(struct ah_terminal *terminal, FILE *to)
{
    *terminal = (struct ah_terminal){.to = to, .escapes = isatty(fileno(to)) == 1};
}

static void escape(struct ah_terminal *terminal, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(terminal->to, "\\x%02x", (unsigned char)terminal->pending[i]);
    memmove(terminal->pending, terminal->pending + count, terminal->count - count);
    terminal->count -= count;
}

/* Prints every whole character that is pending. A byte that is not part of a character is shown as \xNN. */
static void drain(struct ah_terminal *terminal)
{
    while (terminal->count > 0) {
        bool control;
        size_t length = ah_text_character(&control, terminal->pending, terminal->count);
        char first = terminal->pending[0];
        if (length > terminal->count)
            return; /* the rest may come */
        if (length == 0) {
            escape(terminal, 1);
        } else if (control && first != '\n' && first != '\t') {
            escape(terminal, length);
        } else {
            fwrite(terminal->pending, 1, length, terminal->to);
            memmove(terminal->pending, terminal->pending + length, terminal->count - length);
            terminal->count -= length;
        }
    }
}

bool ah__terminal_write(struct ah_terminal *terminal, const char *text, size_t length)
{
    if (!terminal->escapes)
        return fwrite(text, 1, length, terminal->to) == length;
    for (size_t i = 0; i < length; i++) {
        terminal->pending[terminal->count++] = text[i];
        drain(terminal);
    }
    return !ferror(terminal->to);
}

bool ah__terminal_end(struct ah_terminal *terminal)
{
    while (terminal->count > 0)
        escape(terminal, 1);
    return !ferror(terminal->to);
}
