#include "io/shards.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

struct shard {
    char *name; /* name of the file, as in the index */
    struct ah_safetensors *file;
};

struct ah_shards {
    char *path;
    struct shard *files;
    size_t count, room;
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

char *ah__shards_name(char text[AH_SHARDS_NAME_SIZE], int64_t index, int64_t count)
{
    if (count == 1)
        snprintf(text, AH_SHARDS_NAME_SIZE, AH_SHARDS_FILE);
    else
        snprintf(text, AH_SHARDS_NAME_SIZE, "model-%05" PRId64 "-of-%05" PRId64 ".safetensors", index + 1, count);
    return text;
}

bool ah__shards_is_name(const char *name)
{
    long index = 0, count = 0;
    int length = 0;
    return sscanf(name, "model-%5ld-of-%5ld.safetensors%n", &index, &count, &length) == 2 && length > 0 &&
           name[length] == 0 && index >= 1 && index <= count;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

static struct shard *shard_find(const struct ah_shards *shards, const char *name)
{
    for (size_t i = 0; i < shards->count; i++)
        if (strcmp(shards->files[i].name, name) == 0)
            return &shards->files[i];
    return NULL;
}

/* Opens the file NAME beside the index; an index may not name a file elsewhere. */
static int shard_open(struct ah_shards *shards, const char *tensor, const char *name)
{
    const char *slash = strrchr(shards->path, '/');
    char *path;
    if (!name[0] || strchr(name, '/') || strchr(name, '\\') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return ah__fail(AH_ECORRUPT, "%s: key 'weight_map.%.80s': found '%.80s', expected a file beside it",
                        shards->path, tensor, name);
    AH_TRY(ah__grow(&shards->files, &shards->room, shards->count + 1, sizeof *shards->files));
    struct shard *shard = &shards->files[shards->count++];
    AH_TRY(ah__strdup(&shard->name, name));
    AH_TRY(ah__sprintf(&path, "%.*s%s", slash ? (int)(slash + 1 - shards->path) : 0, shards->path, name));
    int status = ah__safetensors_open(&shard->file, path);
    ah__free(path);
    return status;
}

static int member_read(struct ah_shards *shards, const cJSON *member)
{
    const char *name = cJSON_GetStringValue(member);
    if (!name)
        return ah__fail(AH_ECORRUPT, "%s: key 'weight_map.%.80s': found no string, expected a file's name",
                        shards->path, member->string);
    struct shard *shard = shard_find(shards, name);
    if (!shard) {
        AH_TRY(shard_open(shards, member->string, name));
        shard = &shards->files[shards->count - 1];
    }
    if (!ah__safetensors_find(shard->file, member->string))
        return ah__fail(AH_ECORRUPT, "%s: key 'weight_map.%.80s': found no such tensor in '%.80s', expected it there",
                        shards->path, member->string, name);
    return AH_OK;
}

/* Checks that the index says of each tensor of a file that it is in this file. Else it would be read or lost by
 * chance. */
static int shard_check(const struct ah_shards *shards, const struct shard *shard, const struct ah_json *map)
{
    for (size_t i = 0; i < ah__safetensors_count(shard->file); i++) {
        const char *tensor = ah__safetensors_at(shard->file, i)->name;
        const char *says = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(map->node, tensor));
        if (!says || strcmp(says, shard->name) != 0)
            return ah__fail(AH_ECORRUPT, "%s: tensor '%.80s': found in '%.80s', expected %s%.80s by the index",
                            shards->path, tensor, shard->name, says ? "in " : "no such tensor", says ? says : "");
    }
    return AH_OK;
}

static int index_read(struct ah_shards *shards, const struct ah_json *root)
{
    struct ah_json map;
    size_t tensors = 0;
    AH_TRY(ah__json_object(&map, root, "weight_map"));
    for (const cJSON *member = map.node->child; member; member = member->next, tensors++)
        AH_TRY(member_read(shards, member));
    if (!tensors)
        return ah__fail(AH_ECORRUPT, "%s: key 'weight_map': found nothing, expected tensors", shards->path);
    if (ah__shards_count(shards) == tensors)
        return AH_OK;
    for (size_t i = 0; i < shards->count; i++)
        AH_TRY(shard_check(shards, &shards->files[i], &map));
    return AH_OK;
}

static int index_open(struct ah_shards *shards)
{
    struct ah_json root = {0};
    int status = ah__json_load(&root, shards->path);
    if (status == AH_OK)
        status = index_read(shards, &root);
    ah__json_free(&root);
    return status;
}

/* ---- all files --------------------------------------------------------------------------------------------------- */

static int single_open(struct ah_shards *shards)
{
    AH_TRY(ah__grow(&shards->files, &shards->room, 1, sizeof *shards->files));
    shards->count = 1;
    return ah__safetensors_open(&shards->files[0].file, shards->path);
}

int ah__shards_open(struct ah_shards **out, const char *path)
{
    static const char ending[] = ".json";
    size_t length = strlen(path), tail = sizeof ending - 1;
    struct ah_shards *shards;
    AH_TRY(ah__new(&shards, 1, sizeof *shards));
    int status = ah__strdup(&shards->path, path);
    if (status == AH_OK)
        status = length > tail && strcmp(path + length - tail, ending) == 0 ? index_open(shards) : single_open(shards);
    if (status == AH_OK)
        *out = shards;
    else
        ah__shards_close(shards);
    return status;
}

void ah__shards_close(struct ah_shards *shards)
{
    if (!shards)
        return;
    for (size_t i = 0; i < shards->count; i++) {
        ah__safetensors_close(shards->files[i].file);
        ah__free(shards->files[i].name);
    }
    ah__free(shards->files);
    ah__free(shards->path);
    ah__free(shards);
}

size_t ah__shards_count(const struct ah_shards *shards)
{
    size_t count = 0;
    for (size_t i = 0; i < shards->count; i++)
        count += ah__safetensors_count(shards->files[i].file);
    return count;
}

const struct ah_safetensors_tensor *ah__shards_at(const struct ah_shards *shards, size_t index)
{
    for (size_t i = 0; i < shards->count; i++) {
        size_t count = ah__safetensors_count(shards->files[i].file);
        if (index < count)
            return ah__safetensors_at(shards->files[i].file, index);
        index -= count;
    }
    return NULL;
}

const struct ah_safetensors_tensor *ah__shards_find(const struct ah_shards *shards, const char *name)
{
    const struct ah_safetensors_tensor *tensor = NULL;
    for (size_t i = 0; i < shards->count && !tensor; i++)
        tensor = ah__safetensors_find(shards->files[i].file, name);
    return tensor;
}

int ah__shards_get(const struct ah_safetensors_tensor **out, const struct ah_shards *shards, const char *name,
                   enum ah_dtype dtype, struct ah_shape shape)
{
    size_t at = 0; /* if no file has the tensor, the first one fails and says so */
    for (size_t i = 0; i < shards->count; i++)
        if (ah__safetensors_find(shards->files[i].file, name))
            at = i;
    return ah__safetensors_get(out, shards->files[at].file, name, dtype, shape);
}
