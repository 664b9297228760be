/* Options of a command, one table row each, parsed straight into the command's own struct. Takes a table and argv;
 * returns a filled struct or a one-line error. Prints only help; never exits. */
#ifndef AH_CLI_ARGS_H
#define AH_CLI_ARGS_H

#include "autohete.h"

enum { AH_ARG_IS_AUTO = -1 }; /* value of the word "auto" where a number is expected */

/* Values of an option that may be repeated, in order. They point into argv or into the file of options. */
enum { AH_TEXTS_MOST = 64 };
struct ah_texts {
    const char *text[AH_TEXTS_MOST];
    int count;
};

enum ah_arg_kind {
    AH_ARG_FLAG,            /* bool; takes no value */
    AH_ARG_TEXT,            /* const char *, not empty */
    AH_ARG_OUT,             /* const char *, not empty: a file to write; refused if another option names the same
                             * file */
    AH_ARG_LIST,            /* struct ah_texts, no text empty; the option may be repeated */
    AH_ARG_WORDS,           /* const char *, may be empty */
    AH_ARG_INT,             /* int, in [min, max] */
    AH_ARG_COUNT,           /* int64_t, in [min, max] */
    AH_ARG_AUTO,            /* int64_t, in [min, max] with min >= 0; or "auto", stored as AH_ARG_IS_AUTO */
    AH_ARG_SWITCH,          /* const char *, "NAME=NUMBER" of a number in [min, max] */
    AH_ARG_SEED,            /* uint64_t */
    AH_ARG_REAL,            /* double, in [min, max] */
    AH_ARG_SIZE,            /* int64_t, bytes, above zero */
    AH_ARG_LIMIT,           /* int64_t, bytes, above zero; or "none", stored as AH_NO_LIMIT */
    AH_ARG_RATE,            /* int64_t, bytes per second, above zero and at least min */
    AH_ARG_FILE_OF_OPTIONS, /* not stored: a file whose keys are options; the command line takes precedence */
};

struct ah_arg {
    const char *name; /* without the dashes */
    enum ah_arg_kind kind;
    size_t at;           /* offset in the command's struct */
    const char *meta;    /* name of the value in help */
    const char *help;    /* null: the option is not shown in help */
    const char *initial; /* value when absent; null: the field is left as it is */
    const char *words;   /* values for shell completion, separated by blanks; null: unknown */
    const char *group;   /* heading in help; null: before all headings */
    double min, max;     /* range of a number, both 0: any; a rate uses min alone */
    bool required;
};

/* Row of --config, for commands that read options from a file. */
#define AH_ARG_CONFIG                                                                                                  \
    {                                                                                                                  \
        "config", AH_ARG_FILE_OF_OPTIONS, 0, "FILE",                                                                   \
            .help = "options from a file of YAML or JSON: their names, with - or _, and values; the command line "     \
                    "comes first"                                                                                      \
    }

/* Positional arguments, in order; they are moved to the front of argv. */
struct ah_words {
    char **word;
    size_t count;
};

struct ah_command {
    const char *name, *usage, *summary;
    const struct ah_arg *options;
    size_t count;
    void *args;                   /* the command's struct */
    const char *word_meta;        /* name of the required positional argument; null: there is none */
    size_t word;                  /* offset of that argument in the struct: const char *, or struct ah_words if
                                   * `many` */
    bool together;                /* runs on several ranks */
    bool many;                    /* takes one or more positional arguments, as struct ah_words */
    bool unset;                   /* absent options stay as `init` leaves them; `initial` is for help alone */
    void (*init)(void *args);     /* called before parsing; may be null */
    int (*run)(const void *args); /* returns the exit status */
};

enum ah_args_result { AH_ARGS_RUN, AH_ARGS_HELP, AH_ARGS_VERSION, AH_ARGS_WRONG };

struct ah_args_error {
    char text[320]; /* one line, without the program's name */
};

/* Parses argv[0..argc), the arguments after the command's name. --help and --version win over everything but an error
 * before them. */
enum ah_args_result ah__args_parse(const struct ah_command *command, int argc, char **argv,
                                   struct ah_args_error *error);
/* Returns the path after --config of the last command line parsed; null: there was none. */
const char *ah__args_config(void);
void ah__args_help(const struct ah_command *command, FILE *to);

#endif
