/* Models as graphs of operators on fake tensors: recorded by a program, or loaded from config.json. */
#ifndef AUTOHETE_GRAPH_H
#define AUTOHETE_GRAPH_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recording a model on fake tensors --------------------------------------------------------------------------- */

enum ah_dtype { AH_F32 = 0, AH_BF16, AH_F16, AH_I32, AH_U8, AH_DTYPE_COUNT };

/* "fp32" -> AH_F32, "bf16" -> AH_BF16: what trainings may compute in. AH_EINPUT. */
AH_API int ah_dtype_parse(enum ah_dtype *out, const char *text);
/* The same, and "int8" -> AH_U8: what Adam's moments may be kept in. AH_EINPUT. */
AH_API int ah_moments_parse(enum ah_dtype *out, const char *text);

enum { AH_MAX_RANK = 4 };
struct ah_shape {
    int rank;
    int64_t dim[AH_MAX_RANK];
};

/* A value in a graph: shape and dtype, no data. id < 0 after a failed recording call; passing it on is harmless. */
struct ah_tensor {
    int32_t id;
};

enum ah_init { AH_INIT_ZEROS, AH_INIT_ONES, AH_INIT_NORMAL, AH_INIT_UNIFORM };

struct ah_graph;

/* A recorded graph must be closed by ah_graph_finish(). The first wrong call is remembered and reported there, so
 * recording code needs no checks in between. `compute` is the dtype of parameters and activations: AH_F32, AH_BF16, or
 * AH_F16 for estimates (no device computes in it). */
AH_API int ah_graph_new(struct ah_graph **out, enum ah_dtype compute);
AH_API void ah_graph_free(struct ah_graph *graph);

/* Scopes name what is recorded inside them: "h.3", "attn". Top-level scopes named NAME.0, NAME.1, ... are the
 * blocks. */
AH_API void ah_graph_scope_push(struct ah_graph *graph, const char *format, ...) AH_PRINTF(2, 3);
AH_API void ah_graph_scope_pop(struct ah_graph *graph);

/* The token ids [batch, seq] and the targets [batch, seq], int32: each exactly once in a graph. */
AH_API struct ah_tensor ah_graph_tokens(struct ah_graph *graph, int64_t batch, int64_t seq);
AH_API struct ah_tensor ah_graph_targets(struct ah_graph *graph, int64_t batch, int64_t seq);
/* A parameter; its name in checkpoints is the scopes and `name` joined by '.'. `std` is the deviation of
 * AH_INIT_NORMAL and AH_INIT_UNIFORM. A parameter used in two partitions (a tied embedding) belongs to the first. Rank
 * >= 2 takes part in weight decay. */
AH_API struct ah_tensor ah_graph_param(struct ah_graph *graph, const char *name, struct ah_shape shape,
                                       enum ah_init init, float std);

/* The next `rows` rows of a parameter, from where the last such call on it ended: what checkpoints keep in one matrix
 * and operators read apart, as queries, keys and values. All its rows must be taken, and the whole read by nothing. */
AH_API struct ah_tensor ah_graph_param_rows(struct ah_graph *graph, struct ah_tensor whole, int64_t rows);

/* table [V, C], ids [B, T] -> [B, T, C] */
AH_API struct ah_tensor ah_graph_embedding(struct ah_graph *graph, struct ah_tensor table, struct ah_tensor ids);
/* x [B, T, C] += table [>= T, C] by position; in place on x */
AH_API struct ah_tensor ah_graph_add_position(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor table);
/* The same of a table [>= first + T, C] whose row `first` is for position 0 */
AH_API struct ah_tensor ah_graph_add_position_from(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor table,
                                                   int first);
/* x [..., C], weight [C], bias [C] or id -1 -> same shape as x */
AH_API struct ah_tensor ah_graph_layernorm(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                           struct ah_tensor bias, float eps);
/* x / sqrt(mean of x^2 + eps) * weight: x [..., C], weight [C] -> same shape as x; with weight [C / n] each run of C/n
 * channels has a mean of its own */
AH_API struct ah_tensor ah_graph_rmsnorm(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                         float eps);
/* The same times weight + offset */
AH_API struct ah_tensor ah_graph_rmsnorm_offset(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                                float eps, float offset);
/* x [..., I], weight [I, O] (or [O, I] when weight_is_out_in), bias [O] or id -1 -> [..., O] */
AH_API struct ah_tensor ah_graph_linear(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                        struct ah_tensor bias, bool weight_is_out_in);
/* What models do otherwise in attention. */
struct ah_attention_options {
    int window;   /* keys that a query sees, its own the last of them; 0: all up to its own */
    bool by_head; /* ah_graph_attention(): q, k and v side by side within each head, not each for all heads */
    float scale;  /* of q k^T; 0: 1 / sqrt(C / heads) */
    float cap;    /* scaled scores s become cap * tanh(s / cap); 0: they stay */
};
/* Causal multi-head self-attention, softmax(q k^T / sqrt(C/heads)) v: qkv [B, T, 3C] (q, k, v side by side)
 * -> [B, T, C]. `options` null: all of them zero */
AH_API struct ah_tensor ah_graph_attention(struct ah_graph *graph, struct ah_tensor qkv, int heads,
                                           const struct ah_attention_options *options);
/* The same of q [B, T, C], k and v [B, T, C / heads * kv_heads] -> [B, T, C]; kv_heads divides heads, and
 * heads / kv_heads heads of q in a row share one of k and v */
AH_API struct ah_tensor ah_graph_attention_qkv(struct ah_graph *graph, struct ah_tensor q, struct ah_tensor k,
                                               struct ah_tensor v, int heads, int kv_heads,
                                               const struct ah_attention_options *options);
/* What models do otherwise in rotations. */
struct ah_rotary_options {
    bool by_head;    /* x [B, T, 3C] as for ah_graph_attention(): q and k rotate, v stays */
    float factor;    /* wavelengths are multiplied by it; 0: by nothing */
    float low, high; /* with high above 0 those waves only that fit `original` positions less than `high` times, and */
    int original;    /* in full only where less than `low` times (Llama 3's scaling) */
    bool ramp;       /* or, with `low` and `high` counting pairs, those from `low` on, in full from `high` on (YaRN) */
    float magnitude; /* what rotates is multiplied by it; 0: by nothing */
    /* One number above 0 for each pair that rotates, at most 128, by which its wavelength is multiplied; `factor` is
     * then not looked at (LongRoPE). They are copied. Null: none */
    const float *stretches;
};
/* Rotates the pairs (i, i + dims / 2) of the first `dims` channels of each head of x [B, T, C] by the angle
 * t * theta^(-2 i / dims) at position t; dims 0: all channels; -1: none, where other blocks' rotate. In place on x.
 * `options` null: all of them zero */
AH_API struct ah_tensor ah_graph_rotary(struct ah_graph *graph, struct ah_tensor x, int heads, float theta, int dims,
                                        const struct ah_rotary_options *options);
/* GELU, tanh form (Hugging Face's "gelu_new") */
AH_API struct ah_tensor ah_graph_gelu(struct ah_graph *graph, struct ah_tensor x);
/* GELU itself, x times the share of a normal distribution below x (Hugging Face's "gelu") */
AH_API struct ah_tensor ah_graph_gelu_erf(struct ah_graph *graph, struct ah_tensor x);
AH_API struct ah_tensor ah_graph_relu(struct ah_graph *graph, struct ah_tensor x);
/* gate / (1 + e^-gate) * up, same shapes (SwiGLU's product) */
AH_API struct ah_tensor ah_graph_silu_mul(struct ah_graph *graph, struct ah_tensor gate, struct ah_tensor up);
/* GELU in its tanh form of gate, times up: same shapes (GeGLU's product) */
AH_API struct ah_tensor ah_graph_gelu_mul(struct ah_graph *graph, struct ah_tensor gate, struct ah_tensor up);
/* x * factor, which is not 0; in place on x */
AH_API struct ah_tensor ah_graph_scale(struct ah_graph *graph, struct ah_tensor x, float factor);
/* a + b, same shapes; written over a, so nothing may read a afterwards */
AH_API struct ah_tensor ah_graph_add_inplace(struct ah_graph *graph, struct ah_tensor a, struct ah_tensor b);
/* Mean over all tokens of -log softmax(logits [B, T, V])[target]; the logits are overwritten by their
 * gradient. -> scalar */
AH_API struct ah_tensor ah_graph_cross_entropy(struct ah_graph *graph, struct ah_tensor logits,
                                               struct ah_tensor targets);
/* The same of the logits x [B, T, C] weight^T, weight [V, C], which are made and used up a few tokens at a time: they
 * never lie in memory as a whole. The mean is over the tokens whose target is not -100. -> scalar */
AH_API struct ah_tensor ah_graph_linear_cross_entropy(struct ah_graph *graph, struct ah_tensor x,
                                                      struct ah_tensor weight, struct ah_tensor targets);
/* The same of the logits cap * tanh(logit / cap); cap 0: they stay */
AH_API struct ah_tensor ah_graph_linear_cross_entropy_capped(struct ah_graph *graph, struct ah_tensor x,
                                                             struct ah_tensor weight, struct ah_tensor targets,
                                                             float cap);

/* Closes the recording. AH_EINPUT with the first wrong recording call. */
AH_API int ah_graph_finish(struct ah_graph *graph, struct ah_tensor loss);
/* One line per operator: outputs, inputs, shapes, bytes, flops, scope. */
AH_API int ah_graph_print(const struct ah_graph *graph, FILE *to);

static inline struct ah_shape ah_shape1(int64_t a)
{
    struct ah_shape shape = {1, {a, 0, 0, 0}};
    return shape;
}

static inline struct ah_shape ah_shape2(int64_t a, int64_t b)
{
    struct ah_shape shape = {2, {a, b, 0, 0}};
    return shape;
}

static inline struct ah_shape ah_shape3(int64_t a, int64_t b, int64_t c)
{
    struct ah_shape shape = {3, {a, b, c, 0}};
    return shape;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

struct ah_model;

/* A model definition: records itself for a batch, with no word about memory. */
struct ah_model_def {
    const char *name;   /* for messages and signatures */
    const char *config; /* JSON text saved as config.json in checkpoints and part of the signature; null: "{}" */
    int64_t vocab_size; /* tokens must be below it */
    int64_t max_seq;    /* longest sequence it can take */
    int layers;         /* number of blocks */
    /* Longer sequences are recorded with other attributes (LongRoPE), so that what a cache has of shorter ones does not
     * serve them; 0: all lengths alike. */
    int64_t switch_seq;
    /* What its config.json asks to drop at random in training, and the key that says so: nothing is dropped here, so
     * that ah_train() refuses it unless told (ah_train_options.no_dropout). 0 and null: nothing; the key must outlive
     * the model. */
    double dropout;
    const char *dropout_key;
    /* Up to and with ah_graph_finish(). */
    int (*record)(struct ah_graph *graph, int64_t batch, int64_t seq, void *context);
    void *context; /* handed to record; must outlive the model */
};

/* From JSON with Hugging Face's config keys (docs/models.md has the families), or from a folder that holds config.json.
 * AH_EINPUT / AH_EIO. */
AH_API int ah_model_load(struct ah_model **out, const char *path);
/* The model files that come with AutoHete, sorted by name: models/NAME.json beside the program, in the current folder
 * and in the installed data. AH_EINPUT: there are none. The caller frees paths with the second call. */
AH_API int ah_bundled_models(char ***out, int *count);
AH_API void ah_bundled_models_free(char **paths, int count);
/* From a user's own definition; strings are copied. */
AH_API int ah_model_new(struct ah_model **out, const struct ah_model_def *def);
AH_API void ah_model_free(struct ah_model *model);
/* What of a model is trained; nothing set: all of it. */
struct ah_tuning {
    /* Parameters that stay as they are: "embedding", "blocks", "blocks:1-8" counted from 1, "head", and patterns of
     * names in checkpoints as of fnmatch(3), with commas between them. Of every block the same, but of the lowest ones
     * all parameters where all of the embedding's are. Null: none. */
    const char *freeze;
    /* Low-rank adapters (LoRA): above 0, all of the model's own parameters are frozen, and what a target makes of x is
     * W x + scale B A x with A [rank, I] and B [O, rank] trained. Names and initial values are PEFT's. */
    int lora_rank;
    double lora_alpha;        /* scale is alpha / rank; 0: alpha is rank */
    bool lora_rslora;         /* scale is alpha / sqrt(rank) */
    const char *lora_targets; /* the last parts of linear layers' names with commas between them; null: AH_LORA_ALL */
    /* What frozen matrices of blocks are kept in beside adapters, and widened from whenever a block computes: "int8"
     * (8.5 bits an element) or "nf4" (4.5). Null: what is computed in. Inference takes no notice of it. */
    const char *frozen;
};
/* All linear layers of the blocks. */
#define AH_LORA_ALL "all-linear"

/* What a graph is recorded for. */
struct ah_record_options {
    int64_t batch, seq;
    enum ah_dtype compute;
    bool packed; /* sequences hold several documents, which do not see each other: each token has its position */
    /* Generation, with ah_step_options.infers: attention keeps keys and values of so many positions; 0: none. With
     * `decodes` tokens are at positions that are given, and see what was kept of those before. */
    int64_t cache;
    bool decodes;
    struct ah_tuning tuning;
};
/* Records the model. The caller frees *out. */
AH_API int ah_model_record(struct ah_graph **out, const struct ah_model *model,
                           const struct ah_record_options *options);
AH_API const struct ah_model_def *ah_model_get(const struct ah_model *model);
/* One line naming the keys of config.json that are neither read nor known as harmless, or null. The model owns it. */
AH_API const char *ah_model_note(const struct ah_model *model);

#ifdef __cplusplus
}
#endif
#endif
