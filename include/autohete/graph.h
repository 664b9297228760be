/* Models as graphs of operators on fake tensors: recorded by a program, or loaded from config.json. */
#ifndef AUTOHETE_GRAPH_H
#define AUTOHETE_GRAPH_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- recording a model on fake tensors --------------------------------------------------------------------------- */

enum ah_dtype { AH_F32 = 0, AH_BF16, AH_F16, AH_I32, AH_U8, AH_DTYPE_COUNT };

/* Parses a type that trainings may compute in: "fp32" is AH_F32, "bf16" is AH_BF16. AH_EINPUT. */
AH_API int ah_dtype_parse(enum ah_dtype *out, const char *text);
/* Parses a type that Adam's moments may be kept in: the same, and "int8", which is AH_U8. AH_EINPUT. */
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

/* Begins to record a graph, which ah_graph_finish() must close. The first wrong call is remembered and reported there,
 * so recording code needs no checks in between. `compute` is the dtype of parameters and activations: AH_F32, AH_BF16,
 * or AH_F16 for estimates (no device computes in it). */
AH_API int ah_graph_new(struct ah_graph **out, enum ah_dtype compute);
AH_API void ah_graph_free(struct ah_graph *graph);

/* Scopes name everything that is recorded inside them: "h.3", "attn". Top-level scopes named NAME.0, NAME.1, ... are
 * the blocks. */
AH_API void ah_graph_scope_push(struct ah_graph *graph, const char *format, ...) AH_PRINTF(2, 3);
AH_API void ah_graph_scope_pop(struct ah_graph *graph);

/* Record the token ids [batch, seq] and the targets [batch, seq], int32: each exactly once in a graph. */
AH_API struct ah_tensor ah_graph_tokens(struct ah_graph *graph, int64_t batch, int64_t seq);
AH_API struct ah_tensor ah_graph_targets(struct ah_graph *graph, int64_t batch, int64_t seq);
/* Records a parameter; its name in checkpoints is the scopes and `name` joined by '.'. `std` is the deviation of
 * AH_INIT_NORMAL and AH_INIT_UNIFORM. A parameter used in two partitions (a tied embedding) belongs to the first.
 * Parameters of rank >= 2 take part in weight decay. */
AH_API struct ah_tensor ah_graph_param(struct ah_graph *graph, const char *name, struct ah_shape shape,
                                       enum ah_init init, float std);

/* Records the next `rows` rows of a parameter, after those of the last such call on it. Checkpoints keep such rows in
 * one matrix that operators read in parts, as queries, keys and values. All rows of the parameter must be taken, and
 * nothing may read it as a whole. */
AH_API struct ah_tensor ah_graph_param_rows(struct ah_graph *graph, struct ah_tensor whole, int64_t rows);

/* table [V, C], ids [B, T] -> [B, T, C] */
AH_API struct ah_tensor ah_graph_embedding(struct ah_graph *graph, struct ah_tensor table, struct ah_tensor ids);
/* x [B, T, C] += table [>= T, C] by position; in place on x */
AH_API struct ah_tensor ah_graph_add_position(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor table);
/* The same with a table [>= first + T, C] whose row `first` is for position 0 */
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
/* Variants of attention. */
struct ah_attention_options {
    int window;   /* number of keys that a query sees, up to its own; 0: all of them */
    bool by_head; /* ah_graph_attention(): q, k and v side by side within each head, not each for all heads */
    float scale;  /* factor of q k^T; 0: 1 / sqrt(C / heads) */
    float cap;    /* scaled scores s become cap * tanh(s / cap); 0: they are not capped */
    /* ah_graph_attention_qkv(): a parameter [heads], scores that every query of a head sees beside those of its keys,
     * and whose values are zero; null: none */
    const struct ah_tensor *sinks;
};
/* Causal multi-head self-attention, softmax(q k^T / sqrt(C/heads)) v: qkv [B, T, 3C] (q, k, v side by side) -> [B, T,
 * C]. `options` null: all zero */
AH_API struct ah_tensor ah_graph_attention(struct ah_graph *graph, struct ah_tensor qkv, int heads,
                                           const struct ah_attention_options *options);
/* The same with q [B, T, C], k and v [B, T, C / heads * kv_heads] -> [B, T, C]; kv_heads divides heads, and heads /
 * kv_heads heads of q in a row share one head of k and v */
AH_API struct ah_tensor ah_graph_attention_qkv(struct ah_graph *graph, struct ah_tensor q, struct ah_tensor k,
                                               struct ah_tensor v, int heads, int kv_heads,
                                               const struct ah_attention_options *options);
/* Variants of rotations. */
struct ah_rotary_options {
    bool by_head; /* x [B, T, 3C] as for ah_graph_attention(): q and k rotate, v stays */
    float factor; /* wavelengths are multiplied by it; 0: unchanged */
    /* Llama 3's scaling, with high above 0: `factor` applies only to waves that fit into `original` positions less than
     * `high` times, and in full only to those that fit less than `low` times. With `ramp` (YaRN), low and high count
     * pairs: `factor` applies to pairs from `low` on, in full from `high` on. */
    float low, high;
    int original;
    bool ramp;
    float magnitude; /* rotated channels are multiplied by it; 0: unchanged */
    /* One number above 0 for each pair that rotates, at most 128, by which its wavelength is multiplied (LongRoPE);
     * `factor` is then not used. The numbers are copied. Null: none */
    const float *stretches;
};
/* Rotates the pairs (i, i + dims / 2) of the first `dims` channels of each head of x [B, T, C]: at position t by the
 * angle t * theta^(-2 i / dims). dims 0: all channels; -1: none, for a block without rotation in a model whose other
 * blocks rotate. In place on x. `options` null: all zero */
AH_API struct ah_tensor ah_graph_rotary(struct ah_graph *graph, struct ah_tensor x, int heads, float theta, int dims,
                                        const struct ah_rotary_options *options);
/* GELU, tanh form (Hugging Face's "gelu_new") */
AH_API struct ah_tensor ah_graph_gelu(struct ah_graph *graph, struct ah_tensor x);
/* GELU itself, x times the share of a normal distribution below x (Hugging Face's "gelu") */
AH_API struct ah_tensor ah_graph_gelu_erf(struct ah_graph *graph, struct ah_tensor x);
AH_API struct ah_tensor ah_graph_relu(struct ah_graph *graph, struct ah_tensor x);
/* gate / (1 + e^-gate) * up, same shapes (SwiGLU's product) */
AH_API struct ah_tensor ah_graph_silu_mul(struct ah_graph *graph, struct ah_tensor gate, struct ah_tensor up);
/* The same of the halves of each row of x [.., 2I], the gate first -> [.., I] */
AH_API struct ah_tensor ah_graph_silu_mul_halves(struct ah_graph *graph, struct ah_tensor x);
/* Of the halves g and u of each row of x [.., 2I], where g is at most `limit` and u within it on both sides:
 * g / (1 + e^(-scale g)) * (u + 1) -> [.., I] */
AH_API struct ah_tensor ah_graph_swiglu_clamped(struct ah_graph *graph, struct ah_tensor x, float scale, float limit);
/* GELU in its tanh form of gate, times up: same shapes (GeGLU's product) */
AH_API struct ah_tensor ah_graph_gelu_mul(struct ah_graph *graph, struct ah_tensor gate, struct ah_tensor up);
/* Where the copies of tokens are that experts compute, of R tokens with K experts each, of E. No token is dropped:
 * there are exactly R * K rows, sorted by expert, and those of one expert in the order of tokens. */
struct ah_routes {
    struct ah_tensor weights; /* [.., K] F32, share of each of a token's experts, the likeliest first */
    struct ah_tensor slots;   /* [.., K] I32, the token's row for each of its experts */
    struct ah_tensor source;  /* [R * K] I32, for each row its place in slots */
    struct ah_tensor ends;    /* [E] I32, the row behind the last one of each expert */
};
/* Sends each token to the experts of its `picks` largest logits [.., E]. The weights are softmax(logits) of these, if
 * `normalised` divided by their sum. */
AH_API struct ah_routes ah_graph_route(struct ah_graph *graph, struct ah_tensor logits, int picks, bool normalised);
/* x [.., C] -> [R * K, C]: a copy of each token for each of its experts */
AH_API struct ah_tensor ah_graph_dispatch(struct ah_graph *graph, struct ah_tensor x, const struct ah_routes *routes);
/* x [R * K, I], weight [E, O, I], bias [E, O] or id -1 -> [R * K, O]: the rows of each expert times its matrix */
AH_API struct ah_tensor ah_graph_grouped_linear(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                                struct ah_tensor bias, const struct ah_routes *routes);
/* The weights as a matrix like logits [.., E], what ah_graph_route() was given: of a token's experts, else 0 */
AH_API struct ah_tensor ah_graph_shares(struct ah_graph *graph, struct ah_tensor logits,
                                        const struct ah_routes *routes);
/* x [R * K, C], each row times its weight -> same shape as x */
AH_API struct ah_tensor ah_graph_scale_rows(struct ah_graph *graph, struct ah_tensor x, const struct ah_routes *routes);
/* x [R * K, C] -> [.., C]: the sum of the rows of each token */
AH_API struct ah_tensor ah_graph_combine(struct ah_graph *graph, struct ah_tensor x, const struct ah_routes *routes);
/* x [.., C], gate [.., 1] -> same shape as x: each row times 1 / (1 + e^-gate) */
AH_API struct ah_tensor ah_graph_gate_rows(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor gate);
/* x * factor, which is not 0; in place on x */
AH_API struct ah_tensor ah_graph_scale(struct ah_graph *graph, struct ah_tensor x, float factor);
/* a + b, same shapes; written over a, so nothing may read a afterwards */
AH_API struct ah_tensor ah_graph_add_inplace(struct ah_graph *graph, struct ah_tensor a, struct ah_tensor b);
/* Mean over all tokens of -log softmax(logits [B, T, V])[target]; the logits are overwritten by their
 * gradient. -> scalar */
AH_API struct ah_tensor ah_graph_cross_entropy(struct ah_graph *graph, struct ah_tensor logits,
                                               struct ah_tensor targets);
/* The same with the logits x [B, T, C] weight^T, weight [V, C], which are computed a few tokens at a time and are never
 * in memory as a whole. The mean is over the tokens whose target is not -100. -> scalar */
AH_API struct ah_tensor ah_graph_linear_cross_entropy(struct ah_graph *graph, struct ah_tensor x,
                                                      struct ah_tensor weight, struct ah_tensor targets);
/* The same with the logits cap * tanh(logit / cap); cap 0: they are not capped */
AH_API struct ah_tensor ah_graph_linear_cross_entropy_capped(struct ah_graph *graph, struct ah_tensor x,
                                                             struct ah_tensor weight, struct ah_tensor targets,
                                                             float cap);

/* Closes the recording. AH_EINPUT: reports the first wrong recording call. */
AH_API int ah_graph_finish(struct ah_graph *graph, struct ah_tensor loss);
/* Prints one line per operator: outputs, inputs, shapes, bytes, flops, scope. */
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

/* A model definition. It records the model for a batch and says nothing about memory. */
struct ah_model_def {
    const char *name;   /* name in messages and signatures */
    const char *config; /* JSON text, saved as config.json in checkpoints and part of the signature; null: "{}" */
    int64_t vocab_size; /* tokens must be below it */
    int64_t max_seq;    /* longest sequence it can take */
    int layers;         /* number of blocks */
    /* Sequences longer than this are recorded with other attributes (LongRoPE), so that cached profiles of shorter ones
     * are not used for them; 0: all lengths are recorded alike. */
    int64_t switch_seq;
    /* Dropout that config.json asks for, and its key there. Nothing is dropped here, so ah_train() refuses the model
     * unless ah_train_options.no_dropout is set. 0 and null: no dropout; the key must outlive the model. */
    double dropout;
    const char *dropout_key;
    /* Records the model, up to and including ah_graph_finish(). */
    int (*record)(struct ah_graph *graph, int64_t batch, int64_t seq, void *context);
    void *context; /* handed to record; must outlive the model */
};

/* Loads a model from JSON with Hugging Face's config keys (docs/models.md has the families), from a folder that has
 * config.json, or from a GGUF file. AH_EINPUT / AH_EIO. */
AH_API int ah_model_load(struct ah_model **out, const char *path);
/* Lists the model files that come with AutoHete, sorted by name: models/NAME.json beside the program, in the current
 * folder and in the installed data. AH_EINPUT: there are none. The caller frees the paths with the second call. */
AH_API int ah_bundled_models(char ***out, int *count);
AH_API void ah_bundled_models_free(char **paths, int count);
/* Makes a model from a user's own definition; strings are copied, except dropout_key. */
AH_API int ah_model_new(struct ah_model **out, const struct ah_model_def *def);
AH_API void ah_model_free(struct ah_model *model);
/* The parts of a model that are trained; all zero: all of it. */
struct ah_tuning {
    /* Parameters that are not trained: "embedding", "blocks", "blocks:1-8" counted from 1, "head", and patterns of
     * names in checkpoints as of fnmatch(3), separated by commas. All blocks must have the same parameters frozen, but
     * the lowest blocks may be frozen as a whole if the embedding is. Null: none. */
    const char *freeze;
    /* Low-rank adapters (LoRA). Above 0, all of the model's own parameters are frozen, and a target computes W x +
     * scale B A x from x, with A [rank, I] and B [O, rank] trained. Names and initial values are PEFT's. */
    int lora_rank;
    double lora_alpha;        /* scale is alpha / rank; 0: alpha is rank */
    bool lora_rslora;         /* scale is alpha / sqrt(rank) */
    const char *lora_targets; /* the last parts of linear layers' names, separated by commas; null: AH_LORA_ALL */
    /* Format in which frozen matrices of blocks are kept beside adapters, widened whenever a block computes: "int8"
     * (8.5 bits an element), "nf4" (4.5) or "mxfp4" (4.25). Null: the compute type. Inference ignores it. */
    const char *frozen;
};
/* Value of lora_targets: all linear layers of the blocks. */
#define AH_LORA_ALL "all-linear"

/* Options for recording a model. */
struct ah_record_options {
    int64_t batch, seq;
    enum ah_dtype compute;
    bool packed; /* sequences have several documents, which do not see each other: a token's position is that in its
                  * document */
    /* For generation, with ah_step_options.infers: attention keeps keys and values of so many positions; 0: none. With
     * `decodes` tokens have given positions, and see the keys and values kept of earlier ones. */
    int64_t cache;
    bool decodes;
    struct ah_tuning tuning;
};
/* Records the model. The caller frees *out. */
AH_API int ah_model_record(struct ah_graph **out, const struct ah_model *model,
                           const struct ah_record_options *options);
AH_API const struct ah_model_def *ah_model_get(const struct ah_model *model);
/* Returns one line naming the keys of config.json that are neither read nor known as harmless, or null. The model owns
 * it. */
AH_API const char *ah_model_note(const struct ah_model *model);

#ifdef __cplusplus
}
#endif
#endif
