#include "io/forms.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/format.h"
#include "base/json_python.h"
#include "io/forms_internal.h"

enum { KEYS_MOST = 6, LISTED_BYTES = 120, LABEL_IGNORED = -100 };

const char *const ah__data_format_words[AH_DATA_FORMAT_COUNT] = {
#define FORMAT_WORD(id, word) word,
    AH_DATA_FORMAT_TABLE(FORMAT_WORD)
#undef FORMAT_WORD
};

static int words_fail(const char *word)
{
    struct ah_buf list = {0};
    for (int i = 0; i < AH_DATA_FORMAT_COUNT; i++)
        ah__buf_printf(&list, "%s%s",
                       i == 0                         ? ""
                       : i + 1 < AH_DATA_FORMAT_COUNT ? ", "
                                                      : " or ",
                       ah__data_format_words[i]);
    int status = list.status == AH_OK ? ah__fail(AH_EINPUT, "data_format: found '%.40s', expected %s", word, list.text)
                                      : list.status;
    ah__buf_free(&list);
    return status;
}

int ah__data_format_parse(enum ah_data_format *out, const char *word)
{
    static const struct {
        const char *word;
        enum ah_data_format format;
    } others[] = {{"openai", AH_DATA_MESSAGES}, {"sharegpt", AH_DATA_CONVERSATIONS}};
    *out = AH_DATA_AUTO;
    for (int i = 0; word && i < AH_DATA_FORMAT_COUNT; i++)
        if (strcmp(ah__data_format_words[i], word) == 0) {
            *out = (enum ah_data_format)i;
            return AH_OK;
        }
    for (size_t i = 0; word && i < AH_LENGTH(others); i++)
        if (strcmp(others[i].word, word) == 0) {
            *out = others[i].format;
            return AH_OK;
        }
    return word ? words_fail(word) : AH_OK;
}

void ah__form_store_free(struct ah_form_store *store)
{
    cJSON_Delete(store->tree);
    cJSON_Delete(store->messages);
    ah__buf_free(&store->layout);
    ah__free(store->ids);
    ah__free(store->learned);
    *store = (struct ah_form_store){0};
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

int ah__form_text(const char **out, size_t *length, const struct ah_form_record *record, const char *key)
{
    AH_TRY(ah__json_string(out, &record->json, key));
    *length = strlen(*out);
    return AH_OK;
}

/* "" where it is missing or null. */
int ah__form_text_or_none(const char **out, const struct ah_form_record *record, const char *key)
{
    *out = "";
    return ah__json_has(&record->json, key) ? ah__json_string(out, &record->json, key) : AH_OK;
}

cJSON *ah__form_member(const struct ah_form_record *record, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(record->json.node, key);
}

/* What stands where something else was expected, in few bytes; null: nothing does. */
const char *ah__form_found(char text[AH_FORM_FOUND_BYTES], const cJSON *value)
{
    if (!value)
        return "nothing";
    if (cJSON_IsString(value))
        snprintf(text, AH_FORM_FOUND_BYTES, "'%.40s'", value->valuestring);
    else
        snprintf(text, AH_FORM_FOUND_BYTES, "%.40s",
                 cJSON_IsArray(value)    ? "a list"
                 : cJSON_IsObject(value) ? "an object"
                 : cJSON_IsNull(value)   ? "null"
                 : cJSON_IsBool(value)   ? (cJSON_IsTrue(value) ? "true" : "false")
                 : value->valuestring    ? value->valuestring
                                         : "a number");
    return text;
}

int ah__form_any_list(cJSON **out, const struct ah_form_record *record, const char *key)
{
    *out = ah__form_member(record, key);
    char text[AH_FORM_FOUND_BYTES];
    if (!cJSON_IsArray(*out))
        return ah__fail(AH_EINPUT, "%s: key '%s': found %s, expected a list", record->json.path, key,
                        ah__form_found(text, *out));
    return AH_OK;
}

int ah__form_list(cJSON **out, const struct ah_form_record *record, const char *key)
{
    AH_TRY(ah__form_any_list(out, record, key));
    return (*out)->child
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key '%s': found an empty list, expected a list", record->json.path, key);
}

/* ---- pairs and texts --------------------------------------------------------------------------------------------- */

static int pair_read(struct ah_document *out, struct ah_form_record *record)
{
    bool response = !ah__json_has(&record->json, "completion") && ah__json_has(&record->json, "response");
    const char *key = response ? "response" : "completion";
    if (cJSON_IsArray(ah__form_member(record, "prompt")))
        return ah__form_message_lists(out, record, key);
    AH_TRY(ah__form_text(&out->text, &out->length, record, "prompt"));
    out->kind = AH_DOCUMENT_PAIR;
    return ah__form_text(&out->completion, &out->completion_length, record, key);
}

static int document_read(struct ah_document *out, struct ah_form_record *record)
{
    out->kind = AH_DOCUMENT_TEXT;
    return ah__form_text(&out->text, &out->length, record, "text");
}

/* ---- ids --------------------------------------------------------------------------------------------------------- */

static int ids_fail(const struct ah_form_record *record, const char *key, size_t index, const cJSON *found,
                    const char *expected)
{
    char text[32] = "another value";
    if (cJSON_IsNumber(found))
        ah__snprintf(text, sizeof text, "%.15g", found->valuedouble);
    return ah__fail(AH_EINPUT, "%s: key '%s[%zu]': found %s, expected %s", record->json.path, key, index, text,
                    expected);
}

static bool is_integer(const cJSON *node, double least)
{
    return cJSON_IsNumber(node) && node->valuedouble >= least && node->valuedouble <= INT32_MAX &&
           node->valuedouble == (double)(int32_t)node->valuedouble;
}

/* A list as long as the ids; null: there is none. */
static int beside_get(cJSON **out, const struct ah_form_record *record, const char *key, const cJSON *ids)
{
    *out = NULL;
    if (!ah__json_has(&record->json, key))
        return AH_OK;
    AH_TRY(ah__form_list(out, record, key));
    int found = cJSON_GetArraySize(*out), expected = cJSON_GetArraySize(ids);
    return found == expected ? AH_OK
                             : ah__fail(AH_EINPUT, "%s: key '%s': found %d values, expected %d, as of input_ids",
                                        record->json.path, key, found, expected);
}

static int id_add(struct ah_document *out, const struct ah_form_record *record, size_t index, const cJSON *id,
                  const cJSON *label, const cJSON *mask)
{
    struct ah_form_store *store = record->store;
    if (!is_integer(id, 0))
        return ids_fail(record, "input_ids", index, id, "a token's id");
    if (label &&
        (!is_integer(label, LABEL_IGNORED) || (label->valueint != LABEL_IGNORED && label->valueint != id->valueint)))
        return ids_fail(record, "labels", index, label, "the id of input_ids there, or -100");
    if (mask && !(is_integer(mask, 0) && mask->valueint <= 1))
        return ids_fail(record, "attention_mask", index, mask, "0 or 1");
    if (mask && mask->valueint == 0)
        return AH_OK; /* padding */
    AH_TRY(ah__grow(&store->ids, &store->id_room, out->id_count + 1, sizeof *store->ids));
    AH_TRY(ah__grow(&store->learned, &store->learned_room, out->id_count + 1, sizeof *store->learned));
    store->ids[out->id_count] = id->valueint;
    store->learned[out->id_count++] = !label || label->valueint != LABEL_IGNORED;
    return AH_OK;
}

static int ids_read(struct ah_document *out, struct ah_form_record *record)
{
    cJSON *ids, *labels, *mask;
    AH_TRY(ah__form_list(&ids, record, "input_ids"));
    AH_TRY(beside_get(&labels, record, "labels", ids));
    AH_TRY(beside_get(&mask, record, "attention_mask", ids));
    const cJSON *label = labels ? labels->child : NULL, *seen = mask ? mask->child : NULL;
    size_t index = 0;
    for (const cJSON *id = ids->child; id; id = id->next) {
        AH_TRY(id_add(out, record, index++, id, label, seen));
        label = label ? label->next : NULL;
        seen = seen ? seen->next : NULL;
    }
    out->kind = AH_DOCUMENT_IDS;
    out->ids = record->store->ids;
    out->learned = record->store->learned;
    return AH_OK;
}

/* ---- which form -------------------------------------------------------------------------------------------------- */

#define CONVERSATIONS_KEYS "conversations", "conversation", "system", "tools"
#define ORCA_KEYS "system_prompt", "question", "query", "response", "answer"

/* A record that has the first two keys (the second may be null) is of this form, if of none before it. */
static const struct form {
    enum ah_data_format format;
    const char *first, *second;
    int (*read)(struct ah_document *out, struct ah_form_record *record);
    const char *keys[KEYS_MOST]; /* that it reads */
} forms[] = {
    {AH_DATA_MESSAGES, "messages", NULL, ah__form_messages, {"messages", "tools"}},
    {AH_DATA_CONVERSATIONS, "conversations", NULL, ah__form_conversations, {CONVERSATIONS_KEYS}},
    {AH_DATA_CONVERSATIONS, "conversation", NULL, ah__form_conversations, {CONVERSATIONS_KEYS}},
    {AH_DATA_IDS, "input_ids", NULL, ids_read, {"input_ids", "labels", "attention_mask"}},
    {AH_DATA_ALPACA, "instruction", "output", ah__form_alpaca, {"instruction", "input", "output", "system", "history"}},
    {AH_DATA_DOLLY, "instruction", "response", ah__form_dolly, {"instruction", "context", "response", "system"}},
    {AH_DATA_ORCA, "question", "response", ah__form_orca, {ORCA_KEYS}},
    {AH_DATA_ORCA, "question", "answer", ah__form_orca, {ORCA_KEYS}},
    {AH_DATA_ORCA, "query", "response", ah__form_orca, {ORCA_KEYS}},
    {AH_DATA_PAIRS, "prompt", NULL, pair_read, {"prompt", "completion", "response", "tools"}},
    {AH_DATA_PAIRS, "completion", NULL, pair_read, {"prompt", "completion", "response", "tools"}},
    {AH_DATA_DOCUMENTS, "text", NULL, document_read, {"text"}},
};

static bool is_key(const char *key, size_t length, const char *name)
{
    return name && strlen(name) == length && memcmp(name, key, length) == 0;
}

bool ah__form_has_key(const char *key, size_t length)
{
    for (size_t i = 0; i < AH_LENGTH(forms); i++)
        if (is_key(key, length, forms[i].first))
            return true;
    return false;
}

/* Which of the forms' two keys a record has, and which keys at all, for messages. */
struct found {
    bool first[AH_LENGTH(forms)], second[AH_LENGTH(forms)];
    char keys[LISTED_BYTES];
};

static void key_note(struct found *found, const char *key, size_t length, bool null)
{
    size_t used = strlen(found->keys);
    if (used + length + 16 < sizeof found->keys)
        snprintf(found->keys + used, sizeof found->keys - used, "%s%.*s%s", used ? ", " : "", (int)length, key,
                 null ? " (null)" : "");
    else if (used + 5 < sizeof found->keys && (used < 3 || strcmp(found->keys + used - 3, "...") != 0))
        snprintf(found->keys + used, sizeof found->keys - used, ", ...");
    for (size_t i = 0; i < AH_LENGTH(forms); i++) {
        found->first[i] |= !null && is_key(key, length, forms[i].first);
        found->second[i] |= !forms[i].second || is_key(key, length, forms[i].second);
    }
}

static int keys_find(struct found *found, struct ah_records *records)
{
    struct ah_json_members members = {.text = records->text, .length = records->length};
    struct ah_json_fault fault;
    *found = (struct found){0};
    for (bool more = true;;) {
        if (ah__json_members_next(&more, &members, &fault) != AH_OK)
            return ah__records_fault(records, &fault);
        if (!more)
            return AH_OK;
        key_note(found, members.key, members.key_length, members.text[members.value] == 'n');
        if (ah__json_value_end(&members.at, members.text, members.length, &fault) != AH_OK)
            return ah__records_fault(records, &fault);
    }
}

static const struct form *form_named(enum ah_data_format format)
{
    for (size_t i = 0; i < AH_LENGTH(forms); i++)
        if (forms[i].format == format)
            return &forms[i];
    return NULL;
}

static int forms_fail(struct ah_records *records, const struct found *found)
{
    return ah__fail(AH_EINPUT,
                    "%s: found an object with the keys %s, expected text; prompt and completion; messages; "
                    "conversations; instruction and output; or input_ids (--data-format text reads a file as it lies)",
                    ah__records_where(records), *found->keys ? found->keys : "of none");
}

static int form_find(const struct form **out, struct ah_records *records)
{
    struct found found;
    AH_TRY(keys_find(&found, records));
    for (size_t i = 0; i < AH_LENGTH(forms); i++) {
        if (!found.first[i] || !found.second[i])
            continue;
        *out = &forms[i];
        if (forms[i].format == AH_DATA_PAIRS && found.first[AH_LENGTH(forms) - 1])
            return ah__fail(AH_EINPUT,
                            "%s: found 'text' beside a prompt or completion, expected one of the two: --data-format "
                            "pairs or documents says which",
                            ah__records_where(records));
        return AH_OK;
    }
    return forms_fail(records, &found);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* One wanted member into the record's tree. */
static int member_take(struct ah_form_record *record, struct ah_records *records, const char *key, size_t start,
                       size_t end)
{
    struct ah_json_fault fault = {0};
    cJSON *value;
    if (ah__form_member(record, key))
        return ah__fail(AH_EINPUT, "%s: key '%s': found twice in one object, expected once", record->json.path, key);
    int status = ah__json_value_build(&value, records->text + start, end - start, &fault);
    if (status == AH_EINPUT)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %s, expected text", record->json.path, key, fault.found);
    AH_TRY(status);
    if (cJSON_AddItemToObject(record->json.node, key, value))
        return AH_OK;
    cJSON_Delete(value);
    return ah__fail(AH_ENOMEM, "out of host memory: a record's members");
}

/* The members that the form reads. */
static int tree_read(struct ah_form_record *record, struct ah_records *records, const struct form *form)
{
    struct ah_json_members members = {.text = records->text, .length = records->length};
    struct ah_json_fault fault;
    for (bool more = true;;) {
        if (ah__json_members_next(&more, &members, &fault) != AH_OK)
            return ah__records_fault(records, &fault);
        if (!more)
            return AH_OK;
        if (ah__json_value_end(&members.at, members.text, members.length, &fault) != AH_OK)
            return ah__records_fault(records, &fault);
        for (size_t i = 0; i < KEYS_MOST && form->keys[i]; i++)
            if (is_key(members.key, members.key_length, form->keys[i]))
                AH_TRY(member_take(record, records, form->keys[i], members.value, members.at));
    }
}

static int store_reset(struct ah_form_store *store)
{
    cJSON_Delete(store->tree);
    cJSON_Delete(store->messages);
    store->messages = NULL;
    store->layout.length = 0;
    store->tree = cJSON_CreateObject();
    return store->tree ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: a record");
}

int ah__form_read(struct ah_document *out, struct ah_form_store *store, struct ah_records *records,
                  enum ah_data_format format)
{
    const struct form *form = form_named(format);
    AH_TRY(store_reset(store));
    if (!form)
        AH_TRY(form_find(&form, records));
    struct ah_form_record record = {{store->tree, ah__records_where(records), ""}, store};
    *out = (struct ah_document){.form = form->format, .whole = true};
    AH_TRY(tree_read(&record, records, form));
    return form->read(out, &record);
}
