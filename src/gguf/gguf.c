/* Opens GGUF files and checks everything that is checked then. */
#include "gguf/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { NAME_MOST = 1024, ALIGNMENT = 32, KEY_LEAST = 13, TENSOR_LEAST = 33 };
static const char magic[4] = {'G', 'G', 'U', 'F'};

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

/* Takes the next bytes of the file; `what` names them in the message if the file is too short. */
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
    *out = (uint32_t)ah__gguf_value(data, sizeof *out);
    return AH_OK;
}

static int take_u64(uint64_t *out, struct ah_gguf *file, const char *what)
{
    const unsigned char *data;
    AH_TRY(take(&data, file, sizeof *out, what));
    *out = ah__gguf_value(data, sizeof *out);
    return AH_OK;
}

/* Takes a length and as many bytes of well-formed UTF-8; zero bytes are allowed only if `zeros`. */
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

static int take_array_texts(struct ah_gguf_entry *entry, struct ah_gguf *file)
{
    const char *text;
    size_t length;
    entry->data = file->map.data + file->at;
    for (uint64_t i = 0; i < entry->count; i++)
        AH_TRY(take_bytes(&text, &length, file, true, "a text in an array"));
    return AH_OK;
}

static int take_array(struct ah_gguf_entry *entry, struct ah_gguf *file)
{
    uint64_t bytes = 0;
    AH_TRY(take_u32(&entry->element, file, "an array's type"));
    AH_TRY(take_u64(&entry->count, file, "an array's length"));
    if (entry->element >= AH_GGUF_KINDS || entry->element == AH_GGUF_KIND_ARRAY)
        return fail_key(file, entry->key, "an array of arrays or of an unknown type", "one of texts or numbers");
    if (entry->element == AH_GGUF_KIND_TEXT)
        return take_array_texts(entry, file);
    if (__builtin_mul_overflow(entry->count, (uint64_t)ah__gguf_kind_bytes[entry->element], &bytes))
        return fail_key(file, entry->key, "more than 2^64 bytes", "fewer");
    return take(&entry->data, file, bytes, "an array");
}

static int take_entry(struct ah_gguf_entry *entry, struct ah_gguf *file)
{
    AH_TRY(take_text(&entry->key, file, NAME_MOST, "a key"));
    AH_TRY(take_u32(&entry->kind, file, "a value's type"));
    if (entry->kind >= AH_GGUF_KINDS)
        return fail_key(file, entry->key, "an unknown type of value", "one of GGUF's 13");
    if (entry->kind == AH_GGUF_KIND_ARRAY)
        return take_array(entry, file);
    if (entry->kind == AH_GGUF_KIND_TEXT)
        return take_text(&entry->text, file, SIZE_MAX, "a text");
    return take(&entry->data, file, (uint64_t)ah__gguf_kind_bytes[entry->kind], "a value");
}

static int take_entries(struct ah_gguf *file, size_t count)
{
    AH_TRY(ah__arena_new(&file->arena, &file->entries, count, sizeof *file->entries));
    for (size_t i = 0; i < count; i++, file->entry_count++)
        AH_TRY(take_entry(&file->entries[i], file));
    if (count)
        qsort(file->entries, count, sizeof *file->entries, ah__gguf_compare_entries);
    for (size_t i = 1; i < count; i++)
        if (ah__gguf_compare_entries(&file->entries[i - 1], &file->entries[i]) == 0)
            return fail_key(file, file->entries[i].key, "it twice", "it once");
    return AH_OK;
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

/* Takes a tensor's description. *offset receives the offset of its data: `data` is set once all tensors are read. */
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

/* Takes a count of items of at least `least` bytes. One too large for the file is refused before memory is allocated
 * for it. */
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
