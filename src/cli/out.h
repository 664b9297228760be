/* Pieces of JSON on a stream. */
#ifndef AH_CLI_OUT_H
#define AH_CLI_OUT_H

#include "cli/args.h"

/* A number that round-trips; null when it is not finite. */
void ah__out_number(FILE *to, double value);
/* A quoted string; bytes that are no UTF-8 become U+FFFD. */
void ah__out_string(FILE *to, const char *text);
/* The same of any bytes, zeros too. */
void ah__out_text(FILE *to, const char *text, size_t length);
/* JSON text on one line. */
void ah__out_line(FILE *to, const char *json);
/* Makes an empty folder in TMPDIR, or in /tmp where that is unset. AH_EIO, with a fault for ah__out_fail to print. */
enum { AH_OUT_FOLDER = 512 };
int ah__out_folder(char folder[AH_OUT_FOLDER]);
/* What save(object, path) writes, on one line. The library's status. */
int ah__out_saved(FILE *to, int (*save)(const void *object, const char *path), const void *object);
/* The plan as one object. The library's status. */
int ah__out_plan(FILE *to, const struct ah_plan *plan);

/* A fault in the input that the command found itself, as one line; gives AH_EINPUT, for ah__out_fail to print. */
int ah__out_fault(const char *format, ...) AH_PRINTF(1, 2);
/* A note on standard error; null: none. Freed with free(). */
void ah__out_note(char *note);
/* What is to be said of the tokenizer of the model at this path, with an adapter or null. A status of
 * ah_tokenizer_note. */
int ah__out_tokenizer_note(const char *model, const char *adapter);
/* Notes that an answer of `count` tokens stopped at `most`, and not where the model ended it. */
void ah__out_cut_note(int64_t count, int64_t most);
/* The command that runs: what the library calls micro_batch is its option --micro-batch. */
void ah__out_command(const struct ah_command *command);
/* Prints ah_error() and gives the exit status that goes with a status of the library. */
int ah__out_fail(int status);

#endif
