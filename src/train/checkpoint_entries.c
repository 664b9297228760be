#include "dev/host/states.h"
#include "source/adapter_config.h"
#include "train/checkpoint_internal.h"

const char *const ah__checkpoint_files[AH_PART_COUNT] = {"model.safetensors", "optimizer.safetensors"};

/* A tensor that the files hold for each parameter: end of its name, state, type and elements per scale. */
enum { SUFFIXES_MOST = 5 };
struct suffix {
    const char *text;
    enum ah_run_state which;
    enum ah_dtype dtype;
    int64_t scaled;
};

bool ah__saves_masters(const struct ah_settings *settings)
{
    enum ah_dtype saved = ah__settings_saved(settings);
    return saved != settings->master && saved != AH_F32;
}

static int suffixes(struct suffix out[SUFFIXES_MOST], enum ah_checkpoint_part part, const struct ah_settings *settings)
{
    enum ah_dtype moments = settings->moments;
    int64_t group = ah__state_format(moments)->group;
    int count = 0;
    if (part == AH_PART_MODEL) {
        out[0] = (struct suffix){"", AH_RUN_PARAM, ah__settings_saved(settings), 0};
        return 1;
    }
    out[count++] = (struct suffix){".exp_avg", AH_RUN_MOMENT1, moments, 0};
    if (group > 1)
        out[count++] = (struct suffix){".exp_avg.scale", AH_RUN_MOMENT1, AH_F32, group};
    out[count++] = (struct suffix){".exp_avg_sq", AH_RUN_MOMENT2, moments, 0};
    if (group > 1)
        out[count++] = (struct suffix){".exp_avg_sq.scale", AH_RUN_MOMENT2, AH_F32, group};
    if (ah__saves_masters(settings))
        out[count++] = (struct suffix){".master", AH_RUN_PARAM, AH_F32, 0};
    return count;
}

void ah__entries_fini(struct ah_entries *entries)
{
    for (size_t i = 0; entries->entry && i < entries->count; i++)
        ah__free(entries->entry[i].name);
    ah__free(entries->entry);
}

/* Returns true if a file has this tensor of a parameter. The model's file has the model's own parameters, or the
 * adapters'. A frozen parameter has no optimizer states, but has its master if the model's file has it rounded. */
static bool has(enum ah_checkpoint_part part, const struct suffix *suffix, const struct ah_partition *partition,
                const struct ah_param *param, bool adapters)
{
    if (part == AH_PART_MODEL)
        return param->adapter == adapters;
    bool exact = suffix->which == AH_RUN_PARAM && partition->compute == AH_F32 && !adapters;
    return !param->frozen || exact;
}

static int entry_init(struct ah_entry *out, const struct suffix *suffix, const struct ah_partition *partition,
                      int param, bool prefixed)
{
    *out = (struct ah_entry){NULL, param, suffix->which, suffix->dtype, suffix->scaled};
    return ah__sprintf(&out->name, "%s%s%s", prefixed ? AH_ADAPTER_PREFIX : "", partition->params[param].name,
                       suffix->text);
}

int ah__entries_init(struct ah_entries *out, enum ah_checkpoint_part part, const struct ah_partition *partition,
                     const struct ah_settings *settings)
{
    struct suffix all[SUFFIXES_MOST];
    int each = suffixes(all, part, settings);
    bool adapters = settings->tuning.lora_rank > 0;
    *out = (struct ah_entries){.apart = part == AH_PART_MODEL};
    AH_TRY(ah__new(&out->entry, (size_t)partition->param_count * (size_t)each, sizeof *out->entry));
    for (int param = 0; param < partition->param_count; param++)
        for (int i = 0; i < each; i++)
            if (has(part, &all[i], partition, &partition->params[param], adapters))
                AH_TRY(entry_init(&out->entry[out->count++], &all[i], partition, param,
                                  adapters && part == AH_PART_MODEL));
    return AH_OK;
}

struct ah_shape ah__entry_shape(const struct ah_entry *entry, const struct ah_partition *partition)
{
    struct ah_shape shape = partition->params[entry->param].shape;
    if (!entry->scaled)
        return shape;
    return (struct ah_shape){.rank = 1, .dim = {(ah__shape_count(&shape) + entry->scaled - 1) / entry->scaled}};
}
