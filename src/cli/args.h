/* Options of a command: one table row each, parsed straight into the command's own struct.
 * Takes a table and argv, gives a filled struct or one line that says what is wrong. Prints only help; never exits. */
#ifndef AH_CLI_ARGS_H
#define AH_CLI_ARGS_H

#include "autohete.h"

enum { AH_ARG_IS_AUTO = -1 }; /* what the word "auto" is where a number may stand */

/* What an option that may be given several times was given; they lie in argv. */
enum { AH_TEXTS_MOST = 64 };
struct ah_texts {
    const char *text[AH_TEXTS_MOST];
    int count;
};

enum ah_arg_kind {
    AH_ARG_FLAG,            /* bool; takes no value */
    AH_ARG_TEXT,            /* const char *, not empty */
    AH_ARG_OUT,             /* the same: a file to write, which is none of what other options name */
    AH_ARG_LIST,            /* struct ah_texts, none of them empty; the option may be given several times */
    AH_ARG_WORDS,           /* const char *, may be empty */
    AH_ARG_INT,             /* int, in [min, max] */
    AH_ARG_COUNT,           /* int64_t, in [min, max] */
    AH_ARG_AUTO,            /* int64_t, in [min, max] from 0 on, or "auto", which is AH_ARG_IS_AUTO */
    AH_ARG_SEED,            /* uint64_t */
    AH_ARG_REAL,            /* double, in [min, max] */
    AH_ARG_SIZE,            /* int64_t, bytes, above zero */
    AH_ARG_LIMIT,           /* the same, or "none", which is AH_NO_LIMIT */
    AH_ARG_RATE,            /* int64_t, bytes per second, above zero and at least min */
    AH_ARG_FILE_OF_OPTIONS, /* nothing in the struct: its keys are options, below those of the command line */
};

struct ah_arg {
    const char *name; /* without the dashes */
    enum ah_arg_kind kind;
    size_t at;           /* offset in the command's struct */
    const char *meta;    /* what help calls the value */
    const char *help;    /* null: not shown in help */
    const char *initial; /* value when absent; null: the struct is left as it is */
    const char *words;   /* values that a shell completes, with blanks between them; null: none are known */
    const char *group;   /* heading in help; null: before all headings */
    double min, max;     /* of numbers, both 0: any; of a rate only min counts */
    bool required;
};

/* A row of commands that take files of options. */
#define AH_ARG_CONFIG                                                                                                  \
    {                                                                                                                  \
        "config", AH_ARG_FILE_OF_OPTIONS, 0, "FILE",                                                                   \
            .help = "options from a file of YAML or JSON: their names, with - or _, and values; the command line "     \
                    "comes first"                                                                                      \
    }

/* Words without dashes, in order; they lie in argv. */
struct ah_words {
    char **word;
    size_t count;
};

struct ah_command {
    const char *name, *usage, *summary;
    const struct ah_arg *options;
    size_t count;
    void *args;                   /* the command's struct */
    const char *word_meta;        /* what its one word without dashes is, which must be there; null: it takes none */
    size_t word;                  /* offset of that word, const char *, in the struct */
    bool together;                /* runs on several ranks */
    bool many;                    /* of words, at least one: there is a struct ah_words then */
    bool unset;                   /* absent options stay as `init` leaves them; `initial` is for help alone */
    void (*init)(void *args);     /* before parsing; may be null */
    int (*run)(const void *args); /* exit status */
};

enum ah_args_result { AH_ARGS_RUN, AH_ARGS_HELP, AH_ARGS_VERSION, AH_ARGS_WRONG };

struct ah_args_error {
    char text[320]; /* one line, without the program's name */
};

/* Parses argv[0..argc) (what follows the command's name). --help and --version win over everything but an earlier
 * fault. */
enum ah_args_result ah__args_parse(const struct ah_command *command, int argc, char **argv,
                                   struct ah_args_error *error);
/* The path after --config; null: there was none. */
const char *ah__args_config(void);
void ah__args_help(const struct ah_command *command, FILE *to);

#endif
