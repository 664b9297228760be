#include "data/record_chat.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json_python.h"
#include "data/forms_keys.h"

void ah__record_free(struct ah_record *record)
{
    cJSON_Delete(record->tools);
    cJSON_Delete(record->variables);
    *record = (struct ah_record){0};
}

/* ---- input of a template ----------------------------------------------------------------------------------------- */

static int tools_read(struct ah_conversation *out, struct ah_record *record, const cJSON *given, const char *where)
{
    out->tools = cJSON_IsString(given) && !*given->valuestring ? NULL : given;
    if (cJSON_IsString(out->tools)) {
        int status =
            ah__json_value_parse(&record->tools, given->valuestring, strlen(given->valuestring), "key 'tools'");
        if (status != AH_OK)
            return ah__fail_prefix(status, "%s", where);
        out->tools = record->tools;
    }
    if (out->tools && !cJSON_IsArray(out->tools) && !cJSON_IsNull(out->tools))
        return ah__fail(AH_EINPUT, "%s: key 'tools': found another value, expected a list", where);
    return AH_OK;
}

static int variable_add(cJSON *variables, const struct ah_form_extra *extra, const char *where)
{
    struct ah_json_fault fault = {0};
    cJSON *value;
    char *key;
    int status = ah__json_value_build(&value, extra->value, extra->value_length, &fault);
    if (status == AH_EINPUT)
        return ah__fail(AH_EINPUT, "%s: key '%.*s': found %s, expected text", where, (int)extra->key_length, extra->key,
                        fault.found);
    AH_TRY(status);
    status = ah__sprintf(&key, "%.*s", (int)extra->key_length, extra->key);
    if (status == AH_OK) {
        cJSON_DeleteItemFromObjectCaseSensitive(variables, key); /* if a key occurs twice, the last value counts */
        status =
            cJSON_AddItemToObject(variables, key, value) ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: variables");
        ah__free(key);
    }
    if (status != AH_OK)
        cJSON_Delete(value);
    return status;
}

/* Collects variables. Members of chat_template_kwargs replace the record's other members of the same name. */
static int variables_read(struct ah_record *record, const struct ah_document *document, const struct ah_chat *chat,
                          const char *where)
{
    record->variables = cJSON_CreateObject();
    if (!record->variables)
        return ah__fail(AH_ENOMEM, "out of host memory: variables");
    for (size_t i = 0; i < document->extra_count; i++)
        if (ah__chat_reads(chat, document->extras[i].key, document->extras[i].key_length))
            AH_TRY(variable_add(record->variables, &document->extras[i], where));
    for (const cJSON *item = document->variables ? document->variables->child : NULL; item; item = item->next) {
        cJSON *copy = cJSON_Duplicate(item, true);
        cJSON_DeleteItemFromObjectCaseSensitive(record->variables, item->string);
        if (!copy || !cJSON_AddItemToObject(record->variables, item->string, copy)) {
            cJSON_Delete(copy);
            return ah__fail(AH_ENOMEM, "out of host memory: variables");
        }
    }
    return AH_OK;
}

int ah__record_conversation(struct ah_conversation *out, struct ah_record *record, const struct ah_document *document,
                            const struct ah_chat *chat, const char *where)
{
    out->messages = document->messages;
    out->given = document->given;
    out->name = where;
    AH_TRY(tools_read(out, record, document->tools, where));
    AH_TRY(variables_read(record, document, chat, where));
    out->variables = record->variables;
    return AH_OK;
}

/* ---- keys that are not read -------------------------------------------------------------------------------------- */

static int name_add(struct ah_unread *unread, const char *name, size_t length)
{
    const char *at = unread->names.text;
    for (size_t i = 0; i < unread->count; i++, at += strlen(at) + 1)
        if (strlen(at) == length && memcmp(at, name, length) == 0)
            return AH_OK;
    ah__buf_add(&unread->names, name, length);
    ah__buf_add(&unread->names, "", 1);
    unread->count += unread->names.status == AH_OK;
    return unread->names.status;
}

static bool is_told(const cJSON *value)
{
    if (cJSON_IsString(value))
        return *value->valuestring;
    for (const cJSON *item = cJSON_IsObject(value) || cJSON_IsArray(value) ? value->child : NULL; item;
         item = item->next)
        if (is_told(item))
            return true;
    return cJSON_IsBool(value);
}

/* Returns true for a mark that asks to learn a message of another role than assistant. */
static bool asks(const cJSON *message, const struct ah_form_key *known, const cJSON *value)
{
    const char *role = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(message, "role"));
    return known && known->use == AH_KEY_MARK && role && strcmp(role, "assistant") != 0 &&
           (cJSON_IsTrue(value) || (cJSON_IsNumber(value) && value->valuedouble > 0));
}

static int message_look(struct ah_unread *unread, const cJSON *message, const struct ah_chat *chat)
{
    for (const cJSON *item = message->child; item; item = item->next) {
        const size_t length = strlen(item->string);
        const struct ah_form_key *known = ah__form_key_find(AH_KEYS_TURNS, item->string, length);
        bool unknown = !known && is_told(item) && !(chat && ah__chat_mentions(chat, item->string, length));
        if (unknown || asks(message, known, item))
            AH_TRY(name_add(unread, item->string, length));
    }
    return AH_OK;
}

int ah__unread_add(struct ah_unread *unread, const struct ah_document *document, const struct ah_chat *chat)
{
    const bool talk = document->kind == AH_DOCUMENT_CHAT;
    for (size_t i = 0; i < document->extra_count; i++) {
        const struct ah_form_extra *extra = &document->extras[i];
        bool seen = talk && chat && ah__chat_reads(chat, extra->key, extra->key_length);
        bool mark = ah__form_key_find(AH_KEYS_TURNS, extra->key, extra->key_length) &&
                    ah__form_key_find(AH_KEYS_TURNS, extra->key, extra->key_length)->use == AH_KEY_MARK;
        if (!seen && (mark || ah__form_says(extra->value, extra->value_length)))
            AH_TRY(name_add(unread, extra->key, extra->key_length));
    }
    for (const cJSON *message = talk ? document->messages->child : NULL; message; message = message->next)
        AH_TRY(message_look(unread, message, chat));
    if (talk && !chat && document->tools)
        AH_TRY(name_add(unread, "tools", strlen("tools")));
    return talk && !chat && document->variables
               ? name_add(unread, "chat_template_kwargs", strlen("chat_template_kwargs"))
               : AH_OK;
}

int ah__unread_text(char **out, const struct ah_unread *unread)
{
    enum { NAMED_MOST = 8, NAME_MOST = 40 };
    struct ah_buf text = {0};
    const char *at = unread->names.text;
    *out = NULL;
    if (!unread->count)
        return AH_OK;
    for (size_t i = 0; i < unread->count && i < NAMED_MOST; i++, at += strlen(at) + 1)
        ah__buf_printf(&text, "%s'%.*s'", i ? ", " : "", NAME_MOST, at);
    if (unread->count > NAMED_MOST)
        ah__buf_printf(&text, " and %zu more", unread->count - NAMED_MOST);
    int status = text.status == AH_OK ? ah__strdup(out, text.text) : text.status;
    ah__buf_free(&text);
    return status;
}

void ah__unread_free(struct ah_unread *unread)
{
    ah__buf_free(&unread->names);
}
