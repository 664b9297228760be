/* Records that are conversations: lists of messages, ShareGPT's turns, instructions with their answers. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "io/alpaca.h"
#include "io/forms_internal.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* A part of list[index], or, where it has no name, the whole. */
static int message_fail(const struct ah_form_record *record, const char *key, int index, const cJSON *item,
                        const char *part, const char *expected)
{
    char text[AH_FORM_FOUND_BYTES];
    const cJSON *found = *part ? cJSON_GetObjectItemCaseSensitive(item, part) : item;
    return ah__fail(AH_EINPUT, "%s: key '%s[%d]%s%s': found %s, expected %s", record->json.path, key, index,
                    *part ? "." : "", part, ah__form_found(text, found), expected);
}

/* Role and content; what else stands in a message is the template's. */
static int messages_check(const struct ah_form_record *record, const char *key, const cJSON *list)
{
    int index = 0;
    for (const cJSON *item = list->child; item; item = item->next, index++) {
        if (!cJSON_IsObject(item))
            return message_fail(record, key, index, item, "", "a message, with role and content");
        if (!cJSON_IsString(cJSON_GetObjectItemCaseSensitive(item, "role")))
            return message_fail(record, key, index, item, "role", "a string");
        const cJSON *content = cJSON_GetObjectItemCaseSensitive(item, "content");
        bool calls = cJSON_GetObjectItemCaseSensitive(item, "tool_calls") != NULL;
        if (!cJSON_IsString(content) && !cJSON_IsArray(content) && !calls)
            return message_fail(record, key, index, item, "content", "a string or a list of parts");
    }
    return AH_OK;
}

static void chat_set(struct ah_document *out, const struct ah_form_record *record, const cJSON *messages)
{
    out->kind = AH_DOCUMENT_CHAT;
    out->messages = messages;
    out->tools = ah__json_has(&record->json, "tools") ? ah__form_member(record, "tools") : NULL;
}

int ah__form_messages(struct ah_document *out, struct ah_form_record *record)
{
    cJSON *list;
    AH_TRY(ah__form_any_list(&list, record, "messages"));
    AH_TRY(messages_check(record, "messages", list));
    chat_set(out, record, list);
    return AH_OK;
}

static int messages_new(struct ah_form_record *record)
{
    record->store->messages = cJSON_CreateArray();
    return record->store->messages ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: messages of a record");
}

static int message_add(struct ah_form_record *record, const char *role, const char *content)
{
    cJSON *item = cJSON_CreateObject();
    if (item && cJSON_AddStringToObject(item, "role", role) && cJSON_AddStringToObject(item, "content", content) &&
        cJSON_AddItemToArray(record->store->messages, item))
        return AH_OK;
    cJSON_Delete(item);
    return ah__fail(AH_ENOMEM, "out of host memory: messages of a record");
}

static int system_add(struct ah_form_record *record, const char *key)
{
    const char *text;
    AH_TRY(ah__form_text_or_none(&text, record, key));
    return *text ? message_add(record, "system", text) : AH_OK;
}

/* The role that ShareGPT's word for a speaker means; null: none known. */
static const char *role_of(const char *from)
{
    static const char *const roles[][2] = {
        {"human", "user"},        {"user", "user"},       {"gpt", "assistant"},          {"assistant", "assistant"},
        {"chatgpt", "assistant"}, {"model", "assistant"}, {"bot", "assistant"},          {"bing", "assistant"},
        {"bard", "assistant"},    {"ai", "assistant"},    {"system", "system"},          {"tool", "tool"},
        {"observation", "tool"},  {"function", "tool"},   {"function_response", "tool"}, {"function_call", "assistant"},
    };
    for (size_t i = 0; i < AH_LENGTH(roles); i++)
        if (strcasecmp(roles[i][0], from) == 0)
            return roles[i][1];
    return NULL;
}

/* What a turn says of itself besides: whether it is learned. */
static int weight_add(struct ah_form_record *record, const cJSON *turn)
{
    const cJSON *weight = cJSON_GetObjectItemCaseSensitive(turn, "weight");
    cJSON *message = cJSON_GetArrayItem(record->store->messages, cJSON_GetArraySize(record->store->messages) - 1);
    cJSON *copy = weight ? cJSON_Duplicate(weight, false) : NULL;
    if (!weight || (copy && cJSON_AddItemToObject(message, "weight", copy)))
        return AH_OK;
    cJSON_Delete(copy);
    return ah__fail(AH_ENOMEM, "out of host memory: messages of a record");
}

static int turn_add(struct ah_form_record *record, const char *key, const cJSON *item, int index)
{
    const cJSON *from = cJSON_GetObjectItemCaseSensitive(item, "from");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, "value");
    if (!cJSON_IsString(from))
        return message_fail(record, key, index, item, "from", "a string, like human or gpt");
    if (!cJSON_IsString(value))
        return message_fail(record, key, index, item, "value", "a string");
    const char *role = role_of(from->valuestring);
    if (!role)
        return ah__fail(AH_EINPUT,
                        "%s: key '%s[%d].from': found '%.40s', expected human, gpt, system, tool or another "
                        "word for one of them",
                        record->json.path, key, index, from->valuestring);
    AH_TRY(message_add(record, role, value->valuestring));
    return weight_add(record, item);
}

/* Turns of from and value; some data sets have messages of role and content by this name. */
int ah__form_conversations(struct ah_document *out, struct ah_form_record *record)
{
    cJSON *list;
    const char *key = ah__form_member(record, "conversations") ? "conversations" : "conversation";
    AH_TRY(ah__form_any_list(&list, record, key));
    if (cJSON_IsObject(list->child) && cJSON_GetObjectItemCaseSensitive(list->child, "role")) {
        AH_TRY(messages_check(record, key, list));
        chat_set(out, record, list);
        return AH_OK;
    }
    AH_TRY(messages_new(record));
    AH_TRY(system_add(record, "system"));
    int index = 0;
    for (const cJSON *item = list->child; item; item = item->next)
        AH_TRY(turn_add(record, key, item, index++));
    chat_set(out, record, record->store->messages);
    return AH_OK;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static int history_add(struct ah_form_record *record, struct ah_alpaca *alpaca)
{
    alpaca->history = ah__json_has(&record->json, "history") ? ah__form_member(record, "history") : NULL;
    if (!alpaca->history)
        return AH_OK;
    int index = 0;
    if (!cJSON_IsArray(alpaca->history))
        return ah__fail(AH_EINPUT, "%s: key 'history': found one value, expected a list", record->json.path);
    for (const cJSON *turn = alpaca->history->child; turn; turn = turn->next, index++) {
        if (cJSON_GetArraySize(turn) != 2 || !cJSON_IsString(turn->child) || !cJSON_IsString(turn->child->next))
            return ah__fail(AH_EINPUT, "%s: key 'history[%d]': found another value, expected a list of two strings",
                            record->json.path, index);
        AH_TRY(message_add(record, "user", turn->child->valuestring));
        AH_TRY(message_add(record, "assistant", turn->child->next->valuestring));
    }
    return AH_OK;
}

static int user_add(struct ah_form_record *record, const struct ah_alpaca *alpaca)
{
    char *both;
    if (!*alpaca->input)
        return message_add(record, "user", alpaca->instruction);
    AH_TRY(ah__sprintf(&both, "%s\n\n%s", alpaca->instruction, alpaca->input));
    int status = message_add(record, "user", both);
    ah__free(both);
    return status;
}

/* An instruction, what it is about and the answer, by their keys: messages, and the layout without a template. */
static int instruction_read(struct ah_document *out, struct ah_form_record *record, const char *system,
                            const char *instruction, const char *input, const char *output)
{
    struct ah_alpaca alpaca = {0};
    struct ah_buf *layout = &record->store->layout;
    AH_TRY(ah__form_text_or_none(&alpaca.system, record, system));
    AH_TRY(ah__json_string(&alpaca.instruction, &record->json, instruction));
    AH_TRY(ah__form_text_or_none(&alpaca.input, record, input));
    AH_TRY(ah__form_text(&out->completion, &out->completion_length, record, output));
    AH_TRY(messages_new(record));
    AH_TRY(system_add(record, system));
    AH_TRY(history_add(record, &alpaca));
    AH_TRY(user_add(record, &alpaca));
    AH_TRY(message_add(record, "assistant", out->completion));
    ah__alpaca_layout(layout, &alpaca);
    chat_set(out, record, record->store->messages);
    out->tools = NULL;
    out->text = layout->text;
    out->length = layout->length;
    return layout->status;
}

int ah__form_alpaca(struct ah_document *out, struct ah_form_record *record)
{
    return instruction_read(out, record, "system", "instruction", "input", "output");
}

int ah__form_dolly(struct ah_document *out, struct ah_form_record *record)
{
    return instruction_read(out, record, "system", "instruction", "context", "response");
}

int ah__form_orca(struct ah_document *out, struct ah_form_record *record)
{
    const char *asked = ah__form_member(record, "question") ? "question" : "query";
    const char *answer = ah__form_member(record, "response") ? "response" : "answer";
    return instruction_read(out, record, "system_prompt", asked, "", answer);
}

/* Both lists are one conversation. */
int ah__form_message_lists(struct ah_document *out, struct ah_form_record *record, const char *key)
{
    cJSON *prompt, *completion;
    AH_TRY(ah__form_list(&prompt, record, "prompt"));
    AH_TRY(ah__form_list(&completion, record, key));
    AH_TRY(messages_check(record, "prompt", prompt));
    AH_TRY(messages_check(record, key, completion));
    out->given = (size_t)cJSON_GetArraySize(prompt);
    while (completion->child)
        cJSON_AddItemToArray(prompt, cJSON_DetachItemViaPointer(completion, completion->child));
    chat_set(out, record, prompt);
    return AH_OK;
}
