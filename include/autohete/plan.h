/* From a graph to a plan: partition, devices, profiles, plans, timelines, machines one does not own. */
#ifndef AUTOHETE_PLAN_H
#define AUTOHETE_PLAN_H

#include "autohete/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- partition --------------------------------------------------------------------------------------------------- */

struct ah_partition;

/* What a step is apart from its model; part of the signature. */
struct ah_step_options {
    bool clips;  /* updates wait for the norm of all gradients of the step */
    bool infers; /* nothing is learned: no moments and no gradients are kept. Losses only, or also logits */
    bool logits; /* memory has room for all logits of a batch, which training never needs */
    /* A step is so many micro-batches, each of the size that the graph was recorded for; 0 is 1. The loss is the mean
     * over the tokens of all, gradients are summed over all, and each block runs all of them before the next block
     * runs: what is moved between host and device is moved once for a step, or for each of the plan's passes. Not with
     * infers. */
    int micro_batches;
    /* So many devices train together, each a part of this size of a larger step: the loss is the mean over the tokens
     * of all, and each has its part of parameters' masters, moments and summed gradients. 0 is 1. Not with infers. */
    int world_size;
    /* What is kept of a parameter: AH_F32 (0), or AH_BF16, rounded up or down at random. A master in BF16 is what a
     * graph in AH_BF16 computes with; others have none. Moments may be AH_U8, too: codes with a scale for each 256. */
    enum ah_dtype master, moments;
};
/* Cuts the graph into embedding, L equal blocks and head and compiles each once. `options` null: all of them zero.
 * AH_EINPUT says where two blocks differ. */
AH_API int ah_partition_new(struct ah_partition **out, const struct ah_graph *graph,
                            const struct ah_step_options *options);
AH_API void ah_partition_free(struct ah_partition *partition);
/* Parameters of the whole model. */
AH_API int64_t ah_partition_params(const struct ah_partition *partition);
/* Null, or one line where the model's lowest blocks are frozen as its embedding is, and kept and run as a part of it:
 * which they are, and how plans count the others. */
AH_API const char *ah_partition_note(const struct ah_partition *partition);
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
    int ordinal;              /* which one where there are several, counted from 0; "cuda:1" sets it */
    int threads;              /* device compute threads; 0: one per core. A GPU has none */
    int host_threads;         /* host optimizer threads; 0: 1, beside a GPU all cores but one */
    int64_t link_bytes_per_s; /* throttle of each copy direction; 0: as fast as it goes. A GPU's cannot be throttled */
    uint64_t jitter_seed;     /* nonzero: random delays on every lane (for tests of exactness) */
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
    char name[32];                            /* as ah_dev_open takes it: "cpu", "cuda:0" */
    char model[96];                           /* what the hardware is called; "": unknown */
    int units;                                /* what computes at once: the CPU's threads, a GPU's multiprocessors */
    int host_threads;                         /* of the host optimizer beside it */
    int64_t memory_bytes;                     /* its own, altogether */
    int64_t free_bytes;                       /* the most a training may have of it now */
    char link[32];                            /* how it is connected, "PCIe 32.0 GT/s x16"; "": nothing to say */
    int64_t h2d_bytes_per_s, d2h_bytes_per_s; /* measured, alone; 0: not asked for */
    char why[256]; /* why it cannot be used; of a device that "auto" opened: why a GPU that is there was passed
                             * over; else "" */
};
/* Of an open device, without its link's speed. */
AH_API void ah_dev_get(struct ah_device *out, struct ah_dev *dev);
/* Every device there is, each opened for a moment and its link measured, and the plugins that do not load, which have a
 * name and `why`. The caller frees *out with free(). */
AH_API int ah_devices(struct ah_device **out, int *count);

/* ---- profile ----------------------------------------------------------------------------------------------------- */

struct ah_profile;
struct ah_profile_options {
    const char *cache;        /* a folder that keeps profiles between programs, made when needed; null: none */
    bool renew;               /* measure even where one is kept, and keep the new one */
    const volatile int *stop; /* nonzero (set from a signal handler): AH_ESTOP; may be null */
};
/* Times one block, embedding, head, Adam, copies and how lanes slow each other on the device; never the whole model. Or
 * takes the profile that the cache has of the same partition, device, threads, link, machine and builds of all
 * libraries: then *kept_s (may be null) is its age in seconds, else -1. What is damaged there is measured again, what
 * cannot be written is left out. `options` null: all of them zero. */
AH_API int ah_profile_measure(struct ah_profile **out, int64_t *kept_s, const struct ah_partition *partition,
                              struct ah_dev *dev, const struct ah_profile_options *options);
AH_API int ah_profile_load(struct ah_profile **out, const char *path);
AH_API int ah_profile_save(const struct ah_profile *profile, const char *path);
AH_API int ah_profile_print(const struct ah_profile *profile, FILE *to);
AH_API void ah_profile_free(struct ah_profile *profile);

/* ---- plan -------------------------------------------------------------------------------------------------------- */

/* The switches of a plan: what is recomputed, what lives where, in how many chunks and buffers. Blocks are numbered
 * 1..layers. Blocks with offloaded activations, and the two such blocks that would be next, come last in the order in
 * which blocks recompute. A new version may turn reserved members into switches, which changes no size or offset. */
enum { AH_SWITCHES_INTS = 32 };
struct ah_switches {
    int layers;
    int world_size; /* devices that model data are sharded over (ZeRO-3); 1: none */
    /* switches.def begins */
    /* c: recomputation: blocks 1 to c keep only their input and are recomputed in backward */
    int checkpoint;
    /* o: optimizer offload: the last o blocks keep their optimizer states on the host */
    int offload_optimizer;
    /* p: parameter offload: the first p of those o blocks release their parameters after forward and re-fetch them
     * for backward */
    int offload_params;
    /* selective: selective recomputation: the blocks after the first c keep the results of matrix products and
     * attention; the rest is recomputed */
    int selective;
    /* staged: staged device update: of those o blocks so many, evenly spaced, are updated on the device; their
     * states visit it chunk by chunk */
    int staged;
    /* unsharded: unsharded blocks (several ranks): the last so many blocks optimized on the device keep all their
     * parameters there, gathered once a step; the others gather them twice */
    int unsharded;
    /* a: activation offload: number of evenly spaced blocks whose saved activations are offloaded to the host */
    int offload_activations;
    /* embedding: optimizer offload: where the embedding's optimizer states are, and frozen blocks that go with it */
    int embedding_on_host;
    /* head: optimizer offload: where the LM head's optimizer states are */
    int head_on_host;
    /* embedding_head: embedding/LM-head buffer: whether embedding and untied head take turns in one device buffer */
    int share_embedding_head;
    /* chunks: chunks: how many chunks of gradient, host update and prefetch of a block follow each other */
    int chunks;
    /* buffers: buffers: block-sized device buffers for parameters and gradients in flight */
    int buffers;
    /* out_of_order: out-of-order prefetch: buffers that prefetches may fill before others that are needed earlier;
     * 0: forward order */
    int out_of_order;
    /* prefetch_distance: prefetch distance: backward steps by which an offloaded block may be re-fetched early */
    int prefetch_distance;
    /* shadows: shadow states: sets of host states for speculative updates, which run before the gradient norm is
     * known */
    int shadows;
    /* passes: passes: rounds over the model that a step's micro-batches are run in; activations of one round's exist
     * at once */
    int passes;
    int reserved[14]; /* 0: for switches of later versions */
    /* switches.def ends */
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
    int64_t resident_ns;       /* a step with everything on the device, predicted; 0: does not fit, or nobody asked */
    char policy[24];           /* one of ah_policy_names() */
    uint64_t signature;        /* of the partition: model structure, batch, sequence, dtype, version; 0 until planned */
    int frozen_below; /* the model's lowest blocks, frozen as its embedding is, with which they go: none of `layers` */
    bool embedding_frozen, blocks_frozen, head_frozen; /* nothing of it is trained: no gradient, no optimizer states */
    bool blocks_adapted; /* some parameters of each block are frozen: gradients and states are of the others */
};

struct ah_budget {
    int64_t device_bytes; /* 0: no limit */
    int64_t host_bytes;   /* 0: no limit */
};
#define AH_NO_LIMIT INT64_MAX /* in ah_train_options, where 0 is what a resumed training had */

struct ah_search_options {
    const struct ah_plan *warm_start; /* one of this partition, that the search also starts from where the policy can
                                       * make it within the budget: then the result is no slower; null: none */
    int effort;                       /* so many times as many simulated items as by default; 0: 1 */
    int passes; /* only plans with so many rounds over the model, of policies that know them; 0: any */
};
/* The best plan under the simulator with the real scheduler. `options` null: none. AH_EBUDGET names the smallest budget
 * that would work; AH_ESTALE: a warm start of another partition. */
AH_API int ah_plan_search(struct ah_plan *out, const struct ah_partition *partition, const struct ah_profile *profile,
                          const struct ah_budget *budget, const char *policy, const struct ah_search_options *options);
/* A plan given by hand: "resident", a JSON file, or "c=8,p=2,o=8" and as many KEY=VALUE of struct ah_switches behind
 * them. Completed, checked against the budget and predicted. */
AH_API int ah_plan_parse(struct ah_plan *out, const char *text, const struct ah_partition *partition,
                         const struct ah_profile *profile, const struct ah_budget *budget, const char *policy);
/* What can be told of such a text, or "auto", for so many blocks before anything is profiled. AH_EINPUT, AH_ESTALE. */
AH_API int ah_plan_check(const char *text, int layers);
AH_API int ah_plan_save(const struct ah_plan *plan, const char *path);
/* The table `autohete train` shows. */
AH_API int ah_plan_print(const struct ah_plan *plan, const struct ah_budget *budget, FILE *to);
/* Why this plan: the ILP's answer under the same simulator, and every neighbour. */
AH_API int ah_plan_explain(const struct ah_plan *plan, const struct ah_partition *partition,
                           const struct ah_profile *profile, const struct ah_budget *budget, FILE *to);
/* Special sizes of micro-batches where one is asked for: the batch as a whole, and the fastest within the budget. */
enum { AH_MICRO_BATCH_WHOLE = 0, AH_MICRO_BATCH_AUTO = -1 };

/* A step of `batch` sequences that may be run in micro-batches; with several ranks (step.world_size) each has so
 * many. */
struct ah_micro_batch_options {
    const struct ah_model *model;
    int64_t batch, seq;
    enum ah_dtype compute;
    bool packed;                 /* as in struct ah_record_options */
    struct ah_step_options step; /* micro_batches follows from the size and is not read */
    struct ah_tuning tuning;
    struct ah_dev *dev; /* times are measured on it */
    struct ah_budget budget;
    const char *plan; /* "auto", or as for ah_plan_parse */
    const char *policy;
    int effort; /* as in struct ah_search_options */
    struct ah_profile_options profile;
    int passes; /* as in struct ah_search_options; sizes with fewer micro-batches are not tried */
};

/* Everything made for one size. */
struct ah_micro_batch {
    int64_t size; /* sequences in a micro-batch */
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
    int64_t profile_kept_s; /* as for ah_profile_measure */
    struct ah_plan plan;
};

/* The size with the shortest predicted step within the budget: tries divisors of the batch from the smallest on, until
 * one does not fit. The first is profiled as ever, of the others only the programs. AH_EBUDGET: not even the smallest
 * fits. Several ranks all call it; they are profiled together and what rank 0 chooses is everybody's. The caller frees
 * graph, partition and profile. */
AH_API int ah_micro_batch_choose(struct ah_micro_batch *out, const struct ah_micro_batch_options *options);
/* Whether a step in micro-batches of `size` has a plan within the budget. Nothing is timed. */
AH_API int ah_step_fits(bool *out, const struct ah_micro_batch_options *options, int64_t size);
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
    const char *name; /* "a100-40g" */
    const char *description;
    int devices;             /* in the machine */
    int64_t device_bytes;    /* of one device, usable */
    int64_t host_bytes;      /* shared by all ranks */
    double peak_flops_per_s; /* dense, of one device, in the dtype of the profile (bf16/fp16) */
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
    int world_size; /* 1 .. devices */
    /* Whose rates: "autohete" (also null: ours, host Adam at DRAM bandwidth), "deepspeed" (host Adam as DeepSpeed
     * documents it), "pytorch" (device and host as published of PyTorch systems; the hardware must know them). */
    const char *optimizer;
};
/* A profile from public figures: block times from flops and a GEMM efficiency curve, bandwidth-bound operators and Adam
 * from bytes. The partition is one rank's: recorded with the global batch divided by ranks. */
AH_API int ah_profile_estimate(struct ah_profile **out, const struct ah_partition *partition,
                               const struct ah_hardware *hardware, const struct ah_estimate_options *options);

/* What a profile does not know of the machine it was measured on. */
struct ah_hardware_facts {
    const char *name, *date;          /* "2026-11-22" */
    int64_t device_bytes, host_bytes; /* usable */
    int cores;
};
/* Writes a measured profile of this partition as a hardware file (docs/hardware.md), whose estimate for the same
 * partition is about that profile: rates of copies and of both Adams as measured, one rate for all arithmetic at which
 * forward and backward of a block together take what was measured. AH_EINPUT for a profile of another partition or
 * of several ranks, AH_EIO. */
AH_API int ah_profile_save_hardware(const struct ah_profile *profile, const struct ah_partition *partition,
                                    const struct ah_hardware_facts *facts, const char *path);

/* What a policy makes of a model on a machine. */
struct ah_evaluation {
    char policy[24];
    bool fits;
    char reason[160];                /* why not: what runs out, and by how much; "" when it fits */
    int64_t over_bytes;              /* by how much its smallest plan exceeds the budget; 0 when it fits */
    struct ah_plan plan;             /* the fastest that fits, else the smallest */
    double tflops_model;             /* model flops (forward + backward, no recomputation) per second and rank / 1e12 */
    double tflops_hardware;          /* the same with recomputation counted */
    double tokens_per_s;             /* of all ranks */
    double lane_busy[AH_LANE_COUNT]; /* fraction of a steady step */
};
AH_API int ah_plan_evaluate(struct ah_evaluation *out, const struct ah_partition *partition,
                            const struct ah_profile *profile, const struct ah_budget *budget, const char *policy,
                            const struct ah_search_options *options);

/* The policies there are, null-terminated: names and one-line descriptions. */
AH_API const char *const *ah_policy_names(void);
AH_API const char *ah_policy_description(const char *name);
/* Whether plans of that policy are described by the switch of that key ("passes", "staged", ..., as ah_plan_parse has
 * them): where false none sets it, where true its placements may still allow one value alone. False for a policy or a
 * switch that there is not. Neither is null. */
AH_API bool ah_policy_uses(const char *name, const char *key);

#ifdef __cplusplus
}
#endif
#endif
