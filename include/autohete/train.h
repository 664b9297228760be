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

/* Structs of this header grow at their end, in place of what is reserved, so that a program keeps working with a newer
 * library. Options say by their size which ones the program knows. */
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
    double val_loss;                 /* of the evaluation behind this step; NaN: none was due */
    double learned_per_s;            /* of tokens_per_s, those whose target counts for the loss */
    double reserved[7];
};

/* An option nobody set; so is NaN for a double, (uint64_t)AH_UNSET for the seed, a null string. ah_train() replaces it
 * by what the checkpoint says when it resumes one (those marked *), else by the default. */
#define AH_UNSET INT64_MIN

/* What is trained on what. */
struct ah_train_summary {
    const char *model; /* its definition's name */
    int layers;
    bool text, held_out; /* the data are no token file; validation is no part of training */
    int64_t params, vocab_size, tokens, train_tokens, val_tokens;
    int64_t batch, seq, first_step, steps; /* first_step of this call; steps in all */
    double epochs;                         /* that all steps are, of the training part */
    int64_t micro_batch, micro_batches;    /* sequences in one of this rank's, and how many a step has */
    int64_t profile_kept_s;                /* age of the profile as for ah_profile_measure; -1: measured or given */
    bool profile_given;                    /* by profile_path */
    int64_t trained;                       /* of params: those that are not frozen */
    double padding;                        /* share of an epoch's places that hold no token */
    int64_t reserved[6];
};

/* One step's tokens [batch, seq], of all ranks. */
struct ah_batch {
    int32_t *ids;
    int32_t *targets;   /* what each position learns to say; AH_TARGET_IGNORED: nothing */
    int32_t *positions; /* of packed sequences: of each token in its document, 0, 1, 2, ...; else null */
};
enum { AH_TARGET_IGNORED = -100 };

/* One file (folder, pipe) of the data, and what of it was trained on. */
struct ah_train_source {
    const char *path;      /* as given; the trainer's */
    const char *format;    /* "text", "documents", "llmc", "nanogpt", "examples", or of these the format of records */
    double weight;         /* as given; 0: none was */
    double share;          /* of all samples; of a single source 1 */
    int64_t tokens;        /* in it */
    int64_t epoch_samples; /* sequences in its training part */
    int64_t samples;       /* it gave in all steps done, those before a resume too */
    double epochs;         /* that these are of its training part */
    int64_t reserved[8];
};

struct ah_train_options {
    size_t size;                  /* of this struct as the program knows it; set by ah_train_options_init */
    const char *model_path;       /* JSON, a folder with config.json, or GGUF; not needed with resume_dir */
    const struct ah_model *model; /* instead of model_path: a model of one's own */
    bool no_dropout;              /* * a model whose config.json asks for dropout is trained without, else refused */
    const char *init;             /* "weights" in model_path's folder (default, if any), "random"; not with a resume */
    const char *data_path;        /* text, JSON, a folder of them, packed or not, a token file, "-"; several mixed by
                                  * size, "FILE,FILE", or by weights, "FILE:0.7,FILE:0.3"; * not needed with
                                  * resume_dir */
    bool pack;                    /* * each sequence holds several documents or examples, which do not see each
                                  * other; else documents follow one another and an example is a sequence */
    const char *data_format;      /* * "auto" (default: by content), "text", "bytes" (of a text), "jsonl", "llmc",
                                  * "nanogpt", or what records of JSON are: "documents", "pairs", "messages",
                                  * "conversations", "alpaca", "dolly", "orca", "ids" */
    const char *device;           /* as for ah_dev_open; default "auto" */
    struct ah_dev_options dev;
    struct ah_budget budget; /* * device_bytes 0: what the device has, where it has a memory of its own;
                                  * AH_NO_LIMIT: the same, also where the resumed training had a limit */
    int64_t batch, seq;      /* * sequences a step, default 8; tokens in each, default 256 or the model's longest */
    const char *dtype;       /* * "fp32" (default) or "bf16": of parameters as they are used, activations and
                                  * gradients; sums and losses are fp32 in both, masters and moments by default */
    const char *save_dtype;  /* * of model.safetensors, "fp32" or "bf16"; default: dtype; masters are kept */
    int64_t micro_batch;     /* * sequences of the step that a block works on at a time, a divisor of batch; or
                                  * AH_MICRO_BATCH_WHOLE (default), or AH_MICRO_BATCH_AUTO, which a resumed training has
                                  * decided long ago. The size may change the order of sums, no plan does */
    int64_t steps;           /* * total, counted from the first step ever; default 200 */
    int64_t lr_steps;        /* * where the learning rate's decay ends; 0 (default): with the last step */
    uint64_t seed;           /* * of parameters and data order; default 1 */
    double lr, min_lr_ratio; /* * peak rate, default 3e-4; the decay ends at lr * min_lr_ratio, default 0.1 */
    int64_t warmup_steps;    /* * linear from lr / warmup_steps; 0: none; default steps / 20 */
    const char *schedule;    /* * "cosine" (default), "linear", "constant" */
    double clip;             /* * limit of the global gradient norm, default 1; 0: none */
    const char *log;         /* * beside metrics.jsonl: "csv", "tensorboard", "csv,tensorboard"; default "none" */
    const char *nonfinite;   /* * norms: "stop" (default), or "skip" that step's updates, with a clip above 0 */
    double beta1, beta2, eps, weight_decay; /* * AdamW; default 0.9, 0.95, 1e-8, 0.1 */
    /* "auto" (default), "resident", "c=..,p=..,o=.." or a plan file. Resumed, "auto" starts from the plan there was and
     * is no slower, as predicted, where budget and policy still allow that one. */
    const char *plan;
    const char *policy;                /* one of ah_policy_names(); default "autohete" */
    int effort;                        /* of the search for a plan, as in struct ah_search_options */
    const char *profile_path;          /* a saved profile, or null: measure */
    struct ah_profile_options profile; /* where profiles are kept; its `stop` is not read */
    const char *out_dir;    /* a folder that holds no training yet, or the one that is resumed. Null: the folder of
                                  * the training that is resumed, else nothing is written */
    const char *resume_dir; /* a training's folder (its newest checkpoint) or one checkpoint's; null: start anew */
    const char *like_dir;   /* a training's folder: what is not set is as that was started, data included */
    int64_t save_every;     /* * steps between checkpoints; 0 (default): none are due by steps */
    double save_seconds;    /* * between checkpoints; 0: none are due by time. Default 600, 0 with save_every set.
                                  * They are written while the training goes on, when memory allows a copy of the states
                                  * (12 bytes per parameter); the last one is always saved */
    int64_t keep;           /* * how many checkpoints stay, the newest; default 2 */
    int64_t shard_bytes;    /* * a saved model that is larger lies in several files and an index, none larger than
                                  * this but for a single tensor; default 5 GB; 0: always one file */
    int64_t val_every;      /* * steps; 0 (default): only at the end */
    int64_t val_batches;    /* * batches of the validation part per evaluation; 0: never evaluate; default 8 */
    /* Something a user should know that is no fault: one line, valid during the call, from within any call that has the
     * trainer. May be null. */
    void (*on_note)(const char *line, void *context);
    void *context;
    const volatile int *stop; /* nonzero (set from a signal handler): end with a checkpoint; may be null */
    bool own_batches;         /* batches are the caller's (ah_trainer_begin): there are no data and no validation */
    /* What failed although the training goes on, in the same way; null: on_note says it. */
    void (*on_fault)(const char *line, void *context);
    double epochs;             /* in place of steps: so many times the training part, rounded up to whole steps */
    const char *eos;           /* * token that ends a text, or its id, in place of what the tokenizer's files say */
    const char *chat_template; /* file of a chat template for conversations, in place of the model's; saved with it */
    const char *train_on;      /* * what of a conversation is learned: "assistant" (default), "all", "last" */
    /* * What is kept of each parameter and of both moments of Adam: "fp32" (default), or "bf16", rounded up or down at
     * random so that its mean is exact. A master in bf16 is for dtype "bf16" alone. Moments may be "int8", too: codes
     * of 8 bits in groups of 256 with one scale, as 8-bit Adam has them. */
    const char *master, *moments;
    bool strict;             /* keys of config.json that are not known here are refused, not noted */
    struct ah_tuning tuning; /* * what is trained; all zero: everything. With adapters checkpoints hold those alone, and
                              * a resumed training reads the model's own weights from where they were, or from
                              * model_path */
    const char *adapter_dir; /* a folder with adapter_config.json, as PEFT writes it: the adapter that a new training
                              * begins with, in place of `tuning` */
    bool convert_states;     /* a resumed training may have another master or other moments: its states become those */
    int passes;              /* of the plan, as in struct ah_search_options; not beside a plan that is given */
    const char *base_name;   /* * what adapters' files say that their model is called, "owner/name" on a hub; null: the
                              * name of a hub's cache, else the model's path */
};

/* Everything unset; null pointers. To be called before any field is set, with the size of the struct as the program was
 * compiled: what a newer library has beyond it stays unset. */
AH_API void ah_train_options_init(struct ah_train_options *options, size_t size);

struct ah_train_result {
    int64_t steps_done;
    bool stopped;                 /* by `stop`; before the plan stood: `plan` has no layers */
    bool saved;                   /* all that was trained is in out_dir; false when nothing was */
    double final_loss, val_loss;  /* of the last step; NaN where there was none */
    double first_loss, last_loss; /* means of the first and last tenth of the steps */
    double uniform_loss;          /* of a uniform guess: ln(vocabulary) */
    int64_t profile_kept_s;       /* as for ah_profile_measure; -1 also with a profile_path */
    double tokens_per_s;          /* at step_ns_median, places without a token included; 0 when no step was run */
    int64_t device_peak_bytes_predicted, device_peak_bytes_used;
    int64_t host_peak_bytes_predicted, host_peak_bytes_used;
    char device[32];        /* "cpu", "cuda:0" */
    const char *dtype;      /* "fp32" or "bf16" */
    int64_t micro_batch;    /* sequences in a micro-batch; the batch where it runs as a whole */
    double clip;            /* the limit; 0: none */
    int64_t clipped_steps;  /* steps whose gradients were scaled down */
    int64_t skipped_steps;  /* steps without updates, because their norm was not finite */
    int64_t updates_redone; /* host updates that had run before the norm was known and had to run again */
    int64_t step_ns_predicted, step_ns_median, steps_timed; /* median over the steps after the first two: so many */
    struct ah_plan plan;
    int64_t val_step; /* the step that val_loss is of */
    double learned;   /* share of the places of all steps run whose target counts for the loss */
    int64_t reserved[6];
};

struct ah_trainer;

/* Model, data, device, profile and plan from the options; parameters are loaded. Writes nothing. The struct is copied,
 * what it points to has to outlive the trainer. Told to stop meanwhile it opens all the same, and has no step.
 *
 * Bad input (ah_status_is_input) is refused here. Resuming gives the same bits as never having stopped, whatever plan,
 * budget, threads, link speed or policy either part used, as long as nothing else changes. Batch, micro-batch, seq,
 * dtype, seed, model and data must be those of the checkpoint (AH_ESTALE). `steps` may grow or shrink, but the learning
 * rate depends on it: the same bits need the same `steps`, as an unset one gives. On a processor that multiplies in
 * another way bits may differ: on_note says so. */
AH_API int ah_trainer_open(struct ah_trainer **out, const struct ah_train_options *options);
/* Ends what is in flight, saves nothing. Null is fine. */
AH_API void ah_trainer_close(struct ah_trainer *trainer);

/* One step further. The step behind it is in flight already, so that a caller who takes up to a step's time with
 * something else slows nothing down. The first one makes out_dir, which receives run.json, metrics.jsonl, val.jsonl,
 * plan.json, profile.json, timeline.json, timeline.svg and checkpoint folders, the newest `keep` of them; one stays
 * until the next is on disk. A step after which a validation or a checkpoint is due returns behind it. One that
 * cannot be written on the way is said by on_fault.
 *
 * AH_EEND: all steps are done, or `stop` was set; what was trained is on disk, if there is an out_dir. AH_ENUMERIC when
 * a loss or gradient norm is not finite: the last checkpoint stays as it was. */
AH_API int ah_trainer_step(struct ah_trainer *trainer, struct ah_step *step);

/* The same on a batch of one's own: begins a step and returns at once; up to two may be in flight. The batch is copied.
 * AH_EEND as above; AH_EINPUT: two are in flight, or a token is not below vocab_size. */
AH_API int ah_trainer_begin(struct ah_trainer *trainer, const struct ah_batch *batch);
/* The oldest step that was begun. AH_EINPUT: none was. */
AH_API int ah_trainer_wait(struct ah_trainer *trainer, struct ah_step *step);
/* Begins a step and waits for it; none may be in flight. */
AH_API int ah_trainer_step_on(struct ah_trainer *trainer, const struct ah_batch *batch, struct ah_step *step);

/* Ends the steps in flight (ah_trainer_wait and ah_trainer_step still give them) and returns when what was trained so
 * far is on disk: in a checkpoint folder in `dir`, null: in out_dir. With several ranks all call it alike. */
AH_API int ah_trainer_save(struct ah_trainer *trainer, const char *dir);

/* What is known of a trainer. */
AH_API void ah_trainer_device(const struct ah_trainer *trainer, struct ah_device *out);
AH_API void ah_trainer_summary(const struct ah_trainer *trainer, struct ah_train_summary *out);
/* Source 0, 1, .. of the data. AH_EEND: there is none of this number. */
AH_API int ah_trainer_source(const struct ah_trainer *trainer, int number, struct ah_train_source *out);
/* `budget` may be null. */
AH_API void ah_trainer_plan(const struct ah_trainer *trainer, struct ah_plan *out, struct ah_budget *budget);
/* As predicted, or as the first steps of the last segment went, a segment being what is trained between two validations
 * or checkpoints: that ends the steps in flight. Null: none yet. The trainer's, valid until its next step. */
AH_API const struct ah_timeline *ah_trainer_timeline(struct ah_trainer *trainer, bool measured);
/* What came of it so far; ends the steps in flight. */
AH_API void ah_trainer_result(struct ah_trainer *trainer, struct ah_train_result *result);

/* Opens a trainer, takes all its steps, closes it. */
AH_API int ah_train(struct ah_train_result *result, const struct ah_train_options *options);

/* The model of a training's folder (of its newest checkpoint) or of one checkpoint's; the caller frees it. AH_EINPUT:
 * there is none. */
AH_API int ah_checkpoint_model(struct ah_model **out, const char *dir);

/* One HTML page about the training in `dir`, from what is there; `path` null: its report.html. AH_EINPUT: none. */
AH_API int ah_report_save(const char *dir, const char *path);

#ifdef __cplusplus
}
#endif
#endif
