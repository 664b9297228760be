/* Renders chat templates: turns a conversation's messages into the text that a model has learned to continue, and finds
 * the parts of it that count for the loss. Takes messages as JSON in OpenAI's form (role, content, tool_calls, ...),
 * returns text in bytes; knows no tokens, models or files. */
#ifndef AH_CHAT_CHAT_H
#define AH_CHAT_CHAT_H

#include <cjson/cJSON.h>
#include <time.h>

#include "chat/jinja.h"

struct ah_chat;

/* A template; `name` is for messages. Everything is copied. */
struct ah_chat_source {
    const char *text; /* null: no template */
    size_t length;
    const char *name;
};
/* `tools`, if it has a text, is used for conversations with tools. `special`: an object with bos_token and other
 * variables of templates, or null. AH_EINPUT: "NAME: line N: ..."; AH_ENOMEM. */
int ah__chat_new(const struct ah_chat **out, const struct ah_chat_source *plain, const struct ah_chat_source *tools,
                 const cJSON *special);
/* Frees the chat; null is fine. */
void ah__chat_close(const struct ah_chat *chat);

/* Returns true if a template of the chat reads a variable of this name. The second function asks for a member of this
 * name instead, as of a message. */
bool ah__chat_reads(const struct ah_chat *chat, const char *name, size_t length);
bool ah__chat_mentions(const struct ah_chat *chat, const char *name, size_t length);

struct ah_conversation {
    const cJSON *messages;      /* a list of objects */
    const cJSON *tools;         /* a list, or null */
    const cJSON *variables;     /* an object with other variables of the template (enable_thinking, ...), or null */
    size_t given;               /* for ah__chat_mask: number of messages that are a prompt; their turns do not count */
    bool add_generation_prompt; /* ends where the model is to write; ah__chat_mask ignores it */
    const char *name;           /* the conversation's origin, for messages: "data.jsonl: line 3" */
    const struct tm *now;       /* local time for strftime_now; null: the clock's time */
};

/* Renders as transformers' apply_chat_template does: null members of messages are left out; reasoning_content, thinking
 * and reasoning stand for each other. `text` is zero before; the caller frees it with ah__buf_free. AH_EINPUT: an error
 * in the messages or the template, or one that the template raises. */
int ah__chat_render(struct ah_buf *text, const struct ah_chat *chat, const struct ah_conversation *conversation);

/* The parts of a conversation that count for the loss: all turns of the assistant, everything, or the last turn. */
enum ah_train_on { AH_TRAIN_ON_ASSISTANT, AH_TRAIN_ON_ALL, AH_TRAIN_ON_LAST };
/* Parses "assistant" (null too), "all" or "last". AH_EINPUT: another word. */
int ah__train_on_parse(enum ah_train_on *out, const char *word);

/* A text to train on. */
struct ah_chat_piece {
    struct ah_buf text;
    struct ah_text_span *spans; /* [span_count] parts that count for the loss: in bytes, in order */
    size_t span_count, span_room;
};
struct ah_chat_masked {
    struct ah_chat_piece *pieces; /* [count] */
    size_t count, room;
    size_t turns; /* turns of the assistant that count */
    size_t apart; /* number of these turns that have a piece of their own */
    bool by_marks;
};

/* Returns the whole conversation as one piece, and the spans that count. If the template has {% generation %}, its
 * blocks count. Else turn i is the difference between the text of messages 0 .. i and that of messages 0 .. i-1 with a
 * generation prompt: the text that the model must write when it is asked. If a template writes turn i, or the text
 * before it, differently when more messages follow (it is not prefix-stable), messages 0 .. i are a piece of their own
 * in which turn i counts. The whole conversation is left out if no span of it counts. A first message of an assistant
 * counts only if the template renders a prompt for no messages. AH_EINPUT: as for ah__chat_render; a conversation
 * without an assistant's turn; for LAST, a last message that is no assistant's; a turn that is no continuation of its
 * prompt. `out` is zero before and freed by ah__chat_masked_free, whatever is returned. */
int ah__chat_mask(struct ah_chat_masked *out, const struct ah_chat *chat, const struct ah_conversation *conversation,
                  enum ah_train_on train_on);
void ah__chat_masked_free(struct ah_chat_masked *masked);

#endif
