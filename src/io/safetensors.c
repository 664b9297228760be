#include "io/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tensor data is used as it lies in the file, little-endian"
#endif

enum { LENGTH_BYTES = 8, HEADER_MOST = 100000000, SHAPE_TEXT = 192 };

/* Every dtype of the format, so that a file with unsupported dtypes can be checked and its other tensors used. */
static const struct dtype_row {
    const char *name;
    int64_t bits; /* bits of an element; elements of a tensor are packed without padding */
    enum ah_dtype dtype;
} dtype_rows[] = {
    {"F32", 32, AH_F32}, {"BF16", 16, AH_BF16}, {"F16", 16, AH_F16},     {"I32", 32, AH_I32},     {"U8", 8, AH_U8},
#define OTHER(name, bits)                                                                                              \
    {                                                                                                                  \
        name, bits, AH_DTYPE_COUNT                                                                                     \
    }
    OTHER("F64", 64),    OTHER("C64", 64),      OTHER("I64", 64),        OTHER("U64", 64),        OTHER("U32", 32),
    OTHER("I16", 16),    OTHER("U16", 16),      OTHER("I8", 8),          OTHER("BOOL", 8),        OTHER("F8_E4M3", 8),
    OTHER("F8_E5M2", 8), OTHER("F8_E8M0", 8),   OTHER("F8_E4M3FNUZ", 8), OTHER("F8_E5M2FNUZ", 8), OTHER("F6_E2M3", 6),
    OTHER("F6_E3M2", 6), OTHER("F4", 4),
#undef OTHER
};

struct ah_safetensors {
    const char *path; /* in the arena, like all names */
    struct ah_map map;
    struct ah_arena arena;
    struct ah_json header;
    struct ah_safetensors_tensor *tensors; /* sorted by name */
    size_t count;
};

static int fail(const struct ah_safetensors *file, const struct ah_safetensors_tensor *tensor, const char *found,
                const char *expected)
{
    return ah__fail(AH_ECORRUPT, "%s: tensor '%s': found %s, expected %s", file->path, tensor->name, found, expected);
}

static const struct dtype_row *dtype_find(const char *name)
{
    for (size_t i = 0; i < AH_LENGTH(dtype_rows); i++)
        if (strcmp(dtype_rows[i].name, name) == 0)
            return &dtype_rows[i];
    return NULL;
}

/* Writes a shape as "[3, 4]" and returns the text. */
static const char *shape_text(char *room, const int64_t *dim, int rank)
{
    int length = snprintf(room, SHAPE_TEXT, "[");
    for (int i = 0; i < rank && length < SHAPE_TEXT - 24; i++)
        length += snprintf(room + length, (size_t)(SHAPE_TEXT - length), "%s%lld", i ? ", " : "", (long long)dim[i]);
    snprintf(room + length, (size_t)(SHAPE_TEXT - length), "]");
    return room;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Finds where data begins and checks the header's length against the file's. */
static int header_bounds(const struct ah_safetensors *file, size_t *header_bytes)
{
    static const char pointer[] = "version https://git-lfs";
    uint64_t bytes = 0;
    if (file->map.length >= sizeof pointer && memcmp(file->map.data, pointer, sizeof pointer - 1) == 0)
        return ah__fail(AH_ECORRUPT,
                        "%s: found a Git LFS pointer, expected the file that it stands for: 'git lfs pull' fetches it",
                        file->path);
    if (file->map.length < LENGTH_BYTES + 2)
        return ah__fail(AH_ECORRUPT, "%s: found %zu bytes, expected a safetensors file of at least %d", file->path,
                        file->map.length, LENGTH_BYTES + 2);
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        bytes = bytes << 8 | file->map.data[i];
    uint64_t most = file->map.length - LENGTH_BYTES;
    if (most > HEADER_MOST)
        most = HEADER_MOST;
    if (bytes < 2 || bytes > most)
        return ah__fail(AH_ECORRUPT, "%s: found a header of %llu bytes, expected 2 to %llu", file->path,
                        (unsigned long long)bytes, (unsigned long long)most);
    if (file->map.data[LENGTH_BYTES] != '{')
        return ah__fail(AH_ECORRUPT, "%s: found byte 0x%02x at the start of the header, expected '{'", file->path,
                        file->map.data[LENGTH_BYTES]);
    *header_bytes = (size_t)bytes;
    return AH_OK;
}

static int header_parse(struct ah_safetensors *file, size_t header_bytes)
{
    const char *text = (const char *)file->map.data + LENGTH_BYTES;
    int status = ah__json_parse(&file->header, text, header_bytes, file->path);
    if (status == AH_EINPUT)
        return ah__fail_prefix(AH_ECORRUPT, "safetensors header");
    return status;
}

/* Computes the bytes of a tensor; refuses an overflow and a size that is not whole bytes. */
static int tensor_bytes(const struct ah_safetensors *file, const struct ah_safetensors_tensor *tensor,
                        int64_t element_bits, int64_t *bytes)
{
    char found[SHAPE_TEXT], expected[SHAPE_TEXT];
    int64_t bits = element_bits;
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(bits, tensor->dim[i], &bits))
            return fail(file, tensor, shape_text(found, tensor->dim, tensor->rank), "a shape below 2^60 bytes");
    if (bits % 8) {
        snprintf(expected, sizeof expected, "one that fills whole bytes with %s", tensor->dtype_name);
        return fail(file, tensor, shape_text(found, tensor->dim, tensor->rank), expected);
    }
    *bytes = bits / 8;
    return AH_OK;
}

/* Sets data and bytes from the offsets, which must be within the file and fit dtype and shape. */
static int tensor_place(struct ah_safetensors_tensor *tensor, const struct ah_safetensors *file, const int64_t *offsets,
                        int64_t element_bits, size_t data_start)
{
    char found[SHAPE_TEXT], expected[SHAPE_TEXT];
    size_t data_bytes = file->map.length - data_start;
    int64_t bytes = 0;
    AH_TRY(tensor_bytes(file, tensor, element_bits, &bytes));
    snprintf(found, sizeof found, "data_offsets [%lld, %lld]", (long long)offsets[0], (long long)offsets[1]);
    if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > data_bytes) {
        snprintf(expected, sizeof expected, "a range within the %zu bytes of data", data_bytes);
        return fail(file, tensor, found, expected);
    }
    if (offsets[1] - offsets[0] != bytes) {
        snprintf(expected, sizeof expected, "%lld bytes by dtype and shape", (long long)bytes);
        return fail(file, tensor, found, expected);
    }
    tensor->data = file->map.data + data_start + offsets[0];
    tensor->bytes = (size_t)bytes;
    return AH_OK;
}

/* Reads dtype, shape and data_offsets of one member of the header. */
static int tensor_parse(struct ah_safetensors_tensor *tensor, const struct ah_safetensors *file, cJSON *node,
                        size_t data_start)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    struct ah_json member = {.node = node, .path = file->path, .where = node->string};
    int64_t offsets[2];
    size_t rank = 0, two = 0;
    if (!cJSON_IsObject(node))
        return fail(file, tensor, "no object", "one with dtype, shape and data_offsets");
    AH_TRY(ah__json_only(&member, keys));
    AH_TRY(ah__json_string(&tensor->dtype_name, &member, "dtype"));
    const struct dtype_row *row = dtype_find(tensor->dtype_name);
    if (!row)
        return fail(file, tensor, tensor->dtype_name, "a dtype such as F32, BF16, F16 or I32");
    AH_TRY(ah__json_ints(tensor->dim, &rank, AH_SAFETENSORS_RANK, &member, "shape", 0, INT64_MAX));
    AH_TRY(ah__json_ints(offsets, &two, 2, &member, "data_offsets", 0, INT64_MAX));
    if (two != 2)
        return fail(file, tensor, two ? "1 data offset" : "no data offsets", "2");
    tensor->dtype = row->dtype;
    tensor->rank = (int)rank;
    return tensor_place(tensor, file, offsets, row->bits, data_start);
}

static int meta_check(const struct ah_safetensors *file, const cJSON *meta)
{
    if (cJSON_IsNull(meta))
        return AH_OK;
    for (const cJSON *child = meta->child; child; child = child->next)
        if (!cJSON_IsString(child))
            return ah__fail(AH_ECORRUPT, "%s: key '__metadata__.%s': found no string, expected one", file->path,
                            child->string ? child->string : "");
    return cJSON_IsObject(meta)
               ? AH_OK
               : ah__fail(AH_ECORRUPT, "%s: key '__metadata__': found no object, expected one", file->path);
}

static size_t members_count(const cJSON *header)
{
    size_t count = 0;
    for (const cJSON *child = header->child; child; child = child->next)
        count++;
    return count;
}

static int tensors_parse(struct ah_safetensors *file, size_t header_bytes)
{
    size_t start = LENGTH_BYTES + header_bytes, most = members_count(file->header.node);
    AH_TRY(ah__arena_new(&file->arena, &file->tensors, most, sizeof *file->tensors));
    for (cJSON *child = file->header.node->child; child; child = child->next) {
        if (strcmp(child->string, "__metadata__") == 0) {
            AH_TRY(meta_check(file, child));
            continue;
        }
        struct ah_safetensors_tensor *tensor = &file->tensors[file->count++];
        tensor->name = child->string;
        AH_TRY(tensor_parse(tensor, file, child, start));
    }
    return AH_OK;
}

static int compare_data(const void *a, const void *b)
{
    const struct ah_safetensors_tensor *x = a, *y = b;
    if (x->data != y->data)
        return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty tensors first */
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct ah_safetensors_tensor *)a)->name, ((const struct ah_safetensors_tensor *)b)->name);
}

/* Checks that, in order of offsets, each tensor begins where the one before ends, and the last ends with the file. */
static int layout_check(struct ah_safetensors *file, size_t header_bytes)
{
    const unsigned char *start = file->map.data + LENGTH_BYTES + header_bytes, *at = start;
    char found[SHAPE_TEXT], expected[SHAPE_TEXT];
    if (file->count)
        qsort(file->tensors, file->count, sizeof *file->tensors, compare_data);
    for (size_t i = 0; i < file->count; i++) {
        const struct ah_safetensors_tensor *tensor = &file->tensors[i];
        snprintf(found, sizeof found, "data at offset %td", tensor->data - start);
        snprintf(expected, sizeof expected, "%td, where the tensor before it ends", at - start);
        if (tensor->data != at)
            return fail(file, tensor, found, expected);
        at += tensor->bytes;
    }
    if (at != file->map.data + file->map.length)
        return ah__fail(AH_ECORRUPT, "%s: found %zu bytes of data, expected %td by the header", file->path,
                        file->map.length - LENGTH_BYTES - header_bytes, at - start);
    if (file->count)
        qsort(file->tensors, file->count, sizeof *file->tensors, compare_names);
    return AH_OK;
}

static int file_check(struct ah_safetensors *file)
{
    size_t header_bytes = 0;
    AH_TRY(header_bounds(file, &header_bytes));
    AH_TRY(header_parse(file, header_bytes));
    int status = tensors_parse(file, header_bytes);
    if (status == AH_EINPUT) /* the JSON getters return it for a fault in the file */
        status = ah__fail_prefix(AH_ECORRUPT, "safetensors header");
    return status == AH_OK ? layout_check(file, header_bytes) : status;
}

int ah__safetensors_open(struct ah_safetensors **out, const char *path)
{
    struct ah_safetensors *file;
    AH_TRY(ah__new(&file, 1, sizeof *file));
    int status = ah__arena_strdup(&file->arena, &file->path, path);
    if (status == AH_OK)
        status = ah__map_open(&file->map, path);
    if (status == AH_OK)
        status = file_check(file);
    if (status == AH_OK)
        *out = file;
    else
        ah__safetensors_close(file);
    return status;
}

void ah__safetensors_close(struct ah_safetensors *file)
{
    if (!file)
        return;
    ah__json_free(&file->header);
    ah__map_close(&file->map);
    ah__arena_free(&file->arena);
    ah__free(file);
}

size_t ah__safetensors_count(const struct ah_safetensors *file)
{
    return file->count;
}

const struct ah_safetensors_tensor *ah__safetensors_at(const struct ah_safetensors *file, size_t index)
{
    return &file->tensors[index];
}

const struct ah_safetensors_tensor *ah__safetensors_find(const struct ah_safetensors *file, const char *name)
{
    struct ah_safetensors_tensor key = {.name = name};
    return file->count ? bsearch(&key, file->tensors, file->count, sizeof key, compare_names) : NULL;
}

static const char *dtype_name(enum ah_dtype dtype)
{
    for (size_t i = 0; i < AH_LENGTH(dtype_rows); i++)
        if (dtype_rows[i].dtype == dtype)
            return dtype_rows[i].name;
    return "an unknown dtype";
}

int ah__safetensors_get(const struct ah_safetensors_tensor **out, const struct ah_safetensors *file, const char *name,
                        enum ah_dtype dtype, struct ah_shape shape)
{
    const struct ah_safetensors_tensor *tensor = ah__safetensors_find(file, name);
    char found[SHAPE_TEXT], expected[SHAPE_TEXT];
    shape_text(expected, shape.dim, shape.rank);
    if (!tensor)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%s': found nothing, expected %s %s", file->path, name,
                        dtype_name(dtype), expected);
    shape_text(found, tensor->dim, tensor->rank);
    if (tensor->dtype != dtype || strcmp(found, expected) != 0)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%s': found %s %s, expected %s %s", file->path, name,
                        tensor->dtype_name, found, dtype_name(dtype), expected);
    *out = tensor;
    return AH_OK;
}

const char *ah__safetensors_meta(const struct ah_safetensors *file, const char *key)
{
    const cJSON *meta = cJSON_GetObjectItemCaseSensitive(file->header.node, "__metadata__");
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(meta, key));
}
