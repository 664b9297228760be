/* Names and layouts of parameters in GGUF files. */
#include <stdlib.h>
#include <string.h>

#include "gguf/arch_internal.h"
#include "gguf/config.h"

static const struct ah_gguf_rename model_names[] = {
    {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}, {NULL, NULL}};
static const struct ah_gguf_rename block_names[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},       {NULL, NULL},
};
static const struct ah_gguf_ordered pairs[] = {
    {"attn_q", AH_GGUF_QUERIES}, {"attn_k", AH_GGUF_KEYS}, {NULL, AH_GGUF_AS_OURS}};

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Returns the row whose name in files (`theirs`) or here is this one of `length` bytes, or null. */
static const struct ah_gguf_rename *row_of(const struct ah_gguf_rename *names, bool theirs, const char *name,
                                           size_t length)
{
    for (; names && names->gguf; names++) {
        const char *found = theirs ? names->gguf : names->ours;
        if (strlen(found) == length && strncmp(found, name, length) == 0)
            return names;
    }
    return NULL;
}

static const struct ah_gguf_rename *find(const struct ah_gguf_arch *arch, bool theirs, bool in_block, const char *name,
                                         size_t length)
{
    const struct ah_gguf_rename *outer = arch && arch->outer ? arch->outer : model_names,
                                *own = arch ? arch->own : NULL;
    if (!in_block)
        return row_of(outer, theirs, name, length);
    own = row_of(own, theirs, name, length);
    return own ? own : row_of(block_names, theirs, name, length);
}

/* Splits "blk.12.attn_q.weight", with "blk." for `before`, into the number 12 and the rest; false for another name. */
static bool block_of(long *block, const char **rest, const char *name, const char *before)
{
    char *end;
    size_t length = strlen(before);
    if (strncmp(name, before, length) != 0 || name[length] < '0' || name[length] > '9')
        return false;
    *block = strtol(name + length, &end, 10);
    *rest = end + 1;
    return *end == '.';
}

static const char *blocks_of(const struct ah_gguf_arch *arch)
{
    return arch && arch->blocks ? arch->blocks : "model.layers.";
}

/* Finds the row of one of our parameters, the end of its name, and its block, -1 outside of blocks. */
static const struct ah_gguf_rename *ours_find(long *block, const char **end, const struct ah_gguf_arch *arch,
                                              const char *param)
{
    const char *stem = param;
    bool in_block = block_of(block, &stem, param, blocks_of(arch));
    if (!in_block) {
        *block = -1;
        stem = param;
    }
    *end = strrchr(stem, '.');
    return *end ? find(arch, false, in_block, stem, (size_t)(*end - stem)) : NULL;
}

bool ah__gguf_name(char name[AH_GGUF_NAME_SIZE], const struct ah_model_def *def, const char *param)
{
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    const char *end;
    char before[32] = "";
    long block;
    const struct ah_gguf_rename *row = arch ? ours_find(&block, &end, arch, param) : NULL;
    if (!row)
        return false;
    if (block >= 0)
        snprintf(before, sizeof before, "blk.%ld.", block);
    snprintf(name, AH_GGUF_NAME_SIZE, "%s%s%s", before, row->gguf, end);
    return true;
}

bool ah__gguf_second(char name[AH_GGUF_NAME_SIZE], const struct ah_model_def *def, const char *param)
{
    const char *end = strrchr(param, '.');
    char part[AH_GGUF_NAME_SIZE];
    if (!end ||
        snprintf(part, sizeof part, "%.*s" AH_GGUF_PART "%s", (int)(end - param), param, end) >= (int)sizeof part)
        return false;
    return ah__gguf_name(name, def, part);
}

/* Finds the row of a file's tensor, the end of its name, and its block, -1 outside of blocks. */
static const struct ah_gguf_rename *theirs_find(long *block, const char **end, const struct ah_gguf_arch *arch,
                                                const char *tensor)
{
    const char *stem = tensor;
    bool in_block = block_of(block, &stem, tensor, "blk.");
    if (!in_block) {
        *block = -1;
        stem = tensor;
    }
    const char *dot = strrchr(stem, '.');
    *end = dot ? dot : stem + strlen(stem);
    return find(arch, true, in_block, stem, (size_t)(*end - stem));
}

bool ah__gguf_param(char name[AH_GGUF_NAME_SIZE], const struct ah_gguf *file, const char *tensor)
{
    char before[64] = "";
    const char *end;
    long block;
    const struct ah_gguf_arch *arch = NULL;
    snprintf(name, AH_GGUF_NAME_SIZE, "%.100s", tensor);
    if (ah__gguf_constant(tensor))
        return false;
    if (ah__gguf_arch_find(&arch, file) != AH_OK)
        arch = NULL;
    const struct ah_gguf_rename *row = theirs_find(&block, &end, arch, tensor);
    if (!row)
        return false;
    if (block >= 0)
        snprintf(before, sizeof before, "%s%ld.", blocks_of(arch), block);
    snprintf(name, AH_GGUF_NAME_SIZE, "%s%s%.32s", before, row->ours, end);
    return true;
}

bool ah__gguf_constant(const char *tensor)
{
    return strcmp(tensor, AH_GGUF_FACTORS) == 0 || strcmp(tensor, AH_GGUF_SHORT_FACTORS) == 0 ||
           strcmp(tensor, AH_GGUF_LONG_FACTORS) == 0;
}

static bool is_norm(const char *name)
{
    static const char end[] = "norm.weight";
    size_t length = strlen(name);
    return length >= sizeof end - 1 && strcmp(name + length - (sizeof end - 1), end) == 0;
}

int ah__gguf_added(float *added, const struct ah_gguf *file, const char *tensor)
{
    const struct ah_gguf_arch *arch;
    AH_TRY(ah__gguf_arch_find(&arch, file));
    *added = arch->adds_one && is_norm(tensor) ? 1 : 0;
    return AH_OK;
}

float ah__gguf_adds(const struct ah_model_def *def, const char *param)
{
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    return arch && arch->adds_one && is_norm(param) ? 1 : 0;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Returns the order of a row's tensor, if the architecture has another one for it. */
static enum ah_gguf_order order_of(const struct ah_gguf_arch *arch, const struct ah_gguf_rename *row)
{
    const struct ah_gguf_ordered *at = arch->permuted ? pairs : arch->ordered;
    for (; row && at && at->gguf; at++)
        if (strcmp(at->gguf, row->gguf) == 0)
            return at->order;
    return AH_GGUF_AS_OURS;
}

/* Fills the exchange for a matrix here [rows, width], or a vector (width 1). False if the rows do not divide into so
 * many heads. */
static bool swap_make(struct ah_gguf_swap *swap, enum ah_gguf_order order, int64_t heads, int64_t rows, int64_t width)
{
    int64_t parts = order == AH_GGUF_BY_PART ? 3 : 2;
    *swap = (struct ah_gguf_swap){.outer = 0};
    if (order == AH_GGUF_TURNED)
        *swap = (struct ah_gguf_swap){.outer = 1, .x = rows, .y = width, .inner = 1, .turned = true};
    if (order == AH_GGUF_AS_OURS || order == AH_GGUF_TURNED)
        return true;
    int64_t part = rows / (parts * heads);
    if (order == AH_GGUF_BY_PART)
        *swap = (struct ah_gguf_swap){.outer = 1, .x = heads, .y = parts, .inner = part * width};
    else
        *swap = (struct ah_gguf_swap){.outer = heads, .x = parts, .y = part, .inner = width};
    return part > 0 && rows % (parts * heads) == 0;
}

int ah__gguf_swapped(struct ah_gguf_swap *swap, const struct ah_gguf *file, const struct ah_gguf_tensor *tensor)
{
    const struct ah_gguf_arch *arch;
    const char *end;
    char room[AH_GGUF_KEY_SIZE];
    long block;
    int64_t heads = 1, rows = tensor->dim[0], width = tensor->rank > 1 ? tensor->dim[1] : 1;
    *swap = (struct ah_gguf_swap){.outer = 0};
    AH_TRY(ah__gguf_arch_find(&arch, file));
    enum ah_gguf_order order = order_of(arch, theirs_find(&block, &end, arch, tensor->name));
    if (order == AH_GGUF_AS_OURS || tensor->rank > 2 || (order == AH_GGUF_TURNED && tensor->rank != 2))
        return AH_OK;
    AH_TRY(ah__gguf_int(&heads, file, ah__gguf_key_of(room, arch, "attention.head_count"), 1, 1 << 16));
    if (order == AH_GGUF_KEYS)
        AH_TRY(ah__gguf_int(&heads, file, ah__gguf_key_of(room, arch, "attention.head_count_kv"), 1, 1 << 16));
    bool turned = order == AH_GGUF_TURNED;
    return swap_make(swap, order, heads, turned ? width : rows, turned ? rows : width)
               ? AH_OK
               : ah__fail(AH_ECORRUPT, "%s: tensor '%.80s': found %lld rows, expected %s in each of %lld heads",
                          ah__gguf_path(file), tensor->name, (long long)rows,
                          order == AH_GGUF_BY_PART ? "three parts" : "pairs", (long long)heads);
}

/* Reads the number of heads of a model's configuration; `fewer`: of keys, which may be fewer. */
static int heads_of(int64_t *heads, const struct ah_model_def *def, bool fewer)
{
    static const char *const keys[] = {"num_key_value_heads", "num_attention_heads", "n_head"};
    struct ah_json json;
    AH_TRY(ah__gguf_def_open(&json, def));
    size_t i = fewer ? 0 : 1;
    while (i + 1 < AH_LENGTH(keys) && !ah__json_has(&json, keys[i]))
        i++;
    int status = ah__json_int(heads, &json, keys[i], 1, 1 << 16);
    ah__json_free(&json);
    return status;
}

int ah__gguf_swaps(struct ah_gguf_swap *swap, const struct ah_model_def *def, const char *param,
                   const struct ah_shape *shape)
{
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    const char *end;
    long block;
    *swap = (struct ah_gguf_swap){.outer = 0};
    enum ah_gguf_order order = arch ? order_of(arch, ours_find(&block, &end, arch, param)) : AH_GGUF_AS_OURS;
    if (order == AH_GGUF_AS_OURS || (order == AH_GGUF_TURNED && shape->rank != 2))
        return AH_OK;
    int64_t heads = 1;
    if (order != AH_GGUF_TURNED)
        AH_TRY(heads_of(&heads, def, order == AH_GGUF_KEYS));
    return swap_make(swap, order, heads, shape->dim[0], shape->rank > 1 ? shape->dim[1] : 1)
               ? AH_OK
               : ah__fail(AH_EINPUT, "parameter '%.80s': found %lld rows, expected those of %lld heads", param,
                          (long long)shape->dim[0], (long long)heads);
}

void ah__gguf_swap(float *to, const float *from, const struct ah_gguf_swap *swap)
{
    for (int64_t o = 0; o < swap->outer; o++)
        for (int64_t x = 0; x < swap->x; x++)
            for (int64_t y = 0; y < swap->y; y++) {
                int64_t source = (o * swap->x + x) * swap->y + y, target = (o * swap->y + y) * swap->x + x;
                memcpy(to + target * swap->inner, from + source * swap->inner, (size_t)swap->inner * sizeof *to);
            }
}

bool ah__gguf_needs_head(const struct ah_model_def *def)
{
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    struct ah_json json;
    if (!arch || !arch->head_apart || ah__gguf_def_open(&json, def) != AH_OK)
        return false;
    bool tied = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json.node, "tie_word_embeddings"));
    ah__json_free(&json);
    return tied;
}
