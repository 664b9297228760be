/* The families beside GPT-2: every wrong key named, what means the same has the same canonical text, and the sizes of
 * well-known models. Their arithmetic: tests/partition/test_families.c and tests/run/test_families.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "model/model.h"
#include "test.h"

#define SIZES                                                                                                          \
    "\"vocab_size\":61,\"hidden_size\":32,\"num_hidden_layers\":2,\"num_attention_heads\":4,"                          \
    "\"max_position_embeddings\":16"
#define GATED SIZES ",\"intermediate_size\":48"
#define LLAMA "{\"model_type\":\"llama\"," GATED
#define MISTRAL "{\"model_type\":\"mistral\"," GATED
#define MINISTRAL "{\"model_type\":\"ministral\"," GATED
#define QWEN2 "{\"model_type\":\"qwen2\"," GATED
#define QWEN3 "{\"model_type\":\"qwen3\"," GATED
#define QWEN3_MOE                                                                                                      \
    "{\"model_type\":\"qwen3_moe\"," GATED ",\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":12"
#define QWEN2_MOE                                                                                                      \
    "{\"model_type\":\"qwen2_moe\"," GATED                                                                             \
    ",\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":12,"                                       \
    "\"shared_expert_intermediate_size\":20"
#define GRANITEMOE "{\"model_type\":\"granitemoe\"," GATED ",\"num_local_experts\":4,\"num_experts_per_tok\":2"
#define GPT_OSS                                                                                                        \
    "{\"model_type\":\"gpt_oss\"," GATED                                                                               \
    ",\"num_key_value_heads\":2,\"head_dim\":8,\"num_local_experts\":4,\"num_experts_per_tok\":2"
#define OLMOE "{\"model_type\":\"olmoe\"," GATED ",\"num_experts\":4,\"num_experts_per_tok\":2"
#define MIXTRAL "{\"model_type\":\"mixtral\"," GATED ",\"num_key_value_heads\":2,\"num_local_experts\":4"
#define GRANITE "{\"model_type\":\"granite\"," GATED
#define OLMO2 "{\"model_type\":\"olmo2\"," GATED
#define SMOLLM3 "{\"model_type\":\"smollm3\"," GATED
#define GEMMA "{\"model_type\":\"gemma\"," GATED ",\"num_key_value_heads\":4"
#define GEMMA2 "{\"model_type\":\"gemma2\"," GATED
#define GEMMA3 "{\"model_type\":\"gemma3_text\"," GATED
#define OLMO3 "{\"model_type\":\"olmo3\"," GATED
#define PHI3 "{\"model_type\":\"phi3\"," GATED
#define NEOX "{\"model_type\":\"gpt_neox\"," GATED
#define OPT "{\"model_type\":\"opt\"," SIZES ",\"ffn_dim\":48"
#define LLAMA3 "\"factor\":8,\"low_freq_factor\":1,\"high_freq_factor\":4,\"original_max_position_embeddings\":8"

#define LONG "\"short_factor\":[1,1.25,1.3,1.5],\"long_factor\":[1,1.1,4,16.08]"

static int parse(struct ah_model **out, const char *text)
{
    return ah__model_parse(out, text, strlen(text), "m.json");
}

static const struct {
    const char *text, *words;
} wrong[] = {
    {LLAMA ",\"quantization_config\":{}}", "m.json: key 'quantization_config': found {}, expected null"},
    {LLAMA ",\"num_key_value_heads\":3}", "key 'num_key_value_heads': found 3, expected a divisor of"},
    {LLAMA ",\"head_dim\":7}", "key 'head_dim': 7 of 7 channels of a head rotate, expected an even number"},
    {LLAMA ",\"hidden_act\":\"gelu\"}", "key 'hidden_act': found 'gelu', expected 'silu' or 'swish'"},
    {LLAMA ",\"rms_norm_eps\":0}", "key 'rms_norm_eps': found 0"},
    {LLAMA ",\"attention_dropout\":2}", "key 'attention_dropout': found 2"},
    {LLAMA ",\"sliding_window\":4}", "key 'sliding_window': found 4, expected null"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\"}}", "key 'rope_scaling.factor': found nothing"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"ntk\",\"factor\":2}}",
     "m.json: key 'rope_scaling.type': found 'ntk', expected 'default' or 'linear' or 'dynamic' or 'llama3' or "
     "'yarn' or 'longrope' or 'su'"},
    {LLAMA ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":0.5}}", "key 'rope_parameters.factor': found 0.5"},
    {LLAMA ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"factor\":2,\"beta_slow\":40}}",
     "key 'rope_parameters.beta_slow': found 40, expected less than beta_fast 32"},
    {OLMO3 ",\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":100}}}",
     "key 'rope_parameters.sliding_attention.rope_theta': found 100, expected 500000"},
    {LLAMA ",\"rope_parameters\":{\"rope_type\":\"longrope\"}}",
     "key 'rope_parameters.short_factor': found nothing, expected an array of numbers"},
    {PHI3 ",\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,1,1,0],\"long_factor\":[1,1,1,1]}}",
     "key 'rope_scaling.short_factor.3': found another value, expected a number above 0"},
    {PHI3 ",\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1,1,1,1],\"long_factor\":[1,1,1]}}",
     "key 'rope_scaling.long_factor': found 3 numbers, expected as many as short_factor has"},
    {PHI3 ",\"rope_scaling\":{\"type\":\"longrope\",\"short_factor\":[1,2,3],\"long_factor\":[1,2,3]}}",
     "key 'rope_scaling.short_factor': found 3 numbers, expected 4: a head's pairs"},
    {LLAMA ",\"rope_parameters\":{\"partial_rotary_factor\":0.5}}",
     "key 'rope_parameters.partial_rotary_factor': found 0.5"},
    {LLAMA ",\"rope_parameters\":{},\"rope_scaling\":{}}", "key 'rope_scaling': found beside 'rope_parameters'"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"linear\"}}", "key 'rope_scaling.factor': found nothing"},
    {LLAMA ",\"rope_scaling\":{\"type\":\"llama3\",\"factor\":8,\"low_freq_factor\":4,\"high_freq_factor\":4}}",
     "key 'rope_scaling.low_freq_factor': found 4, expected less than high_freq_factor 4"},
    {"{\"model_type\":\"llama\"," SIZES "}", "key 'intermediate_size': found nothing"},
    {"{\"model_type\":\"llama\",\"vocab_size\":61,\"hidden_size\":30,\"num_hidden_layers\":2,\"intermediate_size\":"
     "8,\"num_attention_heads\":4,\"max_position_embeddings\":16}",
     "key 'num_attention_heads': found 4, expected a divisor of hidden_size 30 or head_dim"},
    {MISTRAL ",\"sliding_window\":0}", "key 'sliding_window': found 0"},
    {QWEN2 ",\"use_sliding_window\":true,\"max_window_layers\":-1}", "key 'max_window_layers': found -1"},
    {QWEN3_MOE ",\"decoder_sparse_step\":2}", "key 'decoder_sparse_step': found 2, expected 1: experts in all blocks"},
    {QWEN3_MOE ",\"mlp_only_layers\":[0]}",
     "key 'mlp_only_layers': found 1 blocks, expected []: experts in all blocks"},
    {QWEN3_MOE ",\"output_router_logits\":true}", "key 'output_router_logits': found true, expected false"},
    {QWEN3 ",\"num_experts\":4}", "key 'num_experts': found 4, expected 0 or 1"},
    {"{\"model_type\":\"qwen3_moe\"," GATED ",\"num_experts\":4,\"num_experts_per_tok\":2}",
     "key 'moe_intermediate_size': found nothing"},
    {QWEN3_MOE ",\"num_local_experts\":5}", "key 'num_local_experts': found 5, expected 4, as num_experts has"},
    {"{\"model_type\":\"qwen2_moe\"," GATED
     ",\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":12}",
     "key 'shared_expert_intermediate_size': found nothing"},
    {QWEN2_MOE ",\"mlp_only_layers\":[1]}", "key 'mlp_only_layers': found 1 blocks, expected []"},
    {QWEN2_MOE ",\"use_sliding_window\":true,\"sliding_window\":0}", "key 'sliding_window': found 0"},
    {GPT_OSS ",\"swiglu_limit\":0}", "key 'swiglu_limit': found 0"},
    {GPT_OSS ",\"experts_per_token\":3}", "key 'experts_per_token': found 3, expected 2, as num_experts_per_tok has"},
    {GPT_OSS ",\"layer_types\":[\"full_attention\"]}", "key 'layer_types': found 1 words"},
    {GRANITEMOE ",\"mlp_bias\":true}", "key 'mlp_bias': found true, expected false"},
    {"{\"model_type\":\"granitemoe\"," GATED ",\"num_local_experts\":4}", "key 'num_experts_per_tok': found nothing"},
    {OLMOE ",\"clip_qkv\":8}", "key 'clip_qkv': found 8, expected null"},
    {MIXTRAL ",\"num_experts_per_tok\":5}",
     "key 'num_experts_per_tok': found 5, expected at most num_local_experts, which is 4"},
    {MIXTRAL ",\"num_experts_per_tok\":0}", "key 'num_experts_per_tok': found 0"},
    {MIXTRAL ",\"num_experts_per_tok\":2,\"router_jitter_noise\":0.1}",
     "key 'router_jitter_noise': found 0.1, expected 0"},
    {MISTRAL ",\"sliding_window\":null,\"layer_types\":[\"sliding_attention\",\"full_attention\"]}",
     "key 'sliding_window': found null, expected the window of the blocks that layer_types calls sliding_attention"},
    {MINISTRAL ",\"layer_types\":[\"sliding_attention\"]}", "key 'layer_types': found 1 words, expected"},
    {MISTRAL ",\"sliding_window\":null,\"layer_types\":[\"sliding_attention\",\"sliding_attention\"]}",
     "key 'layer_types': found sliding_attention, expected 'full_attention' for all blocks"},
    {MISTRAL ",\"layer_types\":[7]}", "key 'layer_types': found no word, expected"},
    {QWEN3 ",\"layer_types\":[\"full_attention\"]}",
     "key 'layer_types': found 1 words, expected num_hidden_layers of them"},
    {QWEN3 ",\"layer_types\":[\"full_attention\",7]}",
     "key 'layer_types.1': found no word, expected 'full_attention' or 'sliding_attention'"},
    {QWEN3 ",\"layer_types\":[\"chunked_attention\",\"full_attention\"]}",
     "key 'layer_types.0': found 'chunked_attention', expected"},
    {GEMMA ",\"hidden_act\":\"silu\"}", "key 'hidden_act': found 'silu', expected 'gelu_pytorch_tanh' or"},
    {GEMMA ",\"hidden_activation\":\"gelu\"}", "key 'hidden_activation': found 'gelu', expected"},
    {GEMMA3 ",\"hidden_activation\":\"gelu\"}", "key 'hidden_activation': found 'gelu', expected"},
    {GEMMA ",\"attn_logit_softcapping\":50}", "key 'attn_logit_softcapping': found 50, expected null"},
    {GEMMA ",\"final_logit_softcapping\":30}", "key 'final_logit_softcapping': found 30, expected null"},
    {GEMMA2 ",\"attn_logit_softcapping\":0}", "key 'attn_logit_softcapping': found 0"},
    {GEMMA2 ",\"final_logit_softcapping\":-30}", "key 'final_logit_softcapping': found -30"},
    {GEMMA2 ",\"hidden_activation\":\"gelu\"}", "key 'hidden_activation': found 'gelu', expected"},
    {GEMMA3 ",\"use_bidirectional_attention\":true}", "key 'use_bidirectional_attention': found true"},
    {GEMMA3 ",\"sliding_window_pattern\":0}", "key 'sliding_window_pattern': found 0"},
    {GEMMA3 ",\"rope_parameters\":{\"sliding_attention\":{\"rope_type\":\"linear\",\"factor\":2}}}",
     "key 'rope_parameters.sliding_attention.rope_type': found a scaling, expected 'default'"},
    {SMOLLM3 ",\"use_sliding_window\":true}", "key 'use_sliding_window': found true, expected false"},
    {SMOLLM3 ",\"no_rope_layers\":[1]}", "key 'no_rope_layers': found 1 numbers, expected num_hidden_layers 2"},
    {SMOLLM3 ",\"no_rope_layers\":[1,2]}", "key 'no_rope_layers.1': found another value, expected 0 or 1"},
    {SMOLLM3 ",\"no_rope_layer_interval\":0}", "key 'no_rope_layer_interval': found 0"},
    {GRANITE ",\"logits_scaling\":0}", "key 'logits_scaling': found 0"},
    {GRANITE ",\"sliding_window\":4}", "key 'sliding_window': found 4, expected null"},
    {OLMO2 ",\"clip_qkv\":8}", "key 'clip_qkv': found 8, expected null"},
    {OLMO2 ",\"embedding_multiplier\":12}", "key 'embedding_multiplier': found 12, expected 1"},
    {PHI3 ",\"attention_bias\":true}", "key 'attention_bias': found true, expected false"},
    {NEOX ",\"rotary_pct\":0.4}", "key 'rotary_pct': 3 of 8 channels of a head rotate, expected an even number"},
    {NEOX ",\"hidden_act\":\"silu\"}", "key 'hidden_act': found 'silu', expected 'gelu' or 'gelu_new' or 'relu'"},
    {"{\"model_type\":\"gpt_neox\",\"vocab_size\":61,\"hidden_size\":30,\"num_hidden_layers\":2,"
     "\"intermediate_size\":8,\"num_attention_heads\":4,\"max_position_embeddings\":16}",
     "key 'num_attention_heads': found 4, expected a divisor of hidden_size 30"},
    {OPT ",\"do_layer_norm_before\":false}", "key 'do_layer_norm_before': found false, expected true"},
    {OPT ",\"_remove_final_layer_norm\":true}", "key '_remove_final_layer_norm': found true, expected false"},
    {OPT ",\"layer_norm_elementwise_affine\":false}", "key 'layer_norm_elementwise_affine': found false"},
    {OPT ",\"word_embed_proj_dim\":16}", "key 'word_embed_proj_dim': found 16, expected hidden_size 32"},
    {"{\"model_type\":\"opt\",\"vocab_size\":61,\"hidden_size\":30,\"num_hidden_layers\":2,\"ffn_dim\":8,"
     "\"num_attention_heads\":4,\"max_position_embeddings\":16}",
     "key 'num_attention_heads': found 4, expected a divisor of hidden_size 30"},
};

static void wrong_configs(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(wrong); i++) {
        struct ah_model *model = NULL;
        assert_fails(parse(&model, wrong[i].text), AH_EINPUT, wrong[i].words);
        assert_null(model);
    }
}

/* The text of a configuration, which is read as itself. */
static char *text_of(const char *text)
{
    struct ah_model *model, *again;
    assert_ok(parse(&model, text));
    char *out = strdup(ah_model_get(model)->config);
    assert_non_null(out);
    assert_ok(parse(&again, out));
    assert_string_equal(ah_model_get(again)->config, out);
    ah_model_free(again);
    ah_model_free(model);
    return out;
}

static const struct {
    const char *a, *b;
    bool differ;
} texts[] = {
    {LLAMA "}", LLAMA ",\"num_key_value_heads\":4,\"head_dim\":8,\"pretraining_tp\":1,\"rope_theta\":10000.0}", false},
    {LLAMA "}", LLAMA ",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":10000}}", false},
    {LLAMA ",\"rope_theta\":500,\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}}",
     LLAMA ",\"rope_parameters\":{\"rope_type\":\"llama3\",\"rope_theta\":500," LLAMA3 "}}", false},
    {LLAMA "}", LLAMA ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}}", true},
    {LLAMA "}", LLAMA ",\"mlp_bias\":true}", true},
    {LLAMA "}", LLAMA ",\"attention_dropout\":0.1}", false},
    {MISTRAL "}", MISTRAL ",\"sliding_window\":4096}", false},
    {MISTRAL "}", MISTRAL ",\"layer_types\":[\"sliding_attention\",\"sliding_attention\"]}", false},
    {MISTRAL "}", MISTRAL ",\"layer_types\":[\"full_attention\",\"full_attention\"]}", false},
    {MISTRAL "}", MISTRAL ",\"layer_types\":null}", false},
    {MISTRAL ",\"layer_types\":[\"sliding_attention\",\"full_attention\"]}",
     MINISTRAL ",\"layer_types\":[\"sliding_attention\",\"full_attention\"]}", false},
    {MISTRAL ",\"layer_types\":[\"sliding_attention\",\"full_attention\"]}", MISTRAL "}", true},
    {MINISTRAL "}", MINISTRAL ",\"layer_types\":[\"sliding_attention\",\"sliding_attention\"]}", false},
    {MINISTRAL ",\"sliding_window\":null}", MINISTRAL ",\"layer_types\":[\"full_attention\",\"full_attention\"]}",
     false},
    {MISTRAL "}", MISTRAL ",\"sliding_window\":null}", true},
    {QWEN2 "}", QWEN2 ",\"sliding_window\":4,\"max_window_layers\":1,\"use_sliding_window\":false}", false},
    {QWEN2 "}", QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"max_window_layers\":2}", false},
    {QWEN2 "}", QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"max_window_layers\":0}", true},
    {QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"max_window_layers\":0}",
     QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"layer_types\":[\"sliding_attention\","
           "\"sliding_attention\"]}",
     false},
    {QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"max_window_layers\":1}",
     QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"layer_types\":[\"full_attention\","
           "\"sliding_attention\"]}",
     false},
    {QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"max_window_layers\":1}",
     QWEN2 ",\"use_sliding_window\":true,\"sliding_window\":4,\"layer_types\":[\"sliding_attention\","
           "\"full_attention\"]}",
     true},
    {QWEN3_MOE "}", QWEN3_MOE ",\"norm_topk_prob\":false,\"mlp_only_layers\":null,\"router_aux_loss_coef\":0.001}",
     false},
    {QWEN3_MOE "}",
     "{\"model_type\":\"qwen3_moe\"," GATED
     ",\"num_local_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":12}",
     false},
    {QWEN3_MOE "}", QWEN3_MOE ",\"norm_topk_prob\":true}", true},
    {OLMOE "}", OLMOE ",\"norm_topk_prob\":true}", true},
    {QWEN2_MOE "}", QWEN2_MOE ",\"qkv_bias\":true,\"sliding_window\":0,\"max_window_layers\":1}", false},
    {QWEN2_MOE "}", QWEN2_MOE ",\"qkv_bias\":false}", true},
    {QWEN2_MOE ",\"use_sliding_window\":true,\"sliding_window\":4}",
     QWEN2_MOE ",\"use_sliding_window\":true,\"sliding_window\":4,\"layer_types\":[\"sliding_attention\","
               "\"full_attention\"]}",
     false},
    {QWEN2_MOE ",\"use_sliding_window\":true,\"sliding_window\":4}",
     QWEN2_MOE ",\"use_sliding_window\":true,\"sliding_window\":4,\"layer_types\":[\"sliding_attention\","
               "\"sliding_attention\"]}",
     true},
    {GRANITEMOE "}", GRANITEMOE ",\"attention_multiplier\":1,\"embedding_multiplier\":1}", false},
    {GRANITEMOE "}", GRANITEMOE ",\"residual_multiplier\":0.5}", true},
    {MIXTRAL ",\"num_experts_per_tok\":2}", MIXTRAL ",\"num_experts_per_tok\":2,\"sliding_window\":null}", false},
    {MIXTRAL ",\"num_experts_per_tok\":2}", MIXTRAL ",\"num_experts_per_tok\":1}", true},
    {SMOLLM3 "}", SMOLLM3 ",\"num_key_value_heads\":4,\"no_rope_layers\":[1,1,0],\"rope_theta\":2000000}", false},
    {SMOLLM3 "}", SMOLLM3 ",\"no_rope_layer_interval\":2}", true},
    {GEMMA "}", GEMMA ",\"hidden_act\":\"gelu\",\"hidden_activation\":null,\"head_dim\":256}", false},
    {GEMMA2 "}",
     GEMMA2
     ",\"attn_logit_softcapping\":50,\"final_logit_softcapping\":30,\"query_pre_attn_scalar\":256,\"sliding_window\":"
     "4096,\"layer_types\":[\"sliding_attention\",\"full_attention\"],\"hidden_act\":\"gelu_pytorch_tanh\"}",
     false},
    {GEMMA2 "}", GEMMA2 ",\"attn_logit_softcapping\":null}", true},
    {GEMMA2 "}", GEMMA2 ",\"final_logit_softcapping\":20}", true},
    {GEMMA3 "}", GEMMA3 ",\"attn_logit_softcapping\":null,\"final_logit_softcapping\":null}", false},
    {GEMMA3 "}", GEMMA3 ",\"final_logit_softcapping\":20}", true},
    {GEMMA3 "}", GEMMA3 ",\"sliding_window_pattern\":6,\"sliding_window\":4096,\"query_pre_attn_scalar\":256}", false},
    {GEMMA3 "}",
     GEMMA3 ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":1e6},\"sliding_attention\":"
            "{\"rope_theta\":1e4}}}",
     false},
    {GEMMA3 "}", GEMMA3 ",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8}}", true},
    {GEMMA3 "}", GEMMA3 ",\"rope_local_base_freq\":5000}", true},
    {GEMMA3 "}", GEMMA3 ",\"sliding_window_pattern\":2}", true},
    {LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"original_max_position_embeddings\":4}}",
     LLAMA ",\"rope_parameters\":{\"rope_type\":\"yarn\",\"original_max_position_embeddings\":4,\"beta_fast\":32,"
           "\"beta_slow\":1,\"truncate\":true}}",
     false},
    {LLAMA "}", LLAMA ",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}}", true},
    {LLAMA "}", LLAMA ",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":4}}", true},
    {OLMO3 "}",
     OLMO3 ",\"rope_theta\":500000,\"sliding_window\":4096,\"layer_types\":[\"sliding_attention\","
           "\"sliding_attention\"]}",
     false},
    {GPT_OSS "}",
     GPT_OSS ",\"layer_types\":[\"sliding_attention\",\"full_attention\"],\"sliding_window\":128,"
             "\"swiglu_alpha\":1.702,\"swiglu_limit\":7,\"rope_theta\":150000,\"rope_scaling\":{\"rope_type\":\"yarn\","
             "\"factor\":32,\"original_max_position_embeddings\":4096,\"truncate\":false}}",
     false},
    {GPT_OSS "}", GPT_OSS ",\"rope_scaling\":{\"rope_type\":\"default\"}}", true},
    {GPT_OSS "}", GPT_OSS ",\"sliding_window\":null}", true},
    {OLMO3 "}", OLMO3 ",\"layer_types\":[\"sliding_attention\",\"full_attention\"]}", true},
    {QWEN3 "}", QWEN3 ",\"head_dim\":128}", false},
    {QWEN3 "}", QWEN3 ",\"attention_bias\":true}", true},
    {GRANITE "}", GRANITE ",\"attention_multiplier\":1,\"logits_scaling\":1,\"mlp_bias\":false}", false},
    {GRANITE "}", GRANITE ",\"logits_scaling\":16}", true},
    {GRANITE "}", GRANITE ",\"embedding_multiplier\":12}", true},
    {OLMO2 "}", OLMO2 ",\"attention_bias\":false,\"rms_norm_eps\":1e-5}", false},
    {PHI3 "}", PHI3 ",\"rms_norm_eps\":1e-5,\"partial_rotary_factor\":1,\"sliding_window\":null}", false},
    {PHI3 "}", PHI3 ",\"sliding_window\":2047}", true},
    {PHI3 ",\"partial_rotary_factor\":0.5}", PHI3 ",\"rope_parameters\":{\"partial_rotary_factor\":0.5}}", false},
    {PHI3 ",\"original_max_position_embeddings\":8,\"rope_scaling\":{\"type\":\"su\"," LONG "}}",
     PHI3 ",\"original_max_position_embeddings\":8,\"rope_parameters\":{\"rope_type\":\"longrope\",\"factor\":2,"
          "\"original_max_position_embeddings\":4," LONG "}}",
     false},
    {PHI3 ",\"original_max_position_embeddings\":8,\"rope_scaling\":{\"type\":\"longrope\"," LONG "}}",
     PHI3 ",\"rope_scaling\":{\"type\":\"yarn\"," LONG "}}", true},
    {PHI3 ",\"rope_scaling\":{\"type\":\"longrope\"," LONG "}}",
     PHI3 ",\"rope_scaling\":{\"type\":\"longrope\",\"attention_factor\":1.5," LONG "}}", true},
    {LLAMA ",\"rope_scaling\":{\"type\":\"longrope\",\"original_max_position_embeddings\":8," LONG "}}",
     LLAMA ",\"rope_scaling\":{\"type\":\"longrope\"," LONG "}}", true},
    {NEOX "}", NEOX ",\"rotary_pct\":0.25,\"rotary_emb_base\":10000,\"classifier_dropout\":0.1}", false},
    {NEOX "}", NEOX ",\"rope_parameters\":{\"partial_rotary_factor\":0.25,\"rope_theta\":10000}}", false},
    {NEOX "}", NEOX ",\"use_parallel_residual\":false}", true},
    {NEOX "}", NEOX ",\"hidden_act\":\"gelu_fast\"}", true},
    {OPT "}", OPT ",\"activation_function\":\"relu\",\"dropout\":0.1,\"pad_token_id\":1,\"prefix\":\"</s>\"}", false},
    {OPT "}", OPT ",\"enable_bias\":false}", true},
};

static void what_means_the_same_has_one_text(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(texts); i++) {
        char *a = text_of(texts[i].a), *b = text_of(texts[i].b);
        if ((strcmp(a, b) != 0) != texts[i].differ)
            fail_msg("%s and %s are %s", texts[i].a, texts[i].b, texts[i].differ ? "the same" : "different");
        free(a);
        free(b);
    }
}

/* Whatever form a whole number has in the source: what its class in transformers declares. */
static void numbers_have_the_form_of_their_class(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {GEMMA2 ",\"attn_logit_softcapping\":50,\"initializer_range\":1}", "\"attn_logit_softcapping\": 50.0"},
        {GEMMA2 ",\"initializer_range\":1}", "\"initializer_range\": 1.0"},
        {GEMMA2 ",\"final_logit_softcapping\":null}", "\"final_logit_softcapping\": null"},
        {GEMMA2 ",\"query_pre_attn_scalar\":144.0}", "\"query_pre_attn_scalar\": 144,"},
        {GEMMA3 ",\"query_pre_attn_scalar\":144.5}", "\"query_pre_attn_scalar\": 144.5,"},
        {GRANITE ",\"logits_scaling\":49}", "\"logits_scaling\": 49.0"},
        {LLAMA ",\"rms_norm_eps\":1}", "\"rms_norm_eps\": 1.0"},
        {LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}}", "\"high_freq_factor\": 4.0"},
        {LLAMA ",\"rope_scaling\":{\"rope_type\":\"llama3\"," LLAMA3 "}}", "\"original_max_position_embeddings\": 8"},
        {PHI3 ",\"rope_scaling\":{\"type\":\"longrope\"," LONG "}}", "[1.0, 1.1, 4.0, 16.08]"},
        {OPT ",\"init_std\":1}", "\"init_std\": 1.0"},
        {NEOX ",\"layer_norm_eps\":1}", "\"layer_norm_eps\": 1.0"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char *text = text_of(cases[i].text);
        if (!strstr(text, cases[i].words))
            fail_msg("%s is saved as %s, expected %s in it", cases[i].text, text, cases[i].words);
        free(text);
    }
}

/* Which stretches the rotations of a graph have follows from the sequence, or from the room of a cache. */
static void expect_stretch(const struct ah_model *model, int64_t seq, int64_t cache, float last)
{
    struct ah_graph *graph;
    int found = 0;
    assert_ok(ah_model_record(&graph, model,
                              &(struct ah_record_options){.batch = 1, .seq = seq, .compute = AH_F32, .cache = cache}));
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].op == AH_OP_ROTARY) {
            const struct ah_attr *attr = &graph->nodes[n].attr;
            found++;
            assert_memory_equal(&attr->stretch.of[3], &last, sizeof last);
            assert_true(fabs((double)attr->magnitude - sqrt(1 + log(2) / log(8))) < 1e-6);
        }
    assert_int_equal(found, 4);
    ah_graph_free(graph);
}

static void longrope_goes_by_length(void **state)
{
    struct ah_model *model;
    assert_ok(parse(&model,
                    PHI3 ",\"original_max_position_embeddings\":8,\"rope_scaling\":{\"type\":\"longrope\"," LONG "}}"));
    assert_int_equal(ah_model_get(model)->switch_seq, 8);
    expect_stretch(model, 8, 0, 1.5F);
    expect_stretch(model, 9, 0, 16.08F);
    expect_stretch(model, 1, 8, 1.5F);
    expect_stretch(model, 1, 9, 16.08F);
    ah_model_free(model);
}

static void dropout_is_described(void **state)
{
    static const struct {
        const char *text, *key;
        double rate;
    } cases[] = {{LLAMA "}", NULL, 0},
                 {LLAMA ",\"attention_dropout\":0.2}", "attention_dropout", 0.2},
                 {NEOX ",\"hidden_dropout\":0.1}", "hidden_dropout", 0.1},
                 {OPT ",\"dropout\":0,\"layerdrop\":0.5}", "layerdrop", 0.5}};
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_model *model;
        assert_ok(parse(&model, cases[i].text));
        const struct ah_model_def *def = ah_model_get(model);
        assert_true(def->dropout >= cases[i].rate && def->dropout <= cases[i].rate);
        assert_true(cases[i].key ? def->dropout_key && strcmp(def->dropout_key, cases[i].key) == 0 : !def->dropout_key);
        ah_model_free(model);
    }
}

/* A window that sees the whole sequence is none; heads that do not rotate have no operator for it. */
static void switches_change_the_recording(void **state)
{
    static const struct {
        const char *text;
        enum ah_op op;
        int count, window;
    } cases[] = {{MISTRAL ",\"sliding_window\":4}", AH_OP_ATTENTION_QKV, 2, 4},
                 {MISTRAL ",\"sliding_window\":9}", AH_OP_ATTENTION_QKV, 2, 0},
                 {QWEN3 "}", AH_OP_RMSNORM, 9, 0},
                 {PHI3 ",\"sliding_window\":4}", AH_OP_ATTENTION_QKV, 2, 4},
                 {PHI3 "}", AH_OP_LINEAR, 14, 0},
                 {GRANITE "}", AH_OP_SCALE, 0, 0},
                 {GRANITE ",\"logits_scaling\":2,\"embedding_multiplier\":3}", AH_OP_SCALE, 2, 0},
                 {GRANITE ",\"residual_multiplier\":0.5}", AH_OP_SCALE, 4, 0},
                 {OLMO2 "}", AH_OP_RMSNORM, 9, 0},
                 {NEOX "}", AH_OP_ROTARY, 2, 0},
                 {NEOX ",\"rotary_pct\":0}", AH_OP_ROTARY, 0, 0},
                 {NEOX ",\"hidden_act\":\"relu\"}", AH_OP_RELU, 2, 0},
                 {NEOX "}", AH_OP_GELU_ERF, 2, 0}};
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_model *model;
        struct ah_graph *graph;
        int found = 0;
        assert_ok(parse(&model, cases[i].text));
        assert_ok(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 9, .compute = AH_F32}));
        for (size_t n = 0; n < graph->node_count; n++)
            if (graph->nodes[n].op == cases[i].op) {
                found++;
                assert_int_equal(graph->nodes[n].attr.window, cases[i].window);
            }
        assert_int_equal(found, cases[i].count);
        ah_graph_free(graph);
        ah_model_free(model);
    }
}

static int64_t parameters_of(const char *name)
{
    char path[512];
    struct ah_model *model;
    struct ah_graph *graph;
    int64_t count = 0;
    snprintf(path, sizeof path, "%s/../models/%s.json", ah_test_source(), name);
    assert_ok(ah_model_load(&model, path));
    assert_ok(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 16, .compute = AH_BF16}));
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].name)
            count += ah__shape_count(&graph->values[i].meta.shape);
    ah_graph_free(graph);
    ah_model_free(model);
    return count;
}

/* As published. */
static void shipped_models_have_their_sizes(void **state)
{
    static const struct {
        const char *name;
        int64_t parameters;
    } models[] = {{"llama-3.2-1b", 1235814400},      {"llama-3.1-8b", 8030261248},
                  {"tinyllama-1.1b", 1100048384},    {"mistral-7b", 7241732096},
                  {"qwen2.5-0.5b", 494032768},       {"qwen2.5-7b", 7615616512},
                  {"qwen3-0.6b", 596049920},         {"qwen3-8b", 8190735360},
                  {"pythia-1.4b", 1414647808},       {"opt-1.3b", 1315758080},
                  {"phi-3-mini-4k", 3821079552},     {"phi-4", 14659507200},
                  {"smollm3-3b", 3075098624},        {"olmo3-7b", 7298011136},
                  {"gemma-2b", 2506172416},          {"gemma3-1b", 999885952},
                  {"gemma3-270m", 268098176},        {"granite-3.3-2b", 2533539840},
                  {"granite-3.3-8b", 8170864640},    {"olmo2-1b", 1484916736},
                  {"olmo2-7b", 7298617344},          {"phi-3.5-mini", 3821079552},
                  {"phi-4-mini", 3836021760},        {"gemma2-2b", 2614341888},
                  {"gemma2-9b", 9241705984},         {"qwen2.5-3b", 3085938688},
                  {"qwen2.5-14b", 14770033664},      {"qwen3-4b", 4022468096},
                  {"qwen3-14b", 14768307200},        {"llama-3.2-3b", 3212749824},
                  {"llama-3.3-70b", 70553706496},    {"smollm2-1.7b", 1711376384},
                  {"mistral-nemo-12b", 12247782400}, {"falcon3-7b", 7455550464},
                  {"qwen3-30b-a3b", 30532122624},    {"olmoe-1b-7b", 6919161856},
                  {"mixtral-8x7b", 46702792704},     {"granite-3.1-3b-a800m", 3298793472},
                  {"gpt-oss-20b", 20914757184},      {"qwen1.5-moe-a2.7b", 14315784192}};
    for (size_t i = 0; i < AH_LENGTH(models); i++) {
        int64_t found = parameters_of(models[i].name);
        if (found != models[i].parameters)
            fail_msg("%s has %lld parameters, expected %lld", models[i].name, (long long)found,
                     (long long)models[i].parameters);
    }
}

AH_TEST_CASES("model/families", wrong_configs, what_means_the_same_has_one_text, numbers_have_the_form_of_their_class,
              longrope_goes_by_length, dropout_is_described, switches_change_the_recording,
              shipped_models_have_their_sizes)
