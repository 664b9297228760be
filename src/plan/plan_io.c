#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "plan/plan_internal.h"
#include "sched/sched.h"

enum { LAYERS_MOST = 1000000, RANKS_MOST = 4096 };
static const int64_t COUNT_MOST = INT64_C(1) << 53; /* JSON numbers are doubles */

enum field_type { FIELD_INT, FIELD_INT64, FIELD_BOOL, FIELD_LANE, FIELD_POLICY, FIELD_HASH };

/* The members of a plan's file that are not switches. */
static const struct field {
    const char *key;
    enum field_type type;
    size_t offset;
    int64_t min, max;
    bool optional; /* 0 if it is left out */
} fields[] = {
    {"policy", FIELD_POLICY, offsetof(struct ah_plan, policy), 0, 0, false},
    {"layers", FIELD_INT, offsetof(struct ah_plan, switches.layers), 1, LAYERS_MOST, false},
    {"ranks", FIELD_INT, offsetof(struct ah_plan, switches.world_size), 1, RANKS_MOST, false},
    {"device_peak_bytes", FIELD_INT64, offsetof(struct ah_plan, device_peak_bytes), 0, COUNT_MOST, false},
    {"host_peak_bytes", FIELD_INT64, offsetof(struct ah_plan, host_peak_bytes), 0, COUNT_MOST, false},
    {"disk_peak_bytes", FIELD_INT64, offsetof(struct ah_plan, disk_peak_bytes), 0, COUNT_MOST, true},
    {"disk_read_bytes", FIELD_INT64, offsetof(struct ah_plan, disk_read_bytes), 0, COUNT_MOST, true},
    {"disk_written_bytes", FIELD_INT64, offsetof(struct ah_plan, disk_written_bytes), 0, COUNT_MOST, true},
    {"disk_endurance_bytes", FIELD_INT64, offsetof(struct ah_plan, disk_endurance_bytes), 0, COUNT_MOST, true},
    {"workspace_bytes", FIELD_INT64, offsetof(struct ah_plan, workspace_bytes), 0, COUNT_MOST, false},
    {"step_ns", FIELD_INT64, offsetof(struct ah_plan, step_ns), 0, COUNT_MOST, false},
    {"bound_ns", FIELD_INT64, offsetof(struct ah_plan, bound_ns), 0, COUNT_MOST, false},
    {"bound_lane_ns", FIELD_INT64, offsetof(struct ah_plan, bound_lane_ns), 0, COUNT_MOST, false},
    {"bound_cycle_ns", FIELD_INT64, offsetof(struct ah_plan, bound_cycle_ns), 0, COUNT_MOST, false},
    {"bound_lane", FIELD_LANE, offsetof(struct ah_plan, bound_lane), 0, 0, false},
    {"resident_ns", FIELD_INT64, offsetof(struct ah_plan, resident_ns), 0, COUNT_MOST, true},
    {"signature", FIELD_HASH, offsetof(struct ah_plan, signature), 0, 0, false},
    {"frozen_below", FIELD_INT, offsetof(struct ah_plan, switches.frozen_blocks), 0, LAYERS_MOST, true},
    {"embedding_frozen", FIELD_BOOL, offsetof(struct ah_plan, embedding_frozen), 0, 0, true},
    {"blocks_frozen", FIELD_BOOL, offsetof(struct ah_plan, blocks_frozen), 0, 0, true},
    {"head_frozen", FIELD_BOOL, offsetof(struct ah_plan, head_frozen), 0, 0, true},
    {"blocks_adapted", FIELD_BOOL, offsetof(struct ah_plan, blocks_adapted), 0, 0, true},
};

/* ---- consistency ------------------------------------------------------------------------------------------------- */

int ah__plan_check_ends(const struct ah_switches *switches, const struct ah_partition *partition)
{
    if (!switches->share_embedding_head)
        return AH_OK;
    if (!ah__plan_has_ends(partition))
        return ah__fail(AH_EINPUT,
                        "embedding_head=shared: found an embedding that the head, or its own backward, reads too, "
                        "expected embedding_head=separate for this model");
    if (!ah__may_share_ends(switches))
        return ah__fail(AH_EINPUT,
                        "embedding_head=shared: found embedding=%s and head=%s, expected both on the host, or several "
                        "ranks",
                        switches->embedding_on_host ? "host" : "device", switches->head_on_host ? "host" : "device");
    return AH_OK;
}

int ah__plan_check_passes(const struct ah_switches *switches, const struct ah_partition *partition)
{
    int most = ah__micro_batches(partition);
    if (switches->passes > most)
        return ah__fail(AH_EINPUT, "passes=%d: found %d, expected at most %d, the micro-batches of a step",
                        switches->passes, switches->passes, most);
    return AH_OK;
}

int ah__plan_check(const struct ah_plan *plan, const struct ah_partition *partition)
{
    if (plan->switches.layers != partition->layers)
        return ah__fail(AH_ESTALE, "layers: found %d, expected %d: the plan is for another model",
                        plan->switches.layers, partition->layers);
    if (plan->switches.frozen_blocks != partition->frozen_blocks)
        return ah__fail(AH_ESTALE, "frozen_below: found %d, expected %d: the plan is for another training",
                        plan->switches.frozen_blocks, partition->frozen_blocks);
    if (plan->signature != partition->signature)
        return ah__fail(
            AH_ESTALE,
            "signature: found %016llx, expected %016llx: the plan is for another model, batch, micro-batch, sequence "
            "length, dtype, packing or clipping",
            (unsigned long long)plan->signature, (unsigned long long)partition->signature);
    AH_TRY(ah__switches_check(&plan->switches));
    AH_TRY(ah__plan_check_passes(&plan->switches, partition));
    return ah__plan_check_ends(&plan->switches, partition);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static int write_field(cJSON *tree, const struct field *field, const struct ah_plan *plan)
{
    const void *from = (const char *)plan + field->offset;
    switch (field->type) {
    case FIELD_INT:
        return ah__json_add_int(tree, field->key, *(const int *)from);
    case FIELD_INT64:
        return ah__json_add_int(tree, field->key, *(const int64_t *)from);
    case FIELD_BOOL:
        return ah__json_add_bool(tree, field->key, *(const bool *)from);
    case FIELD_LANE:
        return ah__json_add_string(tree, field->key, ah_lane_name((enum ah_lane) * (const int *)from));
    case FIELD_POLICY:
        return ah__json_add_string(tree, field->key, from);
    case FIELD_HASH:
        break;
    }
    return ah__json_add_hash(tree, field->key, *(const uint64_t *)from);
}

/* Writes a switch under its field's name, and a number also under its key on the command line if that differs. */
static int write_switch(cJSON *tree, const struct ah_switches *switches, int index)
{
    const struct ah_switch_row *row = &ah__switch_table[index];
    int value = ah__switch_meant(switches, index);
    if (ah__switch_words[row->kind][0])
        return ah__json_add_bool(tree, row->field, value);
    AH_TRY(ah__json_add_int(tree, row->field, value));
    return strcmp(row->key, row->field) == 0 ? AH_OK : ah__json_add_int(tree, row->key, value);
}

int ah__plan_tree(cJSON **out, const struct ah_plan *plan)
{
    *out = cJSON_CreateObject();
    AH_TRY(ah__json_add_string(*out, "version", ah_version()));
    for (size_t i = 0; i < AH_LENGTH(fields); i++)
        AH_TRY(write_field(*out, &fields[i], plan));
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        AH_TRY(write_switch(*out, &plan->switches, i));
    return AH_OK;
}

int ah_plan_save(const struct ah_plan *plan, const char *path)
{
    cJSON *tree;
    int status = ah__plan_tree(&tree, plan);
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}

int ah_plan_json(char **out, const struct ah_plan *plan)
{
    cJSON *tree;
    int status = ah__plan_tree(&tree, plan);
    if (status == AH_OK)
        status = ah__json_text(out, tree, true);
    cJSON_Delete(tree);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int read_int(int *to, const struct ah_json *json, const struct field *field)
{
    int64_t value;
    AH_TRY(ah__json_int(&value, json, field->key, field->min, field->max));
    *to = (int)value;
    return AH_OK;
}

static int read_lane(int *to, const struct ah_json *json, const char *key)
{
    const char *name;
    AH_TRY(ah__json_string(&name, json, key));
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        if (strcmp(name, ah_lane_name((enum ah_lane)lane)) == 0) {
            *to = lane;
            return AH_OK;
        }
    return ah__fail(AH_EINPUT, "%s: key '%s': found '%.40s', expected a lane", json->path, key, name);
}

static int read_policy(char *to, size_t size, const struct ah_json *json, const char *key)
{
    const char *name;
    AH_TRY(ah__json_string(&name, json, key));
    if (strlen(name) >= size || !ah__policy_find(name))
        return ah__fail(AH_EINPUT, "%s: key '%s': found '%.40s', expected a policy", json->path, key, name);
    memcpy(to, name, strlen(name) + 1);
    return AH_OK;
}

static int read_field(struct ah_plan *plan, const struct ah_json *json, const struct field *field)
{
    void *to = (char *)plan + field->offset;
    switch (field->type) {
    case FIELD_INT:
        return read_int(to, json, field);
    case FIELD_INT64:
        return ah__json_int(to, json, field->key, field->min, field->max);
    case FIELD_BOOL:
        return ah__json_bool(to, json, field->key);
    case FIELD_LANE:
        return read_lane(to, json, field->key);
    case FIELD_POLICY:
        return read_policy(to, sizeof plan->policy, json, field->key);
    case FIELD_HASH:
        break;
    }
    return ah__json_hash(to, json, field->key);
}

static int read_switch(struct ah_switches *switches, const struct ah_json *json, int index)
{
    const struct ah_switch_row *row = &ah__switch_table[index];
    bool word = false;
    int64_t value = row->low, again;
    const char *key = row->must != AH_MUST_NONE || ah__json_has(json, row->field) ? row->field
                      : ah__json_has(json, row->key)                              ? row->key
                                                                                  : NULL;
    if (key && ah__switch_words[row->kind][0]) {
        AH_TRY(ah__json_bool(&word, json, key));
        value = word;
    } else if (key) {
        AH_TRY(ah__json_int(&value, json, key, row->low, INT32_MAX));
    }
    if (!ah__switch_words[row->kind][0] && ah__json_has(json, row->key)) {
        AH_TRY(ah__json_int(&again, json, row->key, row->low, INT32_MAX));
        if (again != value)
            return ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected %lld as '%s' says", json->path, row->key,
                            (long long)again, (long long)value, row->field);
    }
    ah__switch_set(switches, index, (int)value);
    return AH_OK;
}

static int check_keys(const struct ah_json *json)
{
    const char *keys[AH_LENGTH(fields) + 2 * AH_SWITCH_COUNT + 3] = {"version", "tokens_per_s"}; /* written by plan
                                                                                                  * --json */
    size_t count = 2;
    for (size_t i = 0; i < AH_LENGTH(fields); i++)
        keys[count++] = fields[i].key;
    for (int i = 0; i < AH_SWITCH_COUNT; i++) {
        const struct ah_switch_row *row = &ah__switch_table[i];
        keys[count++] = row->field;
        if (!ah__switch_words[row->kind][0])
            keys[count++] = row->key;
    }
    return ah__json_only(json, keys);
}

int ah__plan_from_tree(struct ah_plan *out, const struct ah_json *json)
{
    struct ah_plan read = {0}, *plan = &read;
    AH_TRY(check_keys(json));
    for (size_t i = 0; i < AH_LENGTH(fields); i++)
        if (!fields[i].optional || ah__json_has(json, fields[i].key))
            AH_TRY(read_field(plan, json, &fields[i]));
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        AH_TRY(read_switch(&plan->switches, json, i));
    int status = ah__switches_check(&plan->switches);
    if (status != AH_OK)
        return ah__fail_prefix(status, "%s", json->path);
    *out = read;
    return AH_OK;
}

static int check_version(const struct ah_json *json)
{
    const char *version;
    AH_TRY(ah__json_string(&version, json, "version"));
    return strcmp(version, ah_version()) == 0 ? AH_OK
                                              : ah__fail(AH_ESTALE, "%s: key 'version': found '%.40s', expected '%s'",
                                                         json->path, version, ah_version());
}

int ah__plan_read(struct ah_plan *out, const char *path)
{
    struct ah_json json;
    AH_TRY(ah__json_load(&json, path));
    int status = check_version(&json);
    if (status == AH_OK)
        status = ah__plan_from_tree(out, &json);
    ah__json_free(&json);
    return status;
}
