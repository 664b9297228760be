#include "train/checkpoint_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "dev/host/states.h"
#include "io/shards.h"
#include "io/stack.h"
#include "op/bf16.h"
#include "source/adapter_config.h"
#include "source/folder.h"

static const int64_t most = (int64_t)1 << 52;

/* Files that a checkpoint must have; the first is the model's file, or the index of its files. */
static const char *const required[] = {AH_SHARDS_FILE, "config.json", "optimizer.safetensors", "state.json", NULL};
static const char *const required_shards[] = {AH_SHARDS_INDEX, "config.json", "optimizer.safetensors", "state.json",
                                              NULL};

static const char *const required_adapter[] = {AH_ADAPTER_FILE, AH_ADAPTER_CONFIG, "optimizer.safetensors",
                                               "state.json", NULL};

/* Makes the path of FOLDER/model.safetensors, of the index if there is one, or of the adapters' file. */
static int model_path(char **out, const char *folder)
{
    char *path;
    if (ah__adapter_config_exists(folder))
        return ah__sprintf(out, "%s/" AH_ADAPTER_FILE, folder);
    AH_TRY(ah__sprintf(&path, "%s/" AH_SHARDS_INDEX, folder));
    if (access(path, F_OK) == 0) {
        *out = path;
        return AH_OK;
    }
    int status = errno == ENOENT || errno == ENOTDIR ? ah__sprintf(out, "%s/" AH_SHARDS_FILE, folder)
                                                     : ah__fail(AH_EIO, "%s: cannot open: %s", path, strerror(errno));
    ah__free(path);
    return status;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Joins codes with their scales, the next entry. */
static int join(void *to, const struct ah_shards *file, const struct ah_entry *codes, const struct ah_entry *scales,
                const struct ah_partition *partition)
{
    const struct ah_safetensors_tensor *code, *scale;
    struct ah_shape shape = ah__entry_shape(codes, partition);
    AH_TRY(ah__shards_get(&code, file, codes->name, codes->dtype, shape));
    AH_TRY(ah__shards_get(&scale, file, scales->name, scales->dtype, ah__entry_shape(scales, partition)));
    ah__state_join(to, codes->dtype, code->data, scale->data, ah__shape_count(&shape), codes->which == AH_RUN_MOMENT1);
    return AH_OK;
}

/* Loads a state into the run, converted from the file's type to the type that the run keeps. */
static int state_load(struct ah_run *run, const struct ah_entry *entry, const struct ah_partition *partition,
                      const void *state, float *room)
{
    int64_t count = ah__shape_count(&partition->params[entry->param].shape);
    if (entry->dtype == ah__kept_dtype(partition, entry->param, (int)entry->which))
        return ah__run_load_raw(run, entry->param, entry->which, state);
    ah__state_format(entry->dtype)->widen(room, state, count, entry->which == AH_RUN_MOMENT1);
    return ah__run_load(run, entry->param, entry->which, room);
}

/* Returns the number of tensors that the file has for all entries. */
static size_t tensors_count(const struct ah_entries *entries, const struct ah_partition *partition)
{
    size_t count = entries->count;
    for (size_t i = 0; i < entries->count && entries->apart; i++) {
        struct ah_shape shape = ah__entry_shape(&entries->entry[i], partition);
        count += (size_t)ah__stack_parts(entries->entry[i].name, &shape) - 1;
    }
    return count;
}

/* Copies the data of an entry whose tensor the file has in another layout. */
static int entry_restore(void *buffer, const struct ah_shards *file, const struct ah_entry *entry,
                         const struct ah_shape *shape)
{
    const struct ah_safetensors_tensor *tensor;
    char *name;
    AH_TRY(ah__stack_part_name(&name, entry->name, 0));
    int status = ah__shards_get(&tensor, file, name, entry->dtype, ah__stack_part_shape(entry->name, shape));
    ah__free(name);
    if (status == AH_OK)
        ah__stack_copy(buffer, entry->name, tensor->data, shape, entry->dtype);
    return status;
}

static int tensor_copy(unsigned char **to, const struct ah_shards *file, const char *name, enum ah_dtype dtype,
                       struct ah_shape shape)
{
    const struct ah_safetensors_tensor *tensor;
    AH_TRY(ah__shards_get(&tensor, file, name, dtype, shape));
    memcpy(*to, tensor->data, tensor->bytes);
    *to += tensor->bytes;
    return AH_OK;
}

/* Copies the data of an entry, of a stack from its parts. */
static int entry_copy(void *buffer, const struct ah_shards *file, const struct ah_entry *entry, struct ah_shape shape,
                      bool apart)
{
    unsigned char *to = buffer;
    if (!apart)
        return tensor_copy(&to, file, entry->name, entry->dtype, shape);
    if (ah__stack_differs(ah__stack_layout(entry->name)))
        return entry_restore(buffer, file, entry, &shape);
    for (int64_t i = 0; i < ah__stack_parts(entry->name, &shape); i++) {
        char *name;
        AH_TRY(ah__stack_part_name(&name, entry->name, i));
        int status = tensor_copy(&to, file, name, entry->dtype, ah__stack_part_shape(entry->name, &shape));
        ah__free(name);
        AH_TRY(status);
    }
    return AH_OK;
}

/* Loads all entries of a file. `buffer`: room for the largest parameter, twice. */
static int load_entries(const struct ah_shards *file, const char *path, const struct ah_entries *entries,
                        const struct ah_partition *partition, struct ah_run *run, float *buffer)
{
    size_t count = tensors_count(entries, partition);
    if (ah__shards_count(file) != count)
        return ah__fail(AH_ECORRUPT, "%s: found %zu tensors, expected %zu", path, ah__shards_count(file), count);
    for (size_t i = 0; i < entries->count; i++) {
        const struct ah_entry *entry = &entries->entry[i];
        if (entry->scaled)
            continue;
        if (ah__has_scales(entry->dtype))
            AH_TRY(join(buffer, file, entry, entry + 1, partition));
        else
            AH_TRY(entry_copy(buffer, file, entry, ah__entry_shape(entry, partition), entries->apart));
        AH_TRY(state_load(run, entry, partition, buffer, buffer + ah__partition_largest(partition)));
    }
    return AH_OK;
}

static int load_part(const struct ah_checkpoint *checkpoint, enum ah_checkpoint_part part,
                     const struct ah_partition *partition, struct ah_run *run, float *buffer)
{
    struct ah_shards *file = NULL;
    struct ah_entries entries;
    char *path = NULL;
    int status = ah__entries_init(&entries, part, partition, &checkpoint->settings);
    if (status == AH_OK)
        status = part == AH_PART_MODEL ? model_path(&path, checkpoint->folder)
                                       : ah__sprintf(&path, "%s/%s", checkpoint->folder, ah__checkpoint_files[part]);
    if (status == AH_OK)
        status = ah__shards_open(&file, path);
    if (status == AH_OK)
        status = load_entries(file, path, &entries, partition, run, buffer);
    ah__shards_close(file);
    ah__free(path);
    ah__entries_fini(&entries);
    return status;
}

int ah__checkpoint_load(const struct ah_checkpoint *checkpoint, const struct ah_partition *partition,
                        struct ah_run *run, bool training)
{
    /* the optimizer's file has masters of all parameters if nothing is frozen */
    bool masters = ah__saves_masters(&checkpoint->settings) && !partition->frozen;
    float *buffer;
    AH_TRY(ah__new(&buffer, 2 * (size_t)ah__partition_largest(partition), sizeof *buffer));
    int status = AH_OK;
    for (int i = training && masters ? AH_PART_OPTIMIZER : AH_PART_MODEL;
         status == AH_OK && i <= (training ? AH_PART_OPTIMIZER : AH_PART_MODEL); i++)
        status = load_part(checkpoint, (enum ah_checkpoint_part)i, partition, run, buffer);
    ah__free(buffer);
    return status;
}

/* ---- state.json -------------------------------------------------------------------------------------------------- */

static int read_state(struct ah_checkpoint *out, const struct ah_json *json)
{
    int64_t batch, format;
    const char *data_path, *arithmetic;
    AH_TRY(ah__json_int(&format, json, "format", AH_CHECKPOINT_FORMAT, AH_CHECKPOINT_FORMAT));
    AH_TRY(ah__json_int(&out->step, json, "step", 0, most));
    AH_TRY(ah__json_double(&out->loss, json, "loss", -1e300, 1e300));
    AH_TRY(ah__settings_load(&out->settings, json));
    AH_TRY(ah__json_int(&batch, json, "data_batch", out->step, out->step));
    AH_TRY(ah__json_string(&data_path, json, "data_path"));
    AH_TRY(ah__json_int(&out->data_tokens, json, "data_tokens", 0, most));
    AH_TRY(ah__json_hash(&out->data_signature, json, "data_signature"));
    AH_TRY(ah__json_string(&arithmetic, json, "arithmetic"));
    snprintf(out->arithmetic, sizeof out->arithmetic, "%s", arithmetic);
    AH_TRY(ah__checkpoint_sources_read(out, json));
    if (ah__json_has(json, "bytes"))
        AH_TRY(ah__json_bool(&out->bytes, json, "bytes"));
    if (ah__json_has(json, "base")) {
        const char *base;
        AH_TRY(ah__json_string(&base, json, "base"));
        AH_TRY(ah__json_hash(&out->base_signature, json, "base_signature"));
        AH_TRY(ah__strdup(&out->base, base));
        if (ah__json_has(json, "base_name")) {
            AH_TRY(ah__json_string(&base, json, "base_name"));
            AH_TRY(ah__strdup(&out->base_name, base));
        }
    }
    return ah__strdup(&out->data_path, data_path);
}

static int load_state(struct ah_checkpoint *out)
{
    struct ah_json json;
    AH_TRY(ah__json_load_in(&json, out->folder, "state.json"));
    int status = read_state(out, &json);
    ah__json_free(&json);
    return status;
}

static int verify_and_read(struct ah_checkpoint *checkpoint)
{
    char *path;
    AH_TRY(model_path(&path, checkpoint->folder));
    const char *name = path + strlen(checkpoint->folder) + 1;
    bool whole = strcmp(name, AH_SHARDS_FILE) == 0, adapter = strcmp(name, AH_ADAPTER_FILE) == 0;
    ah__free(path);
    AH_TRY(ah__folder_verify(checkpoint->folder, adapter ? required_adapter : whole ? required : required_shards));
    return load_state(checkpoint);
}

/* Finds and reads a checkpoint, again if it disappears: then a training that goes on removed it, and there is a newer
 * one. */
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

/* Goes from a damaged checkpoint to the newest intact one before it. Without one, fails with the first message. */
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

/* Checkpoints of adapters that older versions wrote have config.json, too. */
static int config_path(char **out, const char *folder)
{
    AH_TRY(ah__sprintf(out, "%s/" AH_ADAPTER_MODEL, folder));
    if (ah__path_exists(*out))
        return AH_OK;
    ah__free(*out);
    return ah__sprintf(out, "%s/config.json", folder);
}

int ah_checkpoint_model(struct ah_model **out, const char *dir)
{
    char *folder, *config;
    AH_TRY(ah__folder_find(&folder, dir));
    int status = config_path(&config, folder);
    ah__free(folder);
    if (status == AH_OK) {
        status = ah_model_load(out, config);
        ah__free(config);
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
    dirname(checkpoint.run_folder); /* shortens the absolute path in place */
    *out = checkpoint;
    return AH_OK;
}

void ah__checkpoint_close(struct ah_checkpoint *checkpoint)
{
    ah__free(checkpoint->folder);
    ah__free(checkpoint->run_folder);
    ah__free(checkpoint->data_path);
    ah__free(checkpoint->base);
    ah__free(checkpoint->base_name);
    ah__mixture_marks_free(checkpoint->sources, checkpoint->source_count);
    ah__free(checkpoint->passed_over);
    ah__free(checkpoint->left);
    *checkpoint = (struct ah_checkpoint){0};
}

/* ---- is it the same training? ------------------------------------------------------------------------------------ */

/* Fails with the first member in which the configuration asked for differs from the saved one. Ids of tokens may
 * differ: they change no arithmetic. */
static int compare_configs(const cJSON *saved, const cJSON *asked, const char *path)
{
    const cJSON *member;
    if (cJSON_Compare(saved, asked, true))
        return AH_OK;
    cJSON_ArrayForEach(member, asked)
    {
        const cJSON *other = cJSON_GetObjectItemCaseSensitive(saved, member->string);
        if (ah__model_files_is_id(member->string) || cJSON_Compare(member, other, true))
            continue;
        char found[64] = "", expected[64] = "nothing";
        if (!cJSON_PrintPreallocated((cJSON *)(uintptr_t)member, found, sizeof found, false))
            snprintf(found, sizeof found, "something long");
        if (other && !cJSON_PrintPreallocated((cJSON *)(uintptr_t)other, expected, sizeof expected, false))
            snprintf(expected, sizeof expected, "something else");
        return ah__fail(AH_ESTALE, "model: key '%s': found %s, expected %s as in %s", member->string, found, expected,
                        path);
    }
    cJSON_ArrayForEach(member, saved)
    {
        if (!ah__model_files_is_id(member->string) && !cJSON_HasObjectItem(asked, member->string))
            return ah__fail(AH_ESTALE, "model: key '%s': found nothing, expected it as in %s", member->string, path);
    }
    return AH_OK;
}

int ah__checkpoint_check_model(const struct ah_checkpoint *checkpoint, const struct ah_model *model)
{
    const char *config = ah_model_get(model)->config;
    struct ah_json saved = {0}, asked = {0};
    char *path;
    if (!config)
        config = "{}";
    AH_TRY(config_path(&path, checkpoint->folder));
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
