/* Reads records that are conversations: lists of messages, instructions with their answers, and the keys beside
 * them. */
#include <string.h>

#include "base/alloc.h"
#include "data/alpaca.h"
#include "data/forms_internal.h"

/* ---- keys beside a conversation ---------------------------------------------------------------------------------- */

int ah__form_marks(struct ah_document *out, struct ah_form_record *record)
{
    static const char *const keys[] = {"label", "kto_tag"};
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        const cJSON *mark = ah__form_member(record, keys[i]);
        if (cJSON_IsFalse(mark))
            out->bad = keys[i];
        else if (!cJSON_IsTrue(mark) && ah__form_is_filled(mark))
            AH_TRY(ah__form_unread(record, keys[i]));
    }
    return AH_OK;
}

/* Adds the record's system prompt to `before`, unless the conversation has its own. */
static int system_add(cJSON *before, struct ah_form_record *record, const cJSON *list)
{
    const char *text;
    AH_TRY(ah__form_text_of(&text, record, "system", "system_prompt"));
    const cJSON *role = cJSON_GetObjectItemCaseSensitive(list->child, "role");
    const cJSON *content = cJSON_GetObjectItemCaseSensitive(list->child, "content");
    if (!*text)
        return AH_OK;
    if (!cJSON_IsString(role) || strcmp(role->valuestring, "system") != 0)
        return ah__form_message_add(before, "system", text);
    bool same = cJSON_IsString(content) && strcmp(content->valuestring, text) == 0;
    bool first = ah__form_is_filled(ah__form_member(record, "system"));
    return same ? AH_OK : ah__form_unread(record, first ? "system" : "system_prompt");
}

/* Adds the history [[question, answer], ..] to `before`; *out is null without one. */
static int history_add(const cJSON **out, cJSON *before, struct ah_form_record *record)
{
    *out = ah__json_has(&record->json, "history") ? ah__form_member(record, "history") : NULL;
    if (!*out)
        return AH_OK;
    int index = 0;
    if (!cJSON_IsArray(*out))
        return ah__fail(AH_EINPUT, "%s: key 'history': found one value, expected a list", record->json.path);
    for (const cJSON *turn = (*out)->child; turn; turn = turn->next, index++) {
        if (cJSON_GetArraySize(turn) != 2 || !cJSON_IsString(turn->child) || !cJSON_IsString(turn->child->next))
            return ah__fail(AH_EINPUT, "%s: key 'history[%d]': found another value, expected a list of two strings",
                            record->json.path, index);
        AH_TRY(ah__form_message_add(before, "user", turn->child->valuestring));
        AH_TRY(ah__form_message_add(before, "assistant", turn->child->next->valuestring));
    }
    return AH_OK;
}

/* Puts the record's system prompt and history before the list; *added receives the number of messages. */
static int before_add(size_t *added, const cJSON **history, struct ah_form_record *record, cJSON *list)
{
    cJSON *before = cJSON_CreateArray();
    int status = before ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: messages of a record");
    if (status == AH_OK)
        status = system_add(before, record, list);
    if (status == AH_OK)
        status = history_add(history, before, record);
    if (status == AH_OK) {
        *added = (size_t)cJSON_GetArraySize(before);
        ah__form_items_move(before, list);
        ah__form_items_move(list, before);
    }
    cJSON_Delete(before);
    return status;
}

static int variables_take(struct ah_document *out, struct ah_form_record *record)
{
    char text[AH_FORM_FOUND_BYTES];
    out->variables =
        ah__json_has(&record->json, "chat_template_kwargs") ? ah__form_member(record, "chat_template_kwargs") : NULL;
    return !out->variables || cJSON_IsObject(out->variables)
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key 'chat_template_kwargs': found %s, expected an object", record->json.path,
                          ah__form_found(text, out->variables));
}

/* Makes the list the document's conversation, with the keys beside it. *history: the record's, or null. */
static int chat_set(struct ah_document *out, struct ah_form_record *record, cJSON *list, const cJSON **history)
{
    size_t added;
    AH_TRY(before_add(&added, history, record, list));
    AH_TRY(variables_take(out, record));
    AH_TRY(ah__form_marks(out, record));
    bool tools = ah__json_has(&record->json, "tools");
    if (tools && ah__form_is_filled(ah__form_member(record, "functions")))
        AH_TRY(ah__form_unread(record, "functions"));
    tools = tools || ah__json_has(&record->json, "functions");
    out->kind = AH_DOCUMENT_CHAT;
    out->messages = list;
    out->tools = !tools ? NULL : ah__form_member(record, ah__json_has(&record->json, "tools") ? "tools" : "functions");
    out->generation = cJSON_IsTrue(ah__form_member(record, "add_generation_prompt"));
    out->given += out->given ? added : 0;
    return AH_OK;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static int list_read(struct ah_document *out, struct ah_form_record *record, const char *key)
{
    cJSON *list;
    const cJSON *history;
    AH_TRY(ah__form_any_list(&list, record, key));
    AH_TRY(ah__form_turns(record, key, list));
    return chat_set(out, record, list, &history);
}

int ah__form_messages(struct ah_document *out, struct ah_form_record *record)
{
    return list_read(out, record, "messages");
}

int ah__form_conversations(struct ah_document *out, struct ah_form_record *record)
{
    return list_read(out, record, ah__form_member(record, "conversations") ? "conversations" : "conversation");
}

/* Joins both lists to one conversation. */
int ah__form_message_lists(struct ah_document *out, struct ah_form_record *record, const char *key)
{
    cJSON *prompt, *completion;
    const cJSON *history;
    AH_TRY(ah__form_list(&prompt, record, "prompt"));
    AH_TRY(ah__form_list(&completion, record, key));
    AH_TRY(ah__form_turns(record, "prompt", prompt));
    AH_TRY(ah__form_turns(record, key, completion));
    out->given = (size_t)cJSON_GetArraySize(prompt);
    ah__form_items_move(prompt, completion);
    return chat_set(out, record, prompt, &history);
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static int user_add(cJSON *list, const struct ah_alpaca *alpaca)
{
    char *both;
    if (!*alpaca->input)
        return ah__form_message_add(list, "user", alpaca->instruction);
    AH_TRY(ah__sprintf(&both, "%s\n\n%s", alpaca->instruction, alpaca->input));
    int status = ah__form_message_add(list, "user", both);
    ah__free(both);
    return status;
}

/* Reads an instruction, its input and its answer, by their keys, both as messages and in the layout without a
 * template. */
static int instruction_read(struct ah_document *out, struct ah_form_record *record, const char *instruction,
                            const char *output)
{
    struct ah_alpaca alpaca = {0};
    struct ah_buf *layout = &record->store->layout;
    cJSON *list = cJSON_CreateArray();
    record->store->messages = list;
    if (!list)
        return ah__fail(AH_ENOMEM, "out of host memory: messages of a record");
    AH_TRY(ah__json_string(&alpaca.instruction, &record->json, instruction));
    AH_TRY(ah__form_text_of(&alpaca.input, record, "input", "context"));
    AH_TRY(ah__form_text(&out->completion, &out->completion_length, record, output));
    AH_TRY(user_add(list, &alpaca));
    AH_TRY(ah__form_message_add(list, "assistant", out->completion));
    AH_TRY(chat_set(out, record, list, &alpaca.history));
    const cJSON *first = list->child, *content = cJSON_GetObjectItemCaseSensitive(first, "content");
    bool system = strcmp(cJSON_GetObjectItemCaseSensitive(first, "role")->valuestring, "system") == 0;
    alpaca.system = system ? content->valuestring : "";
    ah__alpaca_layout(layout, &alpaca);
    out->text = layout->text;
    out->length = layout->length;
    return layout->status;
}

int ah__form_alpaca(struct ah_document *out, struct ah_form_record *record)
{
    return instruction_read(out, record, "instruction", "output");
}

int ah__form_dolly(struct ah_document *out, struct ah_form_record *record)
{
    return instruction_read(out, record, "instruction", "response");
}

/* Gives the first of two keys that is there; notes the other if it has a value. */
static int key_of(const char **out, struct ah_form_record *record, const char *key, const char *other)
{
    bool first = ah__json_has(&record->json, key);
    *out = first ? key : other;
    return first && ah__form_is_filled(ah__form_member(record, other)) ? ah__form_unread(record, other) : AH_OK;
}

int ah__form_orca(struct ah_document *out, struct ah_form_record *record)
{
    const char *asked, *answer;
    AH_TRY(key_of(&asked, record, "question", "query"));
    AH_TRY(key_of(&answer, record, "response", "answer"));
    return instruction_read(out, record, asked, answer);
}
