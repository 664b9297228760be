#include "data/forms.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/format.h"
#include "base/json_python.h"
#include "data/forms_internal.h"
#include "data/forms_keys.h"

enum { LISTED_BYTES = 120, LABEL_IGNORED = -100 };

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
    } others[] = {{"openai", AH_DATA_MESSAGES}, {"sharegpt", AH_DATA_CONVERSATIONS}, {"bytes", AH_DATA_TEXT}};
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
    ah__free(store->extras);
    *store = (struct ah_form_store){0};
}

/* ---- pairs and texts --------------------------------------------------------------------------------------------- */

/* Notes the keys beside a prompt that is a text: they are not read. */
static int beside_prompt(struct ah_form_record *record)
{
    static const char *const keys[] = {"system", "system_prompt", "history",
                                       "tools",  "functions",     "chat_template_kwargs"};
    for (size_t i = 0; i < AH_LENGTH(keys); i++)
        if (ah__form_is_filled(ah__form_member(record, keys[i])))
            AH_TRY(ah__form_unread(record, keys[i]));
    return AH_OK;
}

static int pair_read(struct ah_document *out, struct ah_form_record *record)
{
    bool response = !ah__json_has(&record->json, "completion") && ah__json_has(&record->json, "response");
    const char *key = response ? "response" : "completion";
    if (!response && ah__json_has(&record->json, "response"))
        AH_TRY(ah__form_unread(record, "response"));
    AH_TRY(ah__form_marks(out, record));
    if (cJSON_IsArray(ah__form_member(record, "prompt")))
        return ah__form_message_lists(out, record, key);
    AH_TRY(beside_prompt(record));
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

/* Gets a list as long as the ids; null if there is no such key. */
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

/* Lists that mark ids as not learned, or as padding (attention_mask). */
static const char *const masks[] = {"attention_mask", "completion_mask", "assistant_masks"};
struct beside {
    const cJSON *labels, *masks[AH_LENGTH(masks)];
};

static int beside_begin(struct beside *out, const struct ah_form_record *record, const cJSON *ids)
{
    cJSON *list;
    AH_TRY(beside_get(&list, record, "labels", ids));
    out->labels = list ? list->child : NULL;
    for (size_t i = 0; i < AH_LENGTH(masks); i++) {
        AH_TRY(beside_get(&list, record, masks[i], ids));
        out->masks[i] = list ? list->child : NULL;
    }
    return AH_OK;
}

static void beside_next(struct beside *beside)
{
    beside->labels = beside->labels ? beside->labels->next : NULL;
    for (size_t i = 0; i < AH_LENGTH(masks); i++)
        beside->masks[i] = beside->masks[i] ? beside->masks[i]->next : NULL;
}

static int id_add(struct ah_document *out, const struct ah_form_record *record, size_t index, const cJSON *id,
                  const struct beside *beside)
{
    struct ah_form_store *store = record->store;
    const cJSON *label = beside->labels;
    bool learned = !label || label->valueint != LABEL_IGNORED;
    if (!is_integer(id, 0))
        return ids_fail(record, "input_ids", index, id, "a token's id");
    if (label &&
        (!is_integer(label, LABEL_IGNORED) || (label->valueint != LABEL_IGNORED && label->valueint != id->valueint)))
        return ids_fail(record, "labels", index, label, "the id of input_ids there, or -100");
    for (size_t i = 0; i < AH_LENGTH(masks); i++) {
        const cJSON *mask = beside->masks[i];
        if (mask && !cJSON_IsBool(mask) && !(is_integer(mask, 0) && mask->valueint <= 1))
            return ids_fail(record, masks[i], index, mask, "0, 1, false or true");
        bool keeps = !mask || cJSON_IsTrue(mask) || (cJSON_IsNumber(mask) && mask->valueint);
        if (!keeps && i == 0)
            return AH_OK; /* padding */
        learned = learned && keeps;
    }
    AH_TRY(ah__grow(&store->ids, &store->id_room, out->id_count + 1, sizeof *store->ids));
    AH_TRY(ah__grow(&store->learned, &store->learned_room, out->id_count + 1, sizeof *store->learned));
    store->ids[out->id_count] = id->valueint;
    store->learned[out->id_count++] = learned;
    return AH_OK;
}

static int ids_read(struct ah_document *out, struct ah_form_record *record)
{
    cJSON *ids;
    struct beside beside;
    AH_TRY(ah__form_list(&ids, record, "input_ids"));
    AH_TRY(beside_begin(&beside, record, ids));
    size_t index = 0;
    for (const cJSON *id = ids->child; id; id = id->next, beside_next(&beside))
        AH_TRY(id_add(out, record, index++, id, &beside));
    out->kind = AH_DOCUMENT_IDS;
    out->ids = record->store->ids;
    out->learned = record->store->learned;
    return AH_OK;
}

/* ---- which form -------------------------------------------------------------------------------------------------- */

/* Forms, in order of preference: a record has the first form whose keys it has (the second may be null). */
static const struct form {
    enum ah_data_format format;
    const char *first, *second;
    int (*read)(struct ah_document *out, struct ah_form_record *record);
} forms[] = {
    {AH_DATA_MESSAGES, "messages", NULL, ah__form_messages},
    {AH_DATA_CONVERSATIONS, "conversations", NULL, ah__form_conversations},
    {AH_DATA_CONVERSATIONS, "conversation", NULL, ah__form_conversations},
    {AH_DATA_IDS, "input_ids", NULL, ids_read},
    {AH_DATA_ALPACA, "instruction", "output", ah__form_alpaca},
    {AH_DATA_DOLLY, "instruction", "response", ah__form_dolly},
    {AH_DATA_ORCA, "question", "response", ah__form_orca},
    {AH_DATA_ORCA, "question", "answer", ah__form_orca},
    {AH_DATA_ORCA, "query", "response", ah__form_orca},
    {AH_DATA_PAIRS, "prompt", NULL, pair_read},
    {AH_DATA_PAIRS, "completion", NULL, pair_read},
    {AH_DATA_DOCUMENTS, "text", NULL, document_read},
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

/* Keys found in a record: the forms' two keys, and all keys, for messages. */
struct found {
    bool first[AH_LENGTH(forms)], second[AH_LENGTH(forms)];
    char keys[LISTED_BYTES];
    const char *refused; /* a key of several answers to choose from; "": no such key */
};

static void key_note(struct found *found, const char *key, size_t length, bool null)
{
    size_t used = strlen(found->keys);
    if (used + length + 16 < sizeof found->keys)
        snprintf(found->keys + used, sizeof found->keys - used, "%s%.*s%s", used ? ", " : "", (int)length, key,
                 null ? " (null)" : "");
    else if (used + 5 < sizeof found->keys && (used < 3 || strcmp(found->keys + used - 3, "...") != 0))
        snprintf(found->keys + used, sizeof found->keys - used, ", ...");
    const struct ah_form_key *known = ah__form_key_find(AH_KEYS_ANSWERS, key, length);
    if (known && known->use == AH_KEY_REFUSED && !null)
        found->refused = known->key;
    for (size_t i = 0; i < AH_LENGTH(forms); i++) {
        found->first[i] |= !null && is_key(key, length, forms[i].first);
        found->second[i] |= !forms[i].second || is_key(key, length, forms[i].second);
    }
}

static int keys_find(struct found *found, struct ah_records *records)
{
    struct ah_json_members members = {.text = records->text, .length = records->length};
    struct ah_json_fault fault;
    *found = (struct found){.refused = ""};
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

/* Returns the bit of forms_keys.h for a format; 0: no record has this format. */
static unsigned form_bit(enum ah_data_format format)
{
    static const unsigned bits[AH_DATA_FORMAT_COUNT] = {
        [AH_DATA_MESSAGES] = AH_KEYS_MESSAGES, [AH_DATA_CONVERSATIONS] = AH_KEYS_CONVERSATIONS,
        [AH_DATA_ALPACA] = AH_KEYS_ALPACA,     [AH_DATA_DOLLY] = AH_KEYS_DOLLY,
        [AH_DATA_ORCA] = AH_KEYS_ORCA,         [AH_DATA_PAIRS] = AH_KEYS_PAIRS,
        [AH_DATA_IDS] = AH_KEYS_IDS,           [AH_DATA_DOCUMENTS] = AH_KEYS_DOCUMENTS,
    };
    return bits[format];
}

static const struct form *form_named(enum ah_data_format format)
{
    for (size_t i = 0; i < AH_LENGTH(forms); i++)
        if (forms[i].format == format)
            return &forms[i];
    return NULL;
}

static int preference_fail(const char *where, const char *key)
{
    return ah__fail(AH_EINPUT,
                    "%s: key '%s': found answers to choose between, expected one answer to imitate: a record with the "
                    "better answer alone, as completion, output or last message, is learned",
                    where, key);
}

static int forms_fail(struct ah_records *records, const struct found *found)
{
    if (*found->refused)
        return preference_fail(ah__records_where(records), found->refused);
    return ah__fail(AH_EINPUT,
                    "%s: found an object with the keys %s, expected text; prompt and completion; messages; "
                    "conversations; instruction and output; or input_ids%s",
                    ah__records_where(records), *found->keys ? found->keys : "of none",
                    records->kind == AH_RECORDS_ALONE ? "" : " (--data-format text reads a file as it lies)");
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

/* Adds one member to the record's tree. */
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

/* Returns true if a value, as JSON text, can say anything to learn or to mark: a number cannot. */
bool ah__form_says(const char *value, size_t length)
{
    if (*value == '"')
        return length > 2;
    if (*value != '{' && *value != '[')
        return *value == 't' || *value == 'f';
    return memchr(value, '"', length) || memmem(value, length, "true", 4) || memmem(value, length, "false", 5);
}

static int member_read(struct ah_form_record *record, struct ah_records *records, unsigned where,
                       const struct ah_json_members *members)
{
    const char *value = members->text + members->value;
    const size_t length = members->at - members->value;
    const struct ah_form_key *known = ah__form_key_find(where, members->key, members->key_length);
    if (!known)
        return ah__form_extra_add(record, members->key, members->key_length, value, length);
    if (known->use == AH_KEY_PASSED)
        return AH_OK;
    if (known->use == AH_KEY_REFUSED)
        return ah__form_says(value, length) ? preference_fail(record->json.path, known->key) : AH_OK;
    return member_take(record, records, known->key, members->value, members->at);
}

/* Reads the members that the form knows and notes the others. */
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
        AH_TRY(member_read(record, records, form_bit(form->format), &members));
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
    struct ah_form_record record = {{.node = store->tree, .path = ah__records_where(records), .where = ""}, store, out};
    *out = (struct ah_document){.form = form->format, .whole = true};
    AH_TRY(tree_read(&record, records, form));
    return form->read(out, &record);
}
