/* The decoder that Llama and similar families share: embedding, blocks of rmsnorm, grouped-query attention with rotary
 * positions, rmsnorm and a gated feed-forward network, rmsnorm and head. A family fills the structure from its keys, by
 * these readers for the keys that families share. Hugging Face's names and layouts. Knows nothing of memory. */
#ifndef AH_MODEL_DECODER_H
#define AH_MODEL_DECODER_H

#include "model/config.h"
#include "model/family.h"
#include "model/rope.h"

/* Place of a block's rmsnorm: before attention and feed-forward network, after them, or both. */
enum ah_decoder_norms { AH_NORMS_BEFORE, AH_NORMS_AFTER, AH_NORMS_BOTH };
/* The rmsnorm of queries and keys, before they rotate: none, of each head, or of all heads as one vector. */
enum ah_decoder_qk_norm { AH_QK_NORM_NONE, AH_QK_NORM_HEADS, AH_QK_NORM_WHOLE };

/* The properties in which blocks of one decoder may differ. */
struct ah_decoder_kind {
    int64_t window; /* number of keys that a query sees, 0: all before it */
    struct ah_rope rope;
    bool still; /* queries and keys do not rotate */
};

/* How a family has its mixtures of experts: names, and keys. */
struct ah_decoder_experts {
    const char *scope, *router; /* names of the network and of the linear layer that chooses experts */
    /* Linear layers of the experts; '*' stands for an expert's number. up null: `gate` has the rows of both, for each
     * expert the gate's first. */
    const char *gate, *up, *down;
    /* An expert of all tokens beside them, and the linear layer whose logistic function weighs it; null: there is
     * none. */
    const char *shared, *shared_gate;
    const char *shared_size_key; /* its width */
    const char *count_key;       /* number of experts */
    const char *size_key;        /* width of an expert; null: intermediate_size */
    bool may_normalise;          /* norm_topk_prob says whether weights are normalised; else they are */
    bool biases;                 /* of the router and of experts */
};

enum { AH_DECODER_MOST_LAYERS = 1 << 12 };

struct ah_decoder {
    /* Read the keys of this family alone, after all others, and write them. Null: no such keys. */
    int (*read)(struct ah_decoder *decoder, const struct ah_json *json);
    int (*write)(cJSON *tree, const struct ah_decoder *decoder);
    bool attention_bias_key, mlp_bias_key; /* the keys attention_bias (all four products) and mlp_bias are read */
    bool pads_by_default;                  /* its class has a pad_token_id by default, perhaps beyond the vocabulary */
    int64_t vocab_size, hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, positions;
    int64_t rotary_dims;                          /* channels of a head that rotate */
    double eps, std;                              /* epsilon of rmsnorm; standard deviation of initial values */
    double theta;                                 /* default of rope_theta; 0: 10000 */
    const char *local_theta_key;                  /* the second kind's theta, never scaled; null: no such key */
    double local_theta;                           /* default of that key; 0: both kinds rotate alike */
    struct ah_decoder_kind kind[2];               /* kinds of blocks; blocks in `others` are of the second */
    uint64_t others[AH_DECODER_MOST_LAYERS / 64]; /* one bit for each block */
    bool alternates;    /* without layer_types, of the blocks below max_window_layers every second one has the window,
                      * from the first on; else all blocks above do */
    double norm_offset; /* added to the weights of norms */
    bool root_scale;    /* embeddings are multiplied by the root of hidden_size, not by embedding_scale */
    bool gelu;          /* the gate's activation is gelu in its tanh form, not silu */
    const char *activation_key; /* the activation's key; null: hidden_act */
    bool partial;               /* partial_rotary_factor is read */
    int64_t original; /* default of original_max_position_embeddings, a key beside the others; 0: no such key */
    bool fused;       /* rows of qkv_proj are queries, keys and values, rows of gate_up_proj gate and up */
    bool qkv_bias, out_bias, mlp_bias;
    enum ah_decoder_norms norms;
    enum ah_decoder_qk_norm qk_norm;
    /* Factors, by default 1: of embeddings; of the results of attention and feed-forward network; of logits; of queries
     * times keys, where 0 means 1 / sqrt(head_dim). */
    double embedding_scale, residual_scale, logit_scale, attention_scale;
    double attention_cap, logit_cap;          /* soft caps of scaled scores and of logits; 0: none */
    bool tied;                                /* the head reads the embedding table */
    const struct ah_decoder_experts *experts; /* null: no experts, a feed-forward network */
    int64_t expert_count, picks, expert_size; /* experts, those of a token, and the width of one */
    int64_t shared_size;                      /* width of the expert of all tokens */
    bool picks_normalised;                    /* the weights of a token's experts sum to 1 */
    double gate_scale, gate_limit;            /* as of ah_graph_swiglu_clamped(); limit 0: silu, without limit */
    bool sinks;                               /* every head has a score that all queries see beside their keys */
    const char *const *dropouts;              /* null-terminated keys; null: attention_dropout alone */
    struct ah_config_dropout dropout;
};

/* The keys that the decoder's parse reads, for a family's list of known keys. */
#define AH_DECODER_KEYS                                                                                                \
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",                      \
        "num_key_value_heads", "head_dim", "max_position_embeddings", "hidden_act", "rms_norm_eps",                    \
        "initializer_range", "tie_word_embeddings", "attention_dropout", "rope_theta", "rope_scaling",                 \
        "rope_parameters"

/* Reads sliding_window into kind 0: 4096 if the key is missing, as in transformers, no window if it is null. */
int ah__decoder_parse_window(struct ah_decoder *decoder, const struct ah_json *json);
/* Reads Qwen's use_sliding_window, sliding_window, max_window_layers and layer_types: blocks with a window are of the
 * second kind, unless all have it. */
int ah__decoder_parse_layers(struct ah_decoder *decoder, const struct ah_json *json);
/* Read and write query_pre_attn_scalar, 256 if the key is missing; a whole number is written without a fraction, as its
 * class requires. */
int ah__decoder_parse_scalar(struct ah_decoder *decoder, const struct ah_json *json);
int ah__decoder_add_scalar(cJSON *tree, const struct ah_decoder *decoder);
/* Read and write attn_logit_softcapping and final_logit_softcapping: a missing key leaves the structure's value, null
 * means no cap. */
int ah__decoder_parse_caps(struct ah_decoder *decoder, const struct ah_json *json);
int ah__decoder_add_caps(cJSON *tree, const struct ah_decoder *decoder);
#define AH_DECODER_CAP_KEYS "attn_logit_softcapping", "final_logit_softcapping"
int ah__decoder_add_layers(cJSON *tree, const struct ah_decoder *decoder);
#define AH_DECODER_LAYER_KEYS "use_sliding_window", "sliding_window", "max_window_layers", "layer_types"
/* Read and write layer_types: blocks of "sliding_attention" are of the second kind, those of "full_attention" of the
 * first. Without the key nothing changes. */
int ah__decoder_parse_types(struct ah_decoder *decoder, const struct ah_json *json);
int ah__decoder_add_types(cJSON *tree, const struct ah_decoder *decoder);
/* Writes sliding_window of the second kind, null if it has no window: a missing key would mean 4096. */
int ah__decoder_add_window(cJSON *tree, const struct ah_decoder *decoder);
/* Get and set whether a block, numbered from 0, is of the second kind; others() counts these blocks. */
bool ah__decoder_is_other(const struct ah_decoder *decoder, int64_t block);
void ah__decoder_set_other(struct ah_decoder *decoder, int64_t block, bool other);
int64_t ah__decoder_others(const struct ah_decoder *decoder);
/* If all blocks are of the second kind, makes it the first and only one. */
void ah__decoder_settle(struct ah_decoder *decoder);

/* Check decoder_sparse_step and mlp_only_layers, by which all blocks must have experts, and write them. */
int ah__decoder_parse_sparse(const struct ah_json *json);
int ah__decoder_add_sparse(cJSON *tree);
#define AH_DECODER_SPARSE_KEYS "decoder_sparse_step", "mlp_only_layers"
/* Read and write Granite's four factors. */
int ah__granite_parse(struct ah_decoder *decoder, const struct ah_json *json);
int ah__granite_add(cJSON *tree, const struct ah_decoder *decoder);
#define AH_GRANITE_KEYS "embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"
/* Read and write the keys of the family's experts: their number, those of a token, their width and norm_topk_prob. */
int ah__decoder_parse_experts(struct ah_decoder *decoder, const struct ah_json *json);
int ah__decoder_add_experts(cJSON *tree, const struct ah_decoder *decoder);
/* Records gate_proj, up_proj and down_proj of x [.., hidden_size], `inner` wide -> same shape. */
struct ah_tensor ah__decoder_record_gated(struct ah_graph *graph, const struct ah_decoder *decoder, struct ah_tensor x,
                                          int64_t inner);
/* Records a mixture of experts of x [.., hidden_size] -> same shape. */
struct ah_tensor ah__decoder_record_experts(struct ah_graph *graph, const struct ah_decoder *decoder,
                                            struct ah_tensor x);

/* Members of struct ah_family whose configuration is a struct ah_decoder. */
int ah__decoder_new(void **out, const struct ah_family *family, const struct ah_json *json);
void ah__decoder_describe(struct ah_model_def *def, const void *decoder);
int ah__decoder_write(cJSON *tree, const void *decoder);
int ah__decoder_record(struct ah_graph *graph, int64_t batch, int64_t seq, void *decoder);
/* Row of a decoder family: model_type, class, keys, and in braces its struct ah_decoder, with the members that
 * differ. */
#define AH_DECODER_FAMILY(type, class_name, known, ...)                                                                \
    {                                                                                                                  \
        .model_type = type, .architecture = class_name, .keys = known, .parse = ah__decoder_new,                       \
        .describe = ah__decoder_describe, .write = ah__decoder_write, .record = ah__decoder_record,                    \
        .decoder = &(const struct ah_decoder)__VA_ARGS__,                                                              \
    }

#endif
