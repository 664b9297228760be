/* A session: model, graph, partition, device, profile and plan, each made once from one set of options. */
#ifndef AUTOHETE_SESSION_H
#define AUTOHETE_SESSION_H

#include "autohete/plan.h"
#include "autohete/ranks.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All zero but `size` is the default. Pointers are borrowed until the session is closed. New members are added at the
 * end: the library reads `size` bytes and takes the rest as zero. */
struct ah_session_options {
    size_t size;                  /* sizeof(struct ah_session_options) */
    const struct ah_model *model; /* null: loaded from model_path */
    const char *model_path;       /* JSON file, a folder with config.json, or a GGUF file */
    int64_t batch;                /* sequences in a step, of all ranks together; 0: 8 */
    int64_t seq;                  /* tokens in a sequence; 0: the model's longest, at most 256 */
    int64_t micro_batch;          /* sequences in a micro-batch, AH_MICRO_BATCH_WHOLE, or AH_MICRO_BATCH_AUTO: the
                                   * fastest */
    bool fixed_micro_batch;       /* if the budget is refused, the message does not advise other options */
    double clip;                  /* limit of the global gradient norm; 0: none */
    bool pack;                    /* sequences have several documents */
    const char *dtype;            /* "fp32" or "bf16"; null: fp32, with `hardware` bf16 */
    const char *device;           /* as for ah_dev_open; null: "auto" */
    struct ah_dev_options dev;
    const char *hardware;     /* as for ah_hardware_load: times are estimated for that machine, no device is opened */
    int hardware_ranks;       /* devices of `hardware` that share model and batch; 0: 1. If it has fewer, the machine
                               * called NAME-xN is used */
    const char *optimizer;    /* as in struct ah_estimate_options */
    struct ah_budget budget;  /* 0 or AH_NO_LIMIT: all memory of the device, or of `hardware`. host_bytes is of the
                               * whole machine */
    const char *plan;         /* "auto" (also null), or as for ah_plan_parse */
    const char *policy;       /* null: "autohete" */
    const char *profile_path; /* file of a saved profile; null: measured, or taken from the cache */
    struct ah_profile_options profile;
    const struct ah_plan *warm_start; /* as in struct ah_search_options; null: none */
    int effort;                       /* as in struct ah_search_options */
    const char *master, *moments;     /* types in which parameters and Adam's moments are kept, as for training */
    bool strict;                      /* unknown keys of config.json are refused */
    struct ah_tuning tuning;          /* parts that are trained; all zero: everything */
};

/* Stages of a session; each needs those before it. */
enum ah_session_stage {
    AH_SESSION_MODEL,     /* options are checked and the model is loaded */
    AH_SESSION_PARTITION, /* graph and partition are made; with AH_MICRO_BATCH_AUTO only with the profile */
    AH_SESSION_DEVICE,    /* the device is open, and the budget is known */
    AH_SESSION_PROFILE,   /* the profile is made; with AH_MICRO_BATCH_AUTO the plan, too */
    AH_SESSION_PLAN
};

/* Facts that a session has found so far. */
struct ah_session_info {
    const char *dtype; /* "fp32" or "bf16" */
    int64_t seq;
    int64_t rank_batch;      /* sequences in a step of one rank */
    int64_t micro_batch;     /* sequences in a micro-batch; 0: not chosen yet */
    int micro_batches;       /* micro-batches of one rank in a step; 0: not chosen yet */
    bool micro_batch_chosen; /* AH_MICRO_BATCH_AUTO was asked for */
    int rank, world_size;    /* those of the program, or of `hardware` */
    struct ah_budget budget; /* budget of one rank; limits that were not given are filled in when device or hardware is
                              * known */
    bool has_device;
    struct ah_device device;          /* set if has_device */
    struct ah_hardware_info hardware; /* name null: no hardware is described */
    int64_t profile_kept_s;           /* age in seconds of a profile from the cache, else -1 */
};

struct ah_session;

/* Checks the options and loads the model. Nothing is measured or written. The caller closes *out. With several ranks
 * this and ah_session_reach are collective, and fail on all ranks if they fail on one. AH_EINPUT names the option. */
AH_API int ah_session_open(struct ah_session **out, const struct ah_session_options *options);
AH_API void ah_session_close(struct ah_session *session);
/* Makes everything up to a stage that is not made yet. The device is opened if DEVICE is asked for, or if times have to
 * be measured on it: not for `hardware` or a saved profile. AH_ESTALE: a saved profile is not of the device that is
 * open. AH_EBUDGET: the message names the smallest budget that works, and a change of options that would (struct
 * ah_advice). With several ranks all take rank 0's plan. */
AH_API int ah_session_reach(struct ah_session *session, enum ah_session_stage stage);

/* A change of options with which a step fits a budget that refuses it. */
struct ah_advice {
    char change[96];     /* options of the commands: "--moments int8", "--lora-rank 16 --frozen nf4"; "": there is
                          * none */
    double tokens_per_s; /* predicted, of all ranks; 0: not asked for, or times would have to be measured */
};
/* Finds advice if no plan fits `budget`, which is of one rank, under `policy` (null: the session's own): the smallest
 * change of the session's options with which a plan fits. It is the first of these: another number of passes, smaller
 * micro-batches, fewer sequences, smaller moments, also with smaller masters, adapters, also with frozen matrices in
 * codes. There is no advice if neither device nor hardware tells what programs need, or for a plan that was read from a
 * file. `times`: also predicts the speed with it, for `hardware`. */
AH_API int ah_session_advise(struct ah_advice *out, const struct ah_session *session, const struct ah_budget *budget,
                             const char *policy, bool times);

/* Return the session's objects; null before their stage; valid until the session is closed. */
AH_API const struct ah_session_info *ah_session_get(const struct ah_session *session);
AH_API const struct ah_model *ah_session_model(const struct ah_session *session);
AH_API const struct ah_graph *ah_session_graph(const struct ah_session *session);
AH_API const struct ah_partition *ah_session_partition(const struct ah_session *session);
AH_API const struct ah_profile *ah_session_profile(const struct ah_session *session);
AH_API const struct ah_plan *ah_session_plan(const struct ah_session *session);

/* Reports the median time of `steps` steps under the plan. If it is off the prediction by more than a fifth, over at
 * least ten steps and one second, the profile is removed from the cache, so that the next session measures again, and
 * *dropped is true. With AH_MICRO_BATCH_AUTO that is the profile of the chosen size. Collective. */
AH_API int ah_session_measured(bool *dropped, struct ah_session *session, int64_t step_ns, int64_t steps);

#ifdef __cplusplus
}
#endif
#endif
