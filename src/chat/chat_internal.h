/* Declarations that chat.c and chat_mask.c share. */
#ifndef AH_CHAT_CHAT_INTERNAL_H
#define AH_CHAT_CHAT_INTERNAL_H

#include "chat/chat.h"

/* A conversation that has been read: its values in a heap, and the settings that its renderings share. */
struct ah_prepared {
    const struct ah_chat *chat;
    const struct ah_jinja *jinja; /* the chat's template for this conversation */
    struct ah_heap heap;
    struct ah_datum messages, tools, variables; /* LIST; LIST or NONE; DICT or NONE */
    size_t given;
    struct tm now;
    const char *name;
};
/* Reads a conversation. Freed by ah__prepared_free, whatever is returned. */
int ah__prepared_read(struct ah_prepared *out, const struct ah_chat *chat, const struct ah_conversation *conversation);
void ah__prepared_free(struct ah_prepared *prepared);
/* Renders the first `count` messages, with a generation prompt or without. */
int ah__prepared_render(struct ah_rendered *out, const struct ah_prepared *prepared, size_t count, bool generation);

#endif
