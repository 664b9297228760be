/* A tiny model, a short text and a folder to train in, for tests of whole trainings. */
#ifndef AH_TESTS_TRAIN_TINY_H
#define AH_TESTS_TRAIN_TINY_H

#include "test.h"

enum { STEPS = 8, PATH_SIZE = 512 };

struct place {
    char model[PATH_SIZE], data[PATH_SIZE], out[PATH_SIZE]; /* `out` does not exist yet */
};

void place_init(struct place *place);
/* FOLDER/NAME into path; returns path. */
char *at(char path[PATH_SIZE], const char *folder, const char *name);
void write_text(const char *path, const char *text);
/* Another width, another text. */
void write_model(const char *path, int embd);
void write_data(const char *path, unsigned salt);
/* The whole file; freed with ah__free. */
char *read_text(const char *folder, const char *name, size_t *length);
/* NAME is the same in both folders, byte for byte. */
void expect_same_file(const char *a, const char *b, const char *name);

/* STEPS steps of batch 2 x 8 under the plan "resident", one thread, with a profile measured once. */
struct ah_train_options options_of(const struct place *place);
/* The same on other data, out of OUT-NAME, with its notes kept in tiny_notes, a line each. */
struct ah_train_options options_on(const struct place *place, const char *data, char out[PATH_SIZE], const char *name);
extern char tiny_notes[4096];
/* Ends a training after its third step. */
int stop_at_3(const struct ah_step *step, void *context);
/* The same training taken up again. */
struct ah_train_options resume_of(const struct place *place);
/* A training as a caller's loop over its steps. `opened` hears of the trainer before the first step, and what it
 * returns but AH_OK ends it; `stepped` hears of each step, and ends it, with a checkpoint, by nonzero. Any may be null;
 * both are given the options' context. */
int train_watched(struct ah_train_result *result, const struct ah_train_options *options,
                  int (*opened)(const struct ah_trainer *trainer, void *context),
                  int (*stepped)(const struct ah_step *step, void *context));
/* Trains until shortly after step `stop`; returns the steps done. */
int64_t train_part(const struct place *place, int64_t stop);

#endif
