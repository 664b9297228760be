/* Chat templates: a conversation's messages to the text that a model has learned to continue, and which parts of it
 * count for the loss. Takes messages as JSON in OpenAI's form (role, content, tool_calls, ...), gives text in bytes;
 * knows no tokens, models or files. */
#ifndef AH_CHAT_CHAT_H
#define AH_CHAT_CHAT_H

#include <cjson/cJSON.h>
#include <time.h>

#include "chat/jinja.h"

struct ah_chat;

/* A template; `name` for messages. All is copied. */
struct ah_chat_source {
    const char *text; /* null: there is none */
    size_t length;
    const char *name;
};
/* `tools` is used where a conversation has tools, if it is there. `special`: an object of what templates see as
 * bos_token and the like, or null. AH_EINPUT: "NAME: line N: ..."; AH_ENOMEM. */
int ah__chat_new(const struct ah_chat **out, const struct ah_chat_source *plain, const struct ah_chat_source *tools,
                 const cJSON *special);
/* Null is fine. */
void ah__chat_close(const struct ah_chat *chat);

/* Whether a template of the chat has this name as a variable's; whether as that of a member, as of a message. */
bool ah__chat_reads(const struct ah_chat *chat, const char *name, size_t length);
bool ah__chat_mentions(const struct ah_chat *chat, const char *name, size_t length);

struct ah_conversation {
    const cJSON *messages;      /* a list of objects */
    const cJSON *tools;         /* a list, or null */
    const cJSON *variables;     /* an object of what else the template may see (enable_thinking, ...), or null */
    size_t given;               /* for ah__chat_mask: so many messages are a prompt, no turn of which counts */
    bool add_generation_prompt; /* end where the model is to write; ah__chat_mask reads it not */
    const char *name;           /* of where it comes from, for messages: "data.jsonl: line 3" */
    const struct tm *now;       /* local time for strftime_now; null: the clock's */
};

/* As transformers' apply_chat_template: keys of messages that are null are left out; reasoning_content, thinking and
 * reasoning stand for each other. `text` is zero before; the caller frees it with ah__buf_free. AH_EINPUT: what the
 * messages or the template have wrong, or what the template raises. */
int ah__chat_render(struct ah_buf *text, const struct ah_chat *chat, const struct ah_conversation *conversation);

/* What of a conversation counts for the loss. */
enum ah_train_on { AH_TRAIN_ON_ASSISTANT, AH_TRAIN_ON_ALL, AH_TRAIN_ON_LAST };
/* "assistant" (null too), "all", "last". AH_EINPUT. */
int ah__train_on_parse(enum ah_train_on *out, const char *word);

/* A text to learn from. */
struct ah_chat_piece {
    struct ah_buf text;
    struct ah_text_span *spans; /* [span_count] in bytes, in order: what counts */
    size_t span_count, span_room;
};
struct ah_chat_masked {
    struct ah_chat_piece *pieces; /* [count] */
    size_t count, room;
    size_t turns; /* of the assistant that count */
    size_t apart; /* of which so many have a piece of their own */
    bool by_marks;
};

/* The whole conversation as one piece, and what counts of it: by {% generation %} where the template has it. Else turn
 * i is what the text of messages 0 .. i has more than that of messages 0 .. i-1 with a generation prompt: what the
 * model is asked for when it is asked. Where a template writes turn i, or what is before it, otherwise once more
 * messages follow (it is not prefix-stable), messages 0 .. i are a piece of their own, of which turn i counts; the
 * whole conversation is left out where nothing of it counts. A first message of an assistant counts only where the
 * template renders a prompt for no messages. AH_EINPUT: as above; a conversation without an assistant's
 * turn; for LAST, a last message that is no assistant's; a turn that is no continuation of its prompt. `out` is zero
 * before and freed by ah__chat_masked_free, whatever is returned. */
int ah__chat_mask(struct ah_chat_masked *out, const struct ah_chat *chat, const struct ah_conversation *conversation,
                  enum ah_train_on train_on);
void ah__chat_masked_free(struct ah_chat_masked *masked);

#endif
