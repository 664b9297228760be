/* Renders conversations. */
#include "chat/chat.h"

#include <string.h>

#include "chat/chat_internal.h"
#include "chat/datum_json.h"

enum { SPECIAL_BYTES_MOST = 1 << 20, RENDERING_BYTES_MOST = 1 << 29 };

struct ah_chat {
    const struct ah_jinja *plain, *tools; /* tools: null if the chat has one template for all conversations */
    struct ah_heap heap;
    struct ah_datum special; /* special tokens by name: DICT or NONE, in the heap */
};

static int source_open(const struct ah_jinja **out, const struct ah_chat_source *source)
{
    return source->text ? ah__jinja_open(out, source->text, source->length, source->name) : AH_OK;
}

int ah__chat_new(const struct ah_chat **out, const struct ah_chat_source *plain, const struct ah_chat_source *tools,
                 const cJSON *special)
{
    struct ah_chat *chat;
    AH_TRY(ah__new(&chat, 1, sizeof *chat));
    chat->heap.most = SPECIAL_BYTES_MOST;
    chat->special = ah__datum_none();
    int status = source_open(&chat->plain, plain);
    if (status == AH_OK)
        status = source_open(&chat->tools, tools);
    if (status == AH_OK && special)
        status = ah__datum_from_json(&chat->special, &chat->heap, special);
    if (status == AH_OK)
        *out = chat;
    else
        ah__chat_close(chat);
    return status;
}

void ah__chat_close(const struct ah_chat *chat)
{
    struct ah_chat *own;
    memcpy(&own, &chat, sizeof(void *));
    if (!own)
        return;
    ah__jinja_close(own->plain);
    ah__jinja_close(own->tools);
    ah__arena_free(&own->heap.arena);
    ah__free(own);
}

static bool reads(const struct ah_chat *chat, const char *name, size_t length, bool inside)
{
    return ah__jinja_reads(chat->plain, name, length, inside) ||
           (chat->tools && ah__jinja_reads(chat->tools, name, length, inside));
}

bool ah__chat_reads(const struct ah_chat *chat, const char *name, size_t length)
{
    return reads(chat, name, length, false);
}

bool ah__chat_mentions(const struct ah_chat *chat, const char *name, size_t length)
{
    return reads(chat, name, length, true);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* Returns the reasoning of a message, which may have several names; null: the message has none. The first name that is
 * present counts. */
static const struct ah_datum *reasoning_of(struct ah_datum message)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    for (size_t i = 0; i < AH_LENGTH(names); i++) {
        const struct ah_datum *found = ah__datum_member(NULL, message, names[i]);
        if (found && found->kind != AH_DATUM_NONE)
            return found;
    }
    return NULL;
}

/* Copies a message as templates expect it: without null members, and with its reasoning under both usual names. */
static int message_normal(struct ah_datum *out, struct ah_heap *heap, struct ah_datum message)
{
    const struct ah_datum *reasoning = reasoning_of(message);
    AH_TRY(ah__datum_dict(out, heap, AH_DATUM_DICT));
    if (reasoning)
        AH_TRY(ah__datum_set(out, heap, ah__datum_words("thinking"), *reasoning));
    for (size_t i = 0; i < message.dict->count; i++)
        if (message.dict->pairs[i].value.kind != AH_DATUM_NONE)
            AH_TRY(ah__datum_set(out, heap, message.dict->pairs[i].key, message.dict->pairs[i].value));
    if (reasoning)
        AH_TRY(ah__datum_set(out, heap, ah__datum_words("reasoning_content"), *reasoning));
    return AH_OK;
}

static int messages_take(struct ah_prepared *prepared, struct ah_datum read)
{
    struct ah_datum message;
    if (read.kind != AH_DATUM_LIST)
        return ah__fail(AH_EINPUT, "found a %s as messages, expected a list", ah__datum_type(read));
    AH_TRY(ah__datum_list(&prepared->messages, &prepared->heap, AH_DATUM_LIST));
    for (size_t i = 0; i < read.list->count; i++) {
        if (read.list->items[i].kind != AH_DATUM_DICT)
            return ah__fail(AH_EINPUT, "message %zu: found a %s, expected an object with role and content", i,
                            ah__datum_type(read.list->items[i]));
        AH_TRY(message_normal(&message, &prepared->heap, read.list->items[i]));
        AH_TRY(ah__datum_append(&prepared->messages, &prepared->heap, message));
    }
    return AH_OK;
}

static int copy_all(struct ah_datum *to, struct ah_heap *heap, struct ah_datum from)
{
    for (size_t i = 0; from.kind == AH_DATUM_DICT && i < from.dict->count; i++)
        AH_TRY(ah__datum_set(to, heap, from.dict->pairs[i].key, from.dict->pairs[i].value));
    return AH_OK;
}

static void now_read(struct tm *out, const struct ah_conversation *conversation)
{
    time_t now = time(NULL);
    if (conversation->now)
        *out = *conversation->now;
    else if (!localtime_r(&now, out))
        *out = (struct tm){.tm_mday = 1};
}

/* Reads the messages, tools and variables as values. */
static int values_read(struct ah_prepared *out, const struct ah_conversation *conversation)
{
    struct ah_datum messages;
    AH_TRY(ah__datum_from_json(&messages, &out->heap, conversation->messages));
    AH_TRY(messages_take(out, messages));
    AH_TRY(ah__datum_from_json(&out->tools, &out->heap, conversation->tools));
    AH_TRY(ah__datum_from_json(&out->variables, &out->heap, conversation->variables));
    return ah__heap_check(&out->heap);
}

int ah__prepared_read(struct ah_prepared *out, const struct ah_chat *chat, const struct ah_conversation *conversation)
{
    *out = (struct ah_prepared){.chat = chat,
                                .heap.most = RENDERING_BYTES_MOST,
                                .given = conversation->given,
                                .name = conversation->name ? conversation->name : "messages"};
    now_read(&out->now, conversation);
    int status = values_read(out, conversation);
    if (status != AH_OK)
        return ah__fail_prefix(status, "%s", out->name);
    out->jinja = chat->tools && out->tools.kind == AH_DATUM_LIST ? chat->tools : chat->plain;
    return AH_OK;
}

void ah__prepared_free(struct ah_prepared *prepared)
{
    ah__arena_free(&prepared->heap.arena);
}

/* ---- rendering --------------------------------------------------------------------------------------------------- */

static int variables_of(struct ah_datum *out, struct ah_heap *heap, const struct ah_prepared *prepared, size_t count,
                        bool generation)
{
    struct ah_datum messages;
    AH_TRY(ah__datum_list(&messages, heap, AH_DATUM_LIST));
    for (size_t i = 0; i < count; i++)
        AH_TRY(ah__datum_append(&messages, heap, prepared->messages.list->items[i]));
    AH_TRY(ah__datum_dict(out, heap, AH_DATUM_DICT));
    AH_TRY(copy_all(out, heap, prepared->chat->special));
    AH_TRY(copy_all(out, heap, prepared->variables));
    AH_TRY(ah__datum_set(out, heap, ah__datum_words("messages"), messages));
    AH_TRY(ah__datum_set(out, heap, ah__datum_words("tools"), prepared->tools));
    if (!ah__datum_member(heap, *out, "documents"))
        AH_TRY(ah__datum_set(out, heap, ah__datum_words("documents"), ah__datum_none()));
    return ah__datum_set(out, heap, ah__datum_words("add_generation_prompt"), ah__datum_bool(generation));
}

int ah__prepared_render(struct ah_rendered *out, const struct ah_prepared *prepared, size_t count, bool generation)
{
    struct ah_heap heap = {.most = RENDERING_BYTES_MOST};
    struct ah_datum variables;
    int status = variables_of(&variables, &heap, prepared, count, generation);
    if (status == AH_OK)
        status = ah__jinja_render(out, prepared->jinja, &heap, variables, &prepared->now);
    ah__arena_free(&heap.arena);
    return status == AH_EINPUT ? ah__fail_prefix(status, "%s", prepared->name) : status;
}

int ah__chat_render(struct ah_buf *text, const struct ah_chat *chat, const struct ah_conversation *conversation)
{
    struct ah_prepared prepared;
    struct ah_rendered rendered = {0};
    int status = ah__prepared_read(&prepared, chat, conversation);
    if (status == AH_OK)
        status = ah__prepared_render(&rendered, &prepared, prepared.messages.list->count,
                                     conversation->add_generation_prompt);
    if (status == AH_OK) {
        *text = rendered.text;
        rendered.text = (struct ah_buf){0};
    }
    ah__rendered_free(&rendered);
    ah__prepared_free(&prepared);
    return status;
}
