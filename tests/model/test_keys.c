/* Keys of config.json that no family reads: what public models' files hold is taken, what asks for other arithmetic is
 * refused with all of its kind at once, what nobody knows is noted. */
#include <string.h>

#include "model/model.h"
#include "test.h"

#define SIZES                                                                                                          \
    "\"vocab_size\":61,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"hidden_size\":32,"                          \
    "\"max_position_embeddings\":16,\"intermediate_size\":48"
static const struct {
    const char *name, *text;
} families[] = {
    {"llama", "{\"model_type\":\"llama\"," SIZES},
    {"mistral", "{\"model_type\":\"mistral\"," SIZES},
    {"qwen2", "{\"model_type\":\"qwen2\"," SIZES},
    {"qwen3", "{\"model_type\":\"qwen3\"," SIZES},
    {"gpt_neox", "{\"model_type\":\"gpt_neox\"," SIZES},
    {"gpt2", "{\"model_type\":\"gpt2\",\"vocab_size\":61,\"n_positions\":16,\"n_embd\":32,\"n_layer\":2,\"n_head\":4"},
    {"opt", "{\"model_type\":\"opt\",\"vocab_size\":61,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
            "\"hidden_size\":32,\"max_position_embeddings\":16,\"ffn_dim\":48"},
};

static int parse(struct ah_model **out, const char *family, const char *members)
{
    char text[2048];
    for (size_t i = 0; i < AH_LENGTH(families); i++)
        if (strcmp(families[i].name, family) == 0)
            snprintf(text, sizeof text, "%s,%s}", families[i].text, members);
    return ah__model_parse(out, text, strlen(text), "m.json");
}

/* Whose file has it, and what it holds there. */
static const struct {
    const char *family, *members, *where;
} taken[] = {
    {"llama", "\"_attn_implementation_autoset\":true", "saved by transformers 4.46 to 4.51"},
    {"llama", "\"unsloth_fixed\":true,\"unsloth_version\":\"2025.1\"", "unsloth/*"},
    {"llama", "\"is_llama_config\":true,\"rope_interleaved\":false", "HuggingFaceTB/SmolLM*"},
    {"llama", "\"transformers.js_config\":{\"kv_cache_dtype\":{\"q4f16\":\"float16\"}}", "SmolLM2-*-Instruct"},
    {"llama", "\"max_sequence_length\":2048", "huggyllama/llama-7b"},
    {"llama", "\"quantization_config\":null", "saved after dequantize()"},
    {"llama", "\"quantization_config\":{\"quant_method\":\"mxfp4\",\"modules_to_not_convert\":[\"lm_head\"]}",
     "as openai/gpt-oss-*"},
    {"llama", "\"_flash_attn_2_enabled\":false", "saved by transformers 4.36"},
    {"llama", "\"neftune_noise_alpha\":5,\"gradient_checkpointing\":false", "saved by TRL"},
    {"llama", "\"auto_map\":{\"AutoModelForCausalLM\":\"x.Y\"},\"loss_type\":\"ForCausalLM\"", "many"},
    {"llama", "\"max_length\":4096,\"temperature\":0.9,\"top_p\":0.6,\"do_sample\":true", "early Llama-2"},
    {"llama", "\"is_decoder\":false,\"is_encoder_decoder\":false,\"tie_encoder_decoder\":false", "to_json, all keys"},
    {"llama", "\"torchscript\":false,\"pruned_heads\":{},\"sep_token_id\":null,\"prefix\":null", "to_json, all keys"},
    {"llama", "\"add_cross_attention\":false,\"cross_attention_hidden_size\":null", "to_json, all keys"},
    {"llama", "\"tf_legacy_loss\":false,\"use_bfloat16\":false,\"num_beams\":1", "to_json, all keys"},
    {"llama", "\"eos_token_id\":[0,1],\"pretraining_tp\":1,\"mlp_bias\":false", "Llama-3.1-8B-Instruct"},
    {"llama", "\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000}", "saved by transformers 5"},
    {"llama", "\"layer_types\":[\"full_attention\",\"full_attention\"],\"sliding_window\":null", "transformers 5"},
    {"qwen2", "\"use_mrope\":false", "Qwen/Qwen2.5-0.5B, DeepSeek-R1-Distill-Qwen-*"},
    {"qwen2", "\"attention_bias\":true,\"seq_length\":32768,\"logits_to_keep\":0", "several"},
    {"qwen3", "\"use_mrope\":false,\"unsloth_fixed\":true", "unsloth/Qwen3-*"},
    {"mistral", "\"attention_bias\":false,\"mlp_bias\":false,\"max_sequence_length\":1", "several"},
    {"gpt2", "\"n_ctx\":16,\"n_special\":0,\"predict_special_tokens\":true", "openai-community/gpt2-medium"},
    {"gpt2", "\"_num_labels\":1,\"id2label\":{\"0\":\"LABEL_0\"},\"label2id\":{\"LABEL_0\":0}", "distilgpt2"},
    {"gpt2", "\"task_specific_params\":{\"text-generation\":{\"do_sample\":true}}", "openai-community/gpt2"},
    {"gpt2", "\"summary_activation\":null,\"summary_first_dropout\":0.1,\"summary_type\":\"cls_index\"", "gpt2"},
    {"gpt_neox", "\"attention_probs_dropout_prob\":0,\"hidden_dropout_prob\":0", "EleutherAI/gpt-neox-20b"},
    {"gpt_neox", "\"custom_pipelines\":{},\"classifier_dropout\":0.1", "databricks/dolly-v2-*"},
    {"opt", "\"prefix\":\"</s>\",\"activation_dropout\":0.0,\"layerdrop\":0.0", "facebook/opt-*"},
};

static void public_keys_are_taken(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(taken); i++) {
        struct ah_model *model;
        if (parse(&model, taken[i].family, taken[i].members) != AH_OK)
            fail_msg("%s (%s): %s", taken[i].family, taken[i].where, ah_error());
        if (ah_model_note(model))
            fail_msg("%s (%s): noted: %s", taken[i].family, taken[i].where, ah_model_note(model));
        ah_model_free(model);
    }
}

static void other_arithmetic_is_refused(void **state)
{
    static const struct {
        const char *family, *members, *words;
    } cases[] = {
        {"llama", "\"quantization_config\":{\"bits\":4}",
         "m.json: key 'quantization_config': found {\"bits\":4}, expected null"},
        {"llama", "\"quantization_config\":{\"quant_method\":\"fp8\"}",
         "expected null or quant_method \"mxfp4\": the model as"},
        {"llama", "\"rope_interleaved\":true", "key 'rope_interleaved': found true, expected false"},
        {"llama", "\"sliding_window\":4096", "key 'sliding_window': found 4096, expected null"},
        {"llama", "\"residual_multiplier\":0.22", "key 'residual_multiplier': found 0.22, expected 1"},
        {"llama", "\"num_local_experts\":8", "key 'num_local_experts': found 8, expected 0 or 1"},
        {"llama", "\"layer_types\":[\"full_attention\",\"sliding_attention\"]", "expected \"full_attention\" alone"},
        {"llama", "\"layer_types\":7", "key 'layer_types': found 7"},
        {"llama", "\"pruned_heads\":{\"0\":[1]}", "key 'pruned_heads': found {\"0\":[1]}, expected {}"},
        {"mistral", "\"attention_bias\":true", "key 'attention_bias': found true, expected false"},
        {"gpt2", "\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}", "key 'rope_scaling': found {\"type\""},
        {"opt", "\"final_logit_softcapping\":30", "key 'final_logit_softcapping': found 30, expected null"},
        {"gpt2", "\"vision_config\":{\"a\":\"0123456789012345678901234567890123456789012345678901234567890\"}",
         "found {\"a\":\"012345678901234567890123456789012345678901234567890123..., expected null"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_model *model = NULL;
        assert_fails(parse(&model, cases[i].family, cases[i].members), AH_EINPUT, cases[i].words);
        assert_null(model);
    }
}

static void all_faults_are_named_at_once(void **state)
{
    struct ah_model *model = NULL;
    assert_fails(parse(&model, "llama", "\"alibi\":true,\"rms_norm_eps\":0,\"clip_qkv\":8"), AH_EINPUT,
                 "m.json: key 'alibi': found true, expected false; key 'clip_qkv': found 8, expected null; key "
                 "'rms_norm_eps': found 0");
    assert_null(model);
}

static void unknown_keys_are_noted(void **state)
{
    struct ah_model *model;
    assert_ok(parse(&model, "qwen2", "\"n_lair\":3,\"dtype\":\"bfloat16\",\"my_tool\":{\"a\":[1]}"));
    assert_string_equal(ah_model_note(model), "m.json: keys that are not known here and not read: n_lair, my_tool");
    assert_ok(ah__model_check(model, false));
    assert_fails(ah__model_check(model, true), AH_EINPUT,
                 "m.json: keys that are not known here and not read: n_lair, my_tool; expected none (--strict)");
    ah_model_free(model);
    assert_ok(parse(&model, "qwen2", "\"dtype\":\"bfloat16\""));
    assert_ok(ah__model_check(model, true));
    ah_model_free(model);
}

AH_TEST_CASES("model/keys", public_keys_are_taken, other_arithmetic_is_refused, all_faults_are_named_at_once,
              unknown_keys_are_noted)
