/* The data sources in a checkpoint: saving them, and checking that a resumed training has the same. */
#include <inttypes.h>

#include "base/alloc.h"
#include "train/checkpoint_internal.h"

static const char key[] = "data_sources";
static const int64_t most = (int64_t)1 << 52;

/* ---- state.json -------------------------------------------------------------------------------------------------- */

static int source_save(cJSON *list, const struct ah_mixture_mark *mark)
{
    cJSON *object = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(list, object)) {
        cJSON_Delete(object);
        return ah__fail(AH_ENOMEM, "out of host memory: %s", key);
    }
    AH_TRY(ah__json_add_string(object, "path", mark->path));
    AH_TRY(ah__json_add_int(object, "slots", mark->slots));
    AH_TRY(ah__json_add_int(object, "tokens", mark->tokens));
    return ah__json_add_hash(object, "signature", mark->signature);
}

int ah__checkpoint_sources_save(cJSON *tree, const struct ah_checkpoint *state)
{
    if (state->source_count < 2)
        return AH_OK;
    cJSON *list = cJSON_AddArrayToObject(tree, key);
    int status = list ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: %s", key);
    for (size_t i = 0; status == AH_OK && i < state->source_count; i++)
        status = source_save(list, &state->sources[i]);
    return status;
}

static int source_read(struct ah_mixture_mark *mark, const struct ah_json *json)
{
    const char *path;
    AH_TRY(ah__json_string(&path, json, "path"));
    AH_TRY(ah__json_int(&mark->slots, json, "slots", 1, most));
    AH_TRY(ah__json_int(&mark->tokens, json, "tokens", 0, most));
    AH_TRY(ah__json_hash(&mark->signature, json, "signature"));
    return ah__strdup(&mark->path, path);
}

int ah__checkpoint_sources_read(struct ah_checkpoint *out, const struct ah_json *json)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(json->node, key), *item;
    ah__mixture_marks_free(out->sources, out->source_count); /* from an earlier attempt */
    out->sources = NULL;
    out->source_count = 0;
    if (!list)
        return AH_OK;
    if (!cJSON_IsArray(list))
        return ah__fail(AH_EINPUT, "%s: key '%s': expected a list of data sources", json->path, key);
    out->source_count = (size_t)cJSON_GetArraySize(list);
    AH_TRY(ah__new(&out->sources, out->source_count, sizeof *out->sources));
    struct ah_mixture_mark *mark = out->sources;
    cJSON_ArrayForEach(item, list)
    {
        AH_TRY(source_read(mark++, &(struct ah_json){.node = item, .path = json->path, .where = key}));
    }
    return AH_OK;
}

/* ---- the same data? ---------------------------------------------------------------------------------------------- */

static int content_check(const struct ah_checkpoint *checkpoint, const char *path, const struct ah_mixture_mark *found,
                         const struct ah_mixture_mark *expected)
{
    if (found->tokens != expected->tokens)
        return ah__fail(AH_ESTALE,
                        "%s: found %" PRId64 " tokens, expected %" PRId64 " as in the checkpoint's data (a "
                        "new training may start from its weights: give %s as the model)",
                        path, found->tokens, expected->tokens, checkpoint->run_folder);
    if (found->signature != expected->signature)
        return ah__fail(AH_ESTALE,
                        "%s: found content %016" PRIx64 ", expected %016" PRIx64 " as in the checkpoint's data (a new "
                        "training may start from its weights: give %s as the model)",
                        path, found->signature, expected->signature, checkpoint->run_folder);
    return AH_OK;
}

/* Checks contents, then weights: without given weights the contents determine the slots. */
static int sources_check(const struct ah_checkpoint *checkpoint, const struct ah_mixture *data,
                         const struct ah_mixture_mark *found)
{
    int64_t cycle = 0;
    for (size_t i = 0; i < checkpoint->source_count; i++) {
        const char *path = ah__mixture_source(data, i)->path;
        AH_TRY(content_check(checkpoint, path, &found[i], &checkpoint->sources[i]));
        cycle += checkpoint->sources[i].slots;
    }
    for (size_t i = 0; i < checkpoint->source_count; i++)
        if (found[i].slots != checkpoint->sources[i].slots || ah__mixture_cycle(data) != cycle)
            return ah__fail(AH_ESTALE,
                            "%s: weight: found %" PRId64 " of %" PRId64 " samples, expected %" PRId64 " of %" PRId64
                            " as in the checkpoint's data",
                            ah__mixture_source(data, i)->path, found[i].slots, ah__mixture_cycle(data),
                            checkpoint->sources[i].slots, cycle);
    return AH_OK;
}

int ah__checkpoint_check_data(const struct ah_checkpoint *checkpoint, const struct ah_mixture *data, const char *path)
{
    const struct ah_tokens_info *info = ah__mixture_info(data);
    struct ah_mixture_mark *marks;
    size_t count = ah__mixture_count(data), saved = checkpoint->source_count ? checkpoint->source_count : 1;
    if (count != saved)
        return ah__fail(AH_ESTALE, "data: found %zu file%s, expected %zu as in the checkpoint's data", count,
                        count == 1 ? "" : "s", saved);
    if (count == 1)
        return content_check(
            checkpoint, path, &(struct ah_mixture_mark){.tokens = info->tokens, .signature = info->signature},
            &(struct ah_mixture_mark){.tokens = checkpoint->data_tokens, .signature = checkpoint->data_signature});
    AH_TRY(ah__mixture_marks(&marks, data));
    int status = sources_check(checkpoint, data, marks);
    ah__mixture_marks_free(marks, count);
    return status;
}
