/* The top-level keys of public models' config.json, with the values that they have there: each is read, passed over or
 * noted, and none refuses the model. Of seven small models the keys alone are theirs, sizes are not. */
#include <string.h>

#include "model/model.h"
#include "test.h"

static const struct {
    const char *name, *text, *noted; /* keys that are noted; null: none */
} public_models[] = {
    {"meta-llama/Llama-3.1-8B",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":128000,\"eos_token_id\":128001,\"hidden_act\":\"silu\",\"hidden_size\":4096,"
     "\"initializer_range\":0.02,\"intermediate_size\":14336,\"max_position_embeddings\":131072,"
     "\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":32,"
     "\"num_key_value_heads\":8,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
     "\"rope_scaling\":{\"factor\":8.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
     "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.0.dev0\",\"use_cache\":true,\"vocab_size\":128256}",
     NULL},
    {"meta-llama/Llama-3.1-8B-Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":128000,\"eos_token_id\":[128001,128008,128009],\"hidden_act\":\"silu\","
     "\"hidden_size\":4096,\"initializer_range\":0.02,\"intermediate_size\":14336,"
     "\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":8,"
     "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":8.0,"
     "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192,"
     "\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,\"tie_word_embeddings\":false,"
     "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.42.3\",\"use_cache\":true,"
     "\"vocab_size\":128256}",
     NULL},
    {"meta-llama/Llama-3.2-1B-Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":128000,\"eos_token_id\":128001,\"hidden_act\":\"silu\",\"hidden_size\":2048,"
     "\"initializer_range\":0.02,\"intermediate_size\":8192,\"max_position_embeddings\":131072,"
     "\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":16,"
     "\"num_key_value_heads\":8,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
     "\"rope_scaling\":{\"factor\":32.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
     "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
     "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.0.dev0\",\"use_cache\":true,\"vocab_size\":128256,"
     "\"_name_or_path\":\"meta-llama/Llama-3.2-1B-Instruct\",\"head_dim\":64,"
     "\"_commit_hash\":\"4e20de362430cd3b72f300e6b0f18e50e7166e08\"}",
     NULL},
    {"meta-llama/Llama-3.2-3B",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":128000,\"eos_token_id\":128001,\"hidden_act\":\"silu\",\"hidden_size\":3072,"
     "\"initializer_range\":0.02,\"intermediate_size\":8192,\"max_position_embeddings\":131072,"
     "\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":24,\"num_hidden_layers\":28,"
     "\"num_key_value_heads\":8,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,"
     "\"rope_scaling\":{\"factor\":32.0,\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
     "\"original_max_position_embeddings\":8192,\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,"
     "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.0.dev0\",\"use_cache\":true,\"vocab_size\":128256,"
     "\"head_dim\":128}",
     NULL},
    {"meta-llama/Llama-3.3-70B-Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":128000,\"eos_token_id\":[128001,128008,128009],\"hidden_act\":\"silu\","
     "\"hidden_size\":8192,\"initializer_range\":0.02,\"intermediate_size\":28672,"
     "\"max_position_embeddings\":131072,\"mlp_bias\":false,\"model_type\":\"llama\","
     "\"num_attention_heads\":64,\"num_hidden_layers\":80,\"num_key_value_heads\":8,"
     "\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":8.0,"
     "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192,"
     "\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,\"tie_word_embeddings\":false,"
     "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.43.0.dev0\",\"use_cache\":true,"
     "\"vocab_size\":128256}",
     NULL},
    {"meta-llama/Meta-Llama-3-8B-Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":128000,\"eos_token_id\":128009,\"hidden_act\":\"silu\",\"hidden_size\":4096,"
     "\"initializer_range\":0.02,\"intermediate_size\":14336,\"max_position_embeddings\":8192,"
     "\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":32,"
     "\"num_key_value_heads\":8,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
     "\"rope_theta\":500000.0,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.0.dev0\",\"use_cache\":true,\"vocab_size\":128256,"
     "\"_name_or_path\":\"meta-llama/Meta-Llama-3-8B-Instruct\"}",
     NULL},
    {"HuggingFaceTB/SmolLM2-1.7B-Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":1,\"eos_token_id\":2,\"hidden_act\":\"silu\",\"hidden_size\":2048,"
     "\"initializer_range\":0.02,\"intermediate_size\":8192,\"max_position_embeddings\":8192,"
     "\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":32,\"num_hidden_layers\":24,"
     "\"num_key_value_heads\":32,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
     "\"rope_theta\":130000,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.0.dev0\",\"use_cache\":true,\"vocab_size\":49152,"
     "\"pad_token_id\":2,\"transformers.js_config\":{\"dtype\":\"q4\","
     "\"kv_cache_dtype\":{\"q4f16\":\"float16\",\"fp16\":\"float16\"},"
     "\"use_external_data_format\":{\"model.onnx\":true}}}",
     NULL},
    {"tiiuae/Falcon3-7B-Instruct",
     "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":11,\"eos_token_id\":11,\"hidden_act\":\"silu\",\"hidden_size\":3072,"
     "\"intermediate_size\":23040,\"max_position_embeddings\":32768,\"mlp_bias\":false,"
     "\"model_type\":\"llama\",\"num_attention_heads\":12,\"num_hidden_layers\":28,"
     "\"num_key_value_heads\":4,\"pretraining_tp\":1,\"rms_norm_eps\":1e-06,\"rope_scaling\":null,"
     "\"rope_theta\":1000042,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.0.dev0\",\"use_cache\":true,\"vocab_size\":131072,"
     "\"head_dim\":256}",
     NULL},
    {"HuggingFaceTB/SmolLM2-135M",
     "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":0,\"eos_token_id\":0,"
     "\"hidden_act\":\"silu\",\"hidden_size\":64,\"initializer_range\":0.02,\"intermediate_size\":128,"
     "\"max_position_embeddings\":128,\"num_attention_heads\":4,\"num_hidden_layers\":2,"
     "\"num_key_value_heads\":2,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
     "\"rope_theta\":100000,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.40.1\",\"use_cache\":true,\"vocab_size\":600,"
     "\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"],\"is_llama_config\":true,"
     "\"rope_interleaved\":false}",
     NULL},
    {"unsloth/Llama-3.2-1B",
     "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":0,\"eos_token_id\":0,"
     "\"hidden_act\":\"silu\",\"hidden_size\":64,\"initializer_range\":0.02,\"intermediate_size\":128,"
     "\"max_position_embeddings\":128,\"num_attention_heads\":4,\"num_hidden_layers\":2,"
     "\"num_key_value_heads\":2,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
     "\"rope_theta\":100000,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.40.1\",\"use_cache\":true,\"vocab_size\":600,"
     "\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"],\"unsloth_fixed\":true}",
     NULL},
    {"huggyllama/llama-7b",
     "{\"attention_bias\":false,\"attention_dropout\":0.0,\"bos_token_id\":0,\"eos_token_id\":0,"
     "\"hidden_act\":\"silu\",\"hidden_size\":64,\"initializer_range\":0.02,\"intermediate_size\":128,"
     "\"max_position_embeddings\":128,\"num_attention_heads\":4,\"num_hidden_layers\":2,"
     "\"num_key_value_heads\":2,\"pretraining_tp\":1,\"rms_norm_eps\":1e-05,\"rope_scaling\":null,"
     "\"rope_theta\":100000,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.40.1\",\"use_cache\":true,\"vocab_size\":600,"
     "\"model_type\":\"llama\",\"architectures\":[\"LlamaForCausalLM\"],\"max_sequence_length\":128}",
     NULL},
    {"Qwen/Qwen2.5-14B",
     "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643,"
     "\"eos_token_id\":151643,\"hidden_act\":\"silu\",\"hidden_size\":5120,\"initializer_range\":0.02,"
     "\"intermediate_size\":13824,\"max_position_embeddings\":131072,\"max_window_layers\":48,"
     "\"model_type\":\"qwen2\",\"num_attention_heads\":40,\"num_hidden_layers\":48,"
     "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":1000000.0,"
     "\"sliding_window\":131072,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.1\",\"use_cache\":true,\"use_sliding_window\":false,"
     "\"vocab_size\":152064}",
     NULL},
    {"Qwen/Qwen2.5-32B",
     "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643,"
     "\"eos_token_id\":151643,\"hidden_act\":\"silu\",\"hidden_size\":5120,\"initializer_range\":0.02,"
     "\"intermediate_size\":27648,\"max_position_embeddings\":131072,\"max_window_layers\":64,"
     "\"model_type\":\"qwen2\",\"num_attention_heads\":40,\"num_hidden_layers\":64,"
     "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":1000000.0,"
     "\"sliding_window\":131072,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.1\",\"use_cache\":true,\"use_sliding_window\":false,"
     "\"vocab_size\":152064}",
     NULL},
    {"Qwen/Qwen2.5-3B",
     "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643,"
     "\"eos_token_id\":151643,\"hidden_act\":\"silu\",\"hidden_size\":2048,\"initializer_range\":0.02,"
     "\"intermediate_size\":11008,\"max_position_embeddings\":32768,\"max_window_layers\":36,"
     "\"model_type\":\"qwen2\",\"num_attention_heads\":16,\"num_hidden_layers\":36,"
     "\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,"
     "\"sliding_window\":32768,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.1\",\"use_cache\":true,\"use_sliding_window\":false,"
     "\"vocab_size\":151936,\"use_mrope\":false}",
     NULL},
    {"Qwen/Qwen2.5-7B",
     "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643,"
     "\"eos_token_id\":151643,\"hidden_act\":\"silu\",\"hidden_size\":3584,\"initializer_range\":0.02,"
     "\"intermediate_size\":18944,\"max_position_embeddings\":131072,\"max_window_layers\":28,"
     "\"model_type\":\"qwen2\",\"num_attention_heads\":28,\"num_hidden_layers\":28,"
     "\"num_key_value_heads\":4,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,"
     "\"sliding_window\":131072,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.1\",\"use_cache\":true,\"use_sliding_window\":false,"
     "\"vocab_size\":152064,\"use_mrope\":false}",
     NULL},
    {"Qwen/Qwen3-14B",
     "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
     "\"hidden_size\":5120,\"initializer_range\":0.02,\"intermediate_size\":17408,"
     "\"max_position_embeddings\":40960,\"max_window_layers\":40,\"model_type\":\"qwen3\","
     "\"num_attention_heads\":40,\"num_hidden_layers\":40,\"num_key_value_heads\":8,"
     "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":null,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.51.0\","
     "\"use_cache\":true,\"use_sliding_window\":false,\"vocab_size\":151936}",
     NULL},
    {"Qwen/Qwen3-32B",
     "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
     "\"hidden_size\":5120,\"initializer_range\":0.02,\"intermediate_size\":25600,"
     "\"max_position_embeddings\":40960,\"max_window_layers\":64,\"model_type\":\"qwen3\","
     "\"num_attention_heads\":64,\"num_hidden_layers\":64,\"num_key_value_heads\":8,"
     "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":null,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.51.0\","
     "\"use_cache\":true,\"use_sliding_window\":false,\"vocab_size\":151936}",
     NULL},
    {"Qwen/Qwen3-4B",
     "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0,"
     "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
     "\"hidden_size\":2560,\"initializer_range\":0.02,\"intermediate_size\":9728,"
     "\"max_position_embeddings\":40960,\"max_window_layers\":36,\"model_type\":\"qwen3\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":36,\"num_key_value_heads\":8,"
     "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":null,"
     "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.51.0\","
     "\"use_cache\":false,\"use_sliding_window\":false,\"vocab_size\":151936}",
     NULL},
    {"Qwen/Qwen3-8B",
     "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
     "\"hidden_size\":4096,\"initializer_range\":0.02,\"intermediate_size\":12288,"
     "\"max_position_embeddings\":40960,\"max_window_layers\":36,\"model_type\":\"qwen3\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":36,\"num_key_value_heads\":8,"
     "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":null,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.51.0\","
     "\"use_cache\":true,\"use_sliding_window\":false,\"vocab_size\":151936}",
     NULL},
    {"Qwen/Qwen3-Reranker-8B",
     "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
     "\"hidden_size\":4096,\"initializer_range\":0.02,\"intermediate_size\":12288,"
     "\"max_position_embeddings\":40960,\"max_window_layers\":36,\"model_type\":\"qwen3\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":36,\"num_key_value_heads\":8,"
     "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":null,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.51.0\","
     "\"use_cache\":true,\"use_sliding_window\":false,\"vocab_size\":151669}",
     NULL},
    {"deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
     "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":151643,\"eos_token_id\":151645,\"head_dim\":128,\"hidden_act\":\"silu\","
     "\"hidden_size\":4096,\"initializer_range\":0.02,\"intermediate_size\":12288,"
     "\"max_position_embeddings\":131072,\"max_window_layers\":36,\"model_type\":\"qwen3\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":36,\"num_key_value_heads\":8,"
     "\"rms_norm_eps\":1e-06,\"rope_scaling\":{\"attn_factor\":0.8782488562869419,\"factor\":4.0,"
     "\"original_max_position_embeddings\":32768,\"rope_type\":\"yarn\"},\"rope_theta\":1000000,"
     "\"sliding_window\":null,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.51.0\",\"use_cache\":true,\"use_sliding_window\":false,"
     "\"vocab_size\":151936}",
     NULL},
    {"mistralai/Mistral-Nemo-Base-2407",
     "{\"_name_or_path\":\"mistralai/Mistral-Nemo-Base-2407\","
     "\"architectures\":[\"MistralForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":1,"
     "\"eos_token_id\":2,\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":5120,"
     "\"initializer_range\":0.02,\"intermediate_size\":14336,\"max_position_embeddings\":128000,"
     "\"model_type\":\"mistral\",\"num_attention_heads\":32,\"num_hidden_layers\":40,"
     "\"num_key_value_heads\":8,\"rms_norm_eps\":1e-05,\"rope_theta\":1000000.0,"
     "\"sliding_window\":null,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.43.3\",\"use_cache\":true,\"vocab_size\":131072}",
     NULL},
    {"google/gemma-2-9b-it",
     "{\"_name_or_path\":\"google/gemma-2-9b-it\",\"architectures\":[\"Gemma2ForCausalLM\"],"
     "\"attention_bias\":false,\"attention_dropout\":0.0,\"attn_logit_softcapping\":50.0,"
     "\"bos_token_id\":2,\"cache_implementation\":\"hybrid\",\"eos_token_id\":1,"
     "\"final_logit_softcapping\":30.0,\"head_dim\":256,\"hidden_act\":\"gelu_pytorch_tanh\","
     "\"hidden_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":3584,\"initializer_range\":0.02,"
     "\"intermediate_size\":14336,\"max_position_embeddings\":8192,\"model_type\":\"gemma2\","
     "\"num_attention_heads\":16,\"num_hidden_layers\":42,\"num_key_value_heads\":8,"
     "\"pad_token_id\":0,\"query_pre_attn_scalar\":256,\"rms_norm_eps\":1e-06,\"rope_theta\":10000.0,"
     "\"sliding_window\":4096,\"sliding_window_size\":4096,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.42.0.dev0\",\"use_cache\":true,\"vocab_size\":256000}",
     "sliding_window_size"},
    {"google/gemma-3-1b-it",
     "{\"architectures\":[\"Gemma3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"attn_logit_softcapping\":null,\"bos_token_id\":2,\"cache_implementation\":\"hybrid\","
     "\"eos_token_id\":[1,106],\"final_logit_softcapping\":null,\"head_dim\":256,"
     "\"hidden_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":1152,\"initializer_range\":0.02,"
     "\"intermediate_size\":6912,\"max_position_embeddings\":32768,\"model_type\":\"gemma3_text\","
     "\"num_attention_heads\":4,\"num_hidden_layers\":26,\"num_key_value_heads\":1,\"pad_token_id\":0,"
     "\"query_pre_attn_scalar\":256,\"rms_norm_eps\":1e-06,\"rope_local_base_freq\":10000,"
     "\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":512,"
     "\"sliding_window_pattern\":6,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.52.4\","
     "\"use_cache\":true,\"vocab_size\":262144}",
     NULL},
    {"google/gemma-3-270m",
     "{\"architectures\":[\"Gemma3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"attn_logit_softcapping\":null,\"bos_token_id\":2,\"cache_implementation\":\"hybrid\","
     "\"eos_token_id\":[1,106],\"final_logit_softcapping\":null,\"head_dim\":256,"
     "\"hidden_activation\":\"gelu_pytorch_tanh\",\"hidden_size\":640,\"initializer_range\":0.02,"
     "\"intermediate_size\":2048,\"max_position_embeddings\":32768,\"model_type\":\"gemma3_text\","
     "\"num_attention_heads\":4,\"num_hidden_layers\":18,\"num_key_value_heads\":1,\"pad_token_id\":0,"
     "\"query_pre_attn_scalar\":256,\"rms_norm_eps\":1e-06,\"rope_local_base_freq\":10000.0,"
     "\"rope_scaling\":null,\"rope_theta\":1000000,\"sliding_window\":512,"
     "\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.52.4\",\"use_cache\":true,"
     "\"vocab_size\":262144,\"_sliding_window_pattern\":6}",
     NULL},
    {"microsoft/Phi-4-mini-instruct",
     "{\"_name_or_path\":\"Phi-4-mini-instruct\",\"architectures\":[\"Phi3ForCausalLM\"],"
     "\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"auto_map\":{\"AutoConfig\":\"configuration_phi3.Phi3Config\"},\"bos_token_id\":199999,"
     "\"embd_pdrop\":0.0,\"eos_token_id\":199999,\"full_attn_mod\":1,\"hidden_act\":\"silu\","
     "\"hidden_size\":3072,\"initializer_range\":0.02,\"intermediate_size\":8192,"
     "\"interpolate_factor\":1,\"lm_head_bias\":false,\"max_position_embeddings\":131072,"
     "\"mlp_bias\":false,\"model_type\":\"phi3\",\"num_attention_heads\":24,\"num_hidden_layers\":32,"
     "\"num_key_value_heads\":8,\"original_max_position_embeddings\":4096,\"pad_token_id\":199999,"
     "\"partial_rotary_factor\":0.75,\"resid_pdrop\":0.0,\"rms_norm_eps\":1e-05,"
     "\"rope_scaling\":{\"long_factor\":[1,1.118320672,1.250641126,1.398617824,1.564103225,1.74916897,"
     "1.956131817,2.187582649,2.446418898,2.735880826,3.059592084,3.421605075,3.826451687,4.279200023,"
     "4.785517845,5.351743533,5.984965424,6.693110555,7.485043894,8.370679318,9.36110372,10.4687158,"
     "11.70738129,13.09260651,14.64173252,16.37415215,18.31155283,20.47818807,22.90118105,25.61086418,"
     "28.64115884,32.03,32.1,32.13,32.23,32.6,32.61,32.64,32.66,32.7,32.71,32.93,32.97,33.28,33.49,"
     "33.5,44.16,47.77],\"short_factor\":[1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,"
     "1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,"
     "1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0,1.0],\"type\":\"longrope\"},\"rope_theta\":10000.0,"
     "\"sliding_window\":262144,\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.45.0\",\"use_cache\":true,\"vocab_size\":200064}",
     NULL},
    {"microsoft/Phi-3.5-mini-instruct",
     "{\"_name_or_path\":\"Phi-3.5-mini-instruct\",\"architectures\":[\"Phi3ForCausalLM\"],"
     "\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"auto_map\":{\"AutoConfig\":\"configuration_phi3.Phi3Config\"},\"bos_token_id\":1,"
     "\"embd_pdrop\":0.0,\"eos_token_id\":32000,\"hidden_act\":\"silu\",\"hidden_size\":3072,"
     "\"initializer_range\":0.02,\"intermediate_size\":8192,\"max_position_embeddings\":131072,"
     "\"model_type\":\"phi3\",\"num_attention_heads\":32,\"num_hidden_layers\":32,"
     "\"num_key_value_heads\":32,\"original_max_position_embeddings\":4096,\"pad_token_id\":32000,"
     "\"resid_pdrop\":0.0,\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"long_factor\":[1.08,1.11,1.14,"
     "1.34,1.59,1.6,1.62,2.62,3.23,3.23,4.79,7.4,7.7,9.09,12.2,17.67,24.46,28.57,30.42,30.84,32.59,"
     "32.93,42.32,44.96,50.34,50.45,57.55,57.93,58.21,60.14,62.61,62.62,62.71,63.14,63.14,63.77,63.93,"
     "63.96,63.97,64.03,64.07,64.08,64.12,64.41,64.48,64.51,64.53,64.84],\"short_factor\":[1.0,1.02,"
     "1.03,1.03,1.05,1.05,1.05,1.05,1.05,1.07,1.1,1.11,1.16,1.16,1.17,1.29,1.34,1.68,1.79,1.82,1.85,"
     "1.88,1.91,1.94,1.99,2.02,2.02,2.02,2.02,2.02,2.02,2.03,2.03,2.03,2.03,2.03,2.03,2.03,2.03,2.03,"
     "2.08,2.09,2.19,2.22,2.59,2.73,2.75,2.84],\"type\":\"longrope\"},\"rope_theta\":10000.0,"
     "\"sliding_window\":262144,\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\","
     "\"transformers_version\":\"4.45.0\",\"use_cache\":true,\"vocab_size\":32064}",
     NULL},
    {"allenai/OLMo-2-1124-7B",
     "{\"architectures\":[\"Olmo2ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"eos_token_id\":100257,\"hidden_act\":\"silu\",\"hidden_size\":4096,\"initializer_range\":0.02,"
     "\"intermediate_size\":11008,\"max_position_embeddings\":4096,\"model_type\":\"olmo2\","
     "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":32,"
     "\"pad_token_id\":100277,\"rms_norm_eps\":1e-06,\"rope_theta\":500000.0,"
     "\"tie_word_embeddings\":false,\"torch_dtype\":\"bfloat16\",\"use_cache\":true,"
     "\"vocab_size\":100352}",
     NULL},
    {"ibm-granite/granite-3.1-2b-base",
     "{\"architectures\":[\"GraniteForCausalLM\"],\"model_type\":\"granite\",\"vocab_size\":49152,"
     "\"hidden_size\":2048,\"intermediate_size\":8192,\"num_hidden_layers\":40,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"max_position_embeddings\":131072,"
     "\"rms_norm_eps\":1e-05,\"rope_theta\":5000000.0,\"attention_multiplier\":0.015625,"
     "\"embedding_multiplier\":12.0,\"logits_scaling\":8.0,\"residual_multiplier\":0.22}",
     NULL},
    {"HuggingFaceTB/SmolLM3-3B",
     "{\"architectures\":[\"SmolLM3ForCausalLM\"],\"attention_bias\":false,\"attention_dropout\":0.0,"
     "\"bos_token_id\":null,\"eos_token_id\":128012,\"hidden_act\":\"silu\",\"hidden_size\":2048,"
     "\"initializer_range\":0.02,\"intermediate_size\":11008,\"max_position_embeddings\":65536,"
     "\"max_window_layers\":28,\"mlp_bias\":false,\"model_type\":\"smollm3\","
     "\"no_rope_layer_interval\":4,\"no_rope_layers\":[1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,0,1,1,1,"
     "0,1,1,1,0,1,1,1,0,1,1,1,0],\"num_attention_heads\":16,\"num_hidden_layers\":36,"
     "\"num_key_value_heads\":4,\"pad_token_id\":0,\"pretraining_tp\":1,\"rms_norm_eps\":1e-06,"
     "\"rope_scaling\":null,\"rope_theta\":5000000.0,\"sliding_window\":null,"
     "\"tie_word_embeddings\":true,\"torch_dtype\":\"bfloat16\",\"transformers_version\":\"4.54.0\","
     "\"use_cache\":true,\"use_sliding_window\":false,\"vocab_size\":128256}",
     NULL},
    {"EleutherAI/pythia-1.4b",
     "{\"architectures\":[\"GPTNeoXForCausalLM\"],\"bos_token_id\":0,\"eos_token_id\":0,"
     "\"hidden_act\":\"gelu\",\"hidden_size\":2048,\"initializer_range\":0.02,"
     "\"intermediate_size\":8192,\"layer_norm_eps\":1e-05,\"max_position_embeddings\":2048,"
     "\"model_type\":\"gpt_neox\",\"num_attention_heads\":16,\"num_hidden_layers\":24,"
     "\"rotary_emb_base\":10000,\"rotary_pct\":0.25,\"tie_word_embeddings\":false,"
     "\"torch_dtype\":\"float16\",\"transformers_version\":\"4.29.2\",\"use_cache\":true,"
     "\"use_parallel_residual\":true,\"vocab_size\":50304,\"classifier_dropout\":0.1}",
     NULL},
    {"EleutherAI/gpt-neox-20b",
     "{\"architectures\":[\"GPTNeoXForCausalLM\"],\"bos_token_id\":0,\"eos_token_id\":0,"
     "\"hidden_act\":\"gelu_fast\",\"hidden_size\":6144,\"initializer_range\":0.02,"
     "\"intermediate_size\":24576,\"layer_norm_eps\":1e-05,\"max_position_embeddings\":2048,"
     "\"model_type\":\"gpt_neox\",\"num_attention_heads\":64,\"num_hidden_layers\":44,"
     "\"rotary_emb_base\":10000,\"rotary_pct\":0.25,\"tie_word_embeddings\":false,"
     "\"torch_dtype\":\"float16\",\"transformers_version\":\"4.29.2\",\"use_cache\":true,"
     "\"use_parallel_residual\":true,\"vocab_size\":50432,\"attention_probs_dropout_prob\":0,"
     "\"hidden_dropout_prob\":0}",
     NULL},
    {"openai-community/gpt2",
     "{\"activation_function\":\"gelu_new\",\"attn_pdrop\":0.1,\"bos_token_id\":0,\"embd_pdrop\":0.1,"
     "\"eos_token_id\":0,\"initializer_range\":0.02,\"layer_norm_epsilon\":1e-05,\"n_ctx\":128,"
     "\"n_embd\":64,\"n_head\":4,\"n_layer\":2,\"n_positions\":128,\"resid_pdrop\":0.1,"
     "\"summary_activation\":null,\"summary_first_dropout\":0.1,\"summary_proj_to_labels\":true,"
     "\"summary_type\":\"cls_index\",\"summary_use_proj\":true,"
     "\"task_specific_params\":{\"text-generation\":{\"do_sample\":true,\"max_length\":50}},"
     "\"vocab_size\":600,\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadModel\"]}",
     NULL},
    {"openai-community/gpt2-medium",
     "{\"activation_function\":\"gelu_new\",\"attn_pdrop\":0.1,\"bos_token_id\":0,\"embd_pdrop\":0.1,"
     "\"eos_token_id\":0,\"initializer_range\":0.02,\"layer_norm_epsilon\":1e-05,\"n_ctx\":128,"
     "\"n_embd\":64,\"n_head\":4,\"n_layer\":2,\"n_positions\":128,\"resid_pdrop\":0.1,"
     "\"summary_activation\":null,\"summary_first_dropout\":0.1,\"summary_proj_to_labels\":true,"
     "\"summary_type\":\"cls_index\",\"summary_use_proj\":true,"
     "\"task_specific_params\":{\"text-generation\":{\"do_sample\":true,\"max_length\":50}},"
     "\"vocab_size\":600,\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadModel\"],"
     "\"n_special\":0,\"predict_special_tokens\":true}",
     NULL},
    {"distilbert/distilgpt2",
     "{\"activation_function\":\"gelu_new\",\"attn_pdrop\":0.1,\"bos_token_id\":0,\"embd_pdrop\":0.1,"
     "\"eos_token_id\":0,\"initializer_range\":0.02,\"layer_norm_epsilon\":1e-05,\"n_ctx\":128,"
     "\"n_embd\":64,\"n_head\":4,\"n_layer\":2,\"n_positions\":128,\"resid_pdrop\":0.1,"
     "\"summary_activation\":null,\"summary_first_dropout\":0.1,\"summary_proj_to_labels\":true,"
     "\"summary_type\":\"cls_index\",\"summary_use_proj\":true,"
     "\"task_specific_params\":{\"text-generation\":{\"do_sample\":true,\"max_length\":50}},"
     "\"vocab_size\":600,\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadModel\"],"
     "\"_num_labels\":1,\"id2label\":{\"0\":\"LABEL_0\"},\"label2id\":{\"LABEL_0\":0}}",
     NULL},
    {"facebook/opt-125m",
     "{\"_remove_final_layer_norm\":false,\"activation_dropout\":0.0,\"activation_function\":\"relu\","
     "\"attention_dropout\":0.0,\"bos_token_id\":2,\"do_layer_norm_before\":true,\"dropout\":0.1,"
     "\"eos_token_id\":2,\"ffn_dim\":128,\"hidden_size\":64,\"init_std\":0.02,\"layerdrop\":0.0,"
     "\"max_position_embeddings\":128,\"num_attention_heads\":4,\"num_hidden_layers\":2,"
     "\"pad_token_id\":1,\"prefix\":\"</s>\",\"torch_dtype\":\"float16\","
     "\"transformers_version\":\"4.21.0.dev0\",\"use_cache\":true,\"vocab_size\":600,"
     "\"word_embed_proj_dim\":64,\"model_type\":\"opt\",\"architectures\":[\"OPTForCausalLM\"]}",
     NULL},
};

static size_t number_length(const char *text)
{
    return strspn(text, "0123456789+-.e");
}

static bool is_real(const char *number)
{
    return strcspn(number, ".e") < number_length(number);
}

/* Keys that configurations of the time have as whole numbers, and that classes of transformers 5 declare as floats. */
static bool is_class_real(const char *key)
{
    static const char *const keys[] = {"\"rope_theta\"",        "\"rotary_emb_base\"", "\"rope_local_base_freq\"",
                                       "\"attention_dropout\"", "\"embd_pdrop\"",      "\"resid_pdrop\""};
    bool found = false;
    for (size_t i = 0; i < AH_LENGTH(keys); i++)
        found |= strncmp(key, keys[i], strlen(keys[i])) == 0;
    return found;
}

/* transformers 5 refuses 50 where 50.0 is meant, and 256.0 where 256 is. */
static void numbers_form_check(const char *name, const char *source, const char *saved)
{
    char key[80];
    for (const char *at = strchr(source, ':'); at; at = strchr(at + 1, ':')) {
        const char *quote = at - 1;
        for (bool named = *quote == '"'; named; named = *--quote != '"')
            continue;
        if (!number_length(at + 1))
            continue;
        snprintf(key, sizeof key, "%.*s: ", (int)(at - quote), quote);
        const char *other = strstr(saved, key);
        if (other && number_length(other + strlen(key)) &&
            is_real(other + strlen(key)) != (is_real(at + 1) || is_class_real(key)))
            fail_msg("%s: %.60s is saved as %.60s", name, quote, other);
    }
}

static void public_models_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < AH_LENGTH(public_models); i++) {
        struct ah_model *model;
        const char *text = public_models[i].text, *note;
        if (ah__model_parse(&model, text, strlen(text), public_models[i].name) != AH_OK)
            fail_msg("%s", ah_error());
        note = ah_model_note(model) ? strrchr(ah_model_note(model), ':') + 2 : NULL;
        if ((note != NULL) != (public_models[i].noted != NULL) || (note && strcmp(note, public_models[i].noted) != 0))
            fail_msg("%s: noted %s, expected %s", public_models[i].name, note ? note : "nothing",
                     public_models[i].noted ? public_models[i].noted : "nothing");
        numbers_form_check(public_models[i].name, text, ah_model_get(model)->config);
        ah_model_free(model);
    }
}

/* What those keys would ask for otherwise. */
static void other_values_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *from, *to, *words;
    } cases[] = {
        {"microsoft/Phi-4-mini-instruct", "\"lm_head_bias\":false", "\"lm_head_bias\":true",
         "key 'lm_head_bias': found true, expected false"},
        {"microsoft/Phi-4-mini-instruct", "\"full_attn_mod\":1", "\"full_attn_mod\":2", "key 'full_attn_mod': found 2"},
        {"microsoft/Phi-4-mini-instruct", "\"type\":\"longrope\"", "\"type\":\"mrope\"", "found 'mrope', expected"},
        {"google/gemma-3-1b-it", "\"final_logit_softcapping\":null", "\"final_logit_softcapping\":0",
         "key 'final_logit_softcapping': found 0"},
        {"facebook/opt-125m", "\"do_layer_norm_before\":true", "\"do_layer_norm_before\":false",
         "key 'do_layer_norm_before': found false"},
        {"Qwen/Qwen2.5-7B", "\"use_mrope\":false", "\"use_mrope\":true", "key 'use_mrope': found true, expected false"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char text[4096];
        struct ah_model *model = NULL;
        size_t k = 0;
        while (strcmp(public_models[k].name, cases[i].name) != 0)
            k++;
        const char *whole = public_models[k].text, *at = strstr(whole, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, cases[i].to, at + strlen(cases[i].from));
        assert_fails(ah__model_parse(&model, text, strlen(text), "m.json"), AH_EINPUT, cases[i].words);
        assert_null(model);
    }
}

AH_TEST_SUITE("model/public_keys", cmocka_unit_test(public_models_are_taken),
              cmocka_unit_test(other_values_are_refused))
