/* Shared by saving (checkpoint_save.c) and loading (checkpoint.c) a checkpoint: the tensors of its files
 * (checkpoint_entries.c) and the data sources in state.json (checkpoint_data.c). */
#ifndef AH_TRAIN_CHECKPOINT_INTERNAL_H
#define AH_TRAIN_CHECKPOINT_INTERNAL_H

#include "train/checkpoint.h"

enum { AH_CHECKPOINT_FORMAT = 3 }; /* format of state.json; no other format is read */

/* A tensor of a checkpoint file: a parameter's state, or the scales of a state in codes, which have a name of their
 * own. */
struct ah_entry {
    char *name;
    int param;
    enum ah_run_state which;
    enum ah_dtype dtype; /* type in the file */
    int64_t scaled;      /* elements of the entry before that share one of these scales; 0: this entry is no scales */
};

/* Files of a checkpoint: the model's tensors, and the optimizer's. */
enum ah_checkpoint_part { AH_PART_MODEL, AH_PART_OPTIMIZER, AH_PART_COUNT };
extern const char *const ah__checkpoint_files[AH_PART_COUNT];

struct ah_entries {
    struct ah_entry *entry; /* in the order of parameters, in which a run reads each part of a block on disk once; the
                             * scales of a state behind it */
    size_t count;
    bool apart; /* the file has stacks as their parts (io/stack.h) */
};

/* Lists the tensors of a checkpoint with these settings; if there are adapters, theirs and not the model's. AH_ENOMEM;
 * ah__entries_fini is needed then, too. */
int ah__entries_init(struct ah_entries *out, enum ah_checkpoint_part part, const struct ah_partition *partition,
                     const struct ah_settings *settings);
void ah__entries_fini(struct ah_entries *entries);
/* Returns true if masters are in the optimizer's file: the model's file has them rounded. */
bool ah__saves_masters(const struct ah_settings *settings);
struct ah_shape ah__entry_shape(const struct ah_entry *entry, const struct ah_partition *partition);

/* Save and read the data sources in state.json if there are several. AH_ENOMEM; AH_EINPUT. */
int ah__checkpoint_sources_save(cJSON *tree, const struct ah_checkpoint *state);
int ah__checkpoint_sources_read(struct ah_checkpoint *out, const struct ah_json *json);

#endif
