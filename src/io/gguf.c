#include "io/gguf.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"

/* Types of values, by their numbers in files. */
enum kind { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64, KINDS };
static const int kind_bytes[KINDS] = {[U8] = 1,  [I8] = 1,   [U16] = 2, [I16] = 2, [U32] = 4, [I32] = 4,
                                      [F32] = 4, [BOOL] = 1, [U64] = 8, [I64] = 8, [F64] = 8};
static const char *const kind_names[KINDS] = {
    [U8] = "an integer",  [I8] = "an integer",  [U16] = "an integer", [I16] = "an integer", [U32] = "an integer",
    [I32] = "an integer", [F32] = "a number",   [BOOL] = "a bool",    [TEXT] = "a text",    [ARRAY] = "an array",
    [U64] = "an integer", [I64] = "an integer", [F64] = "a number"};

enum { NAME_MOST = 1024, ALIGNMENT = 32, KEY_LEAST = 13, TENSOR_LEAST = 33 };
static const char magic[4] = {'G', 'G', 'U', 'F'};

struct entry {
    const char *key, *text; /* text: of TEXT, terminated */
    uint32_t kind, element; /* element: of ARRAY */
    uint64_t count;         /* of ARRAY */
    const unsigned char *data;
};

struct ah_gguf {
    const char *path; /* in the arena, as all names and texts */
    struct ah_map map;
    struct ah_arena arena;
    struct entry *entries; /* sorted by key */
    size_t entry_count;
    struct ah_gguf_tensor *tensors; /* sorted by name */
    size_t tensor_count;
    size_t at; /* while it is read: bytes so far */
};

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static uint64_t value_of(const unsigned char *data, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, data, (size_t)bytes);
    return value;
}

/* The next bytes of the file; `what` for the message when there are not so many. */
static int take(const unsigned char **out, struct ah_gguf *file, uint64_t bytes, const char *what)
{
    size_t left = file->map.length - file->at;
    if (bytes > left)
        return ah__fail(AH_ECORRUPT, "%s: found %zu bytes behind offset %zu, expected %llu of %s", file->path, left,
                        file->at, (unsigned long long)bytes, what);
    *out = file->map.data + file->at;
    file->at += (size_t)bytes;
    return AH_OK;
}

static int take_u32(uint32_t *out, struct ah_gguf *file, const char *what)
{
    const unsigned char *data;
    AH_TRY(take(&data, file, sizeof *out, what));
    *out = (uint32_t)value_of(data, sizeof *out);
    return AH_OK;
}

static int take_u64(uint64_t *out, struct ah_gguf *file, const char *what)
{
    const unsigned char *data;
    AH_TRY(take(&data, file, sizeof *out, what));
    *out = value_of(data, sizeof *out);
    return AH_OK;
}

/* Length and bytes, well-formed UTF-8; with zero bytes only where `zeros` says so. */
static int take_bytes(const char **out, size_t *length, struct ah_gguf *file, bool zeros, const char *what)
{
    const unsigned char *data;
    uint64_t bytes;
    AH_TRY(take_u64(&bytes, file, what));
    AH_TRY(take(&data, file, bytes, what));
    for (size_t i = 0, step; i < bytes; i += step) {
        step = zeros && !data[i] ? 1 : ah__utf8_length(data + i, (size_t)bytes - i);
        if (!step)
            return ah__fail(AH_ECORRUPT, "%s: %s at offset %zu: found byte 0x%02x, expected UTF-8", file->path, what,
                            file->at - (size_t)bytes + i, data[i]);
    }
    *out = (const char *)data;
    *length = (size_t)bytes;
    return AH_OK;
}

static int take_text(const char **out, struct ah_gguf *file, size_t most, const char *what)
{
    const char *bytes;
    size_t length;
    char *text;
    AH_TRY(take_bytes(&bytes, &length, file, false, what));
    if (length > most)
        return ah__fail(AH_ECORRUPT, "%s: found %s of %zu bytes, expected at most %zu", file->path, what, length, most);
    AH_TRY(ah__arena_new(&file->arena, &text, length + 1, 1));
    memcpy(text, bytes, length);
    *out = text;
    return AH_OK;
}

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

static int fail_key(const struct ah_gguf *file, const char *key, const char *found, const char *expected)
{
    return ah__fail(AH_ECORRUPT, "%s: key '%.80s': found %s, expected %s", file->path, key, found, expected);
}

static int take_array_texts(struct entry *entry, struct ah_gguf *file)
{
    const char *text;
    size_t length;
    entry->data = file->map.data + file->at;
    for (uint64_t i = 0; i < entry->count; i++)
        AH_TRY(take_bytes(&text, &length, file, true, "a text in an array"));
    return AH_OK;
}

static int take_array(struct entry *entry, struct ah_gguf *file)
{
    uint64_t bytes = 0;
    AH_TRY(take_u32(&entry->element, file, "an array's type"));
    AH_TRY(take_u64(&entry->count, file, "an array's length"));
    if (entry->element >= KINDS || entry->element == ARRAY)
        return fail_key(file, entry->key, "an array of arrays or of an unknown type", "one of texts or numbers");
    if (entry->element == TEXT)
        return take_array_texts(entry, file);
    if (__builtin_mul_overflow(entry->count, (uint64_t)kind_bytes[entry->element], &bytes))
        return fail_key(file, entry->key, "more than 2^64 bytes", "fewer");
    return take(&entry->data, file, bytes, "an array");
}

static int take_entry(struct entry *entry, struct ah_gguf *file)
{
    AH_TRY(take_text(&entry->key, file, NAME_MOST, "a key"));
    AH_TRY(take_u32(&entry->kind, file, "a value's type"));
    if (entry->kind >= KINDS)
        return fail_key(file, entry->key, "an unknown type of value", "one of GGUF's 13");
    if (entry->kind == ARRAY)
        return take_array(entry, file);
    if (entry->kind == TEXT)
        return take_text(&entry->text, file, SIZE_MAX, "a text");
    return take(&entry->data, file, (uint64_t)kind_bytes[entry->kind], "a value");
}

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key);
}

static int take_entries(struct ah_gguf *file, size_t count)
{
    AH_TRY(ah__arena_new(&file->arena, &file->entries, count, sizeof *file->entries));
    for (size_t i = 0; i < count; i++, file->entry_count++)
        AH_TRY(take_entry(&file->entries[i], file));
    if (count)
        qsort(file->entries, count, sizeof *file->entries, compare_entries);
    for (size_t i = 1; i < count; i++)
        if (compare_entries(&file->entries[i - 1], &file->entries[i]) == 0)
            return fail_key(file, file->entries[i].key, "it twice", "it once");
    return AH_OK;
}

static const struct entry *entry_find(const struct ah_gguf *file, const char *key)
{
    const struct entry wanted = {.key = key};
    return file->entry_count ? bsearch(&wanted, file->entries, file->entry_count, sizeof wanted, compare_entries)
                             : NULL;
}

static bool kind_is_int(uint32_t kind)
{
    return kind <= I32 || kind == U64 || kind == I64;
}

static bool kind_is_number(uint32_t kind)
{
    return kind_is_int(kind) || kind == F32 || kind == F64;
}

/* What is beyond int64_t is its largest. */
static int64_t int_of(uint32_t kind, const unsigned char *data)
{
    uint64_t bits = value_of(data, kind_bytes[kind]);
    switch (kind) {
    case I8:
        return (int8_t)bits;
    case I16:
        return (int16_t)bits;
    case I32:
        return (int32_t)bits;
    case U64:
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
    if (kind == F64) {
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

static int fail_kind(const struct ah_gguf *file, const struct entry *entry, const char *expected)
{
    return ah__fail(AH_EINPUT, "%s: key '%.80s': found %s, expected %s", file->path, entry->key,
                    kind_names[entry->kind], expected);
}

int ah__gguf_int(int64_t *out, const struct ah_gguf *file, const char *key, int64_t min, int64_t max)
{
    const struct entry *entry = entry_find(file, key);
    if (!entry)
        return AH_OK;
    if (!kind_is_int(entry->kind))
        return fail_kind(file, entry, "an integer");
    int64_t value = int_of(entry->kind, entry->data);
    if (value < min || value > max)
        return ah__fail(AH_EINPUT, "%s: key '%.80s': found %lld, expected %lld to %lld", file->path, key,
                        (long long)value, (long long)min, (long long)max);
    *out = value;
    return AH_OK;
}

int ah__gguf_double(double *out, const struct ah_gguf *file, const char *key, double min, double max)
{
    const struct entry *entry = entry_find(file, key);
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
    const struct entry *entry = entry_find(file, key);
    if (!entry)
        return AH_OK;
    if (entry->kind != BOOL)
        return fail_kind(file, entry, "a bool");
    *out = entry->data[0] != 0;
    return AH_OK;
}

int ah__gguf_text(const char **out, const struct ah_gguf *file, const char *key)
{
    const struct entry *entry = entry_find(file, key);
    if (!entry)
        return AH_OK;
    if (entry->kind != TEXT)
        return fail_kind(file, entry, "a text");
    *out = entry->text;
    return AH_OK;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static bool kind_is_text(uint32_t kind)
{
    return kind == TEXT;
}

static int array_open(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key, bool (*fits)(uint32_t),
                      const char *expected)
{
    const struct entry *entry = entry_find(file, key);
    *out = (struct ah_gguf_array){.file = file, .key = key};
    if (!entry)
        return AH_OK;
    if (entry->kind != ARRAY || !fits(entry->element))
        return ah__fail(AH_EINPUT, "%s: key '%.80s': found %s, expected %s", file->path, key,
                        entry->kind == ARRAY ? "an array of something else" : kind_names[entry->kind], expected);
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

int ah__gguf_doubles(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key)
{
    return array_open(out, file, key, kind_is_number, "an array of numbers");
}

const char *ah__gguf_next_text(size_t *length, struct ah_gguf_array *array)
{
    const char *text = (const char *)array->at + sizeof(uint64_t);
    *length = (size_t)value_of(array->at, sizeof(uint64_t));
    array->at += sizeof(uint64_t) + *length;
    array->next++;
    return text;
}

int64_t ah__gguf_next_int(struct ah_gguf_array *array)
{
    int64_t value = int_of(array->type, array->at);
    array->at += kind_bytes[array->type];
    array->next++;
    return value;
}

double ah__gguf_next_double(struct ah_gguf_array *array)
{
    double value = double_of(array->type, array->at);
    array->at += kind_bytes[array->type];
    array->next++;
    return value;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static int fail_tensor(const struct ah_gguf *file, const struct ah_gguf_tensor *tensor, const char *found,
                       const char *expected)
{
    return ah__fail(AH_ECORRUPT, "%s: tensor '%.80s': found %s, expected %s", file->path, tensor->name, found,
                    expected);
}

static int take_shape(struct ah_gguf_tensor *tensor, struct ah_gguf *file)
{
    uint32_t rank;
    AH_TRY(take_u32(&rank, file, "a tensor's rank"));
    if (rank < 1 || rank > AH_GGUF_RANK)
        return fail_tensor(file, tensor, "another number of dimensions", "1 to 4");
    tensor->rank = (int)rank;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        uint64_t dim;
        AH_TRY(take_u64(&dim, file, "a tensor's shape"));
        if (dim < 1 || dim > INT64_MAX)
            return fail_tensor(file, tensor, "a dimension that is 0 or beyond 2^63", "1 and more");
        tensor->dim[i] = (int64_t)dim;
    }
    return AH_OK;
}

static int tensor_size(struct ah_gguf_tensor *tensor, const struct ah_gguf *file)
{
    int64_t blocks = tensor->dim[tensor->rank - 1] / tensor->type->block;
    if (tensor->dim[tensor->rank - 1] % tensor->type->block)
        return fail_tensor(file, tensor, "rows that end within a block of its type", "whole blocks");
    for (int i = 0; i < tensor->rank - 1; i++)
        if (__builtin_mul_overflow(blocks, tensor->dim[i], &blocks))
            return fail_tensor(file, tensor, "a shape beyond 2^63 elements", "fewer");
    if (__builtin_mul_overflow((uint64_t)blocks, (uint64_t)tensor->type->bytes, &tensor->bytes))
        return fail_tensor(file, tensor, "a shape beyond 2^64 bytes", "fewer");
    return AH_OK;
}

/* Its data is an offset until all tensors are read. */
static int take_tensor(struct ah_gguf_tensor *tensor, uint64_t *offset, struct ah_gguf *file)
{
    uint32_t type;
    AH_TRY(take_text(&tensor->name, file, NAME_MOST, "a tensor's name"));
    AH_TRY(take_shape(tensor, file));
    AH_TRY(take_u32(&type, file, "a tensor's type"));
    tensor->type = ah__gguf_type(type);
    if (!tensor->type)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%.80s': found type %u, expected one of GGUF's", file->path,
                        tensor->name, type);
    AH_TRY(take_u64(offset, file, "a tensor's offset"));
    return tensor_size(tensor, file);
}

static int compare_data(const void *a, const void *b)
{
    const struct ah_gguf_tensor *x = a, *y = b;
    return (x->data > y->data) - (x->data < y->data);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct ah_gguf_tensor *)a)->name, ((const struct ah_gguf_tensor *)b)->name);
}

static int tensors_place(struct ah_gguf *file, const uint64_t *offsets)
{
    int64_t alignment = ALIGNMENT;
    AH_TRY(ah__gguf_int(&alignment, file, "general.alignment", 1, 1 << 20));
    size_t over = file->at % (size_t)alignment, start = over ? file->at + (size_t)alignment - over : file->at;
    size_t room = start < file->map.length ? file->map.length - start : 0;
    for (size_t i = 0; i < file->tensor_count; i++) {
        struct ah_gguf_tensor *tensor = &file->tensors[i];
        if (offsets[i] % (uint64_t)alignment)
            return fail_tensor(file, tensor, "an offset that is no multiple of the alignment", "one");
        if (offsets[i] > room || tensor->bytes > room - offsets[i])
            return ah__fail(AH_ECORRUPT,
                            "%s: tensor '%.80s': found offset %llu, expected %zu bytes from there within the %zu bytes "
                            "of data (is the file whole?)",
                            file->path, tensor->name, (unsigned long long)offsets[i], tensor->bytes, room);
        tensor->data = file->map.data + start + offsets[i];
    }
    return AH_OK;
}

static int tensors_sort(struct ah_gguf *file)
{
    struct ah_gguf_tensor *all = file->tensors;
    if (!file->tensor_count)
        return AH_OK;
    qsort(all, file->tensor_count, sizeof *all, compare_data);
    for (size_t i = 1; i < file->tensor_count; i++)
        if (all[i - 1].data + all[i - 1].bytes > all[i].data)
            return fail_tensor(file, &all[i], "data that another tensor has", "its own");
    qsort(all, file->tensor_count, sizeof *all, compare_names);
    for (size_t i = 1; i < file->tensor_count; i++)
        if (compare_names(&all[i - 1], &all[i]) == 0)
            return fail_tensor(file, &all[i], "it twice", "it once");
    return AH_OK;
}

static int take_tensors(struct ah_gguf *file, size_t count)
{
    uint64_t *offsets;
    AH_TRY(ah__arena_new(&file->arena, &file->tensors, count, sizeof *file->tensors));
    AH_TRY(ah__arena_new(&file->arena, &offsets, count, sizeof *offsets));
    for (size_t i = 0; i < count; i++, file->tensor_count++)
        AH_TRY(take_tensor(&file->tensors[i], &offsets[i], file));
    AH_TRY(tensors_place(file, offsets));
    return tensors_sort(file);
}

size_t ah__gguf_count(const struct ah_gguf *file)
{
    return file->tensor_count;
}

const struct ah_gguf_tensor *ah__gguf_at(const struct ah_gguf *file, size_t index)
{
    return &file->tensors[index];
}

const struct ah_gguf_tensor *ah__gguf_find(const struct ah_gguf *file, const char *name)
{
    const struct ah_gguf_tensor wanted = {.name = name};
    return file->tensor_count ? bsearch(&wanted, file->tensors, file->tensor_count, sizeof wanted, compare_names)
                              : NULL;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int take_version(struct ah_gguf *file)
{
    const unsigned char *data;
    uint32_t version;
    AH_TRY(take(&data, file, sizeof magic, "a GGUF file"));
    if (memcmp(data, magic, sizeof magic) != 0)
        return ah__fail(AH_ECORRUPT, "%s: found another beginning, expected 'GGUF'", file->path);
    AH_TRY(take_u32(&version, file, "its version"));
    if (version != 2 && version != 3)
        return ah__fail(AH_ECORRUPT, "%s: found %s %u, expected version 2 or 3, little-endian", file->path,
                        version >> 16 ? "big-endian version" : "version",
                        version >> 16 ? __builtin_bswap32(version) : version);
    return AH_OK;
}

/* A count that the file has not the bytes for is refused before it is allocated for. */
static int take_count(size_t *out, struct ah_gguf *file, size_t least, const char *what)
{
    uint64_t count;
    AH_TRY(take_u64(&count, file, what));
    if (count > file->map.length / least)
        return ah__fail(AH_ECORRUPT, "%s: found %llu %s, expected fewer in %zu bytes", file->path,
                        (unsigned long long)count, what, file->map.length);
    *out = (size_t)count;
    return AH_OK;
}

static int file_read(struct ah_gguf *file)
{
    size_t tensors, entries;
    AH_TRY(take_version(file));
    AH_TRY(take_count(&tensors, file, TENSOR_LEAST, "tensors"));
    AH_TRY(take_count(&entries, file, KEY_LEAST, "keys"));
    AH_TRY(take_entries(file, entries));
    return take_tensors(file, tensors);
}

bool ah__gguf_is(const char *path)
{
    char start[sizeof magic] = "";
    struct stat info;
    bool is = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        is = read(fd, start, sizeof start) == (ssize_t)sizeof start && memcmp(start, magic, sizeof magic) == 0;
    close(fd);
    return is;
}

int ah__gguf_open(struct ah_gguf **out, const char *path)
{
    struct ah_gguf *file;
    AH_TRY(ah__new(&file, 1, sizeof *file));
    int status = ah__arena_strdup(&file->arena, &file->path, path);
    if (status == AH_OK)
        status = ah__map_open(&file->map, path);
    if (status == AH_OK)
        status = file_read(file);
    if (status == AH_OK)
        *out = file;
    else
        ah__gguf_close(file);
    return status;
}

void ah__gguf_close(struct ah_gguf *file)
{
    if (!file)
        return;
    ah__map_close(&file->map);
    ah__arena_free(&file->arena);
    ah__free(file);
}

const char *ah__gguf_path(const struct ah_gguf *file)
{
    return file->path;
}
