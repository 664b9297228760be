#include "train/checkpoint.h"

#include <inttypes.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/folder.h"
#include "io/safetensors.h"
#include "op/bf16.h"

/* 1 had no save_seconds, keep and lr_steps. */
enum { FORMAT = 2, FORMAT_OLDEST = 1 };
static const int64_t most = (int64_t)1 << 52;

/* A tensor of a checkpoint file: a parameter's state under a name of its own. */
struct entry {
    char *name;
    int param;
    enum ah_run_state which;
};

struct suffix {
    const char *text;
    enum ah_run_state which;
};

/* The files with tensors and what they hold of each parameter: the last only where the model's file has it rounded. */
enum { PART_MODEL, PART_OPTIMIZER, PART_COUNT };
static const struct part {
    const char *file;
    int count, count_rounded;
    struct suffix suffix[3];
} parts[PART_COUNT] = {
    [PART_MODEL] = {"model.safetensors", 1, 1, {{"", AH_RUN_PARAM}}},
    [PART_OPTIMIZER] = {"optimizer.safetensors", 2, 3,
                        {{".exp_avg", AH_RUN_MOMENT1}, {".exp_avg_sq", AH_RUN_MOMENT2}, {".master", AH_RUN_PARAM}}},
};

static const char *const required[] = {"model.safetensors", "config.json", "optimizer.safetensors", "state.json", NULL};

/* ---- the tensors of a file --------------------------------------------------------------------------------------- */

struct entries {
    struct entry *entry;
    size_t count;
    enum ah_dtype dtype; /* of all */
};

static void entries_fini(struct entries *entries)
{
    for (size_t i = 0; entries->entry && i < entries->count; i++)
        ah__free(entries->entry[i].name);
    ah__free(entries->entry);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct entry *)left)->name, ((const struct entry *)right)->name);
}

/* In order of names, as Hugging Face writes them. */
static int entries_init(struct entries *out, int which, const struct ah_partition *partition, enum ah_dtype saved)
{
    const struct part *part = &parts[which];
    int each = saved == AH_F32 ? part->count : part->count_rounded;
    size_t count = (size_t)partition->param_count * (size_t)each;
    *out = (struct entries){.count = count, .dtype = which == PART_MODEL ? saved : AH_F32};
    AH_TRY(ah__new(&out->entry, count, sizeof *out->entry));
    for (size_t i = 0; i < count; i++) {
        int param = (int)i / each;
        const struct suffix *suffix = &part->suffix[(int)i % each];
        out->entry[i] = (struct entry){NULL, param, suffix->which};
        AH_TRY(ah__sprintf(&out->entry[i].name, "%s%s", partition->params[param].name, suffix->text));
    }
    qsort(out->entry, count, sizeof *out->entry, compare_names);
    return AH_OK;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* A checkpoint that holds infinities would replace one that is of use. */
static int check_finite(const float *values, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return ah__fail(AH_ENUMERIC, "%s[%zu] is %g: nothing is saved", name, i, (double)values[i]);
    return AH_OK;
}

static int run_get(const float **values, int param, enum ah_run_state which, float *buffer, void *context)
{
    *values = buffer;
    return ah__run_store(context, param, which, buffer);
}

struct ah_states ah__run_states_of(struct ah_run *run)
{
    return (struct ah_states){run_get, run};
}

static int append_all(struct ah_safetensors_writer *writer, const struct entries *entries,
                      const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    for (size_t i = 0; i < entries->count; i++) {
        const struct entry *entry = &entries->entry[i];
        size_t count = (size_t)ah__shape_count(&partition->params[entry->param].shape);
        const float *exact;
        AH_TRY(states->get(&exact, entry->param, entry->which, buffer, states->context));
        AH_TRY(check_finite(exact, count, entry->name));
        const void *values = exact;
        if (entries->dtype == AH_BF16) {
            uint16_t *rounded = (uint16_t *)(void *)(buffer + ah__partition_largest(partition));
            ah__bf16_narrow(rounded, exact, (int64_t)count);
            values = rounded;
        }
        AH_TRY(ah__safetensors_writer_append(writer, values, count * (size_t)ah__dtype_bytes(entries->dtype)));
    }
    return AH_OK;
}

static int write_entries(struct ah_folder *folder, const char *file, const struct entries *entries,
                         const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    struct ah_safetensors_decl *decls = NULL;
    struct ah_safetensors_writer *writer = NULL;
    char *path = NULL;
    int64_t bytes;
    uint64_t hash;
    int status = ah__new(&decls, entries->count, sizeof *decls);
    for (size_t i = 0; status == AH_OK && i < entries->count; i++)
        decls[i] = (struct ah_safetensors_decl){entries->entry[i].name, entries->dtype,
                                                partition->params[entries->entry[i].param].shape};
    if (status == AH_OK)
        status = ah__sprintf(&path, "%s/%s", ah__folder_path(folder), file);
    if (status == AH_OK)
        status = ah__safetensors_writer_open(&writer, path, decls, entries->count);
    if (status == AH_OK)
        status = append_all(writer, entries, partition, states, buffer);
    if (status == AH_OK)
        status = ah__safetensors_writer_close(writer, &bytes, &hash);
    if (status == AH_OK)
        status = ah__folder_note(folder, file, bytes, hash);
    ah__safetensors_writer_free(writer);
    ah__free(decls);
    ah__free(path);
    return status;
}

static int write_part(struct ah_folder *folder, int part, enum ah_dtype saved, const struct ah_partition *partition,
                      const struct ah_states *states, float *buffer)
{
    struct entries entries;
    int status = entries_init(&entries, part, partition, saved);
    if (status == AH_OK)
        status = write_entries(folder, parts[part].file, &entries, partition, states, buffer);
    entries_fini(&entries);
    return status;
}

static int write_config(struct ah_folder *folder, const struct ah_model *model)
{
    const char *config = ah_model_get(model)->config;
    char *path;
    if (!config)
        config = "{}";
    AH_TRY(ah__sprintf(&path, "%s/config.json", ah__folder_path(folder)));
    int status = ah__file_write(path, config, strlen(config));
    ah__free(path);
    return status == AH_OK ? ah__folder_add(folder, "config.json") : status;
}

static int fill_state(cJSON *tree, const struct ah_checkpoint *state)
{
    AH_TRY(ah__json_add_int(tree, "format", FORMAT));
    AH_TRY(ah__json_add_string(tree, "version", ah_version()));
    AH_TRY(ah__json_add_int(tree, "step", state->step));
    AH_TRY(ah__json_add_double(tree, "loss", state->loss));
    AH_TRY(ah__settings_save(tree, &state->settings));
    AH_TRY(ah__json_add_int(tree, "data_batch", state->step));
    AH_TRY(ah__json_add_string(tree, "data_path", state->data_path));
    AH_TRY(ah__json_add_int(tree, "data_tokens", state->data_tokens));
    AH_TRY(ah__json_add_string(tree, "arithmetic", state->arithmetic));
    return ah__json_add_hash(tree, "data_signature", state->data_signature);
}

static int write_state(struct ah_folder *folder, const struct ah_checkpoint *state)
{
    char *path = NULL;
    cJSON *tree = cJSON_CreateObject();
    int status = fill_state(tree, state);
    if (status == AH_OK)
        status = ah__sprintf(&path, "%s/state.json", ah__folder_path(folder));
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    ah__free(path);
    return status == AH_OK ? ah__folder_add(folder, "state.json") : status;
}

int ah__checkpoint_save(const char *dir, const struct ah_checkpoint *state, const struct ah_model *model,
                        const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    struct ah_folder *folder;
    AH_TRY(ah__folder_begin(&folder, dir, state->step));
    int status = AH_OK;
    for (int i = 0; status == AH_OK && i < PART_COUNT; i++)
        status = write_part(folder, i, state->settings.save_dtype, partition, states, buffer);
    if (status == AH_OK)
        status = write_config(folder, model);
    if (status == AH_OK)
        status = ah__tokenizer_copy_write(state->tokenizer, folder);
    if (status == AH_OK)
        status = write_state(folder, state);
    if (status == AH_OK)
        status = ah__folder_commit(folder, (int)state->settings.keep);
    ah__folder_free(folder);
    return status;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static int load_entries(const struct ah_safetensors *file, const char *path, const struct entries *entries,
                        const struct ah_partition *partition, struct ah_run *run, float *buffer)
{
    if (ah__safetensors_count(file) != entries->count)
        return ah__fail(AH_ECORRUPT, "%s: found %zu tensors, expected %zu", path, ah__safetensors_count(file),
                        entries->count);
    for (size_t i = 0; i < entries->count; i++) {
        const struct entry *entry = &entries->entry[i];
        const struct ah_safetensors_tensor *tensor;
        struct ah_shape shape = partition->params[entry->param].shape;
        AH_TRY(ah__safetensors_get(&tensor, file, entry->name, entries->dtype, shape));
        if (entries->dtype == AH_BF16)
            ah__bf16_widen(buffer, (const uint16_t *)(const void *)tensor->data, ah__shape_count(&shape));
        else
            memcpy(buffer, tensor->data, tensor->bytes);
        AH_TRY(ah__run_load(run, entry->param, entry->which, buffer));
    }
    return AH_OK;
}

static int load_part(const struct ah_checkpoint *checkpoint, int part, const struct ah_partition *partition,
                     struct ah_run *run, float *buffer)
{
    struct ah_safetensors *file = NULL;
    struct entries entries;
    char *path = NULL;
    int status = entries_init(&entries, part, partition, checkpoint->settings.save_dtype);
    if (status == AH_OK)
        status = ah__sprintf(&path, "%s/%s", checkpoint->folder, parts[part].file);
    if (status == AH_OK)
        status = ah__safetensors_open(&file, path);
    if (status == AH_OK)
        status = load_entries(file, path, &entries, partition, run, buffer);
    ah__safetensors_close(file);
    ah__free(path);
    entries_fini(&entries);
    return status;
}

int ah__checkpoint_load(const struct ah_checkpoint *checkpoint, const struct ah_partition *partition,
                        struct ah_run *run, bool training)
{
    bool rounded = checkpoint->settings.save_dtype != AH_F32; /* the masters are beside the moments */
    float *buffer;
    AH_TRY(ah__new(&buffer, (size_t)ah__partition_largest(partition), sizeof *buffer));
    int status = AH_OK;
    for (int i = training && rounded ? PART_OPTIMIZER : PART_MODEL;
         status == AH_OK && i <= (training ? PART_OPTIMIZER : PART_MODEL); i++)
        status = load_part(checkpoint, i, partition, run, buffer);
    ah__free(buffer);
    return status;
}

/* ---- state.json -------------------------------------------------------------------------------------------------- */

static int read_state(struct ah_checkpoint *out, const struct ah_json *json)
{
    int64_t format, batch;
    const char *data_path, *arithmetic;
    AH_TRY(ah__json_int(&format, json, "format", FORMAT_OLDEST, FORMAT));
    AH_TRY(ah__json_int(&out->step, json, "step", 0, most));
    AH_TRY(ah__json_double(&out->loss, json, "loss", -1e300, 1e300));
    AH_TRY(ah__settings_load(&out->settings, json));
    AH_TRY(ah__json_int(&batch, json, "data_batch", out->step, out->step));
    AH_TRY(ah__json_string(&data_path, json, "data_path"));
    AH_TRY(ah__json_int(&out->data_tokens, json, "data_tokens", 1, most));
    AH_TRY(ah__json_hash(&out->data_signature, json, "data_signature"));
    AH_TRY(ah__json_string(&arithmetic, json, "arithmetic"));
    snprintf(out->arithmetic, sizeof out->arithmetic, "%s", arithmetic);
    return ah__strdup(&out->data_path, data_path);
}

static int load_state(struct ah_checkpoint *out)
{
    struct ah_json json;
    char *path;
    AH_TRY(ah__sprintf(&path, "%s/state.json", out->folder));
    int status = ah__json_load(&json, path);
    if (status == AH_OK) {
        status = read_state(out, &json);
        ah__json_free(&json);
    }
    ah__free(path);
    return status;
}

static int verify_and_read(struct ah_checkpoint *checkpoint)
{
    AH_TRY(ah__folder_verify(checkpoint->folder, required));
    return load_state(checkpoint);
}

/* A checkpoint that was found and is gone was removed by a training that goes on: there is a newer one. */
static int find_and_read(struct ah_checkpoint *checkpoint, const char *path)
{
    enum { TRIES = 20 };
    int status = AH_OK;
    for (int i = 0; i < TRIES; i++) {
        ah__free(checkpoint->folder);
        checkpoint->folder = NULL;
        AH_TRY(ah__folder_find(&checkpoint->folder, path));
        status = verify_and_read(checkpoint);
        if (status == AH_OK || ah__path_exists(checkpoint->folder))
            break;
    }
    return status;
}

/* From a damaged checkpoint to the newest whole one before it. Fails as before when there is none. */
static int go_back(struct ah_checkpoint *checkpoint, int status)
{
    char *older = NULL, *first;
    AH_TRY(ah__strdup(&first, ah_error()));
    checkpoint->passed_over = first;
    while (status == AH_ECORRUPT) {
        AH_TRY(ah__folder_before(&older, checkpoint->folder));
        if (!older)
            return ah__fail(AH_ECORRUPT, "%s", first);
        ah__free(checkpoint->folder);
        checkpoint->folder = older;
        status = verify_and_read(checkpoint);
    }
    return status;
}

int ah__checkpoint_open(struct ah_checkpoint *out, const char *path, bool older)
{
    struct ah_checkpoint checkpoint = {0};
    bool one = false; /* path means one checkpoint, and not a training's folder, whose checkpoints come and go */
    int status = find_and_read(&checkpoint, path), asked = AH_OK;
    if (status == AH_ECORRUPT && older)
        asked = ah__path_same(&one, path, checkpoint.folder);
    if (asked != AH_OK)
        status = asked;
    else if (status == AH_ECORRUPT && older && !one)
        status = go_back(&checkpoint, status);
    if (status == AH_OK)
        status = ah__strdup(&checkpoint.run_folder, checkpoint.folder);
    if (status != AH_OK) {
        ah__checkpoint_close(&checkpoint);
        return status;
    }
    dirname(checkpoint.run_folder); /* cuts the absolute path short in place */
    *out = checkpoint;
    return AH_OK;
}

void ah__checkpoint_close(struct ah_checkpoint *checkpoint)
{
    ah__free(checkpoint->folder);
    ah__free(checkpoint->run_folder);
    ah__free(checkpoint->data_path);
    ah__free(checkpoint->passed_over);
    *checkpoint = (struct ah_checkpoint){0};
}

/* ---- is it the same training? ------------------------------------------------------------------------------------ */

/* Fails with the first member in which the asked-for configuration differs from the saved one. */
static int compare_configs(const cJSON *saved, const cJSON *asked, const char *path)
{
    const cJSON *member;
    if (cJSON_Compare(saved, asked, true))
        return AH_OK;
    cJSON_ArrayForEach(member, asked)
    {
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(saved, member->string);
        if (cJSON_Compare(member, other, true))
            continue;
        char found[64] = "", expected[64] = "nothing";
        cJSON_PrintPreallocated((cJSON *)(uintptr_t)member, found, sizeof found, false);
        if (other)
            cJSON_PrintPreallocated((cJSON *)(uintptr_t)other, expected, sizeof expected, false);
        return ah__fail(AH_ESTALE, "model: key '%s': found %s, expected %s as in %s", member->string, found, expected,
                        path);
    }
    cJSON_ArrayForEach(member, saved)
    {
        if (!cJSON_HasObjectItem(asked, member->string))
            return ah__fail(AH_ESTALE, "model: key '%s': found nothing, expected it as in %s", member->string, path);
    }
    return ah__fail(AH_ESTALE, "model: found another configuration than %s", path);
}

int ah__checkpoint_check_model(const struct ah_checkpoint *checkpoint, const struct ah_model *model)
{
    const char *config = ah_model_get(model)->config;
    struct ah_json saved = {0}, asked = {0};
    char *path;
    if (!config)
        config = "{}";
    AH_TRY(ah__sprintf(&path, "%s/config.json", checkpoint->folder));
    int status = ah__json_load(&saved, path);
    if (status == AH_OK)
        status = ah__json_parse(&asked, config, strlen(config), ah_model_get(model)->name);
    if (status == AH_OK)
        status = compare_configs(saved.node, asked.node, path);
    ah__json_free(&saved);
    ah__json_free(&asked);
    ah__free(path);
    return status;
}

int ah__checkpoint_check_data(const struct ah_checkpoint *checkpoint, const struct ah_tokens *tokens, const char *path)
{
    const struct ah_tokens_info *info = ah__tokens_info(tokens);
    if (info->tokens != checkpoint->data_tokens)
        return ah__fail(AH_ESTALE, "%s: found %" PRId64 " tokens, expected %" PRId64 " as in the checkpoint's data (a "
                        "new training may start from its weights: give %s as the model)", path, info->tokens,
                        checkpoint->data_tokens, checkpoint->run_folder);
    if (info->signature != checkpoint->data_signature)
        return ah__fail(AH_ESTALE,
                        "%s: found content %016" PRIx64 ", expected %016" PRIx64 " as in the checkpoint's data (a new "
                        "training may start from its weights: give %s as the model)", path, info->signature,
                        checkpoint->data_signature, checkpoint->run_folder);
    return AH_OK;
}
