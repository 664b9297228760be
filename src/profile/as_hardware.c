/* Writes a measured profile as a hardware file, with figures whose estimate is about that profile. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "profile/hardware.h"
#include "profile/profile.h"

enum { FIGURES_MOST = 64, SOURCE_MOST = 96 };
static const double giga = 1e9, gibi = 1073741824.0, reserved_gib = 0.001;

struct draft {
    const struct ah_profile *profile;
    const struct ah_partition *partition;
    const struct ah_hardware_facts *facts;
    double flops_per_s;
};

static double params_of(const struct draft *draft)
{
    return (double)draft->profile->params[AH_CLASS_BLOCK];
}

static double element_bytes(const struct draft *draft)
{
    return (double)ah__dtype_bytes(draft->partition->compute);
}

static double block_s(const struct draft *draft, enum ah_item_kind kind)
{
    return (double)draft->profile->costs.ns[kind][AH_CLASS_BLOCK] / giga;
}

/* Returns the bytes per second of Adam over a block: states are read and written, the gradient is read. */
static double adam_bytes_per_s(const struct draft *draft, enum ah_item_kind kind)
{
    return params_of(draft) * (2 * ah__states_each(draft->partition) + element_bytes(draft)) / block_s(draft, kind);
}

static double copy_bytes_per_s(const struct draft *draft, enum ah_item_kind kind)
{
    return params_of(draft) * element_bytes(draft) / block_s(draft, kind);
}

/* Returns a copy rate while the other direction runs too, from the rate that was measured alone. */
static double both(const struct draft *draft, enum ah_item_kind kind, enum ah_lane lane, enum ah_lane other)
{
    return copy_bytes_per_s(draft, kind) / fmax(1, draft->profile->costs.lanes.slowdown[lane][other]);
}

static void figures_fill(double *figure, const struct draft *draft)
{
    const struct ah_costs *costs = &draft->profile->costs;
    const struct {
        enum ah_figure id;
        double value;
    } known[] = {
        {AH_FIGURE_DEVICES, 1},
        {AH_FIGURE_MEMORY, (double)draft->facts->device_bytes + reserved_gib * gibi},
        {AH_FIGURE_MEMORY_RESERVED, reserved_gib * gibi},
        {AH_FIGURE_PEAK, draft->flops_per_s},
        {AH_FIGURE_MEMORY_BANDWIDTH, adam_bytes_per_s(draft, AH_ITEM_UPDATE_DEVICE)},
        {AH_FIGURE_MEMORY_EFFICIENCY, 1},
        {AH_FIGURE_ATTENTION_FORWARD, 1},
        {AH_FIGURE_ATTENTION_BACKWARD, 1},
        {AH_FIGURE_H2D, copy_bytes_per_s(draft, AH_ITEM_PREFETCH)},
        {AH_FIGURE_D2H, copy_bytes_per_s(draft, AH_ITEM_OFFLOAD)},
        {AH_FIGURE_H2D_BOTH, both(draft, AH_ITEM_PREFETCH, AH_LANE_H2D, AH_LANE_D2H)},
        {AH_FIGURE_D2H_BOTH, both(draft, AH_ITEM_OFFLOAD, AH_LANE_D2H, AH_LANE_H2D)},
        {AH_FIGURE_HOST_MEMORY, (double)draft->facts->host_bytes + reserved_gib * gibi},
        {AH_FIGURE_HOST_MEMORY_RESERVED, reserved_gib * gibi},
        {AH_FIGURE_CORES, draft->facts->cores},
        {AH_FIGURE_DRAM, adam_bytes_per_s(draft, AH_ITEM_UPDATE_HOST)},
        {AH_FIGURE_DRAM_EFFICIENCY, 1},
        {AH_FIGURE_DEEPSPEED_ADAM, params_of(draft) / block_s(draft, AH_ITEM_UPDATE_HOST)},
        {AH_FIGURE_KERNEL, 0},
        {AH_FIGURE_LAUNCH, (double)costs->lanes.launch_ns[AH_LANE_COMPUTE]},
        {AH_FIGURE_NOTIFY, (double)costs->lanes.notify_ns},
        {AH_FIGURE_COPY, (double)costs->ns[AH_ITEM_RESULT][AH_CLASS_HEAD]},
    };
    memset(figure, 0, AH_FIGURE_COUNT * sizeof *figure);
    for (size_t i = 0; i < AH_LENGTH(known); i++)
        figure[known[i].id] = known[i].value;
}

static struct ah_curve flat(double flops_per_s)
{
    return (struct ah_curve){.count = 1, .size = {1}, .flops_per_s = {flops_per_s}};
}

/* Estimates the time of a block's forward and backward together from these figures. */
static int estimated_ns(double *ns, const struct draft *draft)
{
    struct ah_hardware hardware = {.name = draft->facts->name};
    struct ah_profile *estimate;
    struct ah_estimate_options options = {.world_size = 1};
    figures_fill(hardware.figure, draft);
    hardware.gemm = hardware.gemm_f32 = flat(draft->flops_per_s);
    AH_TRY(ah_profile_estimate(&estimate, draft->partition, &hardware, &options));
    *ns = (double)(estimate->costs.ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK] +
                   estimate->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK]);
    ah_profile_free(estimate);
    return AH_OK;
}

/* Finds the arithmetic rate at which the estimate equals the measured time; the highest if moving bytes alone takes
 * longer. */
static int solve_rate(struct draft *draft)
{
    enum { HALVINGS = 60 };
    double low = 1e6, high = 1e17, want = (block_s(draft, AH_ITEM_FORWARD) + block_s(draft, AH_ITEM_BACKWARD)) * giga;
    for (int i = 0; i < HALVINGS; i++) {
        double ns;
        draft->flops_per_s = sqrt(low * high);
        AH_TRY(estimated_ns(&ns, draft));
        if (ns > want)
            low = draft->flops_per_s;
        else
            high = draft->flops_per_s;
    }
    return AH_OK;
}

/* ---- the file */

static int add_figure(cJSON *group, const char *key, double value, const char *unit, const struct draft *draft)
{
    char source[SOURCE_MOST];
    cJSON *figure = cJSON_AddObjectToObject(group, key);
    if (!figure)
        return ah__fail(AH_ENOMEM, "hardware: no memory for key '%s'", key);
    snprintf(source, sizeof source, "measured by us: autohete profile --as-hardware, %.40s", draft->profile->device);
    if (strcmp(unit, "1") == 0)
        AH_TRY(ah__json_add_int(figure, "value", llround(value)));
    else
        AH_TRY(ah__json_add_double(figure, "value", value));
    AH_TRY(ah__json_add_string(figure, "unit", unit));
    AH_TRY(ah__json_add_string(figure, "source", source));
    return ah__json_add_string(figure, "date", draft->facts->date);
}

static int add_curve(cJSON *device, const char *key, const struct draft *draft)
{
    cJSON *curve = cJSON_AddObjectToObject(device, key);
    return curve ? add_figure(curve, "1", draft->flops_per_s / 1e12, "TFLOP/s", draft)
                 : ah__fail(AH_ENOMEM, "hardware: no memory for key '%s'", key);
}

static int add_group(cJSON *tree, enum ah_figure_group group, const double *figure, const struct draft *draft)
{
    cJSON *object = cJSON_AddObjectToObject(tree, ah__figure_group_names[group]);
    if (!object)
        return ah__fail(AH_ENOMEM, "hardware: no memory for key '%s'", ah__figure_group_names[group]);
    for (int i = 0; i < AH_FIGURE_COUNT; i++) {
        const struct ah_figure_row *row = &ah__figure_table[i];
        double scale;
        const char *unit = ah__figure_unit(&scale, row->dimension);
        if (row->group == group && !ah__figure_is_optional((enum ah_figure)i))
            AH_TRY(add_figure(object, row->key, figure[i] / scale, unit, draft));
    }
    if (group != AH_FIGURES_DEVICE)
        return AH_OK;
    AH_TRY(add_curve(object, "gemm", draft));
    return draft->partition->compute == AH_F32 ? add_curve(object, "gemm_f32", draft) : AH_OK;
}

static int write_tree(cJSON *tree, const struct draft *draft)
{
    double figure[AH_FIGURE_COUNT];
    char description[SOURCE_MOST];
    figures_fill(figure, draft);
    snprintf(description, sizeof description, "%.60s, measured with one model", draft->profile->device);
    AH_TRY(ah__json_add_string(tree, "format", ah__hardware_format));
    AH_TRY(ah__json_add_string(tree, "name", draft->facts->name));
    AH_TRY(ah__json_add_string(tree, "description", description));
    for (int group = 0; group < AH_FIGURES_INTERCONNECT; group++)
        AH_TRY(add_group(tree, (enum ah_figure_group)group, figure, draft));
    return AH_OK;
}

int ah_profile_save_hardware(const struct ah_profile *profile, const struct ah_partition *partition,
                             const struct ah_hardware_facts *facts, const char *path)
{
    struct draft draft = {.profile = profile, .partition = partition, .facts = facts};
    if (profile->partition_signature != partition->signature)
        return ah__fail(AH_EINPUT, "profile: found one of another model or step, expected the one given");
    if (profile->world_size > 1)
        return ah__fail(AH_EINPUT, "profile: found one of %d ranks, expected 1", profile->world_size);
    if (partition->frozen)
        return ah__fail(AH_EINPUT, "profile: found one with frozen parameters, whose updates are too small to tell "
                                   "rates, expected one that trains all");
    AH_TRY(solve_rate(&draft));
    cJSON *tree = cJSON_CreateObject();
    int status = tree ? write_tree(tree, &draft) : ah__fail(AH_ENOMEM, "hardware: no memory for %s", path);
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}
