#include <stddef.h>
#include <string.h>

#include "base/json.h"
#include "plan/plan_internal.h"
#include "sched/sched.h"

enum { LAYERS_MOST = 1000000, RANKS_MOST = 4096, SLOTS_MOST = 2 * LAYERS_MOST + 16 };
static const int64_t COUNT_MOST = INT64_C(1) << 53; /* JSON numbers are doubles */

enum field_type { FIELD_INT, FIELD_INT64, FIELD_BOOL, FIELD_LANE, FIELD_POLICY, FIELD_HASH };

/* The members of a plan in its file. c, p and o stand there twice: by name, and as the paper and the command line call
 * them. */
static const struct field {
    const char *key;
    enum field_type type;
    size_t offset;
    int64_t min, max;
    bool again;    /* an earlier row gave this member a value: it must be the same */
    bool optional; /* 0 where it is left out */
} fields[] = {
    {"policy", FIELD_POLICY, offsetof(struct ah_plan, policy), 0, 0, false, false},
    {"layers", FIELD_INT, offsetof(struct ah_plan, switches.layers), 1, LAYERS_MOST, false, false},
    {"ranks", FIELD_INT, offsetof(struct ah_plan, switches.world_size), 1, RANKS_MOST, false, false},
    {"out_of_order", FIELD_INT, offsetof(struct ah_plan, switches.out_of_order), 0, SLOTS_MOST, false, false},
    {"chunks", FIELD_INT, offsetof(struct ah_plan, switches.chunks), 1, AH_SCHED_MOST_CHUNKS, false, false},
    {"checkpoint", FIELD_INT, offsetof(struct ah_plan, switches.checkpoint), 0, LAYERS_MOST, false, false},
    {"offload_params", FIELD_INT, offsetof(struct ah_plan, switches.offload_params), 0, LAYERS_MOST, false, false},
    {"offload_optimizer", FIELD_INT, offsetof(struct ah_plan, switches.offload_optimizer), 0, LAYERS_MOST, false,
     false},
    {"c", FIELD_INT, offsetof(struct ah_plan, switches.checkpoint), 0, LAYERS_MOST, true, false},
    {"p", FIELD_INT, offsetof(struct ah_plan, switches.offload_params), 0, LAYERS_MOST, true, false},
    {"o", FIELD_INT, offsetof(struct ah_plan, switches.offload_optimizer), 0, LAYERS_MOST, true, false},
    {"embedding_on_host", FIELD_BOOL, offsetof(struct ah_plan, switches.embedding_on_host), 0, 0, false, false},
    {"head_on_host", FIELD_BOOL, offsetof(struct ah_plan, switches.head_on_host), 0, 0, false, false},
    {"buffers", FIELD_INT, offsetof(struct ah_plan, switches.buffers), 1, INT32_MAX, false, false},
    {"shadows", FIELD_INT, offsetof(struct ah_plan, switches.shadows), 0, LAYERS_MOST, false, false},
    {"prefetch_distance", FIELD_INT, offsetof(struct ah_plan, switches.prefetch_distance), 1, INT32_MAX, false, false},
    {"device_peak_bytes", FIELD_INT64, offsetof(struct ah_plan, device_peak_bytes), 0, COUNT_MOST, false, false},
    {"host_peak_bytes", FIELD_INT64, offsetof(struct ah_plan, host_peak_bytes), 0, COUNT_MOST, false, false},
    {"workspace_bytes", FIELD_INT64, offsetof(struct ah_plan, workspace_bytes), 0, COUNT_MOST, false, false},
    {"step_ns", FIELD_INT64, offsetof(struct ah_plan, step_ns), 0, COUNT_MOST, false, false},
    {"bound_ns", FIELD_INT64, offsetof(struct ah_plan, bound_ns), 0, COUNT_MOST, false, false},
    {"bound_lane_ns", FIELD_INT64, offsetof(struct ah_plan, bound_lane_ns), 0, COUNT_MOST, false, false},
    {"bound_cycle_ns", FIELD_INT64, offsetof(struct ah_plan, bound_cycle_ns), 0, COUNT_MOST, false, false},
    {"bound_lane", FIELD_LANE, offsetof(struct ah_plan, bound_lane), 0, 0, false, false},
    {"bound_contention_ns", FIELD_INT64, offsetof(struct ah_plan, bound_contention_ns), 0, COUNT_MOST, false, true},
    {"finishing", FIELD_INT, offsetof(struct ah_plan, switches.finishing), 0, SLOTS_MOST, false, true},
    {"order", FIELD_INT, offsetof(struct ah_plan, switches.order), 0, AH_ORDER_MOST, false, true},
    {"selective", FIELD_INT, offsetof(struct ah_plan, switches.selective), 0, LAYERS_MOST, false, true},
    {"staged", FIELD_INT, offsetof(struct ah_plan, switches.staged), 0, LAYERS_MOST, false, true},
    {"offload_activations", FIELD_INT, offsetof(struct ah_plan, switches.offload_activations), 0, LAYERS_MOST, false,
     true},
    {"whole", FIELD_INT, offsetof(struct ah_plan, switches.unsharded), 0, LAYERS_MOST, false, true},
    {"share_embedding_head", FIELD_BOOL, offsetof(struct ah_plan, switches.share_embedding_head), 0, 0, false, true},
    {"resident_ns", FIELD_INT64, offsetof(struct ah_plan, resident_ns), 0, COUNT_MOST, false, true},
    {"signature", FIELD_HASH, offsetof(struct ah_plan, signature), 0, 0, false, false},
};

/* ---- consistency ------------------------------------------------------------------------------------------------- */

static int check_most(const char *name, int value, int most, const char *what)
{
    if (value < 0)
        return ah__fail(AH_EINPUT, "%s=%d: found %d, expected at least 0", name, value, value);
    if (value > most)
        return ah__fail(AH_EINPUT, "%s=%d: found %d, expected at most %s=%d", name, value, value, what, most);
    return AH_OK;
}

int ah__plan_switches(const struct ah_plan *plan)
{
    AH_TRY(check_most("c", plan->switches.checkpoint, plan->switches.layers, "layers"));
    AH_TRY(check_most("o", plan->switches.offload_optimizer, plan->switches.layers, "layers"));
    AH_TRY(check_most("shadows", plan->switches.shadows, plan->switches.offload_optimizer, "o"));
    AH_TRY(check_most("whole", plan->switches.unsharded, plan->switches.layers - plan->switches.offload_optimizer,
                      "layers-o"));
    AH_TRY(check_most("staged", plan->switches.staged, plan->switches.offload_optimizer, "o"));
    AH_TRY(check_most("selective", plan->switches.selective, plan->switches.layers - plan->switches.checkpoint,
                      "layers-c"));
    if (plan->switches.offload_activations > 0)
        AH_TRY(check_most("a", plan->switches.offload_activations, plan->switches.layers - AH_ACTIVATION_BUFFERS,
                          "layers-2"));
    AH_TRY(check_most("a", plan->switches.offload_activations, plan->switches.layers, "layers"));
    return check_most("p", plan->switches.offload_params, plan->switches.offload_optimizer, "o");
}

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

int ah__plan_check(const struct ah_plan *plan, const struct ah_partition *partition)
{
    if (plan->switches.layers != partition->layers)
        return ah__fail(AH_ESTALE, "layers: found %d, expected %d: the plan is for another model",
                        plan->switches.layers, partition->layers);
    if (plan->signature != partition->signature)
        return ah__fail(
            AH_ESTALE,
            "signature: found %016llx, expected %016llx: the plan is for another model, batch, micro-batch, sequence "
            "length, dtype, packing or clipping",
            (unsigned long long)plan->signature, (unsigned long long)partition->signature);
    AH_TRY(ah__plan_switches(plan));
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

int ah__plan_tree(cJSON **out, const struct ah_plan *plan)
{
    *out = cJSON_CreateObject();
    AH_TRY(ah__json_add_string(*out, "version", ah_version()));
    for (size_t i = 0; i < AH_LENGTH(fields); i++)
        AH_TRY(write_field(*out, &fields[i], plan));
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
    if (field->again && value != *to)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected %d as its long name says", json->path,
                        field->key, (long long)value, *to);
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

int ah__plan_from_tree(struct ah_plan *out, const struct ah_json *json)
{
    struct ah_plan read = {0}, *plan = &read;
    const char *keys[AH_LENGTH(fields) + 2] = {"version"}, *version;
    for (size_t i = 0; i < AH_LENGTH(fields); i++)
        keys[i + 1] = fields[i].key;
    AH_TRY(ah__json_string(&version, json, "version"));
    if (strcmp(version, ah_version()) != 0)
        return ah__fail(AH_ESTALE, "%s: key 'version': found '%.40s', expected '%s'", json->path, version,
                        ah_version());
    AH_TRY(ah__json_only(json, keys));
    for (size_t i = 0; i < AH_LENGTH(fields); i++)
        if (!fields[i].optional || ah__json_has(json, fields[i].key))
            AH_TRY(read_field(plan, json, &fields[i]));
    int status = ah__plan_switches(plan);
    if (status != AH_OK)
        return ah__fail_prefix(status, "%s", json->path);
    *out = read;
    return AH_OK;
}

int ah__plan_read(struct ah_plan *out, const char *path)
{
    struct ah_json json;
    AH_TRY(ah__json_load(&json, path));
    int status = ah__plan_from_tree(out, &json);
    ah__json_free(&json);
    return status;
}
