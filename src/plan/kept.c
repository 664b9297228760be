#include "plan/kept.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/loaded.h"

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static uint64_t hash_costs(const struct ah_costs *costs, uint64_t seed)
{
    const struct {
        const void *at;
        size_t size;
    } parts[] = {
        {costs->ns, sizeof costs->ns},
        {costs->recompute_ns, sizeof costs->recompute_ns},
        {costs->selective_ns, sizeof costs->selective_ns},
        {costs->out_ns, sizeof costs->out_ns},
        {costs->in_ns, sizeof costs->in_ns},
        {costs->lanes.launch_ns, sizeof costs->lanes.launch_ns},
        {costs->lanes.slowdown, sizeof costs->lanes.slowdown},
    };
    for (size_t i = 0; i < AH_LENGTH(parts); i++)
        seed = ah__hash(parts[i].at, parts[i].size, seed);
    return ah__hash_int((uint64_t)costs->lanes.notify_ns, seed);
}

static uint64_t question_of(const struct ah_predictor *predictor, const struct ah_budget *budget)
{
    uint64_t hash = hash_costs(&predictor->costs, ah__loaded_hash());
    hash = ah__hash_int((uint64_t)predictor->profile->workspace_bytes, hash);
    hash = ah__hash_int((uint64_t)budget->device_bytes, hash);
    return ah__hash_int((uint64_t)budget->host_bytes, hash);
}

/* Plans of one file can be candidates for each other. */
static uint64_t file_of(const struct ah_predictor *predictor)
{
    uint64_t hash = ah__hash_text(predictor->policy->name, predictor->partition->signature);
    hash = ah__hash_int((uint64_t)ah__predictor_world_size(predictor), hash);
    return ah__hash_int(predictor->rule, hash);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool read_one(struct ah_kept *kept, const struct ah_json *json, const struct ah_partition *partition)
{
    struct ah_json of_plan;
    uint64_t question;
    struct ah_plan plan;
    if (kept->count == AH_KEPT_MOST || ah__json_hash(&question, json, "question") != AH_OK ||
        ah__json_object(&of_plan, json, "plan") != AH_OK || ah__plan_from_tree(&plan, &of_plan) != AH_OK ||
        ah__plan_check(&plan, partition) != AH_OK)
        return false;
    int at = kept->count++;
    if (question == kept->question) {
        memmove(&kept->plans[1], &kept->plans[0], (size_t)at * sizeof kept->plans[0]);
        at = 0;
    }
    kept->plans[at].question = question;
    kept->plans[at].plan = plan;
    return true;
}

static int read_all(struct ah_kept *kept, const struct ah_partition *partition)
{
    struct ah_json json;
    const cJSON *each;
    int status = ah__json_load(&json, kept->path);
    if (status != AH_OK)
        return status == AH_ENOMEM ? status : AH_OK;
    cJSON_ArrayForEach(each, cJSON_GetObjectItemCaseSensitive(json.node, "plans"))
    {
        const struct ah_json one = {.node = (cJSON *)(uintptr_t)each, .path = kept->path, .where = "plans"};
        if (!cJSON_IsObject(each) || !read_one(kept, &one, partition))
            break;
    }
    ah__json_free(&json);
    return AH_OK;
}

int ah__kept_load(struct ah_kept *out, const struct ah_predictor *predictor, const struct ah_budget *budget,
                  const struct ah_search_options *options)
{
    out->path = NULL;
    out->count = 0;
    if (!options || !options->cache || ah__policy_is_placed(predictor->policy)) /* which is never told anything */
        return AH_OK;
    out->question = question_of(predictor, budget);
    AH_TRY(ah__sprintf(&out->path, "%s/plans-%016" PRIx64 ".json", options->cache, file_of(predictor)));
    return ah__path_exists(out->path) ? read_all(out, predictor->partition) : AH_OK;
}

bool ah__kept_answers(const struct ah_kept *kept)
{
    return kept->count > 0 && kept->plans[0].question == kept->question;
}

static int add_one(cJSON *array, uint64_t question, const struct ah_plan *plan)
{
    cJSON *object = cJSON_CreateObject(), *tree;
    if (!object || !cJSON_AddItemToArray(array, object)) {
        cJSON_Delete(object);
        return AH_ENOMEM;
    }
    AH_TRY(ah__json_add_hash(object, "question", question));
    int status = ah__plan_tree(&tree, plan);
    if (status == AH_OK && !cJSON_AddItemToObject(object, "plan", tree))
        status = AH_ENOMEM;
    if (status != AH_OK)
        cJSON_Delete(tree);
    return status;
}

static int add_all(cJSON *tree, const struct ah_kept *kept, const struct ah_plan *answer)
{
    cJSON *array = cJSON_AddArrayToObject(tree, "plans");
    if (!array)
        return AH_ENOMEM;
    AH_TRY(add_one(array, kept->question, answer));
    int first = ah__kept_answers(kept), most = AH_KEPT_MOST - 1 + first;
    for (int i = first; i < kept->count && i < most; i++)
        AH_TRY(add_one(array, kept->plans[i].question, &kept->plans[i].plan));
    return AH_OK;
}

static int folder_of(const char *path)
{
    char *folder;
    AH_TRY(ah__strdup(&folder, path));
    *strrchr(folder, '/') = 0;
    int status = ah__folder_make(folder);
    ah__free(folder);
    return status;
}

void ah__kept_add(const struct ah_kept *kept, const struct ah_plan *answer)
{
    if (!kept->path)
        return;
    cJSON *tree = cJSON_CreateObject();
    if (tree && add_all(tree, kept, answer) == AH_OK && folder_of(kept->path) == AH_OK)
        ah__json_save(tree, kept->path);
    cJSON_Delete(tree);
}

void ah__kept_fini(struct ah_kept *kept)
{
    ah__free(kept->path);
    kept->path = NULL;
}
