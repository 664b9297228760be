/* What chat's files share. */
#ifndef AH_CHAT_CHAT_INTERNAL_H
#define AH_CHAT_CHAT_INTERNAL_H

#include "chat/chat.h"

/* A conversation that was read: values in a heap, and what its renderings share. */
struct ah_prepared {
    const struct ah_chat *chat;
    const struct ah_jinja *jinja; /* one of the chat's */
    struct ah_heap heap;
    struct ah_datum messages, tools, variables; /* LIST; LIST or NONE; DICT or NONE */
    size_t given;
    struct tm now;
    const char *name;
};
/* To be freed by ah__prepared_free, whatever is returned. */
int ah__prepared_read(struct ah_prepared *out, const struct ah_chat *chat, const struct ah_conversation *conversation);
void ah__prepared_free(struct ah_prepared *prepared);
/* The first `count` messages. */
int ah__prepared_render(struct ah_rendered *out, const struct ah_prepared *prepared, size_t count, bool generation);

#endif
