/* Shared code of commands that open a session: rows of their option tables, opening, and the lines they print about
 * it. */
#ifndef AH_CLI_ARTEFACTS_H
#define AH_CLI_ARTEFACTS_H

#include "cli/args.h"

/* Prints "device: cuda:0, ..." unless the device is the CPU, and a note on standard error if a GPU was found but is not
 * used. */
void ah__device_print(FILE *to, const struct ah_device *device);
/* Prints "micro-batches: 4 of 2 sequences"; nothing for a single micro-batch unless the planner chose its size
 * (`chosen`). */
void ah__micro_batch_print(FILE *to, int64_t size, int64_t count, bool chosen);

/* Prints the formats that were asked for, like "bf16, masters in bf16, moments in int8, adapters of rank 16 beside
 * nf4": types of compute, masters and moments, and which parameters are trained. */
void ah__formats_print(FILE *to, const char *dtype, const struct ah_session_options *options);

/* Returns the folder of cached profiles: autohete in XDG_CACHE_HOME or ~/.cache. Null: neither is known. The text is
 * static. */
const char *ah__cache_folder(void);
/* Prints "profile: cached 3 minutes ago (--no-cache measures again)"; nothing if it was measured now (kept_s -1). */
void ah__profile_age_print(FILE *to, int64_t kept_s);

/* Opens a session and advances it to `stage`, with profiles from the cache folder. Prints to `text` (null: nothing) a
 * device that is measured and the age of a cached profile. Returns the library's status; the caller closes *out, which
 * is null after a failure. */
int ah__session_start(struct ah_session **out, const struct ah_session_options *options, enum ah_session_stage stage,
                      FILE *text);

/* Rows of option tables for several commands, beside those of cli/rows.h. The macros' arguments are offsets in the
 * command's struct. */
#define AH_ARG_DEVICE_HELP "auto, cpu, cuda or cuda:1; auto: the first GPU, if there is one"
#define AH_ARG_DEVICE(at_device)                                                                                       \
    {                                                                                                                  \
        "device", AH_ARG_TEXT, at_device, "NAME", .initial = "auto", .words = "auto cpu cuda",                         \
                                                  .help = AH_ARG_DEVICE_HELP                                           \
    }
#define AH_ARG_THREADS(at_threads)                                                                                     \
    {                                                                                                                  \
        "threads", AH_ARG_INT, at_threads, "N", .min = 1, .max = 4096,                                                 \
                                                .help = "threads of the cpu device (default: one per core)"            \
    }
#define AH_ARG_SAMPLING(name, kind, at, member, meta, ...)                                                             \
    {                                                                                                                  \
        name, AH_ARG_##kind, (at) + offsetof(struct ah_generate_options, member), meta, __VA_ARGS__                    \
    }
#define AH_ARGS_SAMPLING(at, tokens_default)                                                                           \
    AH_ARG_SAMPLING("tokens", COUNT, at, tokens, "N", .initial = tokens_default, .min = 1, .max = 1e9,                 \
                    .help = "tokens to write at most"),                                                                \
        AH_ARG_SAMPLING("temperature", REAL, at, temperature, "X", .initial = "0.8", .max = 100,                       \
                        .help = "sampling temperature; 0: always the likeliest token"),                                \
        AH_ARG_SAMPLING("top-k", INT, at, top_k, "K", .initial = "0", .max = 1e9,                                      \
                        .help = "choose among the K likeliest tokens; 0: all"),                                        \
        AH_ARG_SAMPLING("top-p", REAL, at, top_p, "P", .initial = "1", .max = 1,                                       \
                        .help = "choose among the likeliest tokens that together have this probability; 1: all"),      \
        AH_ARG_SAMPLING("min-p", REAL, at, min_p, "P", .initial = "0", .max = 1,                                       \
                        .help = "choose among tokens at least this share as likely as the likeliest; 0: all"),         \
        AH_ARG_SAMPLING("repetition-penalty", REAL, at, repetition_penalty, "X", .initial = "1", .max = 1000,          \
                        .help = "make earlier tokens less likely; 1: no penalty"),                                     \
        AH_ARG_SAMPLING("seed", SEED, at, seed, "S", .initial = "1", .help = "seed of the sampling"),                  \
        AH_ARG_DEVICE((at) + offsetof(struct ah_generate_options, device)),                                            \
        AH_ARG_THREADS((at) + offsetof(struct ah_generate_options, threads))
#define AH_ARG_MODEL_HELP "model: a config.json, its folder, a GGUF file, or a name that 'autohete fit' lists"
#define AH_ARG_MODEL(at_model)                                                                                         \
    {                                                                                                                  \
        "model", AH_ARG_TEXT, at_model, "FILE", .required = true, .group = "model", .help = AH_ARG_MODEL_HELP          \
    }
#define AH_ARG_ADAPTER(at_adapter)                                                                                     \
    {                                                                                                                  \
        "adapter", AH_ARG_TEXT, at_adapter, "DIR",                                                                     \
            .help = "adapter for the model: of a training here, or as PEFT writes it"                                  \
    }
_Static_assert((int)AH_ARG_IS_AUTO == (int)AH_MICRO_BATCH_AUTO, "the command line's auto is the library's");

#endif
