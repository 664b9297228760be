/* The decoder that Llama and its like share: embedding, blocks of rmsnorm, grouped-query attention with rotary
 * positions, rmsnorm and a gated feed-forward network, rmsnorm and head. A family of them fills the structure from its
 * keys, by the readers here where they are alike. Hugging Face's names and layouts. Not a word about memory. */
#ifndef AH_MODEL_DECODER_H
#define AH_MODEL_DECODER_H

#include "model/config.h"
#include "model/family.h"
#include "model/rope.h"

/* Where a block has rmsnorm: before attention and feed-forward network, after them, or both. */
enum ah_decoder_norms { AH_NORMS_BEFORE, AH_NORMS_AFTER, AH_NORMS_BOTH };
/* Of which queries and keys have rmsnorm, before they rotate: of none, of each head, of all heads as one. */
enum ah_decoder_qk_norm { AH_QK_NORM_NONE, AH_QK_NORM_HEADS, AH_QK_NORM_WHOLE };

/* What may differ from block to block. */
struct ah_decoder_kind {
    int64_t window; /* keys that a query sees, 0: all before it */
    struct ah_rope rope;
    bool still; /* nothing rotates */
};

enum { AH_DECODER_MOST_LAYERS = 1 << 12 };

struct ah_decoder {
    /* Keys of the family alone: reads them after all others, and writes them. Null: there are none. */
    int (*read)(struct ah_decoder *decoder, const struct ah_json *json);
    int (*write)(cJSON *tree, const struct ah_decoder *decoder);
    bool attention_bias_key, mlp_bias_key; /* the keys attention_bias (all four products) and mlp_bias are read */
    bool pads_by_default;                  /* its class has a pad_token_id, which may lie beyond the vocabulary */
    int64_t vocab_size, hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, positions;
    int64_t rotary_dims;                          /* channels of a head that rotate */
    double eps, std;                              /* of rmsnorm; of initial values */
    double theta;                                 /* rope_theta where the key is missing; 0: 10000 */
    const char *local_theta_key;                  /* of the other kind, which nothing stretches; null: no such key */
    double local_theta;                           /* where it is missing; 0: both kinds rotate alike */
    struct ah_decoder_kind kind[2];               /* of blocks; the second where `others` says so */
    uint64_t others[AH_DECODER_MOST_LAYERS / 64]; /* a bit a block */
    double norm_offset;                           /* added to the weights of norms */
    bool root_scale;            /* embeddings are multiplied by the root of hidden_size, not by embedding_scale */
    bool gelu;                  /* the gate's function is gelu in its tanh form, not silu */
    const char *activation_key; /* its key; null: hidden_act */
    bool partial;               /* partial_rotary_factor is read */
    int64_t original; /* original_max_position_embeddings beside the other keys, where it is missing; 0: no such key */
    bool fused;       /* queries, keys and values are rows of one weight, qkv_proj; gate and up of gate_up_proj */
    bool qkv_bias, out_bias, mlp_bias;
    enum ah_decoder_norms norms;
    enum ah_decoder_qk_norm qk_norm;
    /* What is multiplied, 1: nothing is. Embeddings; what attention and feed-forward network add; logits; queries times
     * keys, here 0: by 1 / sqrt of a head's channels. */
    double embedding_scale, residual_scale, logit_scale, attention_scale;
    double attention_cap, logit_cap; /* soft caps of scaled scores and of logits; 0: none */
    bool tied;                       /* the head reads the embedding table */
    const char *const *dropouts;     /* keys, the last null; null: attention_dropout alone */
    struct ah_config_dropout dropout;
};

/* The keys that ah__decoder_parse() reads, for a family's list of known ones. */
#define AH_DECODER_KEYS                                                                                                \
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",                      \
        "num_key_value_heads", "head_dim", "max_position_embeddings", "hidden_act", "rms_norm_eps",                    \
        "initializer_range", "tie_word_embeddings", "attention_dropout", "rope_theta", "rope_scaling",                 \
        "rope_parameters"

/* Of kind 0. sliding_window: 4096, as transformers takes it, where the key is missing, none where it is null. */
int ah__decoder_parse_window(struct ah_decoder *decoder, const struct ah_json *json);
/* Qwen's use_sliding_window, sliding_window, max_window_layers and layer_types: blocks with a window are of the other
 * kind, unless all are. */
int ah__decoder_parse_layers(struct ah_decoder *decoder, const struct ah_json *json);
/* query_pre_attn_scalar, 256 where the key is missing; written as a whole number where it is one, as its class wants
 * it. */
int ah__decoder_parse_scalar(struct ah_decoder *decoder, const struct ah_json *json);
int ah__decoder_add_scalar(cJSON *tree, const struct ah_decoder *decoder);
/* attn_logit_softcapping and final_logit_softcapping: what stands in the structure where the key is missing, none where
 * it is null. */
int ah__decoder_parse_caps(struct ah_decoder *decoder, const struct ah_json *json);
int ah__decoder_add_caps(cJSON *tree, const struct ah_decoder *decoder);
#define AH_DECODER_CAP_KEYS "attn_logit_softcapping", "final_logit_softcapping"
int ah__decoder_add_layers(cJSON *tree, const struct ah_decoder *decoder);
#define AH_DECODER_LAYER_KEYS "use_sliding_window", "sliding_window", "max_window_layers", "layer_types"
/* layer_types: blocks of "sliding_attention" are of the other kind, those of "full_attention" are not. Without the key
 * all stays. */
int ah__decoder_parse_types(struct ah_decoder *decoder, const struct ah_json *json);
int ah__decoder_add_types(cJSON *tree, const struct ah_decoder *decoder);
/* sliding_window of the other kind, null where it has none: missing would be 4096. */
int ah__decoder_add_window(cJSON *tree, const struct ah_decoder *decoder);
/* Blocks are numbered from 0. */
bool ah__decoder_is_other(const struct ah_decoder *decoder, int64_t block);
void ah__decoder_set_other(struct ah_decoder *decoder, int64_t block, bool other);
int64_t ah__decoder_others(const struct ah_decoder *decoder);
/* Where all blocks are of the other kind, it becomes the only one. */
void ah__decoder_settle(struct ah_decoder *decoder);

/* Members of struct ah_family whose configuration is a struct ah_decoder. */
int ah__decoder_new(void **out, const struct ah_family *family, const struct ah_json *json);
void ah__decoder_describe(struct ah_model_def *def, const void *decoder);
int ah__decoder_write(cJSON *tree, const void *decoder);
int ah__decoder_record(struct ah_graph *graph, int64_t batch, int64_t seq, void *decoder);
/* A family of the decoder: model_type, class, keys, and in braces what its struct ah_decoder differs in. */
#define AH_DECODER_FAMILY(type, class_name, known, ...)                                                                \
    {                                                                                                                  \
        .model_type = type, .architecture = class_name, .keys = known, .parse = ah__decoder_new,                       \
        .describe = ah__decoder_describe, .write = ah__decoder_write, .record = ah__decoder_record,                    \
        .decoder = &(const struct ah_decoder)__VA_ARGS__,                                                              \
    }

#endif
