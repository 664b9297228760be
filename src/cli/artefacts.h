/* What commands that open a session share: rows of their option tables, opening, and the lines they print about it. */
#ifndef AH_CLI_ARTEFACTS_H
#define AH_CLI_ARTEFACTS_H

#include "cli/args.h"

/* "device: cuda:0, ..." when it is another than the CPU, and a note when a GPU that is there was passed over. */
void ah__device_print(FILE *to, const struct ah_device *device);
/* "micro-batches: 4 of 2 sequences, ..."; of a single one nothing unless its size was `chosen`. */
void ah__micro_batch_print(FILE *to, int64_t size, int64_t count, bool chosen);

/* "bf16, masters in bf16, moments in int8, adapters of rank 16 beside nf4": what a training computes in, what it keeps
 * and what it trains, as far as that was asked for. */
void ah__formats_print(FILE *to, const char *dtype, const struct ah_session_options *options);

/* The folder that keeps profiles between two programs: autohete in XDG_CACHE_HOME or ~/.cache; null: there is
 * none. */
const char *ah__cache_folder(void);
/* "profile: cached 3 minutes ago (--no-cache measures again)"; nothing for one that was measured now (-1). */
void ah__profile_age_print(FILE *to, int64_t kept_s);

/* Opens a session and makes everything up to `stage`, with profiles from the cache folder. Says on `text` (null: not at
 * all) which device is opened and how old a profile from the cache is. The library's status; the caller closes *out,
 * which is null after a failure. */
int ah__session_start(struct ah_session **out, const struct ah_session_options *options, enum ah_session_stage stage,
                      FILE *text);

/* Table rows; the arguments are offsets of const char *, struct ah_dev_options and struct ah_budget; a command that
 * must know whether an option was given has no `initial` and tells the default as a `hint`. */
#define AH_ARG_DEVICE_HELP "auto, cpu, cuda or cuda:1; auto: the first GPU, if there is one"
#define AH_ARGS_DEVICE(at_device, at_dev, initial, hint)                                                               \
    {"device", AH_ARG_TEXT, at_device, "NAME", initial, AH_ARG_DEVICE_HELP hint, 0, 0, false},                         \
        {"link", AH_ARG_RATE, (at_dev) + offsetof(struct ah_dev_options, link_bytes_per_s),                            \
         "RATE", NULL,        "speed of the cpu device's link in each direction, like 4GB/s (default: unthrottled)",   \
         1e6,    0,           false},                                                                                  \
        {"threads", AH_ARG_INT, (at_dev) + offsetof(struct ah_dev_options, threads),                                   \
         "N",       NULL,       "threads of the cpu device (default: one per core)",                                   \
         1,         4096,       false},                                                                                \
    {                                                                                                                  \
        "host-threads", AH_ARG_INT, (at_dev) + offsetof(struct ah_dev_options, host_threads), "N", NULL,               \
            "threads of the host optimizer (default: 1; beside a GPU all cores but one)", 1, 4096, false               \
    }
#define AH_ARGS_SAMPLING(at, tokens_default)                                                                           \
    {"tokens",                                                                                                         \
     AH_ARG_COUNT,                                                                                                     \
     (at) + offsetof(struct ah_generate_options, tokens),                                                              \
     "N",                                                                                                              \
     tokens_default,                                                                                                   \
     "tokens to write at most",                                                                                        \
     1,                                                                                                                \
     1e9,                                                                                                              \
     false},                                                                                                           \
        {"temperature",                                                                                                \
         AH_ARG_REAL,                                                                                                  \
         (at) + offsetof(struct ah_generate_options, temperature),                                                     \
         "X",                                                                                                          \
         "0.8",                                                                                                        \
         "sampling temperature; 0: always the likeliest token",                                                        \
         0,                                                                                                            \
         100,                                                                                                          \
         false},                                                                                                       \
        {"top-k", AH_ARG_INT, (at) + offsetof(struct ah_generate_options, top_k),                                      \
         "K",     "0",        "choose among the K likeliest tokens; 0: all",                                           \
         0,       1e9,        false},                                                                                  \
        {"top-p", AH_ARG_REAL, (at) + offsetof(struct ah_generate_options, top_p),                                     \
         "P",     "1",         "choose among the likeliest tokens that together have this probability; 1: all",        \
         0,       1,           false},                                                                                 \
        {"min-p", AH_ARG_REAL, (at) + offsetof(struct ah_generate_options, min_p),                                     \
         "P",     "0",         "choose among tokens at least this share as likely as the likeliest; 0: all",           \
         0,       1,           false},                                                                                 \
        {"repetition-penalty",                                                                                         \
         AH_ARG_REAL,                                                                                                  \
         (at) + offsetof(struct ah_generate_options, repetition_penalty),                                              \
         "X",                                                                                                          \
         "1",                                                                                                          \
         "make earlier tokens less likely; 1: no penalty",                                                             \
         0,                                                                                                            \
         1000,                                                                                                         \
         false},                                                                                                       \
        {"seed", AH_ARG_SEED, (at) + offsetof(struct ah_generate_options, seed), "S", "1", "seed of the sampling", 0,  \
         0,      false},                                                                                               \
        {"device", AH_ARG_TEXT, (at) + offsetof(struct ah_generate_options, device),                                   \
         "NAME",   "auto",      AH_ARG_DEVICE_HELP,                                                                    \
         0,        0,           false},                                                                                \
    {                                                                                                                  \
        "threads", AH_ARG_INT, (at) + offsetof(struct ah_generate_options, threads), "N", NULL,                        \
            "threads of the cpu device (default: one per core)", 1, 4096, false                                        \
    }
#define AH_ARGS_BUDGET(at_budget, kind)                                                                                \
    {"device-memory",                                                                                                  \
     kind,                                                                                                             \
     (at_budget) + offsetof(struct ah_budget, device_bytes),                                                           \
     "SIZE",                                                                                                           \
     NULL,                                                                                                             \
     "device memory that the plan may use, like 64MiB (default: a GPU's free memory; cpu: no limit)",                  \
     0,                                                                                                                \
     0,                                                                                                                \
     false},                                                                                                           \
    {                                                                                                                  \
        "host-memory", kind, (at_budget) + offsetof(struct ah_budget, host_bytes), "SIZE", NULL,                       \
            "host memory that the plan may use, like 8GiB (default: no limit)", 0, 0, false                            \
    }
#define AH_ARGS_PROFILE(at_profile, at_renew)                                                                          \
    {"profile", AH_ARG_TEXT, at_profile, "FILE", NULL, "use a saved profile (default: the cached one, else measure)",  \
     0,         0,           false},                                                                                   \
    {                                                                                                                  \
        "no-cache", AH_ARG_FLAG, at_renew, NULL, NULL, "measure even if a profile is cached", 0, 0, false              \
    }
#define AH_ARG_EFFORT(at_effort)                                                                                       \
    {                                                                                                                  \
        "effort", AH_ARG_INT, at_effort, "N", NULL,                                                                    \
            "search for a plan N times as long as by default, in simulated work (default 1)", 1, 10000, false          \
    }
#define AH_ARG_PASSES(at_passes)                                                                                       \
    {                                                                                                                  \
        "passes", AH_ARG_INT, at_passes, "K", NULL,                                                                    \
            "rounds over the model in which a step runs its micro-batches (default: the fastest)", 1, 1024, false      \
    }
#define AH_ARGS_PLAN(at_plan, at_policy, at_effort, at_profile, at_renew, initial_plan, initial_policy, hint_plan,     \
                     hint_policy)                                                                                      \
    {"plan",                                                                                                           \
     AH_ARG_TEXT,                                                                                                      \
     at_plan,                                                                                                          \
     "PLAN",                                                                                                           \
     initial_plan,                                                                                                     \
     "auto, resident, switches like c=8,p=2,o=8, or a plan file" hint_plan,                                            \
     0,                                                                                                                \
     0,                                                                                                                \
     false},                                                                                                           \
        {"policy",                                                                                                     \
         AH_ARG_TEXT,                                                                                                  \
         at_policy,                                                                                                    \
         "NAME",                                                                                                       \
         initial_policy,                                                                                               \
         "order of work: autohete, resident, zero-offload, ... (see the manual)" hint_policy,                          \
         0,                                                                                                            \
         0,                                                                                                            \
         false},                                                                                                       \
        AH_ARG_EFFORT(at_effort), AH_ARGS_PROFILE(at_profile, at_renew)
#define AH_ARG_MODEL_HELP "model: a config.json, its folder, a GGUF file, or a name that 'autohete fit' lists"
#define AH_ARGS_MODEL(at_model)                                                                                        \
    {                                                                                                                  \
        "model", AH_ARG_TEXT, at_model, "FILE", NULL, AH_ARG_MODEL_HELP, 0, 0, true                                    \
    }
#define AH_ARG_STRICT(at_strict)                                                                                       \
    {                                                                                                                  \
        "strict", AH_ARG_FLAG, at_strict, NULL, NULL,                                                                  \
            "refuse keys of config.json that are not known (default: a note)", 0, 0, false                             \
    }
#define AH_ARG_DTYPE(at_dtype, help)                                                                                   \
    {                                                                                                                  \
        "dtype", AH_ARG_TEXT, at_dtype, "TYPE", NULL, help, 0, 0, false                                                \
    }
#define AH_ARGS_STATES(at_master, at_moments)                                                                          \
    {"master", AH_ARG_TEXT, at_master,                                                                                 \
     "TYPE",   NULL,        "what is kept of parameters: fp32 (default) or, with --dtype bf16, bf16",                  \
     0,        0,           false},                                                                                    \
    {                                                                                                                  \
        "moments", AH_ARG_TEXT, at_moments, "TYPE", NULL,                                                              \
            "what is kept of Adam's moments: fp32 (default, 8 bytes), bf16 (4) or int8 (2.03)", 0, 0, false            \
    }
#define AH_ARG_ADAPTER(at_adapter)                                                                                     \
    {                                                                                                                  \
        "adapter", AH_ARG_TEXT, at_adapter, "DIR", NULL,                                                               \
            "adapter for the model: of a training here, or as PEFT writes it", 0, 0, false                             \
    }
/* What of the model is trained; of a struct ah_tuning. */
#define AH_ARGS_TUNING(at_tuning)                                                                                      \
    {"freeze", AH_ARG_TEXT, (at_tuning) + offsetof(struct ah_tuning, freeze),                                          \
     "NAMES",  NULL,        "what stays: embedding, blocks, blocks:1-8, head, '*.mlp.*', with commas between",         \
     0,        0,           false},                                                                                    \
        {"lora-rank", AH_ARG_INT, (at_tuning) + offsetof(struct ah_tuning, lora_rank),                                 \
         "R",         NULL,       "train adapters of this rank (LoRA) and freeze the model",                           \
         1,           65536,      false},                                                                              \
        {"lora-alpha", AH_ARG_REAL, (at_tuning) + offsetof(struct ah_tuning, lora_alpha),                              \
         "A",          NULL,        "what adapters add is scaled by A / R (default: A is R)",                          \
         1e-6,         1e9,         false},                                                                            \
        {"lora-targets",                                                                                               \
         AH_ARG_TEXT,                                                                                                  \
         (at_tuning) + offsetof(struct ah_tuning, lora_targets),                                                       \
         "NAMES",                                                                                                      \
         NULL,                                                                                                         \
         "linear layers with adapters, like q_proj,v_proj (default all-linear)",                                       \
         0,                                                                                                            \
         0,                                                                                                            \
         false},                                                                                                       \
        {"frozen",                                                                                                     \
         AH_ARG_TEXT,                                                                                                  \
         (at_tuning) + offsetof(struct ah_tuning, frozen),                                                             \
         "TYPE",                                                                                                       \
         NULL,                                                                                                         \
         "what the blocks' frozen matrices are kept in beside adapters: int8 or nf4 (default: --dtype)",               \
         0,                                                                                                            \
         0,                                                                                                            \
         false},                                                                                                       \
    {                                                                                                                  \
        "rslora", AH_ARG_FLAG, (at_tuning) + offsetof(struct ah_tuning, lora_rslora), NULL, NULL,                      \
            "what adapters add is scaled by A / sqrt(R)", 0, 0, false                                                  \
    }
#define AH_ARGS_STEP(at_batch, at_seq, at_clip, at_pack)                                                               \
    {"batch", AH_ARG_COUNT, at_batch, "B", "8", "sequences in a step", 1, 1048576, false},                             \
        {"seq", AH_ARG_COUNT, at_seq, "T", NULL, "tokens in a sequence (default: the model's longest, at most 256)",   \
         1,     16777216,     false},                                                                                  \
        {"clip", AH_ARG_REAL, at_clip, "X", "1", "limit of the norm of all gradients; 0: no limit", 0, 1e30, false},   \
    {                                                                                                                  \
        "pack", AH_ARG_FLAG, at_pack, NULL, NULL, "plan for train --pack: several documents in each sequence", 0, 0,   \
            false                                                                                                      \
    }
_Static_assert((int)AH_ARG_IS_AUTO == (int)AH_MICRO_BATCH_AUTO, "the command line's auto is the library's");
/* `kind`: AH_ARG_AUTO, or AH_ARG_COUNT where nothing can be chosen. */
#define AH_ARGS_MICRO_BATCH(at_micro_batch, kind, help)                                                                \
    {                                                                                                                  \
        "micro-batch", kind, at_micro_batch, "M", NULL,                                                                \
            "sequences a block works on at a time, a divisor of the batch" help " (default: all)", 1, 1048576, false   \
    }

#endif
