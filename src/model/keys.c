#include "model/keys.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Keys that do not affect the computation: keys of transformers' PretrainedConfig for every model, keys that tools
 * write into saved folders, and keys that only other heads, generation or training with dropout read. */
/* clang-format off */
static const char *const harmless[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_commit_hash", "_flash_attn_2_enabled", "_name_or_path",
    "_num_labels", "activation_dropout", "architectures", "attention_probs_dropout_prob", "auto_map", "bad_words_ids",
    "cache_implementation",
    "begin_suppress_tokens", "bos_token_id", "chunk_size_feed_forward", "classifier_dropout",
    "cross_attention_hidden_size", "custom_pipelines", "decoder_start_token_id", "diversity_penalty", "do_sample",
    "dtype", "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_id", "exponential_decay_length_penalty",
    "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing", "hidden_dropout_prob",
    "id2label", "initial_context_length", "is_decoder", "is_llama_config", "keys_to_ignore_at_inference", "label2id",
    "length_penalty",
    "line_by_line", "logits_to_keep", "loss_type", "max_length", "max_sequence_length", "min_length", "model_type",
    "n_ctx", "n_special", "neftune_noise_alpha", "no_repeat_ngram_size", "num_beam_groups", "num_beams",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_scores", "pad_token_id",
    "predict_special_tokens", "prefix", "pretraining_tp", "problem_type", "remove_invalid_values", "repetition_penalty",
    "return_dict", "return_dict_in_generate", "router_aux_loss_coef", "sep_token_id", "seq_length",
    "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "suppress_tokens",
    "task_specific_params", "temperature", "tf_legacy_loss", "tie_encoder_decoder", "tokenizer_class", "top_k", "top_p",
    "torch_dtype", "torchscript", "transformers.js_config", "transformers_version", "typical_p", "unsloth_fixed",
    "unsloth_version", "use_bfloat16", "use_cache", "use_return_dict"};
/* clang-format on */

/* Values that a key may hold, beside null. */
enum neutral {
    ONLY_NULL,
    ONLY_FALSE,
    ONLY_TRUE,
    ONLY_ZERO,
    ONLY_ONE,
    ONLY_EMPTY,
    AT_MOST_ONE,
    ALL_FULL,
    ROPE_DEFAULT,
    ONLY_MXFP4
};
static const char *const expected[] = {
    [ONLY_NULL] = "null",
    [ONLY_FALSE] = "false",
    [ONLY_TRUE] = "true",
    [ONLY_ZERO] = "0",
    [ONLY_ONE] = "1",
    [ONLY_EMPTY] = "{}",
    [AT_MOST_ONE] = "0 or 1",
    [ALL_FULL] = "\"full_attention\" alone",
    [ROPE_DEFAULT] = "null or rope_type \"default\"",
    [ONLY_MXFP4] = "null or quant_method \"mxfp4\"",
};

/* Keys that change the computation of some model, for families that do not read them. */
static const struct rule {
    const char *key;
    enum neutral neutral;
} rules[] = {
    {"_remove_final_layer_norm", ONLY_FALSE},
    {"add_cross_attention", ONLY_FALSE},
    {"alibi", ONLY_FALSE},
    {"attention_bias", ONLY_FALSE},
    {"attention_chunk_size", ONLY_NULL},
    {"attention_multiplier", ONLY_NULL},
    {"attn_logit_softcapping", ONLY_NULL},
    {"clip_qkv", ONLY_NULL},
    {"compression_config", ONLY_NULL},
    {"do_layer_norm_before", ONLY_TRUE},
    {"embedding_multiplier", ONLY_ONE},
    {"enable_bias", ONLY_TRUE},
    {"final_logit_softcapping", ONLY_NULL},
    {"full_attn_mod", ONLY_ONE},
    {"interpolate_factor", ONLY_ONE},
    {"is_encoder_decoder", ONLY_FALSE},
    {"kv_lora_rank", ONLY_NULL},
    {"layer_norm_elementwise_affine", ONLY_TRUE},
    {"layer_types", ALL_FULL},
    {"lm_head_bias", ONLY_FALSE},
    {"logit_scale", ONLY_ONE},
    {"logits_scaling", ONLY_ONE},
    {"mlp_bias", ONLY_FALSE},
    {"moe_intermediate_size", ONLY_NULL},
    {"output_router_logits", ONLY_FALSE},
    {"router_jitter_noise", ONLY_ZERO},
    {"n_routed_experts", ONLY_NULL},
    {"no_rope_layer_interval", ONLY_NULL},
    {"no_rope_layers", ONLY_NULL},
    {"num_experts", AT_MOST_ONE},
    {"num_experts_per_tok", AT_MOST_ONE},
    {"num_local_experts", AT_MOST_ONE},
    {"partial_rotary_factor", ONLY_ONE},
    {"pruned_heads", ONLY_EMPTY},
    {"qk_layernorm", ONLY_FALSE},
    {"quantization_config", ONLY_MXFP4},
    {"query_pre_attn_scalar", ONLY_NULL},
    {"reorder_and_upcast_attn", ONLY_FALSE},
    {"residual_multiplier", ONLY_ONE},
    {"rope_interleaved", ONLY_FALSE},
    {"rope_local_base_freq", ONLY_NULL},
    {"rope_parameters", ROPE_DEFAULT},
    {"rope_scaling", ROPE_DEFAULT},
    {"scale_attn_by_inverse_layer_idx", ONLY_FALSE},
    {"scale_attn_weights", ONLY_TRUE},
    {"scale_depth", ONLY_NULL},
    {"scale_emb", ONLY_ONE},
    {"sliding_window", ONLY_NULL},
    {"text_config", ONLY_NULL},
    {"use_bidirectional_attention", ONLY_FALSE},
    {"use_mrope", ONLY_FALSE},
    {"use_parallel_residual", ONLY_FALSE},
    {"use_qk_norm", ONLY_FALSE},
    {"use_qkv_bias", ONLY_FALSE},
    {"use_sliding_window", ONLY_FALSE},
    {"vision_config", ONLY_NULL},
};

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool is_word(const cJSON *value, const char *word)
{
    return cJSON_IsString(value) && strcmp(value->valuestring, word) == 0;
}

static bool all_full(const cJSON *array)
{
    const cJSON *type;
    if (!cJSON_IsArray(array))
        return false;
    cJSON_ArrayForEach(type, array)
    {
        if (!is_word(type, "full_attention"))
            return false;
    }
    return true;
}

static bool rope_default(const cJSON *object)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(object, "rope_type");
    type = type ? type : cJSON_GetObjectItemCaseSensitive(object, "type");
    return cJSON_IsObject(object) && (!type || is_word(type, "default"));
}

static bool is_neutral(const cJSON *value, enum neutral neutral)
{
    if (cJSON_IsNull(value))
        return true;
    switch (neutral) {
    case ONLY_NULL:
        return false;
    case ONLY_FALSE:
        return cJSON_IsFalse(value);
    case ONLY_TRUE:
        return cJSON_IsTrue(value);
    case ONLY_ZERO:
        return cJSON_IsNumber(value) && value->valuedouble >= 0 && value->valuedouble <= 0;
    case ONLY_ONE:
        return cJSON_IsNumber(value) && value->valuedouble >= 1 && value->valuedouble <= 1;
    case ONLY_EMPTY:
        return (cJSON_IsObject(value) || cJSON_IsArray(value)) && !value->child;
    case AT_MOST_ONE:
        return cJSON_IsNumber(value) && value->valuedouble >= 0 && value->valuedouble <= 1;
    case ALL_FULL:
        return all_full(value);
    case ROPE_DEFAULT:
        return rope_default(value);
    case ONLY_MXFP4: /* its tensors are read as what they stand for */
        return is_word(cJSON_GetObjectItemCaseSensitive(value, "quant_method"), "mxfp4");
    }
    return false;
}

/* Prints a value as text, cut to fit a message. */
static int found_print(char *text, size_t size, const cJSON *value)
{
    char *whole = cJSON_PrintUnformatted(value);
    if (!whole)
        return ah__fail(AH_ENOMEM, "out of host memory: model configuration");
    bool fits = strlen(whole) < size;
    snprintf(text, size, "%.*s%s", (int)(fits ? size : size - 4), whole, fits ? "" : "...");
    cJSON_free(whole);
    return AH_OK;
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static const struct rule *rule_of(const char *key)
{
    for (size_t i = 0; i < AH_LENGTH(rules); i++)
        if (strcmp(rules[i].key, key) == 0)
            return &rules[i];
    return NULL;
}

static bool is_listed(const char *key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static size_t length_of(const char *const *keys)
{
    size_t count = 0;
    while (keys[count])
        count++;
    return count;
}

static const char unquantized[] =
    ": the model as it was before it was quantized; --frozen nf4 keeps what adapters leave "
    "frozen in 4 bits";

/* Adds a key to the faults or to the unknown keys, if it belongs to them. */
static int key_check(struct ah_buf *faults, struct ah_buf *unknown, const cJSON *member)
{
    char found[64];
    const struct rule *rule = rule_of(member->string);
    if (!rule) {
        ah__buf_printf(unknown, "%s%s", unknown->length ? ", " : "", member->string);
        return AH_OK;
    }
    if (is_neutral(member, rule->neutral))
        return AH_OK;
    AH_TRY(found_print(found, sizeof found, member));
    bool quantized = strcmp(member->string, "quantization_config") == 0;
    ah__buf_printf(faults, "%skey '%s': found %s, expected %s%s", faults->length ? "; " : "", member->string, found,
                   expected[rule->neutral], quantized ? unquantized : "");
    return AH_OK;
}

static int keys_sort(struct ah_buf *faults, struct ah_buf *unknown, const struct ah_json *json, const char *const *read)
{
    size_t count = length_of(read);
    const cJSON *member;
    cJSON_ArrayForEach(member, json->node)
    {
        if (!is_listed(member->string, read, count) && !is_listed(member->string, harmless, AH_LENGTH(harmless)))
            AH_TRY(key_check(faults, unknown, member));
    }
    return faults->status != AH_OK ? faults->status : unknown->status;
}

int ah__config_check(char **note, const struct ah_json *json, const char *const *read)
{
    struct ah_buf faults = {0}, unknown = {0};
    int status = keys_sort(&faults, &unknown, json, read);
    if (status == AH_OK && faults.length)
        status = ah__fail(AH_EINPUT, "%s: %s", json->path, faults.text);
    if (status == AH_OK) {
        *note = NULL;
        if (unknown.length)
            status =
                ah__sprintf(note, "%s: keys that are not known here and not read: %.1000s", json->path, unknown.text);
    }
    ah__buf_free(&faults);
    ah__buf_free(&unknown);
    return status;
}
