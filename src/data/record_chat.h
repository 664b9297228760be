/* A record as a conversation: the input of a chat template, the same for a training and for chat --render, and the
 * record's keys that nothing reads. */
#ifndef AH_DATA_RECORD_CHAT_H
#define AH_DATA_RECORD_CHAT_H

#include "chat/chat.h"
#include "data/forms.h"

/* Memory that a conversation points into. Zero-initialise before; free with ah__record_free. */
struct ah_record {
    cJSON *tools, *variables;
};
void ah__record_free(struct ah_record *record);

/* Makes the conversation of a CHAT document: its messages, tools (also JSON in a text), and as variables its
 * chat_template_kwargs and its other members whose name the template reads. AH_EINPUT: tools are not a list; `where` is
 * for messages. */
int ah__record_conversation(struct ah_conversation *out, struct ah_record *record, const struct ah_document *document,
                            const struct ah_chat *chat, const char *where);

/* Names of keys that nothing reads, each once; as text the first ones in quotes: "'a', 'b' and 3 more". */
struct ah_unread {
    struct ah_buf names; /* separated by zero bytes */
    size_t count;
};
/* Adds the document's keys that have a value and that no template reads; `chat` may be null. AH_ENOMEM. */
int ah__unread_add(struct ah_unread *unread, const struct ah_document *document, const struct ah_chat *chat);
/* Makes the text, freed with ah__free; null into *out if there are no names. AH_ENOMEM. */
int ah__unread_text(char **out, const struct ah_unread *unread);
void ah__unread_free(struct ah_unread *unread);

#endif
