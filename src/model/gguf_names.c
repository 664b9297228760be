/* What GGUF files call parameters, and how they keep them. */
#include <stdlib.h>
#include <string.h>

#include "model/gguf.h"
#include "model/gguf_internal.h"

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

/* The other name of one of `length` bytes, null: none. */
static const char *ours_of(const struct ah_gguf_rename *names, const char *name, size_t length)
{
    for (; names && names->gguf; names++)
        if (strlen(names->gguf) == length && strncmp(names->gguf, name, length) == 0)
            return names->ours;
    return NULL;
}

static const char *theirs_of(const struct ah_gguf_rename *names, const char *name, size_t length)
{
    for (; names && names->ours; names++)
        if (strlen(names->ours) == length && strncmp(names->ours, name, length) == 0)
            return names->gguf;
    return NULL;
}

bool ah__gguf_name(char name[AH_GGUF_NAME_SIZE], const struct ah_model *model, const char *param)
{
    static const char blocks[] = "model.layers.";
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(ah_model_get(model)->name);
    const char *end = strrchr(param, '.'), *stem = param, *found;
    char before[32] = "";
    bool in_block = strncmp(param, blocks, sizeof blocks - 1) == 0;
    if (in_block) {
        char *rest;
        snprintf(before, sizeof before, "blk.%ld.", strtol(param + sizeof blocks - 1, &rest, 10));
        stem = *rest ? rest + 1 : rest;
    }
    if (!arch || end <= stem)
        return false;
    found = in_block ? theirs_of(arch->own, stem, (size_t)(end - stem)) : NULL;
    found = found ? found : theirs_of(in_block ? block_names : model_names, stem, (size_t)(end - stem));
    if (found)
        snprintf(name, AH_GGUF_NAME_SIZE, "%s%s%s", before, found, end);
    return found;
}

static bool translate(char out[AH_GGUF_NAME_SIZE], const char *before, const char *stem,
                      const struct ah_gguf_rename *own, const struct ah_gguf_rename *names)
{
    const char *end = strrchr(stem, '.');
    size_t length = end ? (size_t)(end - stem) : strlen(stem);
    const char *found = ours_of(own, stem, length);
    found = found ? found : ours_of(names, stem, length);
    if (found)
        snprintf(out, AH_GGUF_NAME_SIZE, "%s%s%s", before, found, end ? end : "");
    return found;
}

/* "blk.12.attn_q.weight" -> 12 and what stands behind it; false: another name. */
static bool block_of(long *block, const char **rest, const char *tensor)
{
    char *end;
    if (strncmp(tensor, "blk.", 4) != 0 || tensor[4] < '0' || tensor[4] > '9')
        return false;
    *block = strtol(tensor + 4, &end, 10);
    *rest = end + 1;
    return *end == '.';
}

bool ah__gguf_param(char name[AH_GGUF_NAME_SIZE], const struct ah_gguf *file, const char *tensor)
{
    char before[48];
    const char *rest;
    long block;
    const struct ah_gguf_arch *arch;
    snprintf(name, AH_GGUF_NAME_SIZE, "%.100s", tensor);
    if (ah__gguf_constant(tensor))
        return false;
    if (!block_of(&block, &rest, tensor))
        return translate(name, "", tensor, NULL, model_names);
    snprintf(before, sizeof before, "model.layers.%ld.", block);
    return translate(name, before, rest, ah__gguf_arch_find(&arch, file) == AH_OK ? arch->own : NULL, block_names);
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

float ah__gguf_adds(const struct ah_model *model, const char *param)
{
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(ah_model_get(model)->name);
    return arch && arch->adds_one && is_norm(param) ? 1 : 0;
}

int ah__gguf_permuted(int64_t *heads, const struct ah_gguf *file, const char *tensor)
{
    const struct ah_gguf_arch *arch;
    const char *rest;
    char room[AH_GGUF_KEY_SIZE];
    long block;
    *heads = 0;
    AH_TRY(ah__gguf_arch_find(&arch, file));
    if (!arch->permuted || !block_of(&block, &rest, tensor))
        return AH_OK;
    bool query = strncmp(rest, "attn_q.", 7) == 0;
    if (!query && strncmp(rest, "attn_k.", 7) != 0)
        return AH_OK;
    AH_TRY(ah__gguf_int(heads, file, ah__gguf_key_of(room, arch, "attention.head_count"), 1, 1 << 16));
    return query ? AH_OK
                 : ah__gguf_int(heads, file, ah__gguf_key_of(room, arch, "attention.head_count_kv"), 1, 1 << 16);
}
