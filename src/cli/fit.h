/* Models on one machine: a row each, by number of parameters. Runs no step; of this machine one block is timed. */
#ifndef AH_CLI_FIT_H
#define AH_CLI_FIT_H

#include "cli/out.h"

struct ah_fit_args {
    struct ah_session_options inputs; /* without a model; seq 0: each model's longest, at most 1024 */
    struct ah_texts models;           /* none: those that come with AutoHete */
    bool json;
};

struct ah_fit_row {
    const char *path;
    char name[64];
    int64_t parameters, max_seq, seq;
    char refused[160];               /* why it cannot be tuned as asked for; "": it can */
    bool known;                      /* evaluated; else the model takes no such sequences, or was refused */
    struct ah_evaluation evaluation; /* where known */
    struct ah_advice advice;         /* where that does not fit */
};

struct ah_fit {
    const struct ah_fit_args *args;
    struct ah_session_options inputs; /* as given, for the machine that was found */
    char **bundled;                   /* paths, or null where models were given */
    int count;
    struct ah_fit_row *rows;
    char folder[AH_OUT_FOLDER],
        measured[AH_OUT_FOLDER + 32]; /* of the hardware file of this machine; "": none was written */
    char machine[64], description[256];
    struct ah_budget budget; /* of one rank */
    int ranks, printed;      /* rows */
};

/* Statuses are the library's. Loads the models; closed by fini, also after a failure. */
int ah__fit_init(struct ah_fit *out, const struct ah_fit_args *args);
void ah__fit_fini(struct ah_fit *fit);
/* The machine asked for, or this one: then one block is timed, or taken from the cache. */
int ah__fit_machine(struct ah_fit *fit);
/* A plan for every model. Prints the table, each row as soon as it is known; nothing where no model has one. */
int ah__fit_rows(struct ah_fit *fit, FILE *to);
void ah__fit_json(const struct ah_fit *fit, FILE *to);

#endif
