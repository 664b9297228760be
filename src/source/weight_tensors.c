#include "source/weight_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "io/shards.h"
#include "op/op.h"

enum { SHAPE_TEXT = 128 };

/* ---- of safetensors ---------------------------------------------------------------------------------------------- */

/* Returns the function that converts a type to floats, null for other types. GGUF has the same three types. */
static void (*widen_of(enum ah_dtype dtype))(float *to, const unsigned char *from, int64_t count)
{
    switch (dtype) {
    case AH_F32:
        return ah__gguf_type(AH_GGUF_F32)->widen;
    case AH_F16:
        return ah__gguf_type(AH_GGUF_F16)->widen;
    case AH_BF16:
        return ah__gguf_type(AH_GGUF_BF16)->widen;
    default:
        return NULL;
    }
}

static int shards_read(struct ah_weight_tensors *out)
{
    AH_TRY(ah__shards_open(&out->shards, out->path));
    out->count = ah__shards_count(out->shards);
    AH_TRY(ah__arena_new(&out->arena, &out->tensors, out->count, sizeof *out->tensors));
    for (size_t i = 0; i < out->count; i++) {
        const struct ah_safetensors_tensor *tensor = ah__shards_at(out->shards, i);
        out->tensors[i] = (struct ah_weight_tensor){.name = tensor->name,
                                                    .type_name = tensor->dtype_name,
                                                    .rank = tensor->rank,
                                                    .data = tensor->data,
                                                    .bytes = tensor->bytes,
                                                    .widen = widen_of(tensor->dtype)};
        memcpy(out->tensors[i].dim, tensor->dim, sizeof tensor->dim);
    }
    return AH_OK;
}

/* ---- of GGUF ----------------------------------------------------------------------------------------------------- */

/* Adds a tensor of a GGUF file. Constants of the configuration are left out; an unknown name stays as it is. */
static int gguf_take(struct ah_weight_tensors *out, const struct ah_gguf_tensor *tensor)
{
    char name[AH_GGUF_NAME_SIZE];
    if (!ah__gguf_param(name, out->gguf, tensor->name) && ah__gguf_constant(tensor->name))
        return AH_OK;
    struct ah_weight_tensor *to = &out->tensors[out->count++];
    *to = (struct ah_weight_tensor){.type_name = tensor->type->name,
                                    .rank = tensor->rank,
                                    .data = tensor->data,
                                    .bytes = tensor->bytes,
                                    .widen = tensor->type->widen};
    AH_TRY(ah__gguf_swapped(&to->swap, out->gguf, tensor));
    AH_TRY(ah__gguf_added(&to->added, out->gguf, tensor->name));
    memcpy(to->dim, tensor->dim, sizeof tensor->dim);
    if (to->swap.turned) {
        to->dim[0] = tensor->dim[1];
        to->dim[1] = tensor->dim[0];
    }
    return ah__arena_strdup(&out->arena, &to->name, name);
}

static int gguf_read(struct ah_weight_tensors *out)
{
    AH_TRY(ah__gguf_open(&out->gguf, out->path));
    size_t count = ah__gguf_count(out->gguf);
    AH_TRY(ah__arena_new(&out->arena, &out->tensors, count, sizeof *out->tensors));
    for (size_t i = 0; i < count; i++)
        AH_TRY(gguf_take(out, ah__gguf_at(out->gguf, i)));
    return AH_OK;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const char *const prefixes[] = {"module.", "_orig_mod.", "base_model.model."};

static bool all_begin(const struct ah_weight_tensors *tensors, const char *prefix)
{
    for (size_t i = 0; i < tensors->count; i++)
        if (strncmp(tensors->tensors[i].name, prefix, strlen(prefix)) != 0)
            return false;
    return tensors->count > 0;
}

/* Removes the prefixes that wrappers of PyTorch put before all names of a model; there may be several. */
static void prefixes_cut(struct ah_weight_tensors *tensors)
{
    const char *first = tensors->count ? tensors->tensors[0].name : "";
    size_t cut = 0;
    for (size_t i = 0; i < AH_LENGTH(prefixes); i++) {
        if (!all_begin(tensors, prefixes[i]))
            continue;
        for (size_t k = 0; k < tensors->count; k++)
            tensors->tensors[k].name += strlen(prefixes[i]);
        cut += strlen(prefixes[i]);
        i = (size_t)-1; /* try all prefixes again */
    }
    tensors->prefix_bytes = cut;
    tensors->prefix = first;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct ah_weight_tensor *)a)->name, ((const struct ah_weight_tensor *)b)->name);
}

int ah__weight_tensors_sort(struct ah_weight_tensors *tensors)
{
    struct ah_weight_tensor *all = tensors->tensors;
    if (tensors->count)
        qsort(all, tensors->count, sizeof *all, compare_names);
    for (size_t i = 1; i < tensors->count; i++)
        if (compare_names(&all[i - 1], &all[i]) == 0)
            return ah__fail(AH_ECORRUPT, "%s: tensor '%.80s': found it twice, expected it once", tensors->path,
                            all[i].name);
    return AH_OK;
}

int ah__weight_tensors_open(struct ah_weight_tensors *out, const char *path)
{
    *out = (struct ah_weight_tensors){0};
    AH_TRY(ah__arena_strdup(&out->arena, &out->path, path));
    AH_TRY(ah__gguf_is(path) ? gguf_read(out) : shards_read(out));
    prefixes_cut(out);
    AH_TRY(ah__weight_tensors_sort(out));
    AH_TRY(ah__weight_mxfp4(out));
    return ah__weight_stacks(out);
}

void ah__weight_tensors_close(struct ah_weight_tensors *tensors)
{
    ah__shards_close(tensors->shards);
    ah__gguf_close(tensors->gguf);
    ah__arena_free(&tensors->arena);
    *tensors = (struct ah_weight_tensors){0};
}

const struct ah_weight_tensor *ah__weight_tensors_find(const struct ah_weight_tensors *tensors, const char *name)
{
    const struct ah_weight_tensor wanted = {.name = name}, *found = NULL;
    if (tensors->count)
        found = bsearch(&wanted, tensors->tensors, tensors->count, sizeof wanted, compare_names);
    if (!found && tensors->view_count)
        found = bsearch(&wanted, tensors->views, tensors->view_count, sizeof wanted, compare_names);
    return found;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Writes a shape as "[3, 4]". */
static void shape_print(char text[SHAPE_TEXT], const int64_t *dim, int rank)
{
    int length = snprintf(text, SHAPE_TEXT, "[");
    for (int i = 0; i < rank && length < SHAPE_TEXT - 24; i++)
        length += snprintf(text + length, (size_t)(SHAPE_TEXT - length), "%s%lld", i ? ", " : "", (long long)dim[i]);
    snprintf(text + length, (size_t)(SHAPE_TEXT - length), "]");
}

/* A GGUF file may have a single row as a vector. */
static int shape_check(const struct ah_weight_tensors *tensors, const struct ah_weight_tensor *tensor,
                       const struct ah_shape *shape)
{
    char found[SHAPE_TEXT], expected[SHAPE_TEXT];
    bool row = tensors->gguf && shape->rank == 2 && shape->dim[0] == 1 && tensor->rank == 1;
    shape_print(found, tensor->dim, tensor->rank);
    shape_print(expected, shape->dim + row, shape->rank - row);
    if (strcmp(found, expected) == 0)
        return AH_OK;
    return ah__fail(AH_ECORRUPT, "%s: tensor '%.80s': found %s %s, expected %s %s", tensors->path, tensor->name,
                    tensor->type_name, found, tensor->type_name, expected);
}

/* Reads a tensor whose elements the file has in another order. Reads whole rows of the file: x times inner elements are
 * contiguous there, once for each y. */
static int read_swapped(float *to, const struct ah_weight_tensor *tensor, int64_t count)
{
    const struct ah_gguf_swap *swap = &tensor->swap;
    int64_t stripe = swap->x * swap->inner, stripes = count / stripe;
    size_t bytes = tensor->bytes / (size_t)stripes;
    float *row;
    AH_TRY(ah__new(&row, (size_t)stripe, sizeof *row));
    for (int64_t i = 0; i < stripes; i++) {
        int64_t o = i / swap->y, y = i % swap->y;
        tensor->widen(row, tensor->data + (size_t)i * bytes, stripe);
        for (int64_t x = 0; x < swap->x; x++)
            memcpy(to + ((o * swap->x + x) * swap->y + y) * swap->inner, row + x * swap->inner,
                   (size_t)swap->inner * sizeof *to);
    }
    ah__free(row);
    return AH_OK;
}

static void read_parts(float *to, const struct ah_weight_tensor *tensor, int64_t count)
{
    int64_t each = count / (int64_t)tensor->part_count;
    for (size_t i = 0; i < tensor->part_count; i++)
        tensor->widen(to + (int64_t)i * each, tensor->parts[i], each);
}

/* Reads a tensor whose layout differs, one expert after the other. */
static int read_restored(float *to, const struct ah_weight_tensor *tensor)
{
    int64_t outs = tensor->dim[1], ins = tensor->rank == 3 ? tensor->dim[2] : 1, count = outs * ins;
    size_t experts = (size_t)tensor->dim[0], bytes = tensor->bytes / experts;
    float *room;
    AH_TRY(ah__new(&room, (size_t)count, sizeof *room));
    for (size_t e = 0; e < experts; e++) {
        struct ah_weight_tensor one = {.data = tensor->data + e * bytes, .scales = tensor->scales, .bytes = bytes};
        if (one.scales) {
            one.scales += e * ah__weight_scales(&one);
            ah__weight_mxfp4_read(room, &one, count);
        } else {
            tensor->widen(room, one.data, count);
        }
        ah__stack_restore(to + (int64_t)e * count, room, tensor->layout, outs, ins, sizeof *to);
    }
    ah__free(room);
    return AH_OK;
}

uint64_t ah__weight_tensor_hash(const struct ah_weight_tensor *tensor, uint64_t hash)
{
    if (tensor->scales)
        hash = ah__hash(tensor->scales, ah__weight_scales(tensor), hash);
    if (!tensor->parts)
        return ah__hash(tensor->data, tensor->bytes, hash);
    for (size_t i = 0; i < tensor->part_count; i++)
        hash = ah__hash(tensor->parts[i], tensor->bytes / tensor->part_count, hash);
    return hash;
}

int ah__weight_tensor_read(float *to, const struct ah_weight_tensors *tensors, const struct ah_weight_tensor *tensor,
                           struct ah_shape shape)
{
    if (!tensor->widen && !tensor->scales)
        return ah__fail(AH_EINPUT, "%s: tensor '%.80s' is %.16s, expected F32, BF16 or F16%s", tensors->path,
                        tensor->name, tensor->type_name,
                        tensors->gguf ? ", Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K or MXFP4" : "");
    AH_TRY(shape_check(tensors, tensor, &shape));
    int64_t count = ah__shape_count(&shape);
    if (tensor->swap.outer && tensor->rank == 1 && tensor->bytes % (size_t)shape.dim[0])
        return ah__fail(AH_EINPUT, "%s: tensor '%.80s' is a vector of %.16s, expected F32, F16 or BF16", tensors->path,
                        tensor->name, tensor->type_name);
    if (ah__stack_differs(tensor->layout))
        AH_TRY(read_restored(to, tensor));
    else if (tensor->scales)
        ah__weight_mxfp4_read(to, tensor, count);
    else if (tensor->swap.outer)
        AH_TRY(read_swapped(to, tensor, count));
    else if (tensor->parts)
        read_parts(to, tensor, count);
    else
        tensor->widen(to, tensor->data, count);
    for (int64_t i = 0; tensor->added > 0 && i < count; i++)
        to[i] -= tensor->added;
    return AH_OK;
}
