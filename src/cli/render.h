/* autohete chat --render: a conversation's text, and what of it counts for the loss. */
#ifndef AH_CLI_RENDER_H
#define AH_CLI_RENDER_H

#include "autohete.h"

struct ah_render_args {
    const char *model, *template_path; /* one of them may be null */
    const char *adapter;               /* folder; null: none, or the model is one */
    const char *conversation;          /* the file; "-": standard input */
    const char *train_on;              /* null: the text alone */
    const char *date;
    bool generation;
};
/* Prints the text, or with train_on one JSON object. An exit status. */
int ah__render(const struct ah_render_args *args);
#endif
