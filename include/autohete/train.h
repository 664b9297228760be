/* Training: a trainer that goes step by step, and a whole training in one call.
 *
 *     struct ah_train_options options;
 *     struct ah_trainer *trainer;
 *     struct ah_step step;
 *     ah_train_options_init(&options, sizeof options);
 *     options.model_path = "model.json", options.data_path = "text.txt", options.out_dir = "out";
 *     int status = ah_trainer_open(&trainer, &options);
 *     while (status == AH_OK && (status = ah_trainer_step(trainer, &step)) == AH_OK)
 *         printf("%lld %.4f\n", (long long)step.step, step.loss);
 *     if (status != AH_EEND)
 *         fprintf(stderr, "%s\n", ah_error());
 *     ah_trainer_close(trainer);
 */
#ifndef AUTOHETE_TRAIN_H
#define AUTOHETE_TRAIN_H

#include "autohete/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Structs of this header grow at their end, in place of reserved members, so that a program keeps working with a newer
 * library. The size of options tells which members the program knows. */
struct ah_step {
    int64_t step; /* 1-based */
    int64_t steps;
    double loss; /* natural log, mean over tokens */
    double grad_norm;
    double clip_factor; /* factor of the gradients; NaN: their norm is not finite, and the step's updates were
                         * skipped */
    double lr;
    double tokens_per_s;
    double eta_s;
    double lane_busy[AH_LANE_COUNT]; /* fraction of the last recorded step that each lane was busy */
    double val_loss;                 /* loss of the evaluation after this step; NaN: none was due */
    double learned_per_s;            /* part of tokens_per_s whose targets count for the loss */
    double reserved[7];
};

/* Value of an option that is not set. For a double it is NaN, for the seed (uint64_t)AH_UNSET, for a text null.
 * ah_train() replaces it by the checkpoint's value if it resumes one (options marked *), else by the default. */
#define AH_UNSET INT64_MIN

/* Model and data of a training. */
struct ah_train_summary {
    const char *model; /* name of its definition */
    int layers;
    bool text, held_out; /* the data are not a token file; validation data are not trained on */
    int64_t params, vocab_size, tokens, train_tokens, val_tokens;
    int64_t batch, seq, first_step, steps; /* first_step of this call; steps in all */
    double epochs;                         /* epochs of the training part that all steps make */
    int64_t micro_batch, micro_batches;    /* sequences in a micro-batch of this rank; micro-batches in its step */
    int64_t profile_kept_s;                /* age of the profile in seconds, as for ah_profile_measure; -1: measured or
                                            * given */
    bool profile_given;                    /* the profile was given by profile_path */
    int64_t trained;                       /* parameters that are not frozen */
    double padding;                        /* share of an epoch's positions that have no token */
    int64_t reserved[6];
};

/* The tokens of one step, [batch, seq], of all ranks. */
struct ah_batch {
    int32_t *ids;
    int32_t *targets;   /* token that each position learns to predict; AH_TARGET_IGNORED: none */
    int32_t *positions; /* for packed sequences: position of each token in its document, 0, 1, 2, ...; else null */
};
enum { AH_TARGET_IGNORED = -100 };

/* One file (folder, pipe) of the data, and how much of it was trained on. */
struct ah_train_source {
    const char *path;      /* as given; owned by the trainer */
    const char *format;    /* "text", "documents", "llmc", "nanogpt", "examples", or the format of its records */
    double weight;         /* as given; 0: not given */
    double share;          /* share of all samples; 1 for a single source */
    int64_t tokens;        /* tokens in it */
    int64_t epoch_samples; /* sequences in its training part */
    int64_t samples;       /* sequences that it gave in all steps done, also in those before a resume */
    double epochs;         /* epochs of its training part that these samples make */
    int64_t reserved[8];
};

struct ah_train_options {
    size_t size;                  /* size of this struct as the program knows it; set by ah_train_options_init */
    const char *model_path;       /* JSON, a folder with config.json, or GGUF; not needed with resume_dir */
    const struct ah_model *model; /* a model of the caller's own, instead of model_path */
    bool no_dropout;              /* * true: a model whose config.json asks for dropout is trained without; false:
                                   * refused */
    const char *init;             /* "weights" of model_path's folder (default, if it has any), "random"; not with a
                                   * resume */
    const char *data_path;        /* text, JSON, a folder of them, compressed or not, a token file, "-"; several mixed
                                   * by size, "FILE,FILE", or by weights, "FILE:0.7,FILE:0.3"; * not needed with
                                   * resume_dir */
    bool pack;                    /* * each sequence has several documents or examples, which do not see each other;
                                   * else documents follow one another and an example is a sequence */
    const char *data_format;      /* * "auto" (default: by content), "text", "bytes" (of a text), "jsonl", "llmc",
                                   * "nanogpt", or the form of JSON records: "documents", "pairs", "messages",
                                   * "conversations", "alpaca", "dolly", "orca", "ids" */
    const char *device;           /* as for ah_dev_open; default "auto" */
    struct ah_dev_options dev;
    struct ah_budget budget; /* * device_bytes 0: all memory of a device that has its own; AH_NO_LIMIT: the same, also
                              * if the resumed training had a limit */
    int64_t batch, seq;      /* * sequences in a step, default 8; tokens in each, default 256 or the model's longest */
    const char *dtype;       /* * "fp32" (default) or "bf16": type of parameters as they are used, activations and
                              * gradients; sums and losses are fp32 in both, masters and moments by default */
    const char *save_dtype;  /* * type of model.safetensors, "fp32" or "bf16"; default: dtype; masters are saved, too */
    int64_t micro_batch;     /* * sequences of the step that a block works on at a time, a divisor of batch; or
                              * AH_MICRO_BATCH_WHOLE (default), or AH_MICRO_BATCH_AUTO; a resumed training keeps its
                              * size. Another size may change the order of sums, another plan does not */
    int64_t steps;           /* * steps in all, counted from the first step ever; default 200 */
    int64_t lr_steps;        /* * step at which the learning rate's decay ends; 0 (default): the last step */
    uint64_t seed;           /* * seed of parameters and data order; default 1 */
    double lr, min_lr_ratio; /* * peak rate, default 3e-4; the decay ends at lr * min_lr_ratio, default 0.1 */
    int64_t warmup_steps;    /* * steps of linear warm-up from lr / warmup_steps; 0: none; default steps / 20 */
    const char *schedule;    /* * "cosine" (default), "linear", "constant" */
    double clip;             /* * limit of the global gradient norm, default 1; 0: none */
    const char *log;         /* * formats beside metrics.jsonl: "csv", "tensorboard", "csv,tensorboard"; default
                              * "none" */
    const char *nonfinite;   /* * if a norm is not finite: "stop" (default), or "skip" that step's updates, with a clip
                              * above 0 */
    double beta1, beta2, eps, weight_decay; /* * AdamW; default 0.9, 0.95, 1e-8, 0.1 */
    /* "auto" (default), "resident", "c=..,p=..,o=.." or a plan file. In a resumed training "auto" starts from its last
     * plan: if budget and policy still allow that one, the new plan is predicted to be no slower. */
    const char *plan;
    const char *policy;                /* one of ah_policy_names(); default "autohete" */
    int effort;                        /* effort of the search for a plan, as in struct ah_search_options */
    const char *profile_path;          /* file of a saved profile; null: measure */
    struct ah_profile_options profile; /* cache of profiles; its `stop` is not read */
    const char *out_dir;    /* folder to write: one without a training, or the resumed training's. Null: the resumed
                             * training's, else nothing is written */
    const char *resume_dir; /* a training's folder (its newest checkpoint) or one checkpoint's; null: start anew */
    const char *like_dir;   /* a training's folder: options that are not set, data included, are those that it was
                             * started with */
    int64_t save_every;     /* * steps between checkpoints; 0 (default): none are due by steps */
    double save_seconds;    /* * seconds between checkpoints; 0: none are due by time. Default 600, 0 with save_every
                             * set. Checkpoints are written while the training goes on if memory allows a copy of the
                             * states (12 bytes per parameter); the last one is always saved */
    int64_t keep;           /* * number of newest checkpoints to keep; default 2 */
    int64_t shard_bytes;    /* * largest file of a saved model; a larger model has several files and an index, none
                             * larger than this unless it has a single tensor; default 5 GB; 0: always one file */
    int64_t val_every;      /* * steps between validations; 0 (default): only at the end */
    int64_t val_batches;    /* * batches of the validation part per evaluation; 0: never evaluate; default 8 */
    /* Called with one line that a user should know and that is not a fault. It is valid during the call, which any
     * function with the trainer as argument may make. May be null. */
    void (*on_note)(const char *line, void *context);
    void *context;
    const volatile int *stop; /* nonzero (set from a signal handler): end with a checkpoint; may be null */
    bool own_batches;         /* the caller brings batches (ah_trainer_begin): there are no data and no validation */
    /* Called likewise, for a failure after which the training goes on; null: on_note gets the line. */
    void (*on_fault)(const char *line, void *context);
    double epochs;             /* instead of steps: so many times the training part, rounded up to whole steps */
    const char *eos;           /* * token that ends a text, or its id, instead of that of the tokenizer's files */
    const char *chat_template; /* file of a chat template for conversations, instead of the model's; saved with it */
    const char *train_on;      /* * part of a conversation that is learned: "assistant" (default), "all", "last" */
    /* * Types in which parameters and both moments of Adam are kept: "fp32" (default), or "bf16", rounded up or down at
     * random so that the mean is exact. A master in bf16 needs dtype "bf16". Moments may be "int8", too: codes of 8
     * bits in groups of 256 with one scale, as in 8-bit Adam. */
    const char *master, *moments;
    bool strict;             /* unknown keys of config.json are refused, not noted */
    struct ah_tuning tuning; /* * parts that are trained; all zero: everything. With adapters checkpoints have those
                              * alone, and a resumed training reads the model's own weights from their old path, or from
                              * model_path */
    const char *adapter_dir; /* a folder with adapter_config.json, as PEFT writes it: the adapter that a new training
                              * begins with, instead of `tuning` */
    bool convert_states;     /* a resumed training may have another master or other moments: its states are converted */
    const char *base_name;   /* * name of the model in adapters' files, "owner/name" on a hub; null: the name in a hub's
                              * cache, else the model's path */
};

/* Sets every option to unset, and pointers to null. Call it before any field is set, with the size of the struct as the
 * program was compiled: members that a newer library has beyond it stay unset. */
AH_API void ah_train_options_init(struct ah_train_options *options, size_t size);

struct ah_train_result {
    int64_t steps_done;
    bool stopped;                 /* by `stop`; if there was no plan yet, `plan` has no layers */
    bool saved;                   /* all that was trained is in out_dir; false if nothing was */
    double final_loss, val_loss;  /* losses after the last step; NaN: not known */
    double first_loss, last_loss; /* means over the first and the last tenth of the steps */
    double uniform_loss;          /* loss of a uniform guess: ln(vocabulary) */
    int64_t profile_kept_s;       /* as for ah_profile_measure; -1 also with a profile_path */
    double tokens_per_s;          /* at step_ns_median, positions without a token included; 0: no step was run */
    int64_t device_peak_bytes_predicted, device_peak_bytes_used;
    int64_t host_peak_bytes_predicted, host_peak_bytes_used;
    char device[32];        /* "cpu", "cuda:0" */
    const char *dtype;      /* "fp32" or "bf16" */
    int64_t micro_batch;    /* sequences in a micro-batch; the batch if it runs as a whole */
    double clip;            /* limit of the gradient norm; 0: none */
    int64_t clipped_steps;  /* steps whose gradients were scaled down */
    int64_t skipped_steps;  /* steps without updates, because their norm was not finite */
    int64_t updates_redone; /* host updates that had run before the norm was known and had to run again */
    int64_t step_ns_predicted, step_ns_median, steps_timed; /* median over the steps_timed steps after the first two */
    struct ah_plan plan;
    int64_t val_step; /* step after which val_loss was evaluated */
    double learned;   /* share of the positions of all steps run whose target counts for the loss */
    int64_t reserved[6];
};

struct ah_trainer;

/* Opens model, data, device, profile and plan from the options and loads the parameters. Writes nothing. The struct is
 * copied; everything it points to must outlive the trainer. If `stop` is set meanwhile, the trainer still opens, but
 * has no step.
 *
 * Bad input (ah_status_is_input) is refused here. Resuming gives the same bits as never having stopped, whatever plan,
 * budget, threads, link speed or policy either part used, as long as nothing else changes. Batch, micro-batch, seq,
 * dtype, seed, model and data must be those of the checkpoint (AH_ESTALE). `steps` may grow or shrink, but the learning
 * rate depends on it: the same bits need the same `steps`, which is what an unset one means. On a processor that
 * multiplies in another way bits may differ: on_note says so. */
AH_API int ah_trainer_open(struct ah_trainer **out, const struct ah_train_options *options);
/* Ends the steps in flight and closes the trainer; saves nothing. Null is fine. */
AH_API void ah_trainer_close(struct ah_trainer *trainer);

/* Takes the next step. The step after it is already in flight, so a caller that does something else for up to a step's
 * time slows nothing down. The first call makes out_dir, which receives run.json, metrics.jsonl, val.jsonl, plan.json,
 * profile.json, timeline.json, timeline.svg and the newest `keep` checkpoint folders; a checkpoint stays until the next
 * is on disk. If a validation or a checkpoint is due after a step, the call returns after it. A checkpoint that cannot
 * be written during the training is reported by on_fault.
 *
 * AH_EEND: all steps are done, or `stop` was set; all that was trained is on disk, if there is an out_dir. AH_ENUMERIC:
 * a loss or gradient norm is not finite; the last checkpoint is unchanged. */
AH_API int ah_trainer_step(struct ah_trainer *trainer, struct ah_step *step);

/* Begins a step on a batch of the caller's own and returns at once; up to two may be in flight. The batch is copied.
 * AH_EEND as above; AH_EINPUT: two are in flight, or a token is not below vocab_size. */
AH_API int ah_trainer_begin(struct ah_trainer *trainer, const struct ah_batch *batch);
/* Waits for the oldest step that was begun and gives its result. AH_EINPUT: none was begun. */
AH_API int ah_trainer_wait(struct ah_trainer *trainer, struct ah_step *step);
/* Begins a step and waits for it; none may be in flight. */
AH_API int ah_trainer_step_on(struct ah_trainer *trainer, const struct ah_batch *batch, struct ah_step *step);

/* Ends the steps in flight (ah_trainer_wait and ah_trainer_step still give their results) and saves all that was
 * trained so far in a checkpoint folder in `dir`, or in out_dir if `dir` is null; returns when it is on disk. With
 * several ranks all must call it alike. */
AH_API int ah_trainer_save(struct ah_trainer *trainer, const char *dir);

/* Give the device, and the model and data, of a trainer. */
AH_API void ah_trainer_device(const struct ah_trainer *trainer, struct ah_device *out);
AH_API void ah_trainer_summary(const struct ah_trainer *trainer, struct ah_train_summary *out);
/* Gives source 0, 1, .. of the data. AH_EEND: there is no source of this number. */
AH_API int ah_trainer_source(const struct ah_trainer *trainer, int number, struct ah_train_source *out);
/* Gives the plan and its budget; `budget` may be null. */
AH_API void ah_trainer_plan(const struct ah_trainer *trainer, struct ah_plan *out, struct ah_budget *budget);
/* Returns the timeline as predicted; or as measured in the first steps of the last segment, that is the steps between
 * two validations or checkpoints, after ending the steps in flight. Null: there is none yet. Owned by the trainer,
 * valid until its next step. */
AH_API const struct ah_timeline *ah_trainer_timeline(struct ah_trainer *trainer, bool measured);
/* Gives the result so far; ends the steps in flight. */
AH_API void ah_trainer_result(struct ah_trainer *trainer, struct ah_train_result *result);

/* Opens a trainer, takes all its steps, closes it. */
AH_API int ah_train(struct ah_train_result *result, const struct ah_train_options *options);

/* Loads the model of a training's folder (of its newest checkpoint) or of one checkpoint's; the caller frees it.
 * AH_EINPUT: there is none. */
AH_API int ah_checkpoint_model(struct ah_model **out, const char *dir);

/* Writes one HTML page about the training in `dir`, from the files there; `path` null: its report.html. AH_EINPUT:
 * there is no training. */
AH_API int ah_report_save(const char *dir, const char *path);

#ifdef __cplusplus
}
#endif
#endif
