/* Models on one machine: a row each, ordered by number of parameters. Runs no step; to measure this machine one block
 * is timed. */
#ifndef AH_CLI_FIT_H
#define AH_CLI_FIT_H

#include "cli/out.h"

struct ah_fit_args {
    struct ah_session_options inputs; /* without a model; seq 0: each model's longest, at most 1024 */
    struct ah_texts models;           /* empty: all models that come with AutoHete */
    bool json;
};

struct ah_fit_row {
    const char *path;
    char name[64];
    int64_t parameters, max_seq, seq;
    char refused[160];               /* why the model cannot be tuned as asked for; "": it can */
    bool known;                      /* true: evaluated; false: the sequences are too long for the model, or it was
                                      * refused */
    struct ah_evaluation evaluation; /* set if known */
    struct ah_advice advice;         /* set if known and the plan does not fit */
};

struct ah_fit {
    const struct ah_fit_args *args;
    struct ah_session_options inputs; /* args->inputs, with the machine that was found */
    char **bundled;                   /* paths of the models that come with AutoHete; null: models were given */
    int count;
    struct ah_fit_row *rows;
    char folder[AH_OUT_FOLDER],
        measured[AH_OUT_FOLDER + 32], /* temporary folder and the hardware file of this machine in it; "": not made */
        drive[AH_OUT_FOLDER + 32];    /* the file of its drive there */
    char machine[64], description[256];
    struct ah_budget budget; /* budget of one rank */
    int ranks, printed;      /* world size; rows printed */
};

/* Loads the models. Call fini also after a failure. This and the functions below return the library's statuses. */
int ah__fit_init(struct ah_fit *out, const struct ah_fit_args *args);
void ah__fit_fini(struct ah_fit *fit);
/* Sets the machine that was asked for, or this one: then one block is timed, or its times are taken from the cache. */
int ah__fit_machine(struct ah_fit *fit);
/* Plans every model and prints the table, each row as soon as it is known. Fails without printing if no model can be
 * evaluated. */
int ah__fit_rows(struct ah_fit *fit, FILE *to);
void ah__fit_json(const struct ah_fit *fit, FILE *to);

#endif
