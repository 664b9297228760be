#include <stdlib.h>
#include <string.h>

#include "train/checkpoint_internal.h"

const char *const ah__checkpoint_files[AH_PART_COUNT] = {"model.safetensors", "optimizer.safetensors"};

/* What the files hold of each parameter. */
enum { SUFFIXES_MOST = 5 };
struct suffix {
    const char *text;
    enum ah_run_state which;
    enum ah_dtype dtype;
    bool scales;
};

bool ah__saves_masters(const struct ah_settings *settings, int64_t format)
{
    return settings->save_dtype != (format < 3 ? AH_F32 : settings->master) && settings->save_dtype != AH_F32;
}

static int suffixes(struct suffix out[SUFFIXES_MOST], enum ah_checkpoint_part part, const struct ah_settings *settings,
                    int64_t format)
{
    enum ah_dtype moments = format < 3 ? AH_F32 : settings->moments;
    int count = 0;
    if (part == AH_PART_MODEL) {
        out[0] = (struct suffix){"", AH_RUN_PARAM, settings->save_dtype, false};
        return 1;
    }
    out[count++] = (struct suffix){".exp_avg", AH_RUN_MOMENT1, moments, false};
    out[count++] = (struct suffix){".exp_avg_sq", AH_RUN_MOMENT2, moments, false};
    if (moments == AH_U8) {
        out[count++] = (struct suffix){".exp_avg.scale", AH_RUN_MOMENT1, AH_F32, true};
        out[count++] = (struct suffix){".exp_avg_sq.scale", AH_RUN_MOMENT2, AH_F32, true};
    }
    if (ah__saves_masters(settings, format))
        out[count++] = (struct suffix){".master", AH_RUN_PARAM, AH_F32, false};
    return count;
}

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

int ah__entries_init(struct ah_entries *out, enum ah_checkpoint_part part, const struct ah_partition *partition,
                     const struct ah_settings *settings, int64_t format)
{
    struct suffix all[SUFFIXES_MOST];
    int each = suffixes(all, part, settings, format);
    size_t count = (size_t)partition->param_count * (size_t)each;
    *out = (struct ah_entries){.count = count};
    AH_TRY(ah__new(&out->entry, count, sizeof *out->entry));
    for (size_t i = 0; i < count; i++) {
        int param = (int)i / each;
        const struct suffix *suffix = &all[(int)i % each];
        out->entry[i] = (struct ah_entry){NULL, param, suffix->which, suffix->dtype, suffix->scales};
        AH_TRY(ah__sprintf(&out->entry[i].name, "%s%s", partition->params[param].name, suffix->text));
    }
    qsort(out->entry, count, sizeof *out->entry, compare_names);
    return AH_OK;
}

struct ah_shape ah__entry_shape(const struct ah_entry *entry, const struct ah_partition *partition)
{
    struct ah_shape shape = partition->params[entry->param].shape;
    if (!entry->scales)
        return shape;
    int64_t groups = (ah__shape_count(&shape) + AH_CODE8_GROUP - 1) / AH_CODE8_GROUP;
    return (struct ah_shape){.rank = 1, .dim = {groups}};
}
