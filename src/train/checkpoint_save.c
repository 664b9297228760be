#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "dev/host/states.h"
#include "dev/planes.h"
#include "io/shards.h"
#include "io/stack.h"
#include "op/bf16.h"
#include "source/adapter_config.h"
#include "source/folder.h"
#include "source/model_files.h"
#include "source/model_path.h"
#include "train/checkpoint_internal.h"

enum { PIECE = 256 }; /* elements checked together */

/* Fails if a value is not finite: such a checkpoint would replace a useful one. Codes are finite if their scales
 * are. */
static int check_finite(const void *values, enum ah_dtype dtype, int64_t count, const char *name)
{
    float piece[PIECE];
    for (int64_t i = 0, here; i < count && !ah__has_scales(dtype); i += here) {
        here = count - i < PIECE ? count - i : PIECE;
        ah__state_format(dtype)->widen(piece, (const char *)values + ah__state_bytes(dtype, i), here, false);
        for (int64_t j = 0; j < here; j++)
            if (!isfinite(piece[j]))
                return ah__fail(AH_ENUMERIC, "%s[%" PRId64 "] is %g: nothing is saved", name, i + j, (double)piece[j]);
    }
    return AH_OK;
}

static int run_get(const void **state, int param, enum ah_run_state which, void *buffer, void *context)
{
    *state = buffer;
    return ah__run_store_raw(context, param, which, buffer);
}

struct ah_states ah__run_states_of(struct ah_run *run)
{
    return (struct ah_states){run_get, run};
}

/* Narrows masters to BF16: in BF16 to the values that the training computes with, in F32 to the nearest, ties to
 * even. */
static void narrow(uint16_t *to, const uint32_t *from, int64_t count, enum ah_dtype compute)
{
    for (int64_t i = 0; i < count && compute == AH_BF16; i++)
        to[i] = ah__plane_upper(ah__plane_bits(from[i]));
    if (compute != AH_BF16)
        ah__bf16_narrow(to, (const float *)(const void *)from, count);
}

/* Returns the values of a state in the file's type: `state` itself if it is kept in that type, else converted into
 * `room`. */
static const void *entry_values(void *room, const void *state, enum ah_dtype dtype, const struct ah_entry *entry,
                                int64_t count, enum ah_dtype compute)
{
    if (ah__has_scales(dtype))
        ah__state_split(room, state, dtype, count, entry->scaled > 0);
    else if (dtype == entry->dtype)
        return state;
    else if (dtype == AH_F32)
        narrow(room, state, count, compute);
    else
        ah__bf16_widen(room, state, count);
    return room;
}

static int append_all(struct ah_safetensors_writer *writer, const struct ah_entries *entries,
                      const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    const void *whole = NULL;
    for (size_t i = 0; i < entries->count; i++) {
        const struct ah_entry *entry = &entries->entry[i];
        int64_t count = ah__shape_count(&partition->params[entry->param].shape);
        struct ah_shape shape = ah__entry_shape(entry, partition);
        enum ah_dtype dtype = ah__kept_dtype(partition, entry->param, (int)entry->which);
        if (!entry->scaled) /* scales are in the state that the entry before has got */
            AH_TRY(states->get(&whole, entry->param, entry->which, buffer, states->context));
        const void *state =
            entry_values(buffer + ah__partition_largest(partition), whole, dtype, entry, count, partition->compute);
        AH_TRY(check_finite(state, entry->dtype, ah__shape_count(&shape), entry->name));
        AH_TRY(entries->apart ? ah__stack_append(writer, entry->name, state, &shape, entry->dtype)
                              : ah__safetensors_writer_append(
                                    writer, state, (size_t)(ah__shape_count(&shape) * ah__dtype_bytes(entry->dtype))));
    }
    return AH_OK;
}

/* Declares the entries' tensors: stacks of the model as their parts, those of the optimizer whole. */
static int decls_init(struct ah_stack_decls *out, const struct ah_entries *entries,
                      const struct ah_partition *partition)
{
    struct ah_safetensors_decl *decls;
    *out = (struct ah_stack_decls){.count = 0};
    AH_TRY(ah__arena_new(&out->arena, &decls, entries->count, sizeof *decls));
    for (size_t i = 0; i < entries->count; i++)
        decls[i] = (struct ah_safetensors_decl){entries->entry[i].name, entries->entry[i].dtype,
                                                ah__entry_shape(&entries->entry[i], partition)};
    if (entries->apart)
        return ah__stack_decls_fill(out, decls, entries->count);
    out->decl = decls;
    out->count = entries->count;
    return AH_OK;
}

static int write_entries(struct ah_folder *folder, const char *file, const struct ah_entries *entries,
                         const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    struct ah_stack_decls decls;
    struct ah_safetensors_writer *writer = NULL;
    char *path = NULL;
    int64_t bytes;
    uint64_t hash;
    int status = decls_init(&decls, entries, partition);
    if (status == AH_OK)
        status = ah__sprintf(&path, "%s/%s", ah__folder_path(folder), file);
    if (status == AH_OK)
        status = ah__safetensors_writer_open(&writer, path, decls.decl, decls.count);
    if (status == AH_OK)
        status = append_all(writer, entries, partition, states, buffer);
    if (status == AH_OK)
        status = ah__safetensors_writer_close(writer, &bytes, &hash);
    if (status == AH_OK)
        status = ah__folder_note(folder, file, bytes, hash);
    ah__safetensors_writer_free(writer);
    ah__stack_decls_fini(&decls);
    ah__free(path);
    return status;
}

/* ---- the model in one file or several ---------------------------------------------------------------------------- */

static int64_t entry_bytes(const struct ah_entries *entries, size_t index, const struct ah_partition *partition)
{
    return ah__shape_count(&partition->params[entries->entry[index].param].shape) *
           ah__dtype_bytes(entries->entry[index].dtype);
}

/* Returns the shard that begins with entry `first`: as many entries as `most` bytes hold (0: all), at least one. */
static struct ah_entries shard_of(const struct ah_entries *entries, size_t first, const struct ah_partition *partition,
                                  int64_t most)
{
    int64_t bytes = 0;
    size_t end = first;
    do
        bytes += entry_bytes(entries, end++, partition);
    while (end < entries->count && (!most || bytes + entry_bytes(entries, end, partition) <= most));
    return (struct ah_entries){entries->entry + first, end - first, entries->apart};
}

static int64_t shards_count(const struct ah_entries *entries, const struct ah_partition *partition, int64_t most)
{
    int64_t count = 0;
    for (size_t first = 0; first < entries->count; count++)
        first += shard_of(entries, first, partition, most).count;
    return count;
}

/* Lists the tensors of an entry, which are in the file of that name. */
static int index_add(cJSON *map, const struct ah_entry *entry, const struct ah_partition *partition, const char *file)
{
    const struct ah_shape shape = ah__entry_shape(entry, partition);
    for (int64_t i = 0; i < ah__stack_parts(entry->name, &shape); i++) {
        char *name;
        AH_TRY(ah__stack_part_name(&name, entry->name, i));
        int status = ah__json_add_string(map, name, file);
        ah__free(name);
        AH_TRY(status);
    }
    return AH_OK;
}

static int index_fill(cJSON *tree, const struct ah_entries *entries, const struct ah_partition *partition, int64_t most)
{
    char name[AH_SHARDS_NAME_SIZE];
    int64_t bytes = 0, count = shards_count(entries, partition, most);
    for (size_t i = 0; i < entries->count; i++)
        bytes += entry_bytes(entries, i, partition);
    cJSON *metadata = cJSON_AddObjectToObject(tree, "metadata"); /* null: adding to it fails */
    AH_TRY(ah__json_add_int(metadata, "total_parameters", bytes / ah__dtype_bytes(entries->entry[0].dtype)));
    AH_TRY(ah__json_add_int(metadata, "total_size", bytes));
    cJSON *map = cJSON_AddObjectToObject(tree, "weight_map");
    size_t first = 0;
    for (int64_t i = 0; i < count; i++) {
        struct ah_entries shard = shard_of(entries, first, partition, most);
        ah__shards_name(name, i, count);
        for (size_t k = 0; k < shard.count; k++)
            AH_TRY(index_add(map, &shard.entry[k], partition, name));
        first += shard.count;
    }
    return AH_OK;
}

static int write_index(struct ah_folder *folder, const struct ah_entries *entries, const struct ah_partition *partition,
                       int64_t most)
{
    char *path = NULL;
    cJSON *tree = cJSON_CreateObject();
    int status = index_fill(tree, entries, partition, most);
    if (status == AH_OK)
        status = ah__sprintf(&path, "%s/" AH_SHARDS_INDEX, ah__folder_path(folder));
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    ah__free(path);
    return status == AH_OK ? ah__folder_add(folder, AH_SHARDS_INDEX) : status;
}

static int write_shards(struct ah_folder *folder, const struct ah_entries *entries, int64_t most,
                        const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    int64_t count = shards_count(entries, partition, most);
    char name[AH_SHARDS_NAME_SIZE];
    size_t first = 0;
    for (int64_t i = 0; i < count; i++) {
        struct ah_entries shard = shard_of(entries, first, partition, most);
        AH_TRY(write_entries(folder, ah__shards_name(name, i, count), &shard, partition, states, buffer));
        first += shard.count;
    }
    return count == 1 ? AH_OK : write_index(folder, entries, partition, most);
}

static int write_part(struct ah_folder *folder, enum ah_checkpoint_part part, const struct ah_settings *settings,
                      const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    struct ah_entries entries;
    bool adapters = settings->tuning.lora_rank > 0;
    int status = ah__entries_init(&entries, part, partition, settings);
    if (status == AH_OK && part == AH_PART_MODEL && adapters)
        status = write_entries(folder, AH_ADAPTER_FILE, &entries, partition, states, buffer);
    else if (status == AH_OK && part == AH_PART_MODEL)
        status = write_shards(folder, &entries, settings->shard_bytes, partition, states, buffer);
    else if (status == AH_OK)
        status = write_entries(folder, ah__checkpoint_files[part], &entries, partition, states, buffer);
    ah__entries_fini(&entries);
    return status;
}

/* ---- the other files --------------------------------------------------------------------------------------------- */

static int write_files(struct ah_folder *folder, const struct ah_model_files *files)
{
    for (size_t i = 0; files && i < files->count; i++) {
        AH_TRY(ah__model_file_save(&files->file[i], ah__folder_path(folder)));
        AH_TRY(ah__folder_add(folder, files->file[i].name));
    }
    return AH_OK;
}

/* Returns true if the weights of the model's linear layers are transposed, as in GPT-2. */
static bool is_transposed(const struct ah_partition *partition)
{
    const struct ah_program *program = &partition->code[AH_CLASS_BLOCK].program[AH_PROGRAM_FORWARD];
    for (int i = 0; i < program->count; i++)
        if (program->calls[i].op == AH_OP_LINEAR && !program->calls[i].attr.out_in)
            return true;
    return false;
}

/* Returns true if the list of names, separated by commas, has `name` of `length` bytes. */
static bool has_name(const char *names, const char *name, int length)
{
    for (const char *at = names; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == (size_t)length && strncmp(at, name, (size_t)length) == 0)
            return true;
    return false;
}

/* Writes the targets. "all-linear", which not all programs know, becomes the last parts of the modules' names, as in
 * PEFT. */
static void targets_set(char out[AH_ADAPTER_TARGETS], const char *targets, const struct ah_partition *partition)
{
    size_t used = 0, module;
    char which;
    snprintf(out, AH_ADAPTER_TARGETS, "%s", strcmp(targets, AH_LORA_ALL) == 0 ? "" : targets);
    for (int p = 0; p < partition->param_count && strcmp(targets, AH_LORA_ALL) == 0; p++) {
        const char *name = partition->params[p].name, *last;
        if (!ah__adapter_factor(&module, &which, name))
            continue;
        for (last = name + module; last > name && last[-1] != '.'; last--)
            ;
        int length = (int)(name + module - last);
        if (!has_name(out, last, length) && used + (size_t)length + 2 < AH_ADAPTER_TARGETS)
            used += (size_t)snprintf(out + used, AH_ADAPTER_TARGETS - used, "%s%.*s", used ? "," : "", length, last);
    }
}

static int write_adapter_config(struct ah_folder *folder, const struct ah_checkpoint *state,
                                const struct ah_partition *partition)
{
    const struct ah_tuning_settings *tuning = &state->settings.tuning;
    char cached[AH_MODEL_NAME_SIZE];
    bool is_cached = state->base && ah__model_cached_name(cached, state->base);
    struct ah_adapter_config config = {.rank = tuning->lora_rank,
                                       .alpha = tuning->lora_alpha,
                                       .rslora = tuning->lora_rslora,
                                       .base = state->base_name ? state->base_name
                                               : is_cached      ? cached
                                                                : state->base};
    if (!tuning->lora_rank)
        return AH_OK;
    targets_set(config.targets, tuning->lora_targets, partition);
    AH_TRY(ah__adapter_config_save(&config, is_transposed(partition), ah__folder_path(folder)));
    return ah__folder_add(folder, AH_ADAPTER_CONFIG);
}

static int write_config(struct ah_folder *folder, const struct ah_model *model, const struct ah_model_files *files,
                        bool adapters)
{
    const char *name = adapters ? AH_ADAPTER_MODEL : "config.json";
    const char *config = ah_model_get(model)->config;
    char *path, *text;
    AH_TRY(ah__model_files_config(&text, files, config ? config : "{}", ah_model_get(model)->vocab_size));
    int status = ah__sprintf(&path, "%s/%s", ah__folder_path(folder), name);
    if (status == AH_OK) {
        status = ah__file_write(path, text, strlen(text));
        ah__free(path);
    }
    ah__free(text);
    return status == AH_OK ? ah__folder_add(folder, name) : status;
}

static int fill_state(cJSON *tree, const struct ah_checkpoint *state)
{
    AH_TRY(ah__json_add_int(tree, "format", AH_CHECKPOINT_FORMAT));
    AH_TRY(ah__json_add_string(tree, "version", ah_version()));
    AH_TRY(ah__json_add_int(tree, "step", state->step));
    AH_TRY(ah__json_add_double(tree, "loss", state->loss));
    AH_TRY(ah__settings_save(tree, &state->settings));
    AH_TRY(ah__json_add_int(tree, "data_batch", state->step));
    AH_TRY(ah__json_add_string(tree, "data_path", state->data_path));
    if (state->bytes)
        AH_TRY(ah__json_add_bool(tree, "bytes", true));
    if (state->base) {
        AH_TRY(ah__json_add_string(tree, "base", state->base));
        AH_TRY(ah__json_add_hash(tree, "base_signature", state->base_signature));
        if (state->base_name)
            AH_TRY(ah__json_add_string(tree, "base_name", state->base_name));
    }
    AH_TRY(ah__json_add_int(tree, "data_tokens", state->data_tokens));
    AH_TRY(ah__json_add_string(tree, "arithmetic", state->arithmetic));
    AH_TRY(ah__checkpoint_sources_save(tree, state));
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

int ah__checkpoint_save(const char *dir, struct ah_checkpoint *state, const struct ah_model *model,
                        const struct ah_partition *partition, const struct ah_states *states, float *buffer)
{
    struct ah_folder *folder;
    AH_TRY(ah__folder_begin(&folder, dir, state->step));
    int status = AH_OK;
    for (int i = 0; status == AH_OK && i < AH_PART_COUNT; i++)
        status = write_part(folder, (enum ah_checkpoint_part)i, &state->settings, partition, states, buffer);
    if (status == AH_OK)
        status = write_config(folder, model, state->files, state->settings.tuning.lora_rank > 0);
    if (status == AH_OK)
        status = write_adapter_config(folder, state, partition);
    if (status == AH_OK)
        status = write_files(folder, state->files);
    if (status == AH_OK)
        status = write_state(folder, state);
    if (status == AH_OK)
        status = ah__folder_commit(folder, (int)state->settings.keep);
    if (status == AH_OK && ah__folder_left(folder) && !state->left)
        status = ah__strdup(&state->left, ah__folder_left(folder));
    ah__folder_free(folder);
    return status;
}
