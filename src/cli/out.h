/* Output of commands: JSON on a stream; notes and faults on standard error. */
#ifndef AH_CLI_OUT_H
#define AH_CLI_OUT_H

#include "cli/args.h"

/* Prints a number that round-trips; "null" if it is not finite. */
void ah__out_number(FILE *to, double value);
/* Prints a quoted string; bytes that are not UTF-8 become U+FFFD. */
void ah__out_string(FILE *to, const char *text);
/* Prints `length` bytes, which may include zeros, as a quoted string. */
void ah__out_text(FILE *to, const char *text, size_t length);
/* Prints JSON text on one line. */
void ah__out_line(FILE *to, const char *json);
/* Makes an empty folder in TMPDIR, or in /tmp if that is unset. Returns AH_OK, or AH_EIO with a fault for
 * ah__out_fail. */
enum { AH_OUT_FOLDER = 512 };
int ah__out_folder(char folder[AH_OUT_FOLDER]);
/* Prints the JSON that save(object, path) writes, on one line. Returns the library's status. */
int ah__out_saved(FILE *to, int (*save)(const void *object, const char *path), const void *object);
/* Prints the plan as one object. Returns the library's status. */
int ah__out_plan(FILE *to, const struct ah_plan *plan);

/* Keeps a fault in the input that the command found itself, as one line for ah__out_fail. Returns AH_EINPUT. */
int ah__out_fault(const char *format, ...) AH_PRINTF(1, 2);
/* Prints a note on standard error and frees it with free(); null: prints nothing. */
void ah__out_note(char *note);
/* Prints notes about the tokenizer of the model at this path and about its adapter (null: none). Returns the status of
 * ah_tokenizer_note. */
int ah__out_tokenizer_note(const char *model, const char *adapter);
/* Prints a note if an answer of `count` tokens stopped at `most`, and not where the model ended it. */
void ah__out_cut_note(int64_t count, int64_t most);
/* Sets the command that runs, so that a library message about micro_batch names its option --micro-batch. */
void ah__out_command(const struct ah_command *command);
/* Prints the kept fault, else ah_error(). Returns the exit status for a status of the library. */
int ah__out_fail(int status);

#endif
