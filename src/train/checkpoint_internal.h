/* What saving (checkpoint_save.c) and loading (checkpoint.c) a checkpoint share: which tensors its files have, and what
 * they say of data (checkpoint_data.c). */
#ifndef AH_TRAIN_CHECKPOINT_INTERNAL_H
#define AH_TRAIN_CHECKPOINT_INTERNAL_H

#include "train/checkpoint.h"

enum { AH_CHECKPOINT_FORMAT = 3 }; /* of state.json; no other is read */

/* A tensor of a checkpoint file: a parameter's state, or of one with codes the scales, under a name of its own. */
struct ah_entry {
    char *name;
    int param;
    enum ah_run_state which;
    enum ah_dtype dtype; /* in the file */
    int64_t scaled;      /* elements that share one of these scales of the entry before; 0: no scales */
};

/* The model's tensors, and the optimizer's. */
enum ah_checkpoint_part { AH_PART_MODEL, AH_PART_OPTIMIZER, AH_PART_COUNT };
extern const char *const ah__checkpoint_files[AH_PART_COUNT];

struct ah_entries {
    struct ah_entry *entry; /* in order of names, as Hugging Face writes them */
    size_t count;
};

/* The tensors of a checkpoint of these settings: of adapters, and not of what they adapt, where there are
 * some. AH_ENOMEM; ah__entries_fini is needed then, too. */
int ah__entries_init(struct ah_entries *out, enum ah_checkpoint_part part, const struct ah_partition *partition,
                     const struct ah_settings *settings);
void ah__entries_fini(struct ah_entries *entries);
/* Whether masters are in the optimizer's file: the model's has them rounded. */
bool ah__saves_masters(const struct ah_settings *settings);
struct ah_shape ah__entry_shape(const struct ah_entry *entry, const struct ah_partition *partition);

/* The sources of data that are several, to state.json and from there. AH_ENOMEM; AH_EINPUT. */
int ah__checkpoint_sources_save(cJSON *tree, const struct ah_checkpoint *state);
int ah__checkpoint_sources_read(struct ah_checkpoint *out, const struct ah_json *json);

#endif
