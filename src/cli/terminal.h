/* Prints text that a model wrote. On a terminal, characters that would move the cursor, change colours or ring a bell
 * are shown as escapes. Elsewhere (a file, a pipe) bytes pass as they are. */
#ifndef AH_CLI_TERMINAL_H
#define AH_CLI_TERMINAL_H

#include "autohete.h"

struct ah_terminal {
    FILE *to;
    bool escapes;    /* `to` is a terminal */
    char pending[4]; /* the first bytes of a character that is not complete yet */
    size_t count;
};

void ah__terminal_init(struct ah_terminal *terminal, FILE *to);
/* Line breaks and tabs pass; other control characters and bytes that are no UTF-8 become \xNN. False: cannot write. */
bool ah__terminal_write(struct ah_terminal *terminal, const char *text, size_t length);
/* Prints what is left of an incomplete character. False: cannot write. */
bool ah__terminal_end(struct ah_terminal *terminal);

#endif
