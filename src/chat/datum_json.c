/* Makes values of JSON trees. */
#include "chat/datum_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/utf8.h"

static int text_of(struct ah_datum *out, struct ah_heap *heap, const char *text)
{
    size_t length = strlen(text);
    if (!ah__utf8_good(text, length))
        return ah__fail(AH_EINPUT, "found bytes that are no UTF-8, expected text");
    return ah__datum_copy(out, heap, text, length);
}

/* Makes an INT if the number's text is a whole number. Trees that were not parsed have no text; there the value
 * decides. */
static int number_of(struct ah_datum *out, const cJSON *node)
{
    const char *text = node->valuestring;
    double value = node->valuedouble;
    bool fits = value > -0x1p53 && value < 0x1p53;
    *out = ah__datum_real(value);
    if (!text && fits && value == (double)(int64_t)value)
        *out = ah__datum_int((int64_t)value);
    if (!text || text[strspn(text, "-0123456789")])
        return AH_OK;
    errno = 0;
    *out = ah__datum_int(strtoll(text, NULL, 10));
    return errno ? ah__fail(AH_EINPUT, "found %.40s, expected a whole number that 64 bits hold", text) : AH_OK;
}

static int children_of(struct ah_datum *out, struct ah_heap *heap, const cJSON *node)
{
    bool list = cJSON_IsArray(node);
    AH_TRY(list ? ah__datum_list(out, heap, AH_DATUM_LIST) : ah__datum_dict(out, heap, AH_DATUM_DICT));
    for (const cJSON *child = node->child; child; child = child->next) {
        struct ah_datum key, value;
        AH_TRY(ah__datum_from_json(&value, heap, child));
        if (list) {
            AH_TRY(ah__datum_append(out, heap, value));
            continue;
        }
        AH_TRY(text_of(&key, heap, child->string));
        AH_TRY(ah__datum_set(out, heap, key, value));
    }
    return AH_OK;
}

int ah__datum_from_json(struct ah_datum *out, struct ah_heap *heap, const cJSON *node)
{
    *out = ah__datum_none();
    if (cJSON_IsObject(node) || cJSON_IsArray(node))
        return children_of(out, heap, node);
    if (cJSON_IsString(node))
        return text_of(out, heap, node->valuestring);
    if (cJSON_IsNumber(node))
        return number_of(out, node);
    if (cJSON_IsBool(node))
        *out = ah__datum_bool(cJSON_IsTrue(node));
    return AH_OK;
}
