/* AutoHete: train language models that do not fit on the accelerator at hand.
 *
 * The public interface, in the order in which a program uses it:
 *
 *     ah_model -> ah_graph -> ah_partition -> ah_profile -> ah_plan -> trained checkpoint
 *
 * Each of the first arrows is one function from one immutable artefact to the next, for programs that want to look at
 * them. ah_train() goes from a model to the checkpoint: it makes the same artefacts and runs the plan. Nothing else
 * runs a plan; one that was saved is handed to ah_train() as ah_train_options.plan.
 *
 * Conventions. Functions return 0 (AH_OK) or a negative enum ah_status; outputs come first; on failure every output is
 * left untouched and ah_error() holds one line that says where the fault is. `new` allocates and `free` releases (a
 * null pointer is fine); `load`, `save`, `print` move an artefact to and from JSON and text. Sizes are bytes, times are
 * int64_t nanoseconds. Nothing here prints or exits. Objects may be used from one thread at a time. */
#ifndef AUTOHETE_H
#define AUTOHETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AH_VERSION_MAJOR 0
#define AH_VERSION_MINOR 1
#define AH_VERSION_PATCH 0

#if defined(__GNUC__)
#define AH_API __attribute__((visibility("default")))
#define AH_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define AH_API
#define AH_PRINTF(fmt, args)
#endif

/* "0.1.0" */
AH_API const char *ah_version(void);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* name, value, the fault is in the input (exit status 2) rather than in the run (exit status 1), description */
#define AH_STATUS_TABLE(X)                                                                                             \
    X(AH_OK, 0, false, "success")                                                                                      \
    X(AH_EINPUT, -1, true, "the input is wrong")                                                                       \
    X(AH_EBUDGET, -2, true, "the memory budget is too small")                                                          \
    X(AH_ESTALE, -3, true, "the artefact was made from something else")                                                \
    X(AH_ECORRUPT, -4, true, "the file is damaged")                                                                    \
    X(AH_ENOMEM, -5, false, "out of host memory")                                                                      \
    X(AH_EIO, -6, false, "reading or writing failed")                                                                  \
    X(AH_EDEVICE, -7, false, "the device failed")                                                                      \
    X(AH_ENUMERIC, -8, false, "a loss or gradient is not finite")                                                      \
    X(AH_EINTERNAL, -9, false, "a defect in AutoHete")

enum ah_status {
#define AH_STATUS_ENUM(name, value, input, text) name = value,
    AH_STATUS_TABLE(AH_STATUS_ENUM)
#undef AH_STATUS_ENUM
};

/* The message of the last failure on this thread: one line, no newline, valid until the next failure on this thread. */
AH_API const char *ah_error(void);
/* "AH_EINPUT", or "unknown status". */
AH_API const char *ah_status_name(int status);
/* Whether the fault lies in what the user gave (a program exits with 2), not in the run (1). */
AH_API bool ah_status_is_input(int status);

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

/* "64MiB", "1.5GB", "4096" (bytes) -> bytes. Binary (KiB MiB GiB TiB) and decimal (kB KB MB GB TB) suffixes, "B" or
 * none. AH_EINPUT when malformed, negative, zero where a size makes no sense is the caller's to refuse, or beyond
 * int64_t. */
AH_API int ah_size_parse(int64_t *bytes, const char *text);
/* "4GB/s", "500MiB/s" -> bytes per second; the "/s" is required. */
AH_API int ah_rate_parse(int64_t *bytes_per_s, const char *text);
/* 67108864 -> "64.0 MiB" into text[size]; returns text. */
AH_API char *ah_size_format(char *text, size_t size, int64_t bytes);

/* ---- recording a model on fake tensors --------------------------------------------------------------------------- */

enum ah_dtype { AH_F32 = 0, AH_BF16, AH_F16, AH_I32, AH_DTYPE_COUNT };

/* "fp32" -> AH_F32, "bf16" -> AH_BF16: what trainings may compute in. AH_EINPUT. */
AH_API int ah_dtype_parse(enum ah_dtype *out, const char *text);

enum { AH_MAX_RANK = 4 };
struct ah_shape {
    int rank;
    int64_t dim[AH_MAX_RANK];
};

/* A value in a graph: shape and dtype, no data. id < 0 after a failed recording call; passing it on is harmless. */
struct ah_tensor {
    int32_t id;
};

enum ah_init { AH_INIT_ZEROS, AH_INIT_ONES, AH_INIT_NORMAL };

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
 * AH_INIT_NORMAL. A parameter used in two partitions (a tied embedding) belongs to the first. Rank >= 2 takes part in
 * weight decay. */
AH_API struct ah_tensor ah_graph_param(struct ah_graph *graph, const char *name, struct ah_shape shape,
                                       enum ah_init init, float std);

/* table [V, C], ids [B, T] -> [B, T, C] */
AH_API struct ah_tensor ah_graph_embedding(struct ah_graph *graph, struct ah_tensor table, struct ah_tensor ids);
/* x [B, T, C] += table [>= T, C] by position; in place on x */
AH_API struct ah_tensor ah_graph_add_position(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor table);
/* x [..., C], weight [C], bias [C] or id -1 -> same shape as x */
AH_API struct ah_tensor ah_graph_layernorm(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                           struct ah_tensor bias, float eps);
/* x / sqrt(mean of x^2 + eps) * weight: x [..., C], weight [C] -> same shape as x */
AH_API struct ah_tensor ah_graph_rmsnorm(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                         float eps);
/* x [..., I], weight [I, O] (or [O, I] when weight_is_out_in), bias [O] or id -1 -> [..., O] */
AH_API struct ah_tensor ah_graph_linear(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight,
                                        struct ah_tensor bias, bool weight_is_out_in);
/* Causal multi-head self-attention, softmax(q k^T / sqrt(C/heads)) v: qkv [B, T, 3C] (q, k, v side by side)
 * -> [B, T, C] */
AH_API struct ah_tensor ah_graph_attention(struct ah_graph *graph, struct ah_tensor qkv, int heads);
/* The same of q [B, T, C], k and v [B, T, C / heads * kv_heads] -> [B, T, C]; kv_heads divides heads, and
 * heads / kv_heads heads of q in a row share one of k and v */
AH_API struct ah_tensor ah_graph_attention_qkv(struct ah_graph *graph, struct ah_tensor q, struct ah_tensor k,
                                               struct ah_tensor v, int heads, int kv_heads);
/* Rotates the pairs (i, i + dims / 2) of the first `dims` channels of each head of x [B, T, C] by the angle
 * t * theta^(-2 i / dims) at position t; dims 0: all channels. In place on x */
AH_API struct ah_tensor ah_graph_rotary(struct ah_graph *graph, struct ah_tensor x, int heads, float theta, int dims);
/* GELU, tanh form (Hugging Face's "gelu_new") */
AH_API struct ah_tensor ah_graph_gelu(struct ah_graph *graph, struct ah_tensor x);
AH_API struct ah_tensor ah_graph_relu(struct ah_graph *graph, struct ah_tensor x);
/* gate / (1 + e^-gate) * up, same shapes (SwiGLU's product) */
AH_API struct ah_tensor ah_graph_silu_mul(struct ah_graph *graph, struct ah_tensor gate, struct ah_tensor up);
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

/* ---- models ------------------------------------------------------------------------------------------------------ */

struct ah_model;

/* A model definition: records itself for a batch, with no word about memory. */
struct ah_model_def {
    const char *name;   /* for messages and signatures */
    const char *config; /* JSON text saved as config.json in checkpoints and part of the signature; null: "{}" */
    int64_t vocab_size; /* tokens must be below it */
    int64_t max_seq;    /* longest sequence it can take */
    int layers;         /* number of blocks */
    /* Up to and with ah_graph_finish(). */
    int (*record)(struct ah_graph *graph, int64_t batch, int64_t seq, void *context);
    void *context;      /* handed to record; must outlive the model */
};

/* From JSON with Hugging Face's config keys (model_type "gpt2"), or from a folder that holds config.json.
 * AH_EINPUT / AH_EIO. */
AH_API int ah_model_load(struct ah_model **out, const char *path);
/* From a user's own definition; strings are copied. */
AH_API int ah_model_new(struct ah_model **out, const struct ah_model_def *def);
AH_API void ah_model_free(struct ah_model *model);
/* Records the model for batch x seq. The caller frees *out. */
AH_API int ah_model_record(struct ah_graph **out, const struct ah_model *model, int64_t batch, int64_t seq,
                           enum ah_dtype compute);
AH_API const struct ah_model_def *ah_model_get(const struct ah_model *model);

/* ---- partition --------------------------------------------------------------------------------------------------- */

struct ah_partition;

/* What a step is apart from its model; part of the signature. */
struct ah_step_options {
    bool clips;  /* updates wait for the norm of all gradients of the step */
    bool infers; /* memory has room for all logits of a batch, which training never needs */
    /* A step is so many micro-batches, each of the size that the graph was recorded for; 0 is 1. The loss is the mean
     * over the tokens of all, gradients are summed over all, and each block runs all of them before the next block
     * runs: what is moved between host and device is moved once for a step. Not with infers. */
    int micro_batches;
};
/* Cuts the graph into embedding, L equal blocks and head and compiles each once. `options` null: all of them zero.
 * AH_EINPUT says where two blocks differ. */
AH_API int ah_partition_new(struct ah_partition **out, const struct ah_graph *graph,
                            const struct ah_step_options *options);
AH_API void ah_partition_free(struct ah_partition *partition);
AH_API int ah_partition_print(const struct ah_partition *partition, FILE *to);
AH_API int ah_partition_save(const struct ah_partition *partition, const char *path);

/* ---- devices ----------------------------------------------------------------------------------------------------- */

struct ah_dev;

/* What a device does at the same time: its arithmetic, copies to it and from it, the host's arithmetic (the optimizer),
 * and collectives between ranks. Work of one lane runs in order. */
enum ah_lane { AH_LANE_COMPUTE, AH_LANE_H2D, AH_LANE_D2H, AH_LANE_HOST, AH_LANE_COMM, AH_LANE_COUNT };
/* "compute", "h2d", "d2h", "host", "comm". */
AH_API const char *ah_lane_name(enum ah_lane lane);

struct ah_dev_options {
    int ordinal;             /* which one where there are several, counted from 0; "cuda:1" sets it */
    int threads;             /* device compute threads; 0: one per core. A GPU has none */
    int host_threads;        /* host optimizer threads; 0: 1, beside a GPU all cores but one */
    int64_t link_bytes_per_s; /* throttle of each copy direction; 0: as fast as it goes. A GPU's cannot be throttled */
    uint64_t jitter_seed;    /* nonzero: random delays on every lane (for tests of exactness) */
};

/* "cpu", or NAME for a device in a shared object libautohete-NAME.so, which is looked for in the folder that the
 * environment variable AUTOHETE_PLUGINS names, beside the library, beside the program and where libraries are
 * installed; "NAME:1" is the second of its kind. "auto" is "cuda" where that plugin is there and finds a GPU, else
 * "cpu"; also "cpu" when the options ask for what only that has: threads, a link speed. AH_EINPUT: there is no such
 * device, or it has no such option; AH_EDEVICE: it is there, but does not fit or does not work. The caller closes
 * it. */
AH_API int ah_dev_open(struct ah_dev **out, const char *name, const struct ah_dev_options *options);
AH_API void ah_dev_close(struct ah_dev *dev);

/* What a device is. */
struct ah_device {
    char name[32];          /* as ah_dev_open takes it: "cpu", "cuda:0" */
    char model[96];         /* what the hardware is called; "": unknown */
    int units;              /* what computes at once: the CPU's threads, a GPU's multiprocessors */
    int host_threads;       /* of the host optimizer beside it */
    int64_t memory_bytes;   /* its own, altogether */
    int64_t free_bytes;     /* the most a training may have of it now */
    char link[32];          /* how it is connected, "PCIe 32.0 GT/s x16"; "": nothing to say */
    int64_t h2d_bytes_per_s, d2h_bytes_per_s; /* measured, alone; 0: not asked for */
    char why[256];          /* why it cannot be used; of a device that "auto" opened: why a GPU that is there was passed
                             * over; else "" */
};
/* Of an open device, without its link's speed. */
AH_API void ah_dev_get(struct ah_device *out, struct ah_dev *dev);
/* Every device there is, each opened for a moment and its link measured, and the plugins that do not load, which have a
 * name and `why`. The caller frees *out with free(). */
AH_API int ah_devices(struct ah_device **out, int *count);

/* ---- profile ----------------------------------------------------------------------------------------------------- */

struct ah_profile;

/* Times one block (and embedding, head, Adam, copies, and how lanes slow each other) on the device; never the whole
 * model. */
AH_API int ah_profile_measure(struct ah_profile **out, const struct ah_partition *partition, struct ah_dev *dev);
AH_API int ah_profile_load(struct ah_profile **out, const char *path);
AH_API int ah_profile_save(const struct ah_profile *profile, const char *path);
AH_API int ah_profile_print(const struct ah_profile *profile, FILE *to);
AH_API void ah_profile_free(struct ah_profile *profile);

/* ---- plan -------------------------------------------------------------------------------------------------------- */

/* The switches of a plan: what is recomputed, what lives where, in how many pieces and slots. Blocks are numbered
 * 1..layers; blocks 1..checkpoint recompute; blocks layers-offload_optimizer+1..layers keep their optimizer states on
 * the host, and the first offload_params of those give their parameters back between forward and backward (the paper's
 * c, p and o). */
struct ah_switches {
    int layers;
    int ranks;              /* devices the model data are sharded over (ZeRO-3); 1: none */
    int checkpoint;         /* c */
    int offload_params;     /* p <= o */
    int offload_optimizer;  /* o */
    bool embedding_on_host; /* optimizer states of the embedding partition */
    bool head_on_host;      /* optimizer states of the head partition */
    int tiles;              /* pieces in which a group's gradient, update and fetch follow each other; 1: whole */
    int slots;              /* block-sized device slots shared by parameters and gradients */
    int overtaking;         /* slots up to which ready fetches may overtake those needed earlier; 0: forward order */
    int refetch_ahead;      /* backward steps by which an offloaded block's parameters may be fetched early; >= 1 */
    int spares;             /* spare sets of a block's host states, for updates before the gradient norm is known */
};

/* Plain data: switches, and what they are predicted to lead to. */
struct ah_plan {
    struct ah_switches switches;
    int64_t workspace_bytes;   /* scratch that the device asked for, inside its memory */
    int64_t device_peak_bytes; /* predicted, exact */
    int64_t host_peak_bytes;   /* predicted, exact */
    int64_t step_ns;           /* predicted by the simulator, steady state */
    int64_t bound_ns;          /* no schedule of this plan can be faster: max(bound_lane_ns, bound_cycle_ns) */
    int64_t bound_lane_ns;     /* the busiest lane's total per iteration */
    int64_t bound_cycle_ns;    /* the longest dependency cycle between iterations */
    enum ah_lane bound_lane;   /* the busiest lane */
    char policy[24];           /* one of ah_policy_names() */
    uint64_t signature;        /* of the partition: model structure, batch, sequence, dtype, version; 0 until planned */
};

struct ah_budget {
    int64_t device_bytes; /* 0: no limit */
    int64_t host_bytes;   /* 0: no limit */
};
#define AH_NO_LIMIT INT64_MAX /* in ah_train_options, where 0 is what a resumed training had */

/* The best plan under the simulator with the real scheduler. AH_EBUDGET names the smallest budget that would work. */
AH_API int ah_plan_search(struct ah_plan *out, const struct ah_partition *partition, const struct ah_profile *profile,
                          const struct ah_budget *budget, const char *policy);
/* A plan given by hand ("resident", "c=8,p=2,o=8[,slots=N,ahead=N,tiles=N,overtaking=N,spares=N,
 * embedding=host|device,head=host|device]", or a JSON file): completed, checked against the budget and predicted. */
AH_API int ah_plan_parse(struct ah_plan *out, const char *text, const struct ah_partition *partition,
                         const struct ah_profile *profile, const struct ah_budget *budget, const char *policy);
AH_API int ah_plan_save(const struct ah_plan *plan, const char *path);
/* The table `autohete train` shows. */
AH_API int ah_plan_print(const struct ah_plan *plan, const struct ah_budget *budget, FILE *to);
/* Why this plan: the ILP's answer under the same simulator, and every neighbour. */
AH_API int ah_plan_explain(const struct ah_plan *plan, const struct ah_partition *partition,
                           const struct ah_profile *profile, const struct ah_budget *budget, FILE *to);
/* Special sizes of micro-batches where one is asked for: the batch as a whole, and the fastest within the budget. */
enum { AH_MICRO_BATCH_WHOLE = 0, AH_MICRO_BATCH_AUTO = -1 };

/* A step of `batch` sequences that may be run in micro-batches. */
struct ah_micro_batch_options {
    const struct ah_model *model;
    int64_t batch, seq;
    enum ah_dtype compute;
    struct ah_step_options step; /* micro_batches follows from the size and is not read */
    struct ah_dev *dev;          /* times are measured on it */
    struct ah_budget budget;
    const char *plan;            /* "auto", or as for ah_plan_parse */
    const char *policy;
};

/* Everything made for one size. */
struct ah_micro_batch {
    int64_t size; /* sequences in a micro-batch */
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
    struct ah_plan plan;
};

/* The size with the shortest predicted step within the budget: tries divisors of the batch from the smallest on, until
 * one does not fit. The first is profiled as ever, of the others only the programs. AH_EBUDGET: not even the smallest
 * fits. The caller frees graph, partition and profile. */
AH_API int ah_micro_batch_choose(struct ah_micro_batch *out, const struct ah_micro_batch_options *options);
/* After a plan for micro-batches of `size` was refused with AH_EBUDGET: puts the largest smaller size with which there
 * is a plan within the budget, if there is one, at the end of that message. Returns AH_EBUDGET, or why it could not
 * tell. */
AH_API int ah_micro_batch_advise(const struct ah_micro_batch_options *options, int64_t size);

/* JSON object text of the plan; the caller frees it with free(). */
AH_API int ah_plan_json(char **out, const struct ah_plan *plan);

/* ---- timelines --------------------------------------------------------------------------------------------------- */

struct ah_timeline;

/* Simulates `iterations` of the plan; the caller frees *out. */
AH_API int ah_plan_simulate(struct ah_timeline **out, const struct ah_plan *plan, const struct ah_partition *partition,
                            const struct ah_profile *profile, int iterations);
AH_API void ah_timeline_free(struct ah_timeline *timeline);
AH_API int ah_timeline_print(const struct ah_timeline *timeline, FILE *to);
/* Chrome trace (chrome://tracing, Perfetto): one row per lane, memory counters, flows for dependencies. */
AH_API int ah_timeline_save(const struct ah_timeline *timeline, const char *path);
/* Two consecutive iterations, predicted above measured (either may be null), with the device memory curve and the
 * budget line (0: none). */
AH_API int ah_timeline_save_svg(const struct ah_timeline *predicted, const struct ah_timeline *measured,
                                int64_t budget_bytes, const char *path);

/* ---- hardware one does not own ----------------------------------------------------------------------------------- */

struct ah_hardware;

struct ah_hardware_info {
    const char *name;         /* "a100-40g" */
    const char *description;
    int devices;              /* in the machine */
    int64_t device_bytes;     /* of one device, usable */
    int64_t host_bytes;       /* shared by all ranks */
    double peak_flops_per_s;  /* dense, of one device, in the dtype of the profile (bf16/fp16) */
};

/* From a file, or by name from the folders `hardware/` beside the program, in the current folder and in the installed
 * data. AH_EINPUT names the file and key, or the names that exist. */
AH_API int ah_hardware_load(struct ah_hardware **out, const char *name_or_path);
AH_API void ah_hardware_free(struct ah_hardware *hardware);
/* The strings live as long as the hardware. */
AH_API void ah_hardware_get(struct ah_hardware_info *out, const struct ah_hardware *hardware);
/* Every figure with its source, as text. */
AH_API int ah_hardware_print(const struct ah_hardware *hardware, FILE *to);

struct ah_estimate_options {
    int ranks;             /* 1 .. devices */
    const char *optimizer; /* whose host Adam: "autohete" (bytes over DRAM bandwidth; also null) or "deepspeed"
                            * (published rates) */
};
/* A profile from public figures: block times from flops and a GEMM efficiency curve, bandwidth-bound operators and Adam
 * from bytes. The partition is one rank's: recorded with the global batch divided by ranks. */
AH_API int ah_profile_estimate(struct ah_profile **out, const struct ah_partition *partition,
                               const struct ah_hardware *hardware, const struct ah_estimate_options *options);

/* What a policy makes of a model on a machine. */
struct ah_evaluation {
    char policy[24];
    bool fits;
    char reason[160];       /* why not: what runs out, and by how much; "" when it fits */
    int64_t over_bytes;     /* by how much its smallest plan exceeds the budget; 0 when it fits */
    struct ah_plan plan;    /* the fastest that fits, else the smallest */
    double tflops_model;    /* model flops (forward + backward, no recomputation) per second and rank / 1e12 */
    double tflops_hardware; /* the same with recomputation counted */
    double tokens_per_s;    /* of all ranks */
    double lane_busy[AH_LANE_COUNT]; /* fraction of a steady step */
};
AH_API int ah_plan_evaluate(struct ah_evaluation *out, const struct ah_partition *partition,
                            const struct ah_profile *profile, const struct ah_budget *budget, const char *policy);

/* The policies there are, null-terminated: names and one-line descriptions. */
AH_API const char *const *ah_policy_names(void);
AH_API const char *ah_policy_description(const char *name);

/* ---- training ---------------------------------------------------------------------------------------------------- */

struct ah_step {
    int64_t step; /* 1-based */
    int64_t steps;
    double loss; /* natural log, mean over tokens */
    double grad_norm;
    double clip_factor; /* what the gradients were multiplied by; NaN: not finite, the step's updates were skipped */
    double lr;
    double tokens_per_s;
    double eta_s;
    double lane_busy[AH_LANE_COUNT]; /* fraction of a step each lane was busy, in the last step recorded */
};

/* An option nobody set; so is NaN for a double, (uint64_t)AH_UNSET for the seed, a null string. ah_train() replaces it
 * by what the checkpoint says when it resumes one (those marked *), else by the default. */
#define AH_UNSET INT64_MIN

struct ah_train_options {
    const char *model_path;      /* JSON, or a folder with config.json; not needed with resume_dir */
    const struct ah_model *model; /* instead of model_path: a model of one's own */
    const char *init;            /* "weights": from model_path's folder; "random". Default: weights where there are any.
                                  * A training that is resumed has its own */
    const char *data_path;       /* text (byte tokens) or an llm.c token file; * not needed with resume_dir */
    const char *device;          /* as for ah_dev_open; default "auto" */
    struct ah_dev_options dev;
    struct ah_budget budget;     /* * device_bytes 0: what the device has, where it has a memory of its own;
                                  * AH_NO_LIMIT: the same, also where the resumed training had a limit */
    int64_t batch, seq;          /* * sequences a step, default 8; tokens in each, default 256 or the model's longest */
    const char *dtype;           /* * "fp32" (default) or "bf16": of parameters as they are used, activations and
                                  * gradients; master parameters, moments, sums and losses are fp32 in both */
    const char *save_dtype;      /* * of model.safetensors, "fp32" or "bf16"; default: dtype. A resume goes on from the
                                  * fp32 master in either case */
    int64_t micro_batch;         /* * sequences of the step that a block works on at a time, a divisor of batch; or
                                  * AH_MICRO_BATCH_WHOLE (default), or AH_MICRO_BATCH_AUTO, which a resumed training has
                                  * decided long ago. The size may change the order of sums, no plan does */
    int64_t steps;               /* * total, counted from the first step ever; default 200 */
    int64_t lr_steps;            /* * where the learning rate's decay ends; 0 (default): with the last step */
    uint64_t seed;               /* * of parameters and data order; default 1 */
    double lr, min_lr_ratio;     /* * peak rate, default 3e-4; the decay ends at lr * min_lr_ratio, default 0.1 */
    int64_t warmup_steps;        /* * linear from lr / warmup_steps; 0: none; default steps / 20 */
    const char *schedule;        /* * "cosine" (default), "linear", "constant" */
    double clip;                 /* * limit of the global gradient norm, default 1; 0: none */
    const char *nonfinite;       /* * when a norm is not finite: "stop" (default), or "skip" the step's updates;
                                  * needs a clip above 0 */
    double beta1, beta2, eps, weight_decay; /* * AdamW; default 0.9, 0.95, 1e-8, 0.1 */
    const char *plan;            /* "auto" (default), "resident", "c=..,p=..,o=.." or a plan file */
    const char *policy;          /* one of ah_policy_names(); default "autohete" */
    const char *profile_path;    /* a saved profile, or null: measure */
    const char *out_dir;         /* a folder that holds no training yet, or the one that is resumed. Null: the folder of
                                  * the training that is resumed, else nothing is written */
    const char *resume_dir;      /* a training's folder (its newest checkpoint) or one checkpoint's; null: start anew */
    const char *like_dir;        /* a training's folder: what is not set here is as that one was started, model, data
                                  * and budget included; null: nothing */
    int64_t save_every;          /* * steps between checkpoints; 0 (default): none are due by steps */
    double save_seconds;         /* * between checkpoints; 0: none are due by time. Default 600, 0 where save_every is
                                  * set. They are written while the training goes on, when memory allows a copy of the
                                  * states (12 bytes per parameter); the last one is always saved */
    int64_t keep;                /* * how many checkpoints stay, the newest; default 2 */
    int64_t val_every;           /* * steps; 0 (default): only at the end */
    int64_t val_batches;         /* * batches of the validation part per evaluation; 0: never evaluate; default 8 */
    /* Called when the plan stands (and the predicted timeline exists), after each step, and after each evaluation; each
     * may be null. Returning nonzero from on_step stops after the running step, saves and returns AH_OK; from on_plan
     * or on_val it ends ah_train() with that status. */
    int (*on_plan)(const struct ah_plan *plan, const struct ah_budget *budget, void *context);
    /* First of all: what device it is. */
    void (*on_device)(const struct ah_device *device, void *context);
    /* Just before on_plan: the size of micro-batches and how many a step has; nonzero ends ah_train() likewise. */
    int (*on_micro_batch)(int64_t size, int64_t count, void *context);
    int (*on_step)(const struct ah_step *step, void *context);
    int (*on_val)(int64_t step, double val_loss, void *context);
    /* Something a user should know that is no fault: one line, valid during the call. May be null. */
    void (*on_note)(const char *line, void *context);
    void *context;
    const volatile int *stop; /* nonzero (set from a signal handler): as if on_step had returned nonzero; may be null */
};

/* Everything unset; null pointers. To be called before any field is set. */
AH_API void ah_train_options_init(struct ah_train_options *options);

struct ah_train_result {
    int64_t steps_done;
    bool stopped; /* by stop or on_step */
    bool saved;   /* what was trained in this call is in out_dir; false when nothing was */
    double final_loss, val_loss; /* of the last step; NaN where there was none */
    double tokens_per_s;         /* at step_ns_median; 0 when no step was run */
    int64_t device_peak_bytes_predicted, device_peak_bytes_used;
    int64_t host_peak_bytes_predicted, host_peak_bytes_used;
    char device[32];             /* "cpu", "cuda:0" */
    const char *dtype;           /* "fp32" or "bf16" */
    int64_t micro_batch;         /* sequences in a micro-batch; the batch where it runs as a whole */
    double clip;                 /* the limit; 0: none */
    int64_t clipped_steps;       /* steps whose gradients were scaled down */
    int64_t skipped_steps;       /* steps without updates, because their norm was not finite */
    int64_t updates_redone;      /* host updates that had run before the norm was known and had to run again */
    int64_t step_ns_predicted, step_ns_median; /* median over the steps of this call after its first two */
    struct ah_plan plan;
};

/* Profiles, plans, trains and saves. Bad input (ah_status_is_input) leaves out_dir untouched. out_dir receives
 * run.json, metrics.jsonl, val.jsonl, plan.json, profile.json, timeline.json, timeline.svg and checkpoint folders, the
 * newest `keep` of them; one stays until the next is on disk. A checkpoint that cannot be written on the way is told by
 * on_note; the last one's failure is ah_train()'s.
 *
 * Resuming gives the same bits as never having stopped, whatever plan, budget, threads, link speed or policy (but
 * zero-offload-dpu, which is another training) either part used, as long as nothing else changes. Batch, micro-batch,
 * seq, dtype, seed, model and data must be those of the checkpoint (AH_ESTALE). `steps` may grow or shrink, but the
 * learning rate depends on it: the same bits need the same `steps`, as an unset one gives. On a processor that
 * multiplies in another way bits may differ: on_note says so.
 *
 * AH_ENUMERIC when a loss or gradient norm is not finite: the last checkpoint stays as it was. */
AH_API int ah_train(struct ah_train_result *result, const struct ah_train_options *options);

struct ah_generate_options {
    const char *model_dir; /* a checkpoint, or a training's folder (its newest) */
    const char *prompt;    /* text; null or empty: a newline */
    int64_t tokens;        /* how many to add */
    double temperature;    /* 0: the likeliest */
    int top_k;             /* 0: all */
    uint64_t seed;
    const char *device;    /* as for ah_dev_open; default "auto" */
    int threads;           /* of the CPU; 0: one per core */
    /* Each new token with the text it stands for, which is valid during the call and may hold zero bytes; nonzero
     * stops. */
    int (*on_token)(int token, const char *text, size_t length, void *context);
    void *context;
};
/* Continues the prompt; tokens are bytes (AH_EINPUT for a vocabulary beyond 256). Same bytes for any number of
 * threads. */
AH_API int ah_generate(const struct ah_generate_options *options);

#ifdef __cplusplus
}
#endif
#endif
