#include "tokenizer/json_parts.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

int ah__part_read(struct ah_subword_recipe *recipe, const struct ah_json *json, const struct ah_part_kind *kinds,
                  size_t count)
{
    const char *type;
    AH_TRY(ah__json_string(&type, json, "type"));
    for (size_t i = 0; i < count; i++)
        if (strcmp(type, kinds[i].type) == 0) {
            AH_TRY(ah__json_only(json, kinds[i].keys));
            return kinds[i].read(recipe, json);
        }
    struct ah_buf known = {0};
    for (size_t i = 0; i < count; i++)
        ah__buf_printf(&known, "%s%s", i ? ", " : "", kinds[i].type);
    int status = known.status;
    if (status == AH_OK)
        status = ah__fail(AH_EINPUT, "%s: key '%s.type': found '%.40s', expected one of: %s", json->path, json->where,
                          type, known.text);
    ah__buf_free(&known);
    return status;
}

/* Reads each object of an array. The path of an object for messages, such as "decoders[1]", is kept in its node, as in
 * base/json.c, and freed with the tree. */
int ah__json_each(struct ah_subword_recipe *recipe, const struct ah_json *json, const char *key,
                  int (*read)(struct ah_subword_recipe *recipe, const struct ah_json *json))
{
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(json->node, key);
    const char *dot = json->where[0] ? "." : "";
    int index = 0;
    if (!cJSON_IsArray(array))
        return ah__fail(AH_EINPUT, "%s: key '%s%s%s': found no array, expected one", json->path, json->where, dot, key);
    for (cJSON *child = array->child; child; child = child->next, index++) {
        if (!cJSON_IsObject(child))
            return ah__fail(AH_EINPUT, "%s: key '%s%s%s[%d]': found no object, expected one", json->path, json->where,
                            dot, key, index);
        if (!child->valuestring)
            AH_TRY(ah__sprintf(&child->valuestring, "%s%s%s[%d]", json->where, dot, key, index));
        struct ah_json element = {.node = child, .path = json->path, .where = child->valuestring};
        AH_TRY(read(recipe, &element));
    }
    return AH_OK;
}
