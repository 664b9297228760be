#include <stdlib.h>
#include <string.h>

#include "train/checkpoint_internal.h"

const char *const ah__checkpoint_files[AH_PART_COUNT] = {"model.safetensors", "optimizer.safetensors"};

/* What the files hold of each parameter: the last only where the model's has it rounded. */
static const struct part {
    int count, count_rounded;
    struct suffix {
        const char *text;
        enum ah_run_state which;
    } suffix[3];
} parts[AH_PART_COUNT] = {
    [AH_PART_MODEL] = {1, 1, {{"", AH_RUN_PARAM}}},
    [AH_PART_OPTIMIZER] = {2,
                           3,
                           {{".exp_avg", AH_RUN_MOMENT1}, {".exp_avg_sq", AH_RUN_MOMENT2}, {".master", AH_RUN_PARAM}}},
};

void ah__entries_fini(struct ah_entries *entries)
{
    for (size_t i = 0; entries->entry && i < entries->count; i++)
        ah__free(entries->entry[i].name);
    ah__free(entries->entry);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct ah_entry *)left)->name, ((const struct ah_entry *)right)->name);
}

int ah__entries_init(struct ah_entries *out, enum ah_checkpoint_part which, const struct ah_partition *partition,
                     enum ah_dtype saved)
{
    const struct part *part = &parts[which];
    int each = saved == AH_F32 ? part->count : part->count_rounded;
    size_t count = (size_t)partition->param_count * (size_t)each;
    *out = (struct ah_entries){.count = count, .dtype = which == AH_PART_MODEL ? saved : AH_F32};
    AH_TRY(ah__new(&out->entry, count, sizeof *out->entry));
    for (size_t i = 0; i < count; i++) {
        int param = (int)i / each;
        const struct suffix *suffix = &part->suffix[(int)i % each];
        out->entry[i] = (struct ah_entry){NULL, param, suffix->which};
        AH_TRY(ah__sprintf(&out->entry[i].name, "%s%s", partition->params[param].name, suffix->text));
    }
    qsort(out->entry, count, sizeof *out->entry, compare_names);
    return AH_OK;
}
