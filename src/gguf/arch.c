/* The architectures of GGUF files, as llama.cpp's converter writes them and llama.cpp computes them. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "gguf/arch_internal.h"
#include "gguf/config.h"

/* ---- llama, and mistral, a llama with a window ------------------------------------------------------------------- */

static const char *const window_keys[] = {"attention.sliding_window", "attention.sliding_window_pattern", NULL};

static int llama_read(const struct ah_gguf_config *config)
{
    int64_t window;
    AH_TRY(ah__gguf_add_window(&window, config));
    if (window <= 0)
        return AH_OK;
    cJSON *type = cJSON_CreateString("mistral");
    return type && cJSON_ReplaceItemInObjectCaseSensitive(config->tree, "model_type", type)
               ? AH_OK
               : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

/* ---- qwen2, qwen3 ------------------------------------------------------------------------------------------------ */

static int qwen_read(const struct ah_gguf_config *config)
{
    int64_t window;
    AH_TRY(ah__gguf_add_window(&window, config));
    if (window <= 0)
        return AH_OK;
    AH_TRY(ah__json_add_int(config->tree, "max_window_layers", 0));
    return ah__json_add_bool(config->tree, "use_sliding_window", true);
}

/* ---- gemma2, gemma3 ---------------------------------------------------------------------------------------------- */

static const struct ah_gguf_rename gemma_names[] = {{"post_attention_norm", "post_attention_layernorm"},
                                                    {"ffn_norm", "pre_feedforward_layernorm"},
                                                    {"post_ffw_norm", "post_feedforward_layernorm"},
                                                    {NULL, NULL}};
static const char *const gemma_keys[] = {"attention.sliding_window", "attention.sliding_window_pattern",
                                         "attn_logit_softcapping",   "final_logit_softcapping",
                                         "rope.freq_base_swa",       NULL};

/* Returns query_pre_attn_scalar, which llama.cpp derives from the number of blocks: only the largest model of each
 * family has another than a head's channels. */
static int64_t gemma_scalar(const struct ah_gguf_arch *arch, int64_t layers, int64_t hidden, int64_t heads,
                            int64_t size)
{
    bool largest = layers == (strcmp(arch->name, "gemma2") == 0 ? 46 : 62);
    return largest ? hidden / heads : size;
}

static int64_t number_of(const cJSON *tree, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, key);
    return cJSON_IsNumber(item) ? (int64_t)item->valuedouble : 0;
}

static int64_t scalar_of(const struct ah_gguf_arch *arch, const cJSON *tree)
{
    int64_t heads = number_of(tree, "num_attention_heads");
    return gemma_scalar(arch, number_of(tree, "num_hidden_layers"), number_of(tree, "hidden_size"),
                        heads > 0 ? heads : 1, number_of(tree, "head_dim"));
}

/* Returns true if blocks with a window rotate by the same base as the others. */
static bool bases_agree(const struct ah_gguf_config *config)
{
    char room[AH_GGUF_KEY_SIZE];
    double theta = 10000, others = 0;
    return ah__gguf_double(&theta, config->file, ah__gguf_key_of(room, config->arch, "rope.freq_base"), 0, 1e12) ==
               AH_OK &&
           ah__gguf_double(&others, config->file, ah__gguf_key_of(room, config->arch, "rope.freq_base_swa"), 0, 1e12) ==
               AH_OK &&
           !(others > 0 && (others < theta || others > theta));
}

/* Adds Gemma's keys. Without a window key, llama.cpp has no window in gemma3 and one of 4096 in gemma2, which is the
 * family's default. */
static int gemma_read(const struct ah_gguf_config *config)
{
    bool third = strcmp(config->arch->name, "gemma3") == 0;
    int64_t window;
    AH_TRY(ah__gguf_add_window(&window, config));
    if (third && window <= 0)
        AH_TRY(ah__gguf_add_types(config, 1));
    if (!third && !bases_agree(config))
        return ah__fail(AH_EINPUT,
                        "%s: key 'gemma2.rope.freq_base_swa': found another than 'gemma2.rope.freq_base', "
                        "expected the same",
                        ah__gguf_path(config->file));
    AH_TRY(ah__gguf_add_double(config, "attn_logit_softcapping", "attn_logit_softcapping"));
    AH_TRY(ah__gguf_add_double(config, "final_logit_softcapping", "final_logit_softcapping"));
    if (third)
        AH_TRY(ah__gguf_add_double(config, "rope.freq_base_swa", "rope_local_base_freq"));
    return ah__json_add_int(config->tree, "query_pre_attn_scalar", scalar_of(config->arch, config->tree));
}

static int put_double(const struct ah_gguf_written *to, const char *ours, const char *key)
{
    char room[AH_GGUF_KEY_SIZE];
    double value;
    if (!ah__json_has(&to->json, ours))
        return AH_OK;
    AH_TRY(ah__json_double(&value, &to->json, ours, -1e30, 1e30));
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, key), (float)value);
    return AH_OK;
}

static int gemma_write(const struct ah_gguf_written *to)
{
    bool second = strcmp(to->arch->name, "gemma2") == 0;
    double scalar;
    AH_TRY(ah__json_double(&scalar, &to->json, "query_pre_attn_scalar", 1, 1e6));
    int64_t expected = scalar_of(to->arch, to->json.node);
    if ((int64_t)scalar != expected)
        return ah__fail(AH_EINPUT, "%s: key 'query_pre_attn_scalar': found %g, expected %lld, which llama.cpp takes",
                        to->json.path, scalar, (long long)expected);
    if (!ah__gguf_types_are(&to->json, second ? 2 : 6))
        return ah__fail(AH_EINPUT,
                        "%s: key 'layer_types': found others, expected every %s block to see all, as llama.cpp "
                        "has it",
                        to->json.path, second ? "second" : "sixth");
    if (second &&
        !(ah__json_has(&to->json, "attn_logit_softcapping") && ah__json_has(&to->json, "final_logit_softcapping")))
        return ah__fail(AH_EINPUT,
                        "%s: keys 'attn_logit_softcapping' and 'final_logit_softcapping': found null, expected "
                        "numbers",
                        to->json.path);
    if (!second && ah__json_has(&to->json, "attn_logit_softcapping"))
        return ah__fail(AH_EINPUT, "%s: key 'attn_logit_softcapping': found a number, expected null", to->json.path);
    AH_TRY(ah__gguf_put_window(to));
    AH_TRY(put_double(to, "attn_logit_softcapping", "attn_logit_softcapping"));
    AH_TRY(put_double(to, "final_logit_softcapping", "final_logit_softcapping"));
    return put_double(to, "rope_local_base_freq", "rope.freq_base_swa");
}

/* ---- phi3 -------------------------------------------------------------------------------------------------------- */

static const struct ah_gguf_rename phi_names[] = {
    {"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}, {NULL, NULL}};
static const char *const phi_keys[] = {"attention.sliding_window", "attention.sliding_window_pattern",
                                       "rope.scaling.attn_factor", NULL};
static const char *const phi_tensors[2][2] = {{"short_factor", AH_GGUF_SHORT_FACTORS},
                                              {"long_factor", AH_GGUF_LONG_FACTORS}};

static int add_factors(const struct ah_gguf_config *config, cJSON *rope, const char *key, const char *name)
{
    const struct ah_gguf_tensor *tensor = ah__gguf_find(config->file, name);
    if (!tensor || tensor->rank != 1 || tensor->type->id != AH_GGUF_F32)
        return ah__fail(AH_ECORRUPT, "%s: tensor '%s': found %s, expected numbers in F32", ah__gguf_path(config->file),
                        name, tensor ? "another shape or type" : "nothing");
    cJSON *array = cJSON_AddArrayToObject(rope, key);
    bool added = array;
    for (int64_t i = 0; added && i < tensor->dim[0]; i++) {
        float value;
        memcpy(&value, tensor->data + (size_t)i * sizeof value, sizeof value);
        added = cJSON_AddItemToArray(array, cJSON_CreateNumber(ah__gguf_shortest((double)value)));
    }
    return added ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

/* Adds LongRoPE's factors, and attention_factor only if it differs from the one that follows from the lengths. */
static int phi_rope(const struct ah_gguf_config *config, int64_t original)
{
    char room[AH_GGUF_KEY_SIZE];
    double factor = (double)number_of(config->tree, "max_position_embeddings") / (double)original, given;
    double usual = factor > 1 ? sqrt(1 + log(factor) / log((double)original)) : 1;
    cJSON *rope = cJSON_AddObjectToObject(config->tree, "rope_scaling");
    AH_TRY(ah__json_add_string(rope, "type", "longrope"));
    for (int i = 0; i < 2; i++)
        AH_TRY(add_factors(config, rope, phi_tensors[i][0], phi_tensors[i][1]));
    given = usual;
    AH_TRY(ah__gguf_double(&given, config->file, ah__gguf_key_of(room, config->arch, "rope.scaling.attn_factor"), 1e-6,
                           1e6));
    return fabs(given - usual) > 1e-6 * usual ? ah__json_add_double(rope, "attention_factor", ah__gguf_shortest(given))
                                              : AH_OK;
}

static int phi_read(const struct ah_gguf_config *config)
{
    int64_t window, original;
    AH_TRY(ah__gguf_add_window(&window, config));
    AH_TRY(ah__gguf_read_int(&original, config, "rope.scaling.original_context_length"));
    if (original > 1)
        AH_TRY(ah__json_add_int(config->tree, "original_max_position_embeddings", original));
    return ah__gguf_find(config->file, AH_GGUF_LONG_FACTORS) ? phi_rope(config, original > 1 ? original : 4096) : AH_OK;
}

static int phi_write(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t original, positions = number_of(to->json.node, "max_position_embeddings");
    if (!ah__json_has(&to->json, "sliding_window")) /* llama.cpp recognizes Phi-4 by it */
        ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "attention.sliding_window"), 0);
    AH_TRY(ah__gguf_put_window(to));
    original = positions;
    if (ah__json_has(&to->json, "original_max_position_embeddings"))
        AH_TRY(ah__json_int(&original, &to->json, "original_max_position_embeddings", 1, 1 << 24));
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.original_context_length"),
                     (uint32_t)original);
    if (!ah__json_has(&to->json, "rope_scaling"))
        return AH_OK;
    struct ah_json rope;
    double factor = (double)positions / (double)original;
    AH_TRY(ah__json_object(&rope, &to->json, "rope_scaling"));
    factor = factor > 1 ? sqrt(1 + log(factor) / log((double)original)) : 1;
    if (ah__json_has(&rope, "attention_factor"))
        AH_TRY(ah__json_double(&factor, &rope, "attention_factor", 1e-6, 1e6));
    ah__gguf_put_float(to->writer, ah__gguf_key_of(room, to->arch, "rope.scaling.attn_factor"), (float)factor);
    return AH_OK;
}

/* ---- granite, olmo2 and olmo3, smollm3 --------------------------------------------------------------------------- */

static const struct {
    const char *ours, *key;
} granite_scales[] = {{"embedding_multiplier", "embedding_scale"},
                      {"residual_multiplier", "residual_scale"},
                      {"attention_multiplier", "attention.scale"},
                      {"logits_scaling", "logit_scale"}};
static const char *const granite_keys[] = {AH_GGUF_GRANITE_KEYS, NULL};

int ah__gguf_granite_read(const struct ah_gguf_config *config)
{
    int64_t size = number_of(config->tree, "head_dim");
    for (size_t i = 0; i < AH_LENGTH(granite_scales); i++)
        AH_TRY(ah__gguf_add_double(config, granite_scales[i].key, granite_scales[i].ours));
    if (cJSON_HasObjectItem(config->tree, "attention_multiplier"))
        return AH_OK;
    return ah__json_add_double(config->tree, "attention_multiplier", 1 / sqrt((double)size));
}

int ah__gguf_granite_write(const struct ah_gguf_written *to)
{
    for (size_t i = 0; i < AH_LENGTH(granite_scales); i++)
        AH_TRY(put_double(to, granite_scales[i].ours, granite_scales[i].key));
    return AH_OK;
}

static const struct ah_gguf_rename olmo_names[] = {
    {"post_attention_norm", "post_attention_layernorm"}, {"post_ffw_norm", "post_feedforward_layernorm"}, {NULL, NULL}};

static const char *const olmo_keys[] = {"attention.sliding_window", "attention.sliding_window_pattern",
                                        "rope.freq_base_swa", NULL};

/* Adds OLMo's keys. With a window the model is an OLMo 3; its two kinds of blocks must have one base of rotation. */
static int olmo_read(const struct ah_gguf_config *config)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t window;
    double theta = 10000; /* llama.cpp's default for both keys */
    AH_TRY(ah__gguf_read_int(&window, config, "attention.sliding_window"));
    if (window <= 0)
        return AH_OK;
    AH_TRY(ah__gguf_double(&theta, config->file, ah__gguf_key_of(room, config->arch, "rope.freq_base"), 0, 1e12));
    AH_TRY(ah__gguf_double(&theta, config->file, ah__gguf_key_of(room, config->arch, "rope.freq_base_swa"), 0, 1e12));
    if (fabs(theta - 500000) > 0)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %g, expected 500000", ah__gguf_path(config->file), room, theta);
    cJSON *type = cJSON_CreateString("olmo3");
    if (!type || !cJSON_ReplaceItemInObjectCaseSensitive(config->tree, "model_type", type))
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    AH_TRY(ah__json_add_int(config->tree, "sliding_window", window));
    return ah__gguf_add_types(config, 4);
}

/* Checks an OLMo for llama.cpp, where a window makes an OLMo 2 an OLMo 3 and all blocks rotate by one base. */
static int olmo_check(const struct ah_gguf_written *to)
{
    double theta;
    AH_TRY(ah__json_double(&theta, &to->json, "rope_theta", 0, 1e12));
    if (ah__json_has(&to->json, "sliding_window") && fabs(theta - 500000) > 0)
        return ah__fail(AH_EINPUT,
                        "%s: key 'rope_theta': found %g, expected 500000, by which blocks with a window turn",
                        to->json.path, theta);
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(to->json.node, "model_type");
    bool three = cJSON_IsString(type) && strcmp(type->valuestring, "olmo3") == 0;
    if (three && !ah__json_has(&to->json, "sliding_window") && ah__json_has(&to->json, "rope_scaling"))
        return ah__fail(AH_EINPUT,
                        "%s: key 'sliding_window': found null beside 'rope_scaling', expected a window: llama.cpp "
                        "scales all blocks of a model without one",
                        to->json.path);
    return AH_OK;
}

static int olmo_write(const struct ah_gguf_written *to)
{
    AH_TRY(olmo_check(to));
    if (!ah__gguf_types_are(&to->json, 4))
        return ah__fail(AH_EINPUT,
                        "%s: key 'layer_types': found others, expected every fourth block to see all, as llama.cpp "
                        "has it",
                        to->json.path);
    return ah__gguf_put_window(to);
}

static int smollm_write(const struct ah_gguf_written *to)
{
    const cJSON *turns;
    int64_t i = 0;
    cJSON_ArrayForEach(turns, cJSON_GetObjectItemCaseSensitive(to->json.node, "no_rope_layers"))
    {
        if ((++i % 4 == 0) != (turns->valueint == 0))
            return ah__fail(AH_EINPUT,
                            "%s: key 'no_rope_layers': found others, expected every fourth block not to rotate, "
                            "as llama.cpp has it",
                            to->json.path);
    }
    return AH_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const struct ah_gguf_arch archs[] = {
    AH_GGUF_ARCH("llama", "llama", .permuted = true, .states_bias = true, .states_mlp_bias = true, .yarn = true,
                 .honoured = window_keys, .read = llama_read, .write = ah__gguf_put_window),
    AH_GGUF_ARCH("qwen2", "qwen2", .yarn = true, .honoured = window_keys, .read = qwen_read,
                 .write = ah__gguf_put_window),
    AH_GGUF_ARCH("qwen3", "qwen3", .states_bias = true, .yarn = true, .honoured = window_keys, .read = qwen_read,
                 .write = ah__gguf_put_window),
    AH_GGUF_ARCH("gemma", "gemma", .adds_one = true),
    AH_GGUF_ARCH("gemma2", "gemma2", .adds_one = true, .windows = true, .own = gemma_names, .honoured = gemma_keys,
                 .read = gemma_read, .write = gemma_write),
    AH_GGUF_ARCH("gemma3", "gemma3_text", .adds_one = true, .windows = true, .own = gemma_names, .honoured = gemma_keys,
                 .read = gemma_read, .write = gemma_write),
    AH_GGUF_ARCH("phi3", "phi3", .partial = true, .own = phi_names, .honoured = phi_keys, .read = phi_read,
                 .write = phi_write),
    AH_GGUF_ARCH("granite", "granite", .permuted = true, .states_bias = true, .states_mlp_bias = true, .yarn = true,
                 .honoured = granite_keys, .read = ah__gguf_granite_read, .write = ah__gguf_granite_write),
    AH_GGUF_ARCH("olmo2", "olmo2", .windows = true, .states_bias = true, .yarn = true, .own = olmo_names,
                 .honoured = olmo_keys, .read = olmo_read, .write = olmo_write),
    AH_GGUF_ARCH("smollm3", "smollm3", .permuted = true, .states_bias = true, .states_mlp_bias = true, .yarn = true,
                 .write = smollm_write),
};

enum { ARCHS = AH_LENGTH(archs), PLAIN = ARCHS + AH_GGUF_GPTS, ALL = PLAIN + AH_GGUF_MIXTURES };

static const struct ah_gguf_arch *arch_at(size_t i)
{
    return i < ARCHS ? &archs[i] : i < PLAIN ? &ah__gguf_gpts[i - ARCHS] : &ah__gguf_mixtures[i - PLAIN];
}

const struct ah_gguf_arch *ah__gguf_arch_of(const char *model_type)
{
    const char *type = strcmp(model_type, "mistral") == 0     ? "llama"
                       : strcmp(model_type, "ministral") == 0 ? "llama"
                       : strcmp(model_type, "olmo3") == 0     ? "olmo2"
                                                              : model_type;
    for (size_t i = 0; i < ALL; i++)
        if (strcmp(arch_at(i)->model_type, type) == 0)
            return arch_at(i);
    return NULL;
}

static const struct ah_gguf_arch *arch_named(const char *name, bool experts)
{
    for (size_t i = 0; i < ALL; i++)
        if (strcmp(arch_at(i)->name, name) == 0 && (arch_at(i)->experts != NULL) == experts)
            return arch_at(i);
    return NULL;
}

/* Lists the names, each once. */
static void names_list(char *names, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < ALL && used < size; i++)
        if (!arch_at(i)->experts || !arch_named(arch_at(i)->name, false))
            used += (size_t)snprintf(names + used, size - used, "%s%s", i ? ", " : "", arch_at(i)->name);
}

int ah__gguf_arch_find(const struct ah_gguf_arch **out, const struct ah_gguf *file)
{
    char names[256] = "", key[AH_GGUF_KEY_SIZE];
    const char *name = NULL;
    int64_t experts = 0;
    AH_TRY(ah__gguf_text(&name, file, "general.architecture"));
    if (name) {
        snprintf(key, sizeof key, "%.100s.expert_count", name);
        AH_TRY(ah__gguf_int(&experts, file, key, 0, INT32_MAX));
        *out = arch_named(name, experts > 0);
        if (!*out)
            *out = arch_named(name, experts <= 0);
    }
    if (name && *out)
        return AH_OK;
    names_list(names, sizeof names);
    return ah__fail(AH_EINPUT, "%s: key 'general.architecture': found %s%.40s%s, expected one of %s",
                    ah__gguf_path(file), name ? "'" : "nothing", name ? name : "", name ? "'" : "", names);
}
