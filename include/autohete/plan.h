/* From a graph to a plan: partition, devices, profiles, plans, timelines, machines that are not at hand. */
#ifndef AUTOHETE_PLAN_H
#define AUTOHETE_PLAN_H

#include "autohete/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- partition --------------------------------------------------------------------------------------------------- */

struct ah_partition;

/* Options of a step apart from its model; part of the signature. */
struct ah_step_options {
    bool clips;  /* updates wait for the norm of all gradients of the step */
    bool infers; /* nothing is learned: no moments and no gradients are kept. A step gives losses, or also logits */
    bool logits; /* memory has room for all logits of a batch; training never needs it */
    /* Micro-batches in a step, each of the size that the graph was recorded for; 0: 1. The loss is the mean over the
     * tokens of all, gradients are summed over all, and each block runs all of them before the next block runs: data
     * are moved between host and device once for a step, or once for each of the plan's passes. Not with infers. */
    int micro_batches;
    /* Devices that train together, each with a part of this size of a larger step; 0: 1. The loss is the mean over the
     * tokens of all, and each has its part of parameters' masters, moments and summed gradients. Not with infers. */
    int world_size;
    /* Types in which masters and moments are kept. A master is AH_F32 (0), or AH_BF16, rounded up or down at random;
     * only a graph in AH_BF16 may have such a master, and computes with it. Moments may be AH_U8, too: codes with a
     * scale for each 256. */
    enum ah_dtype master, moments;
};
/* Cuts the graph into embedding, L equal blocks and head and compiles each once. `options` null: all zero. AH_EINPUT
 * says where two blocks differ. */
AH_API int ah_partition_new(struct ah_partition **out, const struct ah_graph *graph,
                            const struct ah_step_options *options);
AH_API void ah_partition_free(struct ah_partition *partition);
/* Returns the number of parameters of the whole model. */
AH_API int64_t ah_partition_params(const struct ah_partition *partition);
/* Returns one line that names the model's lowest blocks if they are frozen like its embedding, so that they have no
 * backward. Else null. */
AH_API const char *ah_partition_note(const struct ah_partition *partition);
AH_API int ah_partition_print(const struct ah_partition *partition, FILE *to);
AH_API int ah_partition_save(const struct ah_partition *partition, const char *path);

/* ---- devices ----------------------------------------------------------------------------------------------------- */

struct ah_dev;

/* Lanes: what a device does at the same time. They are its arithmetic, copies to it and from it, the host's arithmetic
 * (the optimizer), collectives between ranks, and reads and writes of a disk. Work of one lane runs in order. */
enum ah_lane { AH_LANE_COMPUTE, AH_LANE_H2D, AH_LANE_D2H, AH_LANE_HOST, AH_LANE_COMM, AH_LANE_DISK, AH_LANE_COUNT };
/* Returns the name of a lane: "compute", "h2d", "d2h", "host", "comm", "disk". */
AH_API const char *ah_lane_name(enum ah_lane lane);

struct ah_dev_options {
    int ordinal;              /* which of several devices, counted from 0; "cuda:1" sets it */
    int threads;              /* compute threads of the CPU device; 0: one per core. A GPU has none */
    int host_threads;         /* threads of the host optimizer; 0: 1, beside a GPU all cores but one */
    int64_t link_bytes_per_s; /* limit of each copy direction; 0: no limit. A GPU's link cannot be limited */
    uint64_t jitter_seed;     /* nonzero: random delays on every lane (for tests of exactness) */
    const char *disk; /* folders for what a plan keeps on disk, with commas between; copied. Null: the folder for
                               * temporary files */
};

/* Opens a device: "cpu", or NAME for a device of the plugin libautohete-NAME.so, which is looked for in the folder that
 * the environment variable AUTOHETE_PLUGINS names, beside the library, beside the program and where libraries are
 * installed; "NAME:1" is the second of its kind. "auto" is "cuda" if that plugin is there and finds a GPU, else "cpu";
 * also "cpu" if the options ask for threads or a link speed, which only that has. AH_EINPUT: there is no such device,
 * or it has no such option. AH_EDEVICE: the device is there, but does not fit or does not work. The caller closes
 * *out. */
AH_API int ah_dev_open(struct ah_dev **out, const char *name, const struct ah_dev_options *options);
AH_API void ah_dev_close(struct ah_dev *dev);

/* Description of a device. */
struct ah_device {
    char name[32];                            /* as ah_dev_open takes it: "cpu", "cuda:0" */
    char model[96];                           /* name of the hardware; "": unknown */
    int units;                                /* units that compute at once: the CPU's threads, a GPU's
                                               * multiprocessors */
    int host_threads;                         /* threads of the host optimizer beside it */
    int64_t memory_bytes;                     /* its own memory, in all */
    int64_t free_bytes;                       /* most memory that a training may have now */
    char link[32];                            /* its connection, "PCIe 32.0 GT/s x16"; "": unknown */
    int64_t h2d_bytes_per_s, d2h_bytes_per_s; /* measured, one direction at a time; 0: not measured */
    char why[256]; /* why it cannot be used; if "auto" opened the CPU although a GPU is there, why that is not used;
                    * else "" */
};
/* Describes an open device, without its link's speed. */
AH_API void ah_dev_get(struct ah_device *out, struct ah_dev *dev);
/* Lists every device there is, each opened for a moment and its link measured, and the plugins that do not load, which
 * have a name and `why`. The caller frees *out with free(). */
AH_API int ah_devices(struct ah_device **out, int *count);

/* ---- profile ----------------------------------------------------------------------------------------------------- */

struct ah_profile;
struct ah_profile_options {
    const char *cache;        /* folder where profiles are cached between programs, made if needed; null: no cache */
    bool renew;               /* measure even if a profile is cached, and cache the new one */
    const volatile int *stop; /* nonzero (set from a signal handler): measuring ends with AH_ESTOP; may be null */
};
/* Times one block, embedding, head, Adam, copies and how lanes slow each other on the device; never the whole model. If
 * the cache has a profile of the same partition, device, threads, link, machine and builds of all libraries, takes it
 * instead: then *kept_s is its age in seconds, else -1; `kept_s` may be null. A damaged profile is measured again; one
 * that cannot be written is not cached. `options` null: all zero. */
AH_API int ah_profile_measure(struct ah_profile **out, int64_t *kept_s, const struct ah_partition *partition,
                              struct ah_dev *dev, const struct ah_profile_options *options);
AH_API int ah_profile_load(struct ah_profile **out, const char *path);
AH_API int ah_profile_save(const struct ah_profile *profile, const char *path);
AH_API int ah_profile_print(const struct ah_profile *profile, FILE *to);
AH_API void ah_profile_free(struct ah_profile *profile);

/* ---- plan -------------------------------------------------------------------------------------------------------- */

/* The switches of a plan: recomputation, placement, and numbers of chunks and buffers. Blocks are numbered 1..layers.
 * Recomputation takes other blocks first: those with offloaded activations, and the two that would be next to offload
 * theirs, come last. A new version may turn reserved members into switches, which changes no size or offset. */
enum { AH_SWITCHES_INTS = 32 };
struct ah_switches {
    int layers;
    int world_size;    /* devices that model data are sharded over (ZeRO-3); 1: none */
    int frozen_blocks; /* the model's lowest blocks, frozen as its embedding is: they have no backward */
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
    /* staged: staged device update: this many of those o blocks, evenly spaced, are updated on the device; their
     * states visit it chunk by chunk */
    int staged;
    /* unsharded: unsharded blocks (several ranks): of the blocks optimized on the device the last ones, this many,
     * keep all their parameters there, gathered once a step; the others gather them twice */
    int unsharded;
    /* a: activation offload: this many evenly spaced blocks offload their saved activations to the host */
    int offload_activations;
    /* embedding: optimizer offload: the embedding's optimizer states are on the device or on the host */
    int embedding_on_host;
    /* head: optimizer offload: the LM head's optimizer states are on the device or on the host */
    int head_on_host;
    /* embedding_head: embedding/LM-head buffer: embedding and untied head have separate device buffers, or take
     * turns in a shared one */
    int share_embedding_head;
    /* chunks: chunks: gradient, host update and prefetch of a block follow each other in this many chunks */
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
    /* disk: disk: the last disk of those o blocks keep their parameters and optimizer states on disk */
    int disk_blocks;
    /* disk_ahead: disk read-ahead: host buffers for a chunk of a block on disk, beside the two that a disk needs */
    int disk_ahead;
    /* sums: sums on the device (several passes): the first blocks, this many, keep their gradient sums there from
     * pass to pass; those of the others wait on the host */
    int device_sums;
    int reserved[10]; /* 0: for switches of later versions */
    /* switches.def ends */
};

/* Plain data: switches, and the predictions for them. */
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
    int64_t resident_ns;       /* a step with everything on the device, predicted; 0: it does not fit, or was not asked
                                * for */
    char policy[24];           /* one of ah_policy_names() */
    uint64_t signature;        /* signature of the partition: model structure, batch, sequence, dtype, version; 0 until
                                * planned */
    bool embedding_frozen, blocks_frozen, head_frozen; /* nothing of that part is trained: it has no gradient and no
                                                        * optimizer states */
    bool blocks_adapted;     /* some parameters of each block are frozen: gradients and states are of the others */
    int64_t disk_peak_bytes; /* predicted, exact; 0: nothing is on disk */
    int64_t disk_read_bytes, disk_written_bytes; /* predicted, of a step in which every update counts */
    int64_t disk_endurance_bytes; /* that may be written to the drive in all, as its maker warrants; 0: unknown */
};

struct ah_budget {
    int64_t device_bytes; /* 0: no limit */
    int64_t host_bytes;   /* 0: no limit */
    int64_t disk_bytes;   /* 0: what is free. Only plans of a profile with a drive keep anything on disk */
};
#define AH_NO_LIMIT INT64_MAX /* no limit, in ah_train_options, where 0 means the resumed training's */

struct ah_search_options {
    const struct ah_plan *warm_start; /* a plan of this partition that the search also starts from, if the policy can
                                       * make it within the budget: then the result is no slower; null: none */
    int effort;                       /* multiple of the default number of simulated items; 0: 1 */
    const char *fixed;                /* switches that plans keep, like "passes=4,buffers=6"; null or "auto": none */
};
/* Searches the best plan under the simulator with the real scheduler. `options` null: all zero. AH_EBUDGET names the
 * smallest budget that would work; AH_ESTALE: the warm start is of another partition. */
AH_API int ah_plan_search(struct ah_plan *out, const struct ah_partition *partition, const struct ah_profile *profile,
                          const struct ah_budget *budget, const char *policy, const struct ah_search_options *options);
/* Makes a plan given by hand: "resident", a JSON file, or "c=8,p=2,o=8" followed by any KEY=VALUE of struct
 * ah_switches. It is completed, checked against the budget and predicted. If c, p or o is missing, the search finds the
 * rest. */
AH_API int ah_plan_parse(struct ah_plan *out, const char *text, const struct ah_partition *partition,
                         const struct ah_profile *profile, const struct ah_budget *budget, const char *policy);
/* Returns true if the search decides about a plan of that text, at least in part: null, "auto" or KEY=VALUE without all
 * of c, p and o. */
AH_API bool ah_plan_is_open(const char *text);
/* Checks such a text, or "auto", for a model of `layers` blocks, as far as that is possible before anything is
 * profiled. AH_EINPUT, AH_ESTALE. */
AH_API int ah_plan_check(const char *text, int layers);
AH_API int ah_plan_save(const struct ah_plan *plan, const char *path);
/* Prints the table that `autohete train` shows. */
AH_API int ah_plan_print(const struct ah_plan *plan, const struct ah_budget *budget, FILE *to);
/* Returns the bytes that a day of steps of step_ns each writes to disk. */
AH_API int64_t ah_plan_day_bytes(const struct ah_plan *plan, int64_t step_ns);
/* Writes what such a day makes of the drive: "a day of such steps writes 3.1 TiB, 0.28% of the drive's 1200 TBW";
 * "": nothing is written. Returns text. */
AH_API const char *ah_plan_wear(char *text, size_t size, const struct ah_plan *plan, int64_t step_ns);
/* Prints why this plan was chosen: the integer program's plan under the same simulator, and every plan that differs in
 * one switch. */
AH_API int ah_plan_explain(const struct ah_plan *plan, const struct ah_partition *partition,
                           const struct ah_profile *profile, const struct ah_budget *budget, FILE *to);
/* Special sizes of micro-batches: the batch as a whole, and the fastest within the budget. */
enum { AH_MICRO_BATCH_WHOLE = 0, AH_MICRO_BATCH_AUTO = -1 };

struct ah_hardware;

/* A step of `batch` sequences that may be run in micro-batches; with several ranks (step.world_size) each rank has
 * `batch` sequences. */
struct ah_micro_batch_options {
    const struct ah_model *model;
    int64_t batch, seq;
    enum ah_dtype compute;
    bool packed;                 /* as in struct ah_record_options */
    struct ah_step_options step; /* micro_batches follows from the size and is not read */
    struct ah_tuning tuning;
    struct ah_dev *dev;                 /* times are measured on it */
    const struct ah_hardware *hardware; /* without dev: whose workspace a step takes; null: none */
    struct ah_budget budget;
    const char *plan; /* "auto", or as for ah_plan_parse */
    const char *policy;
    int effort; /* as in struct ah_search_options */
    struct ah_profile_options profile;
    bool disk; /* plans may keep blocks on disk */
};

/* The objects that are made for one size. */
struct ah_micro_batch {
    int64_t size; /* sequences in a micro-batch */
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
    int64_t profile_kept_s; /* as for ah_profile_measure */
    struct ah_plan plan;
};

/* Chooses the size with the shortest predicted step within the budget: tries divisors of the batch from the smallest
 * on, until one does not fit. The first is profiled in full, of the others only the programs. AH_EBUDGET: not even the
 * smallest fits. All ranks call it; they are profiled together and take rank 0's choice. The caller frees graph,
 * partition and profile. */
AH_API int ah_micro_batch_choose(struct ah_micro_batch *out, const struct ah_micro_batch_options *options);
/* Sets *out to true if a step in micro-batches of `size` has a plan within the budget. Nothing is timed. */
AH_API int ah_step_fits(bool *out, const struct ah_micro_batch_options *options, int64_t size);
/* Makes the text of the plan as a JSON object; the caller frees it with free(). */
AH_API int ah_plan_json(char **out, const struct ah_plan *plan);

/* ---- timelines --------------------------------------------------------------------------------------------------- */

struct ah_timeline;
/* Simulates `iterations` of the plan; the caller frees *out. */
AH_API int ah_plan_simulate(struct ah_timeline **out, const struct ah_plan *plan, const struct ah_partition *partition,
                            const struct ah_profile *profile, int iterations);
AH_API void ah_timeline_free(struct ah_timeline *timeline);
AH_API int ah_timeline_print(const struct ah_timeline *timeline, FILE *to);
/* Saves a Chrome trace (chrome://tracing, Perfetto): one row per lane, memory counters, flows for dependencies. */
AH_API int ah_timeline_save(const struct ah_timeline *timeline, const char *path);
/* Draws two consecutive iterations, predicted above measured (either may be null), with the device memory curve and the
 * budget line (0: no line). */
AH_API int ah_timeline_save_svg(const struct ah_timeline *predicted, const struct ah_timeline *measured,
                                int64_t budget_bytes, const char *path);

/* ---- hardware one does not own ----------------------------------------------------------------------------------- */

struct ah_hardware_info {
    const char *name; /* "a100-40g" */
    const char *description;
    int devices;             /* devices in the machine */
    int64_t device_bytes;    /* usable memory of one device */
    int64_t host_bytes;      /* usable memory of the host, shared by all ranks */
    double peak_flops_per_s; /* rate of one device, dense, in the dtype of the profile (bf16/fp16) */
};

/* Loads a machine from a file, or by name from the folders `hardware/` beside the program, in the current folder and in
 * the installed data. AH_EINPUT names the file and key, or the names that exist. */
AH_API int ah_hardware_load(struct ah_hardware **out, const char *name_or_path);
AH_API void ah_hardware_free(struct ah_hardware *hardware);
/* Describes the machine; the strings live as long as the hardware. */
AH_API void ah_hardware_get(struct ah_hardware_info *out, const struct ah_hardware *hardware);
/* Prints every figure with its source, as text. */
AH_API int ah_hardware_print(const struct ah_hardware *hardware, FILE *to);

struct ah_estimate_options {
    int world_size; /* 1 .. devices */
    /* System whose rates are used: "autohete" (also null: ours, host Adam at DRAM bandwidth), "deepspeed" (host Adam as
     * DeepSpeed documents it), "pytorch" (device and host as published of PyTorch systems; the hardware must have
     * them). */
    const char *optimizer;
    /* Drive for what plans keep on disk: a name of hardware/drives/, "nvme-pcie4", or a file; "2xnvme-pcie4": two of
     * it, striped; null: none. */
    const char *disk;
};
/* Estimates a profile from public figures: block times from flops and a GEMM efficiency curve, bandwidth-bound
 * operators and Adam from bytes. The partition is one rank's: recorded with the global batch divided by ranks. */
AH_API int ah_profile_estimate(struct ah_profile **out, const struct ah_partition *partition,
                               const struct ah_hardware *hardware, const struct ah_estimate_options *options);

/* Facts about the machine of a measured profile that the profile does not have. */
struct ah_hardware_facts {
    const char *name, *date;          /* "2026-11-22" */
    int64_t device_bytes, host_bytes; /* usable */
    int cores;
};
/* Writes a measured profile of this partition as a hardware file (docs/hardware.md), whose estimate for the same
 * partition is about that profile. Rates of copies and of both Adams are as measured; all arithmetic has one rate, at
 * which forward and backward of a block together take the measured time. AH_EINPUT: the profile is of another partition
 * or of several ranks. AH_EIO. */
AH_API int ah_profile_save_hardware(const struct ah_profile *profile, const struct ah_partition *partition,
                                    const struct ah_hardware_facts *facts, const char *path);
/* Writes the drive of a measured profile as a file that `disk` of struct ah_estimate_options takes, without endurance.
 * Its capacity is what was free. Of the facts, name and date are used. AH_EINPUT: the profile has no drive. AH_EIO. */
AH_API int ah_profile_save_drive(const struct ah_profile *profile, const struct ah_hardware_facts *facts,
                                 const char *path);

/* Evaluation of a policy for a model on a machine. */
struct ah_evaluation {
    char policy[24];
    bool fits;
    char reason[160];                /* why it does not fit: what runs out, and by how much; "": it fits */
    int64_t over_bytes;              /* bytes by which its smallest plan exceeds the budget; 0: it fits */
    struct ah_plan plan;             /* the fastest that fits, else the smallest */
    double tflops_model;             /* model flops (forward + backward, no recomputation) per second and rank / 1e12 */
    double tflops_hardware;          /* the same with recomputation counted */
    double tokens_per_s;             /* predicted for all ranks */
    double lane_busy[AH_LANE_COUNT]; /* fraction of a steady step that each lane is busy */
};
AH_API int ah_plan_evaluate(struct ah_evaluation *out, const struct ah_partition *partition,
                            const struct ah_profile *profile, const struct ah_budget *budget, const char *policy,
                            const struct ah_search_options *options);

/* Return the names of all policies, null-terminated, and the one-line description of a policy. */
AH_API const char *const *ah_policy_names(void);
AH_API const char *ah_policy_description(const char *name);
/* Returns true if plans of that policy are described by the switch of that key ("passes", "staged", ..., as for
 * ah_plan_parse): false means that none sets it, true that its placements may still allow one value alone. False for an
 * unknown policy or switch. Neither is null. */
AH_API bool ah_policy_uses(const char *name, const char *key);

#ifdef __cplusplus
}
#endif
#endif
