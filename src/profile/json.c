#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "profile/profile.h"

/* Profiles as JSON files, all times in nanoseconds; they may be written by hand for other machines. Keys:
 *   "format": "autohete profile 1"; "device": "cpu"; "ranks" (optional: 1); "workspace_bytes" (optional: 0); "threads";
 *   "host_threads"; "link_bytes_per_s"; "layers"
 *   "device_signature"; "partition_signature": 16 hex digits; optional
 *   "classes" (optional: 3): if there are more, times of programs have "block 2", "block 3", ... too
 *   "ns": {"forward": {"embedding", "block", "head"}, ...}, one per item kind; collectives are optional
 *   "recompute_ns": {per class}; "selective_ns": {per class; optional: the same}; "widen_ns" (optional: 0)
 *   "launch_ns": {per lane}; "notify_ns"; "queue_depth" (optional: 0); "slowdown": {lane: {lane: factor}, ...}
 *   "rates": {"h2d_bytes_per_s", ...}
 *   "work" (optional): {"params": {per class}, "trained": {per class; optional: the same}, "forward_flops",
 *   "backward_flops", "recompute_flops": {per class}} */
static const char format_name[] = "autohete profile 1";

static const double most_flops = 1e24;
static const double most_slowdown = 1e6;
static const int64_t most_depth = 8; /* as many as the simulated device's lanes can queue */
static const int64_t most_ns = (int64_t)1 << 53;

static const struct rate_row {
    const char *key;
    size_t offset;
} rate_table[] = {
    {"h2d_bytes_per_s", offsetof(struct ah_profile, h2d_bytes_per_s)},
    {"d2h_bytes_per_s", offsetof(struct ah_profile, d2h_bytes_per_s)},
    {"h2d_both_bytes_per_s", offsetof(struct ah_profile, h2d_both_bytes_per_s)},
    {"d2h_both_bytes_per_s", offsetof(struct ah_profile, d2h_both_bytes_per_s)},
};

static const struct rate_row drive_table[] = {
    {"read_bytes_per_s", offsetof(struct ah_profile, drive.read_bytes_per_s)},
    {"write_bytes_per_s", offsetof(struct ah_profile, drive.write_bytes_per_s)},
    {"latency_ns", offsetof(struct ah_profile, drive.latency_ns)},
    {"free_bytes", offsetof(struct ah_profile, drive.free_bytes)},
    {"endurance_bytes", offsetof(struct ah_profile, drive.endurance_bytes)},
};

static const struct flops_row {
    const char *key;
    size_t offset;
} flops_table[] = {
    {"forward_flops", offsetof(struct ah_profile, forward_flops)},
    {"backward_flops", offsetof(struct ah_profile, backward_flops)},
    {"recompute_flops", offsetof(struct ah_profile, recompute_flops)},
};

static int64_t *rate_of(struct ah_profile *profile, const struct rate_row *row)
{
    return (int64_t *)(void *)((char *)profile + row->offset);
}

static double *flops_of(struct ah_profile *profile, const struct flops_row *row)
{
    return (double *)(void *)((char *)profile + row->offset);
}

/* ---- saving */

static int add_object(cJSON **out, cJSON *parent, const char *key)
{
    *out = cJSON_AddObjectToObject(parent, key);
    return *out ? AH_OK : ah__fail(AH_ENOMEM, "profile: no memory for key '%s'", key);
}

static int add_ints(cJSON *parent, const char *key, const char *const *names, const int64_t *values, int count)
{
    cJSON *object;
    AH_TRY(add_object(&object, parent, key));
    for (int i = 0; i < count; i++)
        AH_TRY(ah__json_add_int(object, names[i], values[i]));
    return AH_OK;
}

static int add_doubles(cJSON *parent, const char *key, const char *const *names, const double *values, int count)
{
    cJSON *object;
    AH_TRY(add_object(&object, parent, key));
    for (int i = 0; i < count; i++)
        AH_TRY(ah__json_add_double(object, names[i], values[i]));
    return AH_OK;
}

static int add_head(cJSON *tree, const struct ah_profile *profile)
{
    AH_TRY(ah__json_add_string(tree, "format", format_name));
    AH_TRY(ah__json_add_string(tree, "device", profile->device));
    AH_TRY(ah__json_add_int(tree, "ranks", profile->world_size > 1 ? profile->world_size : 1));
    AH_TRY(ah__json_add_int(tree, "workspace_bytes", profile->workspace_bytes));
    AH_TRY(ah__json_add_int(tree, "threads", profile->threads));
    AH_TRY(ah__json_add_int(tree, "host_threads", profile->host_threads));
    AH_TRY(ah__json_add_int(tree, "link_bytes_per_s", profile->link_bytes_per_s));
    AH_TRY(ah__json_add_int(tree, "layers", profile->costs.layers));
    AH_TRY(ah__json_add_hash(tree, "device_signature", profile->device_signature));
    return ah__json_add_hash(tree, "partition_signature", profile->partition_signature);
}

/* Returns the number of classes in a row: all classes for times of programs, else the first three. */
static int classes_of(const struct ah_costs *costs, int item)
{
    bool programs = item == AH_ITEM_FORWARD || item == AH_ITEM_BACKWARD;
    return programs && costs->class_count > AH_CLASS_COUNT ? costs->class_count : AH_CLASS_COUNT;
}

static int add_costs(cJSON *tree, const struct ah_costs *costs)
{
    cJSON *object;
    int classes = classes_of(costs, AH_ITEM_FORWARD);
    if (classes > AH_CLASS_COUNT)
        AH_TRY(ah__json_add_int(tree, "classes", classes));
    AH_TRY(add_object(&object, tree, "ns"));
    for (int i = 0; i < AH_ITEM_COUNT; i++)
        if (ah__item_profiled[i] != AH_PROFILED_NEVER || costs->ns[i][AH_CLASS_BLOCK])
            AH_TRY(add_ints(object, ah__item_names[i], ah__class_names, costs->ns[i], classes_of(costs, i)));
    AH_TRY(add_ints(tree, "recompute_ns", ah__class_names, costs->recompute_ns, classes));
    AH_TRY(add_ints(tree, "selective_ns", ah__class_names, costs->selective_ns, classes));
    if (costs->widen_ns)
        AH_TRY(ah__json_add_int(tree, "widen_ns", costs->widen_ns));
    AH_TRY(add_ints(tree, "launch_ns", ah__lane_names, costs->lanes.launch_ns, AH_LANE_COUNT));
    AH_TRY(ah__json_add_int(tree, "notify_ns", costs->lanes.notify_ns));
    AH_TRY(ah__json_add_int(tree, "queue_depth", costs->lanes.queue_depth));
    AH_TRY(add_object(&object, tree, "slowdown"));
    for (int i = 0; i < AH_LANE_COUNT; i++)
        AH_TRY(add_doubles(object, ah_lane_name((enum ah_lane)i), ah__lane_names, costs->lanes.slowdown[i],
                           AH_LANE_COUNT));
    return AH_OK;
}

static int add_work(cJSON *tree, struct ah_profile *profile)
{
    cJSON *object;
    AH_TRY(add_object(&object, tree, "rates"));
    for (size_t i = 0; i < AH_LENGTH(rate_table); i++)
        AH_TRY(ah__json_add_int(object, rate_table[i].key, *rate_of(profile, &rate_table[i])));
    if (profile->drive.read_bytes_per_s) {
        AH_TRY(add_object(&object, tree, "drive"));
        for (size_t i = 0; i < AH_LENGTH(drive_table); i++)
            AH_TRY(ah__json_add_int(object, drive_table[i].key, *rate_of(profile, &drive_table[i])));
    }
    AH_TRY(add_object(&object, tree, "work"));
    AH_TRY(add_ints(object, "params", ah__class_names, profile->params, AH_CLASS_COUNT));
    AH_TRY(add_ints(object, "trained", ah__class_names, profile->trained, AH_CLASS_COUNT));
    for (size_t i = 0; i < AH_LENGTH(flops_table); i++)
        AH_TRY(add_doubles(object, flops_table[i].key, ah__class_names, flops_of(profile, &flops_table[i]),
                           AH_CLASS_COUNT));
    return AH_OK;
}

static int tree_fill(cJSON *tree, const struct ah_profile *profile)
{
    struct ah_profile copy = *profile;
    AH_TRY(add_head(tree, &copy));
    AH_TRY(add_costs(tree, &copy.costs));
    return add_work(tree, &copy);
}

static int tree_make(cJSON **out, const struct ah_profile *profile)
{
    *out = cJSON_CreateObject();
    return *out ? tree_fill(*out, profile) : ah__fail(AH_ENOMEM, "no memory to write a profile");
}

int ah_profile_save(const struct ah_profile *profile, const char *path)
{
    cJSON *tree;
    int status = tree_make(&tree, profile);
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

int ah__profile_text(char **out, const struct ah_profile *profile)
{
    cJSON *tree;
    int status = tree_make(&tree, profile);
    if (status == AH_OK)
        status = ah__json_text(out, tree, false);
    cJSON_Delete(tree);
    return status;
}

/* ---- loading */

/* Refuses an object with keys that are not among `names`. */
static int only(const struct ah_json *json, const char *const *names, int count)
{
    const char *keys[AH_ITEM_COUNT + AH_LANE_COUNT + 1] = {0};
    for (int i = 0; i < count; i++)
        keys[i] = names[i];
    return ah__json_only(json, keys);
}

static int get_ints(int64_t *values, const struct ah_json *json, const char *key, const char *const *names, int count)
{
    struct ah_json object;
    AH_TRY(ah__json_object(&object, json, key));
    AH_TRY(only(&object, names, count));
    for (int i = 0; i < count; i++)
        AH_TRY(ah__json_int(&values[i], &object, names[i], 0, most_ns));
    return AH_OK;
}

static int get_flops(double *values, const struct ah_json *json, const char *key)
{
    struct ah_json object;
    AH_TRY(ah__json_object(&object, json, key));
    AH_TRY(only(&object, ah__class_names, AH_CLASS_COUNT));
    for (int i = 0; i < AH_CLASS_COUNT; i++)
        AH_TRY(ah__json_double(&values[i], &object, ah__class_names[i], 0, most_flops));
    return AH_OK;
}

/* Reads slowdowns. Lanes of a pair that is not in the file do not slow each other. */
static int get_slowdown(struct ah_costs *costs, const struct ah_json *json)
{
    struct ah_json object, row;
    AH_TRY(ah__json_object(&object, json, "slowdown"));
    AH_TRY(only(&object, ah__lane_names, AH_LANE_COUNT));
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        for (int j = 0; j < AH_LANE_COUNT; j++)
            costs->lanes.slowdown[i][j] = 1;
        if (!ah__json_has(&object, ah_lane_name((enum ah_lane)i)))
            continue;
        AH_TRY(ah__json_object(&row, &object, ah_lane_name((enum ah_lane)i)));
        AH_TRY(only(&row, ah__lane_names, AH_LANE_COUNT));
        for (int j = 0; j < AH_LANE_COUNT; j++)
            if (ah__json_has(&row, ah_lane_name((enum ah_lane)j)))
                AH_TRY(ah__json_double(&costs->lanes.slowdown[i][j], &row, ah_lane_name((enum ah_lane)j), 1,
                                       most_slowdown));
    }
    return AH_OK;
}

/* Reads times between items. Profiles of older versions have none of the disk's lane. */
static int get_launches(struct ah_costs *costs, const struct ah_json *json)
{
    struct ah_json object;
    AH_TRY(ah__json_object(&object, json, "launch_ns"));
    AH_TRY(only(&object, ah__lane_names, AH_LANE_COUNT));
    for (int i = 0; i < AH_LANE_COUNT; i++)
        if (i != AH_LANE_DISK || ah__json_has(&object, ah__lane_names[i]))
            AH_TRY(ah__json_int(&costs->lanes.launch_ns[i], &object, ah__lane_names[i], 0, most_ns));
    return AH_OK;
}

static int get_classes(struct ah_costs *costs, const struct ah_json *json)
{
    int64_t classes = AH_CLASS_COUNT;
    if (ah__json_has(json, "classes"))
        AH_TRY(ah__json_int(&classes, json, "classes", AH_CLASS_COUNT, AH_CLASSES_MOST));
    costs->class_count = (int)classes;
    return AH_OK;
}

static int get_costs(struct ah_costs *costs, const struct ah_json *json)
{
    struct ah_json object;
    AH_TRY(get_classes(costs, json));
    int classes = costs->class_count;
    AH_TRY(ah__json_object(&object, json, "ns"));
    AH_TRY(only(&object, ah__item_names, AH_ITEM_COUNT));
    for (int i = 0; i < AH_ITEM_COUNT; i++)
        if (ah__item_profiled[i] == AH_PROFILED_ALWAYS || ah__json_has(&object, ah__item_names[i]))
            AH_TRY(get_ints(costs->ns[i], &object, ah__item_names[i], ah__class_names, classes_of(costs, i)));
    if (!ah__json_has(&object, ah__item_names[AH_ITEM_UPDATE_SPECULATIVE]))
        memcpy(costs->ns[AH_ITEM_UPDATE_SPECULATIVE], costs->ns[AH_ITEM_UPDATE_HOST], sizeof costs->ns[0]);
    AH_TRY(get_ints(costs->recompute_ns, json, "recompute_ns", ah__class_names, classes));
    if (ah__json_has(json, "selective_ns"))
        AH_TRY(get_ints(costs->selective_ns, json, "selective_ns", ah__class_names, classes));
    else /* no part of recomputation takes longer than all of it */
        memcpy(costs->selective_ns, costs->recompute_ns, sizeof costs->selective_ns);
    if (ah__json_has(json, "widen_ns"))
        AH_TRY(ah__json_int(&costs->widen_ns, json, "widen_ns", 0, most_ns));
    AH_TRY(get_launches(costs, json));
    AH_TRY(ah__json_int(&costs->lanes.notify_ns, json, "notify_ns", 0, most_ns));
    if (ah__json_has(json, "queue_depth")) {
        int64_t depth;
        AH_TRY(ah__json_int(&depth, json, "queue_depth", 0, most_depth));
        costs->lanes.queue_depth = (int)depth;
    }
    return get_slowdown(costs, json);
}

static int get_name(struct ah_profile *profile, const struct ah_json *json)
{
    const char *text;
    AH_TRY(ah__json_string(&text, json, "device"));
    if (strlen(text) >= sizeof profile->device)
        return ah__fail(AH_EINPUT, "%s: key 'device': found %zu bytes, expected at most %zu", json->path, strlen(text),
                        sizeof profile->device - 1);
    snprintf(profile->device, sizeof profile->device, "%s", text);
    return AH_OK;
}

static int get_head(struct ah_profile *profile, const struct ah_json *json)
{
    enum { MOST_THREADS = 1 << 20, MOST_LAYERS = 1 << 20, MOST_RANKS = 1 << 16 };
    int64_t ranks = 1, threads, host_threads, layers;
    AH_TRY(get_name(profile, json));
    if (ah__json_has(json, "ranks"))
        AH_TRY(ah__json_int(&ranks, json, "ranks", 1, MOST_RANKS));
    if (ah__json_has(json, "workspace_bytes"))
        AH_TRY(ah__json_int(&profile->workspace_bytes, json, "workspace_bytes", 0, most_ns));
    AH_TRY(ah__json_int(&threads, json, "threads", 1, MOST_THREADS));
    AH_TRY(ah__json_int(&host_threads, json, "host_threads", 1, MOST_THREADS));
    AH_TRY(ah__json_int(&profile->link_bytes_per_s, json, "link_bytes_per_s", 0, most_ns));
    AH_TRY(ah__json_int(&layers, json, "layers", 1, MOST_LAYERS));
    if (ah__json_has(json, "device_signature"))
        AH_TRY(ah__json_hash(&profile->device_signature, json, "device_signature"));
    if (ah__json_has(json, "partition_signature"))
        AH_TRY(ah__json_hash(&profile->partition_signature, json, "partition_signature"));
    profile->world_size = (int)ranks;
    profile->threads = (int)threads;
    profile->host_threads = (int)host_threads;
    profile->costs.layers = (int)layers;
    return AH_OK;
}

static int get_work(struct ah_profile *profile, const struct ah_json *json)
{
    static const char *const work_keys[] = {"params",         "trained",         "forward_flops",
                                            "backward_flops", "recompute_flops", NULL};
    const char *rate_keys[AH_LENGTH(rate_table) + 1] = {0};
    struct ah_json object;
    AH_TRY(ah__json_object(&object, json, "rates"));
    for (size_t i = 0; i < AH_LENGTH(rate_table); i++)
        rate_keys[i] = rate_table[i].key;
    AH_TRY(ah__json_only(&object, rate_keys));
    for (size_t i = 0; i < AH_LENGTH(rate_table); i++)
        AH_TRY(ah__json_int(rate_of(profile, &rate_table[i]), &object, rate_table[i].key, 1, most_ns));
    if (!ah__json_has(json, "work"))
        return AH_OK;
    AH_TRY(ah__json_object(&object, json, "work"));
    AH_TRY(ah__json_only(&object, work_keys));
    AH_TRY(get_ints(profile->params, &object, "params", ah__class_names, AH_CLASS_COUNT));
    memcpy(profile->trained, profile->params, sizeof profile->trained);
    if (ah__json_has(&object, "trained")) /* optional */
        AH_TRY(get_ints(profile->trained, &object, "trained", ah__class_names, AH_CLASS_COUNT));
    for (size_t i = 0; i < AH_LENGTH(flops_table); i++)
        AH_TRY(get_flops(flops_of(profile, &flops_table[i]), &object, flops_table[i].key));
    return AH_OK;
}

static int get_drive(struct ah_profile *profile, const struct ah_json *json)
{
    const char *keys[AH_LENGTH(drive_table) + 1] = {0};
    struct ah_json object;
    if (!ah__json_has(json, "drive"))
        return AH_OK;
    AH_TRY(ah__json_object(&object, json, "drive"));
    for (size_t i = 0; i < AH_LENGTH(drive_table); i++)
        keys[i] = drive_table[i].key;
    AH_TRY(ah__json_only(&object, keys));
    for (size_t i = 0; i < AH_LENGTH(drive_table); i++) {
        bool rate = i < 2; /* which may not be 0 */
        AH_TRY(ah__json_int(rate_of(profile, &drive_table[i]), &object, drive_table[i].key, rate ? 1 : 0, INT64_MAX));
    }
    return AH_OK;
}

static int time_check(const struct ah_json *json, const char *item, int class, int64_t ns, int64_t most)
{
    if (ns <= most)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: %s of %s: found %lld ns, expected at most %lld: virtual time would overflow",
                    json->path, item, ah__class_names[class], (long long)ns, (long long)most);
}

/* Refuses times with which virtual time could overflow: it counts nanoseconds in 63 bits, and a simulation adds up
 * every item of many iterations. */
static int times_check(const struct ah_costs *costs, const struct ah_json *json)
{
    enum { ITERATIONS_MOST = 64 };
    double stretch = 1;
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        double together = 1;
        for (int j = 0; j < AH_LANE_COUNT; j++)
            together += j == i ? 0 : costs->lanes.slowdown[i][j] - 1;
        stretch = together > stretch ? together : stretch;
    }
    double items = (double)ITERATIONS_MOST * AH_ITEM_COUNT * ((double)costs->layers + 2);
    int64_t most = (int64_t)((double)INT64_MAX / 4 / items / stretch);
    for (int class = 0; class < classes_of(costs, AH_ITEM_FORWARD); class ++) {
        for (int i = 0; i < AH_ITEM_COUNT; i++)
            AH_TRY(time_check(json, ah__item_names[i], class, costs->ns[i][class], most));
        AH_TRY(time_check(json, "recompute", class, costs->recompute_ns[class], most));
        AH_TRY(time_check(json, "selective recompute", class, costs->selective_ns[class], most));
    }
    AH_TRY(time_check(json, "widening", AH_CLASS_BLOCK, costs->widen_ns, most));
    return AH_OK;
}

static int profile_parse(struct ah_profile *profile, const struct ah_json *json)
{
    static const char *const keys[] = {"format",
                                       "device",
                                       "ranks",
                                       "workspace_bytes",
                                       "threads",
                                       "host_threads",
                                       "link_bytes_per_s",
                                       "layers",
                                       "device_signature",
                                       "partition_signature",
                                       "ns",
                                       "classes",
                                       "recompute_ns",
                                       "selective_ns",
                                       "widen_ns",
                                       "launch_ns",
                                       "notify_ns",
                                       "queue_depth",
                                       "slowdown",
                                       "rates",
                                       "drive",
                                       "work",
                                       NULL};
    const char *format;
    AH_TRY(ah__json_string(&format, json, "format"));
    if (strcmp(format, format_name) != 0)
        return ah__fail(AH_EINPUT, "%s: key 'format': found \"%.40s\", expected \"%s\"", json->path, format,
                        format_name);
    AH_TRY(ah__json_only(json, keys));
    AH_TRY(get_head(profile, json));
    AH_TRY(get_costs(&profile->costs, json));
    AH_TRY(times_check(&profile->costs, json));
    AH_TRY(get_drive(profile, json));
    return get_work(profile, json);
}

static int from_json(struct ah_profile **out, const struct ah_json *json)
{
    struct ah_profile *profile;
    AH_TRY(ah__new(&profile, 1, sizeof *profile));
    int status = profile_parse(profile, json);
    if (status == AH_OK)
        *out = profile;
    else
        ah__free(profile);
    return status;
}

int ah__profile_parse(struct ah_profile **out, const char *text, size_t length, const char *path)
{
    struct ah_json json;
    AH_TRY(ah__json_parse(&json, text, length, path));
    int status = from_json(out, &json);
    ah__json_free(&json);
    return status;
}

int ah_profile_load(struct ah_profile **out, const char *path)
{
    struct ah_json json;
    AH_TRY(ah__json_load(&json, path));
    int status = from_json(out, &json);
    ah__json_free(&json);
    return status;
}
