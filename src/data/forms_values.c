/* The values of a record, and notes of those that are not read. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/forms_internal.h"

int ah__form_text(const char **out, size_t *length, const struct ah_form_record *record, const char *key)
{
    AH_TRY(ah__json_string(out, &record->json, key));
    *length = strlen(*out);
    return AH_OK;
}

/* Gets a text, "" if it is missing or null. */
static int text_or_none(const char **out, const struct ah_form_record *record, const char *key)
{
    *out = "";
    return ah__json_has(&record->json, key) ? ah__json_string(out, &record->json, key) : AH_OK;
}

int ah__form_extra_add(struct ah_form_record *record, const char *key, size_t key_length, const char *value,
                       size_t value_length)
{
    struct ah_form_store *store = record->store;
    struct ah_document *out = record->out;
    AH_TRY(ah__grow(&store->extras, &store->extra_room, out->extra_count + 1, sizeof *store->extras));
    store->extras[out->extra_count++] = (struct ah_form_extra){key, key_length, value, value_length};
    out->extras = store->extras;
    return AH_OK;
}

int ah__form_unread(struct ah_form_record *record, const char *key)
{
    return ah__form_extra_add(record, key, strlen(key), "true", strlen("true"));
}

int ah__form_text_of(const char **out, struct ah_form_record *record, const char *key, const char *other)
{
    const char *text;
    AH_TRY(text_or_none(out, record, key));
    AH_TRY(text_or_none(&text, record, other));
    if (!**out)
        *out = text;
    else if (*text && strcmp(*out, text) != 0)
        return ah__form_unread(record, other);
    return AH_OK;
}

cJSON *ah__form_member(const struct ah_form_record *record, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(record->json.node, key);
}

/* Describes an unexpected value in few bytes; "nothing" for null. */
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

bool ah__form_is_filled(const cJSON *value)
{
    if (cJSON_IsString(value))
        return *value->valuestring;
    return value && !cJSON_IsNull(value) && !((cJSON_IsArray(value) || cJSON_IsObject(value)) && !value->child);
}
