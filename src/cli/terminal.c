#include "cli/terminal.h"

#include <string.h>
#include <unistd.h>

void ah__terminal_init(struct ah_terminal *terminal, FILE *to)
{
    *terminal = (struct ah_terminal){.to = to, .escapes = isatty(fileno(to)) == 1};
}

/* Bytes of a character that begins so; 0: none does. */
static size_t length_of(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

static bool is_control(const unsigned char *character, size_t length)
{
    if (length == 1)
        return (character[0] < 32 && character[0] != '\n' && character[0] != '\t') || character[0] == 127;
    return length == 2 && character[0] == 0xc2 && character[1] < 0xa0; /* the upper controls */
}

static void escape(struct ah_terminal *terminal, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(terminal->to, "\\x%02x", terminal->pending[i]);
    memmove(terminal->pending, terminal->pending + count, terminal->count - count);
    terminal->count -= count;
}

/* Shows every whole character of what is pending; a byte that cannot begin or go on one is shown as what it is. */
static void drain(struct ah_terminal *terminal)
{
    while (terminal->count > 0) {
        size_t length = length_of(terminal->pending[0]), good = 1;
        while (good < terminal->count && good < length && (terminal->pending[good] & 0xc0) == 0x80)
            good++;
        if (length == 0 || (good < length && good < terminal->count)) {
            escape(terminal, 1);
        } else if (good < length) {
            return; /* the rest may come */
        } else if (is_control(terminal->pending, length)) {
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
        terminal->pending[terminal->count++] = (unsigned char)text[i];
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
