/* The metadata of a GGUF file: values of keys, by type. */
#include <stdlib.h>

#include "gguf/internal.h"

const int ah__gguf_kind_bytes[AH_GGUF_KINDS] = {
    [AH_GGUF_KIND_U8] = 1,  [AH_GGUF_KIND_I8] = 1,  [AH_GGUF_KIND_U16] = 2, [AH_GGUF_KIND_I16] = 2,
    [AH_GGUF_KIND_U32] = 4, [AH_GGUF_KIND_I32] = 4, [AH_GGUF_KIND_F32] = 4, [AH_GGUF_KIND_BOOL] = 1,
    [AH_GGUF_KIND_U64] = 8, [AH_GGUF_KIND_I64] = 8, [AH_GGUF_KIND_F64] = 8};
static const char *const kind_names[AH_GGUF_KINDS] = {
    [AH_GGUF_KIND_U8] = "an integer",  [AH_GGUF_KIND_I8] = "an integer",  [AH_GGUF_KIND_U16] = "an integer",
    [AH_GGUF_KIND_I16] = "an integer", [AH_GGUF_KIND_U32] = "an integer", [AH_GGUF_KIND_I32] = "an integer",
    [AH_GGUF_KIND_F32] = "a number",   [AH_GGUF_KIND_BOOL] = "a bool",    [AH_GGUF_KIND_TEXT] = "a text",
    [AH_GGUF_KIND_ARRAY] = "an array", [AH_GGUF_KIND_U64] = "an integer", [AH_GGUF_KIND_I64] = "an integer",
    [AH_GGUF_KIND_F64] = "a number"};

int ah__gguf_compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct ah_gguf_entry *)a)->key, ((const struct ah_gguf_entry *)b)->key);
}

static const struct ah_gguf_entry *entry_find(const struct ah_gguf *file, const char *key)
{
    const struct ah_gguf_entry wanted = {.key = key};
    return file->entry_count
               ? bsearch(&wanted, file->entries, file->entry_count, sizeof wanted, ah__gguf_compare_entries)
               : NULL;
}

static bool kind_is_int(uint32_t kind)
{
    return kind <= AH_GGUF_KIND_I32 || kind == AH_GGUF_KIND_U64 || kind == AH_GGUF_KIND_I64;
}

static bool kind_is_number(uint32_t kind)
{
    return kind_is_int(kind) || kind == AH_GGUF_KIND_F32 || kind == AH_GGUF_KIND_F64;
}

/* Returns an integer; a value above INT64_MAX becomes INT64_MAX. */
static int64_t int_of(uint32_t kind, const unsigned char *data)
{
    uint64_t bits = ah__gguf_value(data, ah__gguf_kind_bytes[kind]);
    switch (kind) {
    case AH_GGUF_KIND_I8:
        return (int8_t)bits;
    case AH_GGUF_KIND_I16:
        return (int16_t)bits;
    case AH_GGUF_KIND_I32:
        return (int32_t)bits;
    case AH_GGUF_KIND_U64:
        return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    default:
        return (int64_t)bits;
    }
}

static double double_of(uint32_t kind, const unsigned char *data)
{
    float single;
    double value;
    if (kind_is_int(kind))
        return (double)int_of(kind, data);
    if (kind == AH_GGUF_KIND_F64) {
        memcpy(&value, data, sizeof value);
        return value;
    }
    memcpy(&single, data, sizeof single);
    return (double)single;
}

const char *ah__gguf_key(const struct ah_gguf *file, size_t index)
{
    return index < file->entry_count ? file->entries[index].key : NULL;
}

bool ah__gguf_has(const struct ah_gguf *file, const char *key)
{
    return entry_find(file, key) != NULL;
}

static int fail_kind(const struct ah_gguf *file, const struct ah_gguf_entry *entry, const char *expected)
{
    return ah__fail(AH_EINPUT, "%s: key '%.80s': found %s, expected %s", file->path, entry->key,
                    kind_names[entry->kind], expected);
}

/* Gets the value of an array whose integers are all equal: files may have one number for each block. */
static bool all_equal(int64_t *value, const struct ah_gguf_entry *entry)
{
    if (entry->kind != AH_GGUF_KIND_ARRAY || !kind_is_int(entry->element) || entry->count == 0)
        return false;
    *value = int_of(entry->element, entry->data);
    for (uint64_t i = 1; i < entry->count; i++)
        if (int_of(entry->element, entry->data + i * (uint64_t)ah__gguf_kind_bytes[entry->element]) != *value)
            return false;
    return true;
}

int ah__gguf_int(int64_t *out, const struct ah_gguf *file, const char *key, int64_t min, int64_t max)
{
    const struct ah_gguf_entry *entry = entry_find(file, key);
    int64_t value;
    if (!entry)
        return AH_OK;
    if (kind_is_int(entry->kind))
        value = int_of(entry->kind, entry->data);
    else if (!all_equal(&value, entry))
        return fail_kind(file, entry, "an integer");
    if (value < min || value > max)
        return ah__fail(AH_EINPUT, "%s: key '%.80s': found %lld, expected %lld to %lld", file->path, key,
                        (long long)value, (long long)min, (long long)max);
    *out = value;
    return AH_OK;
}

int ah__gguf_double(double *out, const struct ah_gguf *file, const char *key, double min, double max)
{
    const struct ah_gguf_entry *entry = entry_find(file, key);
    if (!entry)
        return AH_OK;
    if (!kind_is_number(entry->kind))
        return fail_kind(file, entry, "a number");
    double value = double_of(entry->kind, entry->data);
    if (!(value >= min && value <= max))
        return ah__fail(AH_EINPUT, "%s: key '%.80s': found %.9g, expected %g to %g", file->path, key, value, min, max);
    *out = value;
    return AH_OK;
}

int ah__gguf_bool(bool *out, const struct ah_gguf *file, const char *key)
{
    const struct ah_gguf_entry *entry = entry_find(file, key);
    if (!entry)
        return AH_OK;
    if (entry->kind != AH_GGUF_KIND_BOOL)
        return fail_kind(file, entry, "a bool");
    *out = entry->data[0] != 0;
    return AH_OK;
}

int ah__gguf_text(const char **out, const struct ah_gguf *file, const char *key)
{
    const struct ah_gguf_entry *entry = entry_find(file, key);
    if (!entry)
        return AH_OK;
    if (entry->kind != AH_GGUF_KIND_TEXT)
        return fail_kind(file, entry, "a text");
    *out = entry->text;
    return AH_OK;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static bool kind_is_text(uint32_t kind)
{
    return kind == AH_GGUF_KIND_TEXT;
}

static int array_open(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key, bool (*fits)(uint32_t),
                      const char *expected)
{
    const struct ah_gguf_entry *entry = entry_find(file, key);
    *out = (struct ah_gguf_array){.file = file, .key = key};
    if (!entry)
        return AH_OK;
    if (entry->kind != AH_GGUF_KIND_ARRAY || !fits(entry->element))
        return ah__fail(AH_EINPUT, "%s: key '%.80s': found %s, expected %s", file->path, key,
                        entry->kind == AH_GGUF_KIND_ARRAY ? "an array of something else" : kind_names[entry->kind],
                        expected);
    *out = (struct ah_gguf_array){file, key, entry->element, (int64_t)entry->count, 0, entry->data};
    return AH_OK;
}

int ah__gguf_texts(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key)
{
    return array_open(out, file, key, kind_is_text, "an array of texts");
}

int ah__gguf_ints(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key)
{
    return array_open(out, file, key, kind_is_int, "an array of integers");
}

static bool kind_is_bool(uint32_t kind)
{
    return kind == AH_GGUF_KIND_BOOL;
}

int ah__gguf_bools(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key)
{
    return array_open(out, file, key, kind_is_bool, "an array of bools");
}

int ah__gguf_doubles(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key)
{
    return array_open(out, file, key, kind_is_number, "an array of numbers");
}

const char *ah__gguf_next_text(size_t *length, struct ah_gguf_array *array)
{
    const char *text = (const char *)array->at + sizeof(uint64_t);
    *length = (size_t)ah__gguf_value(array->at, sizeof(uint64_t));
    array->at += sizeof(uint64_t) + *length;
    array->next++;
    return text;
}

int64_t ah__gguf_next_int(struct ah_gguf_array *array)
{
    int64_t value = int_of(array->type, array->at);
    array->at += ah__gguf_kind_bytes[array->type];
    array->next++;
    return value;
}

double ah__gguf_next_double(struct ah_gguf_array *array)
{
    double value = double_of(array->type, array->at);
    array->at += ah__gguf_kind_bytes[array->type];
    array->next++;
    return value;
}
