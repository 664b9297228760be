/* Experts' tensors of weights: one by one they are gathered into stacks; fused ones get views. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/stack.h"
#include "source/weight_tensors.h"

/* ---- one by one -------------------------------------------------------------------------------------------------- */

/* A tensor of an expert. */
struct part {
    const char *stack; /* name of its stack */
    int64_t number;
    size_t tensor; /* index in the list of tensors */
};

static int compare_parts(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    int order = strcmp(a->stack, b->stack);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static int fail_missing(const struct ah_weight_tensors *tensors, const struct part *parts, size_t count, int64_t number)
{
    char *name;
    AH_TRY(ah__stack_part_name(&name, parts[0].stack, number));
    int status = ah__fail(AH_EINPUT, "%s: found no tensor '%.120s', expected one for each expert, from 0 to %" PRId64,
                          tensors->path, name, parts[count - 1].number);
    ah__free(name);
    return status;
}

static bool is_alike(const struct ah_weight_tensor *a, const struct ah_weight_tensor *b)
{
    return strcmp(a->type_name, b->type_name) == 0 && a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static int parts_check(const struct ah_weight_tensors *tensors, const struct part *parts, size_t count)
{
    const struct ah_weight_tensor *first = &tensors->tensors[parts[0].tensor];
    for (size_t i = 0; i < count; i++) {
        const struct ah_weight_tensor *tensor = &tensors->tensors[parts[i].tensor];
        if (parts[i].number != (int64_t)i)
            return fail_missing(tensors, parts, count, (int64_t)i);
        if (!is_alike(tensor, first))
            return ah__fail(AH_ECORRUPT,
                            "%s: tensor '%.120s': found another type or shape than expert 0's, expected "
                            "the same",
                            tensors->path, tensor->name);
    }
    return AH_OK;
}

/* Makes one tensor of the parts of a stack. */
static int stack_make(struct ah_weight_tensor *out, struct ah_weight_tensors *tensors, const struct part *parts,
                      size_t count)
{
    const struct ah_weight_tensor *first = &tensors->tensors[parts[0].tensor];
    const unsigned char **data;
    AH_TRY(parts_check(tensors, parts, count));
    if (first->rank == AH_SAFETENSORS_RANK)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%.120s': found %d dimensions, expected fewer", tensors->path,
                        first->name, first->rank);
    AH_TRY(ah__arena_new(&tensors->arena, &data, count, sizeof *data));
    for (size_t i = 0; i < count; i++)
        data[i] = tensors->tensors[parts[i].tensor].data;
    *out = *first;
    out->name = parts[0].stack;
    out->rank++;
    memmove(out->dim + 1, first->dim, (size_t)first->rank * sizeof *first->dim);
    out->dim[0] = (int64_t)count;
    out->parts = data;
    out->part_count = count;
    out->bytes = first->bytes * count;
    return AH_OK;
}

static size_t parts_alike(const struct part *parts, size_t count)
{
    size_t length = 1;
    while (length < count && strcmp(parts[length].stack, parts[0].stack) == 0)
        length++;
    return length;
}

/* Replaces the parts, in order of stacks, by their stacks. */
static int stacks_make(struct ah_weight_tensors *tensors, struct part *parts, size_t count)
{
    struct ah_weight_tensor *all;
    size_t stacks = 0, kept = 0;
    qsort(parts, count, sizeof *parts, compare_parts);
    for (size_t i = 0; i < count; i += parts_alike(parts + i, count - i))
        stacks++;
    AH_TRY(ah__arena_new(&tensors->arena, &all, tensors->count - count + stacks, sizeof *all));
    for (size_t i = 0, here; i < count; i += here) {
        here = parts_alike(parts + i, count - i);
        AH_TRY(stack_make(&all[kept++], tensors, parts + i, here));
    }
    for (size_t i = 0; i < count; i++)
        tensors->tensors[parts[i].tensor].name = NULL;
    for (size_t i = 0; i < tensors->count; i++)
        if (tensors->tensors[i].name)
            all[kept++] = tensors->tensors[i];
    tensors->tensors = all;
    tensors->count = kept;
    return ah__weight_tensors_sort(tensors);
}

static int gather(struct ah_weight_tensors *tensors)
{
    struct part *parts;
    size_t count = 0;
    AH_TRY(ah__new(&parts, tensors->count, sizeof *parts));
    int status = AH_OK;
    for (size_t i = 0; i < tensors->count && status == AH_OK; i++) {
        struct part *part = &parts[count];
        char *stack;
        status = ah__stack_name(&stack, &part->number, &tensors->arena, tensors->tensors[i].name);
        if (status == AH_OK && stack) {
            part->stack = stack;
            part->tensor = i;
            count++;
        }
    }
    if (status == AH_OK && count)
        status = stacks_make(tensors, parts, count);
    ah__free(parts);
    return status;
}

/* ---- apart in files, one here ------------------------------------------------------------------------------------ */

static const char *const part_ends[] = {".weight", ".bias"};

/* Makes a tensor whose rows, or elements of a bias, of each expert are those of `first`, then those of `second`. */
static int pair_make(struct ah_weight_tensor *first, struct ah_weight_tensors *tensors,
                     const struct ah_weight_tensor *second)
{
    const unsigned char **parts;
    if (!is_alike(first, second) || first->rank < 2 || first->dim[0] < 1)
        return ah__fail(AH_ECORRUPT,
                        "%s: tensor '%.120s': found another type or shape than '%.120s', expected the same",
                        tensors->path, second->name, first->name);
    size_t count = (size_t)first->dim[0], bytes = first->bytes / count;
    AH_TRY(ah__arena_new(&tensors->arena, &parts, 2 * count, sizeof *parts));
    for (size_t i = 0; i < count; i++) {
        parts[2 * i] = first->data + i * bytes;
        parts[2 * i + 1] = second->data + i * bytes;
    }
    first->parts = parts;
    first->part_count = 2 * count;
    first->bytes *= 2;
    first->dim[1] *= 2;
    return AH_OK;
}

/* Returns the length of the module's name before AH_GGUF_PART and an end; 0: the name has no part. */
static size_t part_stem(const char **end, const char *name)
{
    for (size_t i = 0; i < AH_LENGTH(part_ends); i++) {
        size_t all = strlen(name), length = strlen(part_ends[i]), mark = sizeof AH_GGUF_PART - 1;
        *end = part_ends[i];
        if (all > length + mark && strcmp(name + all - length, *end) == 0 &&
            strncmp(name + all - length - mark, AH_GGUF_PART, mark) == 0)
            return all - length - mark;
    }
    return 0;
}

/* Joins tensors of a GGUF file that are one parameter here: those named NAME.weight and NAME.part.weight, or bias. */
static int pairs_join(struct ah_weight_tensors *tensors)
{
    size_t kept = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        const struct ah_weight_tensor *tensor = &tensors->tensors[i];
        const char *end;
        size_t stem = part_stem(&end, tensor->name);
        char *name;
        if (!stem)
            continue;
        AH_TRY(ah__sprintf(&name, "%.*s%s", (int)stem, tensor->name, end));
        struct ah_weight_tensor *first = (struct ah_weight_tensor *)ah__weight_tensors_find(tensors, name);
        ah__free(name);
        if (!first)
            continue;
        AH_TRY(pair_make(first, tensors, tensor));
        tensors->tensors[i].part_count = SIZE_MAX; /* it is none any more */
    }
    for (size_t i = 0; i < tensors->count; i++)
        if (tensors->tensors[i].part_count != SIZE_MAX)
            tensors->tensors[kept++] = tensors->tensors[i];
    tensors->count = kept;
    return AH_OK;
}

/* ---- as transformers has them in memory -------------------------------------------------------------------------- */

enum { WHOLE = -1 };
/* A view of tensors whose names have this end, before ".weight" or without it. */
static const struct view {
    const char *end, *hub;
    int half; /* 0 or 1: of each expert's rows; or WHOLE */
} views[] = {
    {".mlp.experts.gate_up_proj", ".mlp.experts.*.gate_proj.weight", 0},
    {".mlp.experts.gate_up_proj", ".mlp.experts.*.up_proj.weight", 1},
    {".mlp.experts.down_proj", ".mlp.experts.*.down_proj.weight", WHOLE},
    {".mlp.experts.gate_up_proj", ".block_sparse_moe.experts.*.w1.weight", 0},
    {".mlp.experts.gate_up_proj", ".block_sparse_moe.experts.*.w3.weight", 1},
    {".mlp.experts.down_proj", ".block_sparse_moe.experts.*.w2.weight", WHOLE},
    {".mlp.gate", ".block_sparse_moe.gate.weight", WHOLE},
    {".block_sparse_moe.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight", WHOLE},
    {".block_sparse_moe.experts.down_proj", ".block_sparse_moe.output_linear.weight", WHOLE},
    {".block_sparse_moe.router", ".block_sparse_moe.router.layer.weight", WHOLE},
    {".mlp.experts.gate_up_proj", ".mlp.experts.gate_up_proj^T2.weight", WHOLE},
    {".mlp.experts.gate_up_proj_bias", ".mlp.experts.gate_up_proj^T2.bias", WHOLE},
    {".mlp.experts.down_proj", ".mlp.experts.down_proj^T.weight", WHOLE},
    {".mlp.experts.down_proj_bias", ".mlp.experts.down_proj^T.bias", WHOLE},
    {".self_attn.sinks", ".self_attn.sinks^.weight", WHOLE},
};

/* Returns the length of what is before the view's end in a name; -1: the name has another end. */
static int stem_length(const char *name, const char *end)
{
    static const char weight[] = ".weight";
    size_t all = strlen(name), length = strlen(end), rest = sizeof weight - 1;
    if (all > rest && strcmp(name + all - rest, weight) == 0)
        all -= rest;
    return all > length && strncmp(name + all - length, end, length) == 0 ? (int)(all - length) : -1;
}

/* Makes a view one half of each expert's rows. */
static int half_take(struct ah_weight_tensor *out, struct ah_arena *arena, int half)
{
    size_t count = (size_t)out->dim[0], bytes = out->bytes / count;
    const unsigned char **parts;
    AH_TRY(ah__arena_new(arena, &parts, count, sizeof *parts));
    for (size_t i = 0; i < count; i++)
        parts[i] = out->data + i * bytes + (size_t)half * (bytes / 2);
    out->data = parts[0];
    out->parts = parts;
    out->part_count = count;
    out->bytes /= 2;
    out->dim[1] /= 2;
    return AH_OK;
}

/* Returns true if a view can be made of a tensor. */
static bool view_fits(const struct ah_weight_tensor *tensor, const struct view *view)
{
    bool moved = ah__stack_differs(ah__stack_layout(view->hub)), experts = tensor->rank > 1 && tensor->dim[0] > 0;
    if (view->half != WHOLE)
        return experts && tensor->rank == 3 && tensor->dim[1] % 2 == 0 && !tensor->scales;
    return !moved || (experts && tensor->rank <= 3 && !tensor->parts);
}

/* Gives a view the layout of its name. Codes in MXFP4 are not transposed. */
static void layout_take(struct ah_weight_tensor *to, const struct view *view)
{
    to->layout = ah__stack_layout(view->hub);
    to->layout.turned &= !to->scales && to->rank == 3;
    if (!to->layout.turned)
        return;
    int64_t outs = to->dim[2];
    to->dim[2] = to->dim[1];
    to->dim[1] = outs;
}

/* Lists a view of a tensor, if it can be made. */
static int view_add(struct ah_weight_tensors *tensors, const struct ah_weight_tensor *tensor, const struct view *view)
{
    struct ah_weight_tensor *to = &tensors->views[tensors->view_count];
    char *name;
    if (!view_fits(tensor, view))
        return AH_OK;
    *to = *tensor;
    to->of = tensor;
    layout_take(to, view);
    if (view->half != WHOLE)
        AH_TRY(half_take(to, &tensors->arena, view->half));
    AH_TRY(ah__sprintf(&name, "%.*s%s", stem_length(tensor->name, view->end), tensor->name, view->hub));
    int status = ah__arena_strdup(&tensors->arena, &to->name, name);
    ah__free(name);
    tensors->view_count++;
    return status;
}

/* Lists the views of all tensors, or counts them if there is no list. */
static int views_list(struct ah_weight_tensors *tensors, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < tensors->count; i++)
        for (size_t v = 0; v < AH_LENGTH(views); v++) {
            if (stem_length(tensors->tensors[i].name, views[v].end) < 0)
                continue;
            (*count)++;
            if (tensors->views)
                AH_TRY(view_add(tensors, &tensors->tensors[i], &views[v]));
        }
    return AH_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct ah_weight_tensor *)a)->name, ((const struct ah_weight_tensor *)b)->name);
}

int ah__weight_stacks(struct ah_weight_tensors *tensors)
{
    size_t count;
    AH_TRY(gather(tensors));
    if (tensors->gguf)
        AH_TRY(pairs_join(tensors));
    AH_TRY(views_list(tensors, &count));
    if (!count)
        return AH_OK;
    AH_TRY(ah__arena_new(&tensors->arena, &tensors->views, count, sizeof *tensors->views));
    AH_TRY(views_list(tensors, &count));
    qsort(tensors->views, tensors->view_count, sizeof *tensors->views, compare_names);
    return AH_OK;
}
