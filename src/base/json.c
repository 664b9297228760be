#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/format.h"
#include "base/json_scan.h"

enum { JSON_FILE_BYTES = 64 << 20, FOUND_BYTES = 96 };

static const double integer_limit = 9007199254740992.0; /* 2^53: beyond it a double skips integers */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Set when an allocation failed, which cJSON reports like a syntax error. */
static _Thread_local bool json_out_of_memory;

static void *json_malloc(size_t size)
{
    void *memory;
    if (ah__new(&memory, size, 1) == AH_OK)
        return memory;
    json_out_of_memory = true;
    return NULL;
}

/* Trees are built by callers with cJSON's own functions, so the hooks are set before main. The memory is malloc's
 * either way. */
__attribute__((constructor)) static void json_hooks_set(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){json_malloc, free});
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int check_unique(const cJSON *object, const char *path)
{
    size_t count = 0, room = 0;
    const char **names = NULL;
    int status = AH_OK;
    for (const cJSON *child = object->child; child && status == AH_OK; child = child->next) {
        status = ah__grow(&names, &room, count + 1, sizeof *names);
        if (status == AH_OK)
            names[count++] = child->string;
    }
    if (count > 1 && status == AH_OK)
        qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count && status == AH_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            status = ah__fail(AH_EINPUT, "%s: key '%s': found twice in one object, expected once", path, names[i]);
    ah__free(names);
    return status;
}

/* Refuses duplicate keys, which cJSON keeps: a reader of the first and a reader of the last would disagree. */
static int check_tree(const cJSON *node, const char *path)
{
    if (cJSON_IsObject(node))
        AH_TRY(check_unique(node, path));
    for (const cJSON *child = node->child; child; child = child->next)
        if (child->child)
            AH_TRY(check_tree(child, path));
    return AH_OK;
}

static int parse_tree(cJSON **out, const char *text, size_t length, const char *path)
{
    const char *end = text;
    const char *zero = memchr(text, 0, length);
    if (zero)
        return ah__json_fail_at(path, text, zero, "a zero byte");
    AH_TRY(ah__json_scan(text, length, path));
    json_out_of_memory = false;
    locale_t before = ah__locale_begin();
    cJSON *tree = length ? cJSON_ParseWithLengthOpts(text, length, &end, 0) : NULL;
    ah__locale_end(before);
    if (!tree && json_out_of_memory)
        return AH_ENOMEM;
    if (!tree)
        return ah__json_fail_at(path, text, end,
                                end + 1 < text + length ? "a syntax error" : "a syntax error at the end of the text");
    while (end < text + length && strchr(" \t\r\n", *end))
        end++;
    int status = AH_OK;
    if (end < text + length)
        status = ah__json_fail_at(path, text, end, "more text after the object");
    else if (!cJSON_IsObject(tree))
        status = ah__fail(AH_EINPUT, "%s: found no object at the root, expected one", path);
    else
        status = check_tree(tree, path);
    if (status == AH_OK)
        *out = tree;
    else
        cJSON_Delete(tree);
    return status;
}

int ah__json_parse(struct ah_json *out, const char *text, size_t length, const char *path)
{
    cJSON *tree;
    AH_TRY(parse_tree(&tree, text, length, path));
    *out = (struct ah_json){.node = tree, .path = path, .where = ""};
    return AH_OK;
}

int ah__json_load(struct ah_json *out, const char *path)
{
    char *text;
    size_t length;
    AH_TRY(ah__file_read(&text, &length, path, JSON_FILE_BYTES));
    int status = ah__json_parse(out, text, length, path);
    ah__free(text);
    return status;
}

int ah__json_load_in(struct ah_json *out, const char *folder, const char *name)
{
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/%s", folder, name));
    int status = ah__json_load(out, path);
    if (status == AH_OK)
        out->own = path;
    else
        ah__free(path);
    return status;
}

int ah__json_load_any(struct ah_json *out, const char *folder, const char *name)
{
    *out = (struct ah_json){0};
    return folder && ah__path_has(folder, name) ? ah__json_load_in(out, folder, name) : AH_OK;
}

void ah__json_free(struct ah_json *json)
{
    cJSON_Delete(json->node);
    ah__free(json->own);
    *json = (struct ah_json){0};
}

/* ---- getters ----------------------------------------------------------------------------------------------------- */

/* Describes the JSON value for error messages. */
static const char *found_text(char *room, const cJSON *node)
{
    if (cJSON_IsString(node))
        snprintf(room, FOUND_BYTES, "'%.80s'", node->valuestring);
    else if (cJSON_IsNumber(node))
        ah__snprintf(room, FOUND_BYTES, "%.15g", node->valuedouble);
    else if (cJSON_IsBool(node))
        snprintf(room, FOUND_BYTES, "%s", cJSON_IsTrue(node) ? "true" : "false");
    else
        snprintf(room, FOUND_BYTES, "%s",
                 !node                  ? "nothing"
                 : cJSON_IsObject(node) ? "an object"
                 : cJSON_IsArray(node)  ? "an array"
                                        : "null");
    return room;
}

static const char *dot(const struct ah_json *json)
{
    return json->where[0] ? "." : "";
}

static int fail_found(const struct ah_json *json, const char *key, const cJSON *node, const char *expected)
{
    char found[FOUND_BYTES];
    return ah__fail(AH_EINPUT, "%s: key '%s%s%s': found %s, expected %s", json->path, json->where, dot(json), key,
                    found_text(found, node), expected);
}

static cJSON *member(const struct ah_json *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json->node, key);
}

static int fail_int(const struct ah_json *json, const char *key, const cJSON *node, int64_t min, int64_t max)
{
    char expected[FOUND_BYTES];
    if (min == INT64_MIN && max == INT64_MAX)
        snprintf(expected, sizeof expected, "an integer");
    else if (max == INT64_MAX)
        snprintf(expected, sizeof expected, "an integer of at least %lld", (long long)min);
    else
        snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)min, (long long)max);
    return fail_found(json, key, node, expected);
}

static bool int_get(int64_t *out, const cJSON *node, int64_t min, int64_t max)
{
    double value = cJSON_IsNumber(node) ? node->valuedouble : NAN;
    bool exact = fabs(value) <= integer_limit && floor(value) == value;
    if (!exact || (int64_t)value < min || (int64_t)value > max)
        return false;
    *out = (int64_t)value;
    return true;
}

int ah__json_int(int64_t *out, const struct ah_json *json, const char *key, int64_t min, int64_t max)
{
    const cJSON *node = member(json, key);
    return int_get(out, node, min, max) ? AH_OK : fail_int(json, key, node, min, max);
}

int ah__json_ints(int64_t *out, size_t *count, size_t most, const struct ah_json *json, const char *key, int64_t min,
                  int64_t max)
{
    char expected[FOUND_BYTES];
    const cJSON *node = member(json, key), *child = cJSON_IsArray(node) ? node->child : NULL;
    size_t done = 0;
    for (; child && done < most; child = child->next, done++) {
        if (int_get(&out[done], child, min, max))
            continue;
        snprintf(expected, sizeof expected, "%s[%zu]", key, done);
        return fail_int(json, expected, child, min, max);
    }
    if (!cJSON_IsArray(node) || child) {
        snprintf(expected, sizeof expected, "an array of at most %zu integers", most);
        return fail_found(json, key, node, expected);
    }
    *count = done;
    return AH_OK;
}

int ah__json_double(double *out, const struct ah_json *json, const char *key, double min, double max)
{
    const cJSON *node = member(json, key);
    if (cJSON_IsNumber(node) && isfinite(node->valuedouble) && node->valuedouble >= min && node->valuedouble <= max) {
        *out = node->valuedouble;
        return AH_OK;
    }
    char expected[FOUND_BYTES];
    bool any_max = isinf(max) || max >= 1.7e308, any_min = isinf(min) || min <= -1.7e308;
    if (any_max && any_min)
        snprintf(expected, sizeof expected, "a finite number");
    else if (any_max)
        ah__snprintf(expected, sizeof expected, "a number of at least %g", min);
    else
        ah__snprintf(expected, sizeof expected, "a number from %g to %g", min, max);
    return fail_found(json, key, node, expected);
}

int ah__json_bool(bool *out, const struct ah_json *json, const char *key)
{
    const cJSON *node = member(json, key);
    if (!cJSON_IsBool(node))
        return fail_found(json, key, node, "true or false");
    *out = cJSON_IsTrue(node);
    return AH_OK;
}

int ah__json_string(const char **out, const struct ah_json *json, const char *key)
{
    const cJSON *node = member(json, key);
    if (!cJSON_IsString(node))
        return fail_found(json, key, node, "a string");
    *out = node->valuestring;
    return AH_OK;
}

int ah__json_hash(uint64_t *out, const struct ah_json *json, const char *key)
{
    const cJSON *node = member(json, key);
    const char *text = cJSON_IsString(node) ? node->valuestring : "";
    uint64_t value = 0;
    size_t i = 0;
    for (; text[i]; i++) {
        const char *digits = "0123456789abcdef", *digit = strchr(digits, text[i]);
        if (!digit || i == 16)
            return fail_found(json, key, node, "16 hexadecimal digits");
        value = value << 4 | (uint64_t)(digit - digits);
    }
    if (i != 16)
        return fail_found(json, key, node, "16 hexadecimal digits");
    *out = value;
    return AH_OK;
}

/* Stores the path of a member object in its valuestring, which cJSON does not use for objects but frees with the
 * node. */
int ah__json_object(struct ah_json *out, const struct ah_json *json, const char *key)
{
    cJSON *node = member(json, key);
    if (!cJSON_IsObject(node))
        return fail_found(json, key, node, "an object");
    if (!node->valuestring)
        AH_TRY(ah__sprintf(&node->valuestring, "%s%s%s", json->where, dot(json), key));
    *out = (struct ah_json){.node = node, .path = json->path, .where = node->valuestring};
    return AH_OK;
}

bool ah__json_has(const struct ah_json *json, const char *key)
{
    const cJSON *node = member(json, key);
    return node && !cJSON_IsNull(node);
}

static bool is_listed(const char *name, const char *const *keys)
{
    for (; *keys; keys++)
        if (strcmp(name, *keys) == 0)
            return true;
    return false;
}

int ah__json_only(const struct ah_json *json, const char *const *keys)
{
    const cJSON *node = json->node->child;
    while (node && is_listed(node->string, keys))
        node = node->next;
    if (!node)
        return AH_OK;
    struct ah_buf list = {0};
    for (size_t i = 0; keys[i]; i++)
        ah__buf_printf(&list, "%s%s", i ? ", " : "", keys[i]);
    int status = list.status;
    if (status == AH_OK)
        status = ah__fail(AH_EINPUT, "%s: key '%s%s%s': found an unknown key, expected one of: %s", json->path,
                          json->where, dot(json), node->string, list.text ? list.text : "(none)");
    ah__buf_free(&list);
    return status;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int no_memory(const char *key)
{
    return ah__fail(AH_ENOMEM, "out of host memory: JSON key '%s'", key);
}

static int added(const cJSON *node, const char *key)
{
    return node ? AH_OK : no_memory(key);
}

int ah__json_add_int(cJSON *object, const char *key, int64_t value)
{
    if (value > (int64_t)integer_limit || value < -(int64_t)integer_limit)
        return ah__fail(AH_EINTERNAL, "JSON key '%s': found %lld, expected at most 2^53", key, (long long)value);
    return added(cJSON_AddNumberToObject(object, key, (double)value), key);
}

int ah__json_add_double(cJSON *object, const char *key, double value)
{
    if (!isfinite(value))
        return ah__fail(AH_EINTERNAL, "JSON key '%s': found %g, expected a finite number", key, value);
    return added(cJSON_AddNumberToObject(object, key, value), key);
}

int ah__json_add_hash(cJSON *object, const char *key, uint64_t value)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    return added(cJSON_AddStringToObject(object, key, text), key);
}

int ah__json_add_string(cJSON *object, const char *key, const char *value)
{
    return added(cJSON_AddStringToObject(object, key, value), key);
}

int ah__json_add_bool(cJSON *object, const char *key, bool value)
{
    return added(cJSON_AddBoolToObject(object, key, value), key);
}

/* Adds the fewest digits that give the same bits back (cJSON's own printer stops one unit in the last place away). */
static void number_add(struct ah_buf *buf, double value)
{
    char text[40];
    if (!isfinite(value)) {
        ah__buf_printf(buf, "null");
        return;
    }
    if (floor(value) == value && fabs(value) <= integer_limit)
        ah__snprintf(text, sizeof text, "%s%.0f", value == 0 && signbit(value) ? "-" : "",
                     fabs(value) > 0 ? value : 0.0);
    else
        for (int digits = 6; digits <= 17; digits++) {
            ah__snprintf(text, sizeof text, "%.*g", digits, value);
            if (ah__strtod(text, NULL) == value)
                break;
        }
    ah__buf_printf(buf, "%s", text);
}

static void string_add(struct ah_buf *buf, const char *text)
{
    ah__buf_add(buf, "\"", 1);
    ah__buf_json(buf, text);
    ah__buf_add(buf, "\"", 1);
}

static void break_add(struct ah_buf *buf, int depth)
{
    if (depth >= 0)
        ah__buf_printf(buf, "\n%*s", 2 * depth, "");
}

static bool is_flat(const cJSON *array)
{
    for (const cJSON *child = array->child; child; child = child->next)
        if (child->child)
            return false;
    return true;
}

/* Adds a value as text. depth: levels of indentation; negative for one line, which arrays of plain values always
 * take. */
static void node_add(struct ah_buf *buf, const cJSON *node, int depth);

static void children_add(struct ah_buf *buf, const cJSON *node, int depth)
{
    bool object = cJSON_IsObject(node);
    int inner = depth < 0 || !node->child || (!object && is_flat(node)) ? -1 : depth + 1;
    ah__buf_printf(buf, object ? "{" : "[");
    for (const cJSON *child = node->child; child; child = child->next) {
        if (child != node->child)
            ah__buf_printf(buf, inner < 0 ? ", " : ",");
        break_add(buf, inner);
        if (object) {
            string_add(buf, child->string);
            ah__buf_printf(buf, ": ");
        }
        node_add(buf, child, inner);
    }
    break_add(buf, inner < 0 ? -1 : depth);
    ah__buf_printf(buf, object ? "}" : "]");
}

static void node_add(struct ah_buf *buf, const cJSON *node, int depth)
{
    if (cJSON_IsObject(node) || cJSON_IsArray(node))
        children_add(buf, node, depth);
    else if (cJSON_IsNumber(node) && node->valuestring) /* unused by cJSON: the number's own text */
        ah__buf_printf(buf, "%s", node->valuestring);
    else if (cJSON_IsNumber(node))
        number_add(buf, node->valuedouble);
    else if (cJSON_IsString(node))
        string_add(buf, node->valuestring);
    else if (cJSON_IsRaw(node))
        ah__buf_printf(buf, "%s", node->valuestring);
    else
        ah__buf_printf(buf, "%s", cJSON_IsTrue(node) ? "true" : cJSON_IsFalse(node) ? "false" : "null");
}

int ah__json_text(char **out, const cJSON *tree, bool one_line)
{
    if (!tree)
        return no_memory("");
    struct ah_buf buf = {0};
    node_add(&buf, tree, one_line ? -1 : 0);
    if (buf.status != AH_OK) {
        int status = buf.status;
        ah__buf_free(&buf);
        return status;
    }
    *out = buf.text;
    return AH_OK;
}

int ah__json_save(const cJSON *tree, const char *path)
{
    char *text;
    AH_TRY(ah__json_text(&text, tree, false));
    size_t length = strlen(text);
    text[length] = '\n';
    int status = ah__file_write(path, text, length + 1);
    ah__free(text);
    return status;
}
