/* Turns one item of a conversation into a message with role, content and tool_calls, as OpenAI's: translates words for
 * speakers, calls of functions, and LLaMA-Factory's parts. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/json_python.h"
#include "data/forms_internal.h"
#include "data/forms_keys.h"

/* The turn that is being read. */
struct turn {
    const struct ah_form_record *record;
    const char *key; /* key of the list */
    cJSON *item;
    int index;
};

/* Fails with AH_EINPUT about a part of list[index], which is `item`; about the whole item if the part has no name. */
static int message_fail(const struct ah_form_record *record, const char *key, int index, const cJSON *item,
                        const char *part, const char *expected)
{
    char text[AH_FORM_FOUND_BYTES];
    const cJSON *found = *part ? cJSON_GetObjectItemCaseSensitive(item, part) : item;
    return ah__fail(AH_EINPUT, "%s: key '%s[%d]%s%s': found %s, expected %s", record->json.path, key, index,
                    *part ? "." : "", part, ah__form_found(text, found), expected);
}

static int fail(const struct turn *turn, const char *part, const char *expected)
{
    return message_fail(turn->record, turn->key, turn->index, turn->item, part, expected);
}

static int no_memory(void)
{
    return ah__fail(AH_ENOMEM, "out of host memory: messages of a record");
}

static cJSON *member(const struct turn *turn, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(turn->item, key);
}

/* Sets a member, which then owns the value, and deletes the old one. */
static int put(const struct turn *turn, const char *key, cJSON *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(turn->item, key);
    if (value && cJSON_AddItemToObject(turn->item, key, value))
        return AH_OK;
    cJSON_Delete(value);
    return no_memory();
}

/* ---- speakers ---------------------------------------------------------------------------------------------------- */

static const struct speaker {
    const char *word, *role;
    bool in_role; /* also as a value of `role`, where other words belong to the template */
    bool calls;   /* the content is a call of a function, in JSON */
} speakers[] = {
    {"human", "user", true, false},
    {"user", "user", false, false},
    {"gpt", "assistant", true, false},
    {"assistant", "assistant", false, false},
    {"chatgpt", "assistant", false, false},
    {"model", "assistant", false, false},
    {"bot", "assistant", false, false},
    {"bing", "assistant", false, false},
    {"bard", "assistant", false, false},
    {"ai", "assistant", false, false},
    {"system", "system", false, false},
    {"tool", "tool", false, false},
    {"observation", "tool", true, false},
    {"function", "tool", true, false},
    {"function_response", "tool", true, false},
    {"tool_response", "tool", true, false},
    {"function_call", "assistant", true, true},
    {"tool_call", "assistant", true, true},
};

static const struct speaker *speaker_of(const char *word)
{
    for (size_t i = 0; i < AH_LENGTH(speakers); i++)
        if (strcasecmp(speakers[i].word, word) == 0)
            return &speakers[i];
    return NULL;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Appends {"type": "function", "function": call} to the turn's calls; the turn then owns the call. */
static int call_add(const struct turn *turn, cJSON *call)
{
    cJSON *calls = member(turn, "tool_calls"), *made = cJSON_CreateObject();
    if (!cJSON_IsArray(calls)) {
        calls = cJSON_CreateArray();
        int status = put(turn, "tool_calls", calls);
        if (status != AH_OK) {
            cJSON_Delete(call);
            cJSON_Delete(made);
            return status;
        }
    }
    if (!made || !cJSON_AddStringToObject(made, "type", "function") || !cJSON_AddItemToObject(made, "function", call)) {
        cJSON_Delete(call);
        cJSON_Delete(made);
        return no_memory();
    }
    return cJSON_AddItemToArray(calls, made) ? AH_OK : no_memory();
}

/* Reads a call, an object with a function's name, or a list of calls, from JSON text. */
static int calls_read(const struct turn *turn, const char *text)
{
    static const char expected[] = "calls of functions in JSON, objects with name and arguments";
    cJSON *tree;
    int status = ah__json_value_parse(&tree, text, strlen(text), "call");
    if (status == AH_EINPUT)
        return fail(turn, "content", expected);
    AH_TRY(status);
    while (status == AH_OK && cJSON_IsArray(tree) && tree->child) {
        cJSON *call = cJSON_DetachItemViaPointer(tree, tree->child);
        bool named = cJSON_IsString(cJSON_GetObjectItemCaseSensitive(call, "name"));
        status = named ? call_add(turn, call) : fail(turn, "content", expected);
        if (!named)
            cJSON_Delete(call);
    }
    if (cJSON_IsArray(tree))
        cJSON_Delete(tree);
    else if (cJSON_IsString(cJSON_GetObjectItemCaseSensitive(tree, "name")))
        status = call_add(turn, tree);
    else {
        cJSON_Delete(tree);
        status = fail(turn, "content", expected);
    }
    return status;
}

/* Takes the content as calls and empties it. */
static int calls_take(const struct turn *turn)
{
    const cJSON *content = member(turn, "content");
    if (!cJSON_IsString(content))
        return fail(turn, "content", "calls of functions in JSON");
    AH_TRY(calls_read(turn, content->valuestring));
    return put(turn, "content", cJSON_CreateString(""));
}

/* Takes the single call of OpenAI's older data, from before there were tools. */
static int call_take(const struct turn *turn)
{
    if (!cJSON_IsObject(member(turn, "function_call")) || ah__form_is_filled(member(turn, "tool_calls")))
        return AH_OK;
    return call_add(turn, cJSON_DetachItemFromObjectCaseSensitive(turn->item, "function_call"));
}

/* ---- content ----------------------------------------------------------------------------------------------------- */

static const char *part_text(const cJSON *part, const char *key)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(part, key));
}

/* Returns true if the parts are a list of LLaMA-Factory's {"type", "value"}. */
static bool are_valued(const cJSON *parts)
{
    for (const cJSON *part = cJSON_IsArray(parts) ? parts->child : NULL; part; part = part->next) {
        const char *type = part_text(part, "type");
        bool known =
            type && (strcmp(type, "text") == 0 || strcmp(type, "reasoning") == 0 || strcmp(type, "tool_call") == 0);
        if (!known || !part_text(part, "value"))
            return false;
    }
    return cJSON_IsArray(parts) && parts->child;
}

/* Joins texts; moves reasoning and calls into members of their own. */
static int parts_take(const struct turn *turn)
{
    struct ah_buf texts[2] = {{0}, {0}}; /* content, reasoning */
    cJSON *parts = cJSON_DetachItemFromObjectCaseSensitive(turn->item, "content");
    int status = AH_OK;
    for (const cJSON *part = parts->child; part && status == AH_OK; part = part->next) {
        const char *type = part_text(part, "type"), *value = part_text(part, "value");
        if (*type == 't' && type[1] == 'o')
            status = calls_read(turn, value);
        else
            ah__buf_add(&texts[*type == 'r'], value, strlen(value));
    }
    for (int i = 0; i < 2; i++)
        status = status == AH_OK ? texts[i].status : status;
    if (status == AH_OK)
        status = put(turn, "content", cJSON_CreateString(texts[0].text ? texts[0].text : ""));
    if (status == AH_OK && texts[1].text)
        status = put(turn, "reasoning_content", cJSON_CreateString(texts[1].text));
    ah__buf_free(&texts[0]);
    ah__buf_free(&texts[1]);
    cJSON_Delete(parts);
    return status;
}

/* ---- a turn ------------------------------------------------------------------------------------------------------ */

/* Renames the member `from` to `to`, unless there is a `to`. */
static int rename_member(const struct turn *turn, const char *from, const char *to)
{
    const cJSON *there = member(turn, to);
    if ((there && !cJSON_IsNull(there)) || !member(turn, from))
        return AH_OK;
    return put(turn, to, cJSON_DetachItemFromObjectCaseSensitive(turn->item, from));
}

/* Checks that the message has content or calls, and no key that is refused. */
static int turn_check(const struct turn *turn, bool from)
{
    const cJSON *content = member(turn, "content");
    for (size_t i = 0; i < ah__form_keys_count; i++) {
        const struct ah_form_key *known = &ah__form_keys[i];
        if (known->where == AH_KEYS_TURNS && known->use == AH_KEY_REFUSED &&
            ah__form_is_filled(member(turn, known->key)))
            return fail(turn, known->key, "none: a message is learned whole or not at all");
    }
    if (cJSON_IsString(content) || cJSON_IsArray(content) || cJSON_IsNull(content) || member(turn, "tool_calls"))
        return AH_OK;
    return from ? fail(turn, "value", "a string") : fail(turn, "content", "a string or a list of parts");
}

static int turn_normal(const struct turn *turn)
{
    const cJSON *role = member(turn, "role");
    const bool from = !role || (cJSON_IsNull(role) && member(turn, "from"));
    const cJSON *word = member(turn, from ? "from" : "role");
    const bool valued = member(turn, "from") || member(turn, "value"); /* ShareGPT's keys, not OpenAI's */
    if (!cJSON_IsString(word))
        return from && valued ? fail(turn, "from", "a string, like human or gpt") : fail(turn, "role", "a string");
    const struct speaker *speaker = speaker_of(word->valuestring);
    if (from && !speaker)
        return fail(turn, "from", "human, gpt, system, tool or another word for one of them");
    AH_TRY(rename_member(turn, "value", "content"));
    if (speaker && (from || speaker->in_role)) {
        AH_TRY(put(turn, "role", cJSON_CreateString(speaker->role)));
        if (from)
            cJSON_DeleteItemFromObjectCaseSensitive(turn->item, "from");
    }
    if (are_valued(member(turn, "content")))
        AH_TRY(parts_take(turn));
    if (speaker && speaker->calls)
        AH_TRY(calls_take(turn));
    AH_TRY(call_take(turn));
    return turn_check(turn, from);
}

int ah__form_message_add(cJSON *list, const char *role, const char *content)
{
    cJSON *item = cJSON_CreateObject();
    if (item && cJSON_AddStringToObject(item, "role", role) && cJSON_AddStringToObject(item, "content", content) &&
        cJSON_AddItemToArray(list, item))
        return AH_OK;
    cJSON_Delete(item);
    return no_memory();
}

void ah__form_items_move(cJSON *to, cJSON *from)
{
    while (from->child)
        cJSON_AddItemToArray(to, cJSON_DetachItemViaPointer(from, from->child));
}

static bool is_both(const cJSON *item)
{
    return cJSON_IsString(cJSON_GetObjectItemCaseSensitive(item, "human")) &&
           cJSON_IsString(cJSON_GetObjectItemCaseSensitive(item, "assistant"));
}

/* Splits ms-swift's turns, each a question and its answer, in two; the answer keeps the other keys. */
static int both_split(cJSON *list)
{
    cJSON *turns = cJSON_CreateArray();
    int status = turns ? AH_OK : no_memory();
    if (status == AH_OK)
        ah__form_items_move(turns, list);
    while (status == AH_OK && turns->child) {
        cJSON *item = cJSON_DetachItemViaPointer(turns, turns->child);
        const bool both = is_both(item);
        cJSON *answer = both ? cJSON_DetachItemFromObjectCaseSensitive(item, "assistant") : NULL;
        cJSON *question = both ? cJSON_DetachItemFromObjectCaseSensitive(item, "human") : NULL;
        status = both ? ah__form_message_add(list, "user", question->valuestring) : AH_OK;
        cJSON_AddItemToArray(list, item);
        cJSON_Delete(question);
        if (!both)
            continue;
        const struct turn turn = {.item = item};
        const int put_status = put(&turn, "content", answer);
        status = status == AH_OK ? put_status : status;
        if (status == AH_OK)
            status = put(&turn, "role", cJSON_CreateString("assistant"));
    }
    cJSON_Delete(turns);
    return status;
}

int ah__form_turns(struct ah_form_record *record, const char *key, cJSON *list)
{
    int index = 0;
    bool both = false;
    for (const cJSON *item = list->child; item && !both; item = item->next)
        both = is_both(item);
    if (both)
        AH_TRY(both_split(list));
    for (cJSON *item = list->child; item; item = item->next, index++) {
        const struct turn turn = {record, key, item, index};
        if (!cJSON_IsObject(item))
            return fail(&turn, "", "a message, with role and content");
        AH_TRY(turn_normal(&turn));
    }
    return AH_OK;
}
