/* A record as a conversation: what a chat template sees of it, the same for a training and for chat --render, and which
 * of its keys nobody reads. */
#ifndef AH_DATA_RECORD_CHAT_H
#define AH_DATA_RECORD_CHAT_H

#include "chat/chat.h"
#include "data/forms.h"

/* Memory that a conversation points into. Zero-initialised before; freed with ah__record_free. */
struct ah_record {
    cJSON *tools, *variables;
};
void ah__record_free(struct ah_record *record);

/* The conversation of a CHAT: its messages, tools (also JSON in a text), and as variables its chat_template_kwargs and
 * those of its other members whose name the template reads. AH_EINPUT: tools are no list; `where` is for messages. */
int ah__record_conversation(struct ah_conversation *out, struct ah_record *record, const struct ah_document *document,
                            const struct ah_chat *chat, const char *where);

/* Names of keys that nobody reads, each once, the first ones in quotes: "'a', 'b' and 3 more". */
struct ah_unread {
    struct ah_buf names; /* zero bytes between them */
    size_t count;
};
/* Adds those of the document that say anything and that no template reads; `chat` may be null. AH_ENOMEM. */
int ah__unread_add(struct ah_unread *unread, const struct ah_document *document, const struct ah_chat *chat);
/* To be freed with ah__free; null into *out where there are none. AH_ENOMEM. */
int ah__unread_text(char **out, const struct ah_unread *unread);
void ah__unread_free(struct ah_unread *unread);

#endif
