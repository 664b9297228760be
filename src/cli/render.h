/* autohete chat --render: prints a conversation's text, or with the parts of it that count for the loss. */
#ifndef AH_CLI_RENDER_H
#define AH_CLI_RENDER_H

#include "autohete.h"

struct ah_render_args {
    const char *model, *template_path; /* one of them may be null */
    const char *adapter;               /* folder of the adapter; null: none, or the model is an adapter */
    const char *conversation;          /* file of the conversation; "-": standard input */
    const char *train_on;              /* parts that count; null: print the text alone */
    const char *date;
    bool generation;
};
/* Prints the text, or with train_on one JSON object. Returns an exit status. */
int ah__render(const struct ah_render_args *args);
#endif
