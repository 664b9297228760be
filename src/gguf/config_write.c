/* Writes the keys of a model to GGUF files. */
#include <string.h>

#include "gguf/arch_internal.h"
#include "gguf/by_name.h"
#include "gguf/config.h"

/* Integers that are copied. */
static const struct ah_gguf_size copied[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.value_length", "head_dim"},
    {NULL, NULL},
};

/* Writes the number of a head's channels that rotate. */
static int put_turning(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t size;
    double part = 1;
    AH_TRY(ah__json_int(&size, &to->json, "head_dim", 1, 1 << 16));
    if (ah__json_has(&to->json, "partial_rotary_factor"))
        AH_TRY(ah__json_double(&part, &to->json, "partial_rotary_factor", 0, 1));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.dimension_count"),
                     (uint32_t)((double)size * part));
    return AH_OK;
}

static int put_size(const struct ah_gguf_written *to, const char *ours, const char *gguf)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t value;
    AH_TRY(ah__json_int(&value, &to->json, ours, 0, INT32_MAX));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, gguf), (uint32_t)value);
    return AH_OK;
}

/* Writes the keys that most families' config.json has. */
static int put_decoder(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    double eps, theta;
    AH_TRY(ah__json_double(&eps, &to->json, "rms_norm_eps", 0, 1));
    AH_TRY(ah__json_double(&theta, &to->json, "rope_theta", 0, 1e12));
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "attention.layer_norm_rms_epsilon"), (float)eps);
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.freq_base"), (float)theta);
    AH_TRY(put_turning(to));
    return ah__gguf_put_rope(to);
}

static int put_keys(const struct ah_gguf_written *to)
{
    for (const struct ah_gguf_size *at = to->arch->sizes ? to->arch->sizes : copied; at->gguf; at++)
        AH_TRY(put_size(to, at->ours, at->gguf));
    for (const struct ah_gguf_size *at = to->arch->experts; at && at->gguf; at++)
        AH_TRY(put_size(to, at->ours, at->gguf));
    AH_TRY(put_size(to, "vocab_size", "vocab_size"));
    if (!to->arch->sizes)
        AH_TRY(put_decoder(to));
    return to->arch->write ? to->arch->write(to) : AH_OK;
}

static int fail_architecture(const struct ah_model_def *def)
{
    return ah__fail(
        AH_EINPUT,
        "model '%s': GGUF is written of llama, mistral, ministral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, "
        "gemma, gemma2, gemma3_text, phi3, granite, granitemoe, olmo2, olmo3, olmoe, smollm3, gpt2, gpt_neox and "
        "gpt_oss; "
        "llama.cpp has no architecture for it",
        def->name);
}

int ah__gguf_put_architecture(struct ah_gguf_writer *writer, const struct ah_model_def *def)
{
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    if (!arch)
        return fail_architecture(def);
    ah__gguf_put_text(writer, "general.architecture", arch->name);
    return AH_OK;
}

int ah__gguf_put_config(struct ah_gguf_writer *writer, const struct ah_model_def *def)
{
    struct ah_gguf_written to = {.writer = writer, .arch = ah__gguf_arch_of(def->name)};
    AH_TRY(ah__gguf_put_architecture(writer, def));
    AH_TRY(ah__gguf_def_open(&to.json, def));
    int status = put_keys(&to);
    ah__json_free(&to.json);
    return status;
}

/* Notes that llama.cpp chooses between LongRoPE's factors by the size of its context, not by the text's length. */
static int note_longrope(struct ah_buf *notes, const struct ah_json *json)
{
    int64_t original, positions;
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(json->node, "rope_scaling");
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(rope, "type"));
    if (!type || strcmp(type, "longrope") != 0 || !ah__json_has(json, "original_max_position_embeddings"))
        return AH_OK;
    AH_TRY(ah__json_int(&original, json, "original_max_position_embeddings", 1, 1 << 24));
    AH_TRY(ah__json_int(&positions, json, "max_position_embeddings", 1, INT32_MAX));
    if (positions <= original)
        return AH_OK;
    ah__buf_printf(
        ah__gguf_clause(notes),
        "llama.cpp takes LongRoPE's long factors for all texts where its context (--ctx-size) is above %lld, "
        "and the short ones else; the model takes the short ones for texts up to that",
        (long long)original);
    return AH_OK;
}

int ah__gguf_note_config(struct ah_buf *notes, const struct ah_model_def *def)
{
    struct ah_json json;
    AH_TRY(ah__gguf_def_open(&json, def));
    const struct ah_gguf_arch *arch = ah__gguf_arch_of(def->name);
    int status = arch ? ah__gguf_note_window(notes, &json, arch) : AH_OK;
    if (status == AH_OK)
        status = note_longrope(notes, &json);
    ah__json_free(&json);
    return status;
}
