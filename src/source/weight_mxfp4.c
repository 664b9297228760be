/* Tensors in MXFP4 as gpt-oss is published: NAME_blocks [.., G, 16], bytes of two codes each, and NAME_scales [.., G]
 * become one tensor [.., 32 G]. */
#include <string.h>

#include "base/status.h"
#include "op/mx.h"
#include "source/weight_tensors.h"

enum { GROUP = 32, GROUP_BYTES = GROUP / 2 };
static const char blocks_end[] = "_blocks", scales_end[] = "_scales", weight_end[] = ".weight", scope[] = "experts.";

/* Returns the length of what is before "_blocks" in the name of a tensor of bytes; 0: it has another name or type. */
static size_t stem_of(const struct ah_weight_tensor *tensor)
{
    size_t length = strlen(tensor->name), end = sizeof blocks_end - 1;
    bool is_blocks =
        strcmp(tensor->type_name, "U8") == 0 && length > end && strcmp(tensor->name + length - end, blocks_end) == 0;
    return is_blocks ? length - end : 0;
}

/* Finds the scales that belong to blocks, as an index in the list. */
static int scales_find(size_t *out, const struct ah_weight_tensors *tensors, const char *blocks, size_t stem)
{
    char *name;
    AH_TRY(ah__sprintf(&name, "%.*s%s", (int)stem, blocks, scales_end));
    const struct ah_weight_tensor *found = ah__weight_tensors_find(tensors, name);
    int status = AH_OK;
    if (found)
        *out = (size_t)(found - tensors->tensors);
    else
        status = ah__fail(AH_EINPUT, "%s: found no tensor '%.120s', expected one beside '%.120s'", tensors->path, name,
                          blocks);
    ah__free(name);
    return status;
}

static int pair_check(const struct ah_weight_tensors *tensors, const struct ah_weight_tensor *blocks,
                      const struct ah_weight_tensor *scales)
{
    int rank = blocks->rank;
    if (rank < 2)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%.120s': found a vector, expected blocks [.., %d]", tensors->path,
                        blocks->name, GROUP_BYTES);
    if (blocks->dim[rank - 1] != GROUP_BYTES)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%.120s': found rows of %lld bytes, expected %d", tensors->path,
                        blocks->name, (long long)blocks->dim[rank - 1], GROUP_BYTES);
    if (strcmp(scales->type_name, "U8") != 0)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%.120s': found %.16s, expected U8", tensors->path, scales->name,
                        scales->type_name);
    if (scales->rank != rank - 1 || memcmp(scales->dim, blocks->dim, (size_t)(rank - 1) * sizeof *blocks->dim) != 0)
        return ah__fail(
            AH_ECORRUPT,
            "%s: tensor '%.120s': found another shape than that of '%.120s', expected a byte for each row of it",
            tensors->path, scales->name, blocks->name);
    return AH_OK;
}

/* Makes the name of the one tensor: ".weight" in place of "_blocks", but experts' modules are their tensors. */
static int name_make(const char **out, struct ah_arena *arena, const char *blocks, size_t stem)
{
    const char *at = strstr(blocks, scope);
    size_t outer = at ? (size_t)(at - blocks) + sizeof scope - 1 : 0;
    bool fused = at && (at == blocks || at[-1] == '.') && !memchr(blocks + outer, '.', stem - outer);
    char *name;
    AH_TRY(ah__sprintf(&name, "%.*s%s", (int)stem, blocks, fused ? "" : weight_end));
    int status = ah__arena_strdup(arena, out, name);
    ah__free(name);
    return status;
}

static int pair_join(struct ah_weight_tensor *out, struct ah_weight_tensors *tensors,
                     const struct ah_weight_tensor *blocks, const struct ah_weight_tensor *scales)
{
    AH_TRY(pair_check(tensors, blocks, scales));
    *out = *blocks;
    out->type_name = "MXFP4";
    out->scales = scales->data;
    out->rank--;
    out->dim[out->rank - 1] *= GROUP;
    out->dim[out->rank] = 0;
    return name_make(&out->name, &tensors->arena, blocks->name, stem_of(blocks));
}

/* Lists all pairs as one tensor each, then what is no part of one. `used` [count] is false. */
static int join_all(struct ah_weight_tensors *tensors, struct ah_weight_tensor *all, bool *used)
{
    size_t kept = 0, scales = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        const struct ah_weight_tensor *blocks = &tensors->tensors[i];
        size_t stem = stem_of(blocks);
        if (!stem)
            continue;
        AH_TRY(scales_find(&scales, tensors, blocks->name, stem));
        AH_TRY(pair_join(&all[kept++], tensors, blocks, &tensors->tensors[scales]));
        used[i] = used[scales] = true;
    }
    for (size_t i = 0; i < tensors->count; i++)
        if (!used[i])
            all[kept++] = tensors->tensors[i];
    tensors->tensors = all;
    tensors->count = kept;
    return ah__weight_tensors_sort(tensors);
}

int ah__weight_mxfp4(struct ah_weight_tensors *tensors)
{
    struct ah_weight_tensor *all;
    bool *used;
    size_t pairs = 0;
    for (size_t i = 0; i < tensors->count; i++)
        pairs += stem_of(&tensors->tensors[i]) > 0;
    if (!pairs)
        return AH_OK;
    AH_TRY(ah__arena_new(&tensors->arena, &all, tensors->count, sizeof *all));
    AH_TRY(ah__new(&used, tensors->count, sizeof *used));
    int status = join_all(tensors, all, used);
    ah__free(used);
    return status;
}

void ah__weight_mxfp4_read(float *to, const struct ah_weight_tensor *tensor, int64_t count)
{
    static const float values[16] = AH_E2M1_VALUES;
    const unsigned char *blocks = tensor->data;
    for (int64_t g = 0; g < count / GROUP; g++, to += GROUP, blocks += GROUP_BYTES) {
        float scale = ah__e8m0_value(tensor->scales[g]);
        for (int i = 0; i < GROUP_BYTES; i++) {
            to[2 * i] = values[blocks[i] & 15] * scale;
            to[2 * i + 1] = values[blocks[i] >> 4] * scale;
        }
    }
}
