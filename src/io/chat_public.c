/* Chat templates as the public interface has them. */
#include <string.h>

#include "base/json_python.h"
#include "io/folder.h"
#include "io/model_chat.h"

int ah_chat_open(const struct ah_chat **chat, const char *model_path, const char *template_path)
{
    const struct ah_chat *opened;
    char *newest = NULL;
    bool trained = model_path && ah__folder_find(&newest, model_path) == AH_OK;
    int status = ah__model_chat_open(&opened, trained ? newest : model_path, template_path);
    ah__free(newest);
    AH_TRY(status);
    if (!opened)
        return ah__fail(AH_EINPUT,
                        "%s: found no chat template, expected chat_template.jinja, or chat_template in "
                        "tokenizer_config.json; --chat-template FILE names one",
                        model_path ? model_path : "model");
    *chat = opened;
    return AH_OK;
}

void ah_chat_close(const struct ah_chat *chat)
{
    ah__chat_close(chat);
}

/* A conversation as JSON, and what it is made of. Zero-initialised before; freed after. */
struct given {
    cJSON *tree, *messages, *tools;
    struct tm now;
    struct ah_conversation conversation;
};

static void given_free(struct given *given)
{
    cJSON_Delete(given->tree);
    cJSON_Delete(given->messages);
    cJSON_Delete(given->tools);
}

/* "YYYY-MM-DD" at noon. */
static int date_read(struct tm *out, const char *date)
{
    const char *end = strptime(date, "%Y-%m-%d", out);
    out->tm_hour = 12;
    return end && !*end ? AH_OK : ah__fail(AH_EINPUT, "date: found '%s', expected YYYY-MM-DD", date);
}

/* What has a meaning here goes out of the object; what is left are the template's variables. */
static int object_take(struct given *given, const char *name)
{
    cJSON *generation = cJSON_DetachItemFromObjectCaseSensitive(given->tree, "add_generation_prompt");
    given->conversation.add_generation_prompt |= cJSON_IsTrue(generation);
    cJSON_Delete(generation);
    given->messages = cJSON_DetachItemFromObjectCaseSensitive(given->tree, "messages");
    given->tools = cJSON_DetachItemFromObjectCaseSensitive(given->tree, "tools");
    if (!given->messages)
        return ah__fail(AH_EINPUT, "%s: found no key 'messages', expected a list of messages", name);
    if (given->tools && !cJSON_IsArray(given->tools) && !cJSON_IsNull(given->tools))
        return ah__fail(AH_EINPUT, "%s: key 'tools': found another value, expected a list", name);
    return AH_OK;
}

static int given_read(struct given *given, const struct ah_chat_options *options)
{
    const char *name = options->name ? options->name : "messages";
    given->conversation.add_generation_prompt = options->add_generation_prompt;
    given->conversation.name = name;
    if (options->date) {
        AH_TRY(date_read(&given->now, options->date));
        given->conversation.now = &given->now;
    }
    AH_TRY(ah__json_value_parse(&given->tree, options->conversation, options->length, name));
    bool object = cJSON_IsObject(given->tree);
    if (object)
        AH_TRY(object_take(given, name));
    given->conversation.messages = object ? given->messages : given->tree;
    given->conversation.tools = given->tools;
    given->conversation.variables = object ? given->tree : NULL;
    return AH_OK;
}

/* The buffer's text, or an empty one, for users. */
static int text_take(char **text, size_t *length, struct ah_buf *buf)
{
    if (!buf->text)
        ah__buf_add(buf, "", 0);
    AH_TRY(buf->status);
    *text = buf->text;
    *length = buf->length;
    *buf = (struct ah_buf){0};
    return AH_OK;
}

int ah_chat_render(char **text, size_t *length, const struct ah_chat *chat, const struct ah_chat_options *options)
{
    struct given given = {0};
    struct ah_buf buf = {0};
    int status = given_read(&given, options);
    if (status == AH_OK)
        status = ah__chat_render(&buf, chat, &given.conversation);
    if (status == AH_OK)
        status = text_take(text, length, &buf);
    ah__buf_free(&buf);
    given_free(&given);
    return status;
}

/* [{"text": .., "parts": [[begin, end], ..]}, ..] */
static void pieces_print(struct ah_buf *to, const struct ah_chat_masked *masked)
{
    for (size_t i = 0; i < masked->count; i++) {
        const struct ah_chat_piece *piece = &masked->pieces[i];
        ah__buf_printf(to, "%s{\"text\": \"", i ? ", " : "[");
        ah__buf_json(to, piece->text.text ? piece->text.text : "");
        ah__buf_printf(to, "\", \"parts\": [");
        for (size_t k = 0; k < piece->span_count; k++)
            ah__buf_printf(to, "%s[%zu, %zu]", k ? ", " : "", piece->spans[k].begin, piece->spans[k].end);
        ah__buf_printf(to, "]}");
    }
    ah__buf_printf(to, masked->count ? "]\n" : "[]\n");
}

int ah_chat_mask(char **json, size_t *length, const struct ah_chat *chat, const struct ah_chat_options *options,
                 const char *train_on)
{
    struct given given = {0};
    struct ah_chat_masked masked = {0};
    struct ah_buf buf = {0};
    enum ah_train_on on = AH_TRAIN_ON_ASSISTANT;
    int status = ah__train_on_parse(&on, train_on);
    if (status == AH_OK)
        status = given_read(&given, options);
    if (status == AH_OK)
        status = ah__chat_mask(&masked, chat, &given.conversation, on);
    if (status == AH_OK) {
        pieces_print(&buf, &masked);
        status = text_take(json, length, &buf);
    }
    ah__buf_free(&buf);
    ah__chat_masked_free(&masked);
    given_free(&given);
    return status;
}
