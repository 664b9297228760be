#include "train/weights.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "io/shards.h"
#include "train/adapter_tensors.h"

/* ---- matching tensors and parameters ----------------------------------------------------------------------------- */

struct source {
    const char *path;
    struct ah_weight_tensors tensors;
    const struct ah_partition *partition;
    const struct ah_adapter_tensors *beside; /* adapter whose whole tensors replace the file's; may be null */
    size_t cut;                              /* bytes at the start of parameters' names that the tensors' names lack */
    const char *head;                        /* a tied head that the file has beside the embedding; null: it has none */
    const char *head_alone;                  /* a tied head that the file has instead of the embedding; null: none */
    const struct ah_param *embedding;        /* parameter that head_alone is read into */
    uint64_t *hash;                          /* hash of the bytes read; null: not wanted */
    size_t buffers;                          /* constants left out; `buffer`: name of the last */
    const char *buffer;
};

/* Names of constants of the computation that older programs saved with the weights. */
static const char *const buffer_patterns[] = {
    "*.attn.bias", "*.attn.masked_bias", "*.attention.bias", "*.attention.masked_bias", "*.rotary_emb.inv_freq",
};
static const char *const head_names[] = {"lm_head.weight", "embed_out.weight"};

static const char *own_name(const struct source *source, const struct ah_param *param)
{
    size_t cut = source->cut;
    return cut && strncmp(param->name, source->partition->params[0].name, cut) == 0 ? param->name + cut : param->name;
}

/* Returns the name of the tensor with the values of a parameter. */
static const char *name_of(const struct source *source, const struct ah_param *param)
{
    return source->head_alone && param == source->embedding ? source->head_alone : own_name(source, param);
}

/* Marks the file's tensors that have the values of parameters. */
static void taken_mark(bool *taken, const struct source *source)
{
    const struct ah_partition *partition = source->partition;
    for (int p = 0; p < partition->param_count; p++) {
        const struct ah_param *param = &partition->params[p];
        const struct ah_weight_tensor *tensor =
            param->adapter ? NULL : ah__weight_tensors_find(&source->tensors, name_of(source, param));
        if (tensor)
            taken[(tensor->of ? tensor->of : tensor) - source->tensors.tensors] = true;
    }
}

/* Sets `cut` if the file has a model's body alone, whose names lack the first part that they have in the whole
 * model. */
static void find_cut(struct source *source)
{
    const char *first = source->partition->params[0].name, *dot = strchr(first, '.');
    if (!dot || ah__weight_tensors_find(&source->tensors, first))
        return;
    size_t cut = (size_t)(dot + 1 - first);
    for (size_t i = 0; i < source->tensors.count; i++)
        if (strncmp(source->tensors.tensors[i].name, first, cut) == 0)
            return;
    if (ah__weight_tensors_find(&source->tensors, first + cut))
        source->cut = cut;
}

/* Sets head_alone if the file has the head's name only: if head and embedding are one, either name may be saved. */
static void find_head_alone(struct source *source)
{
    const struct ah_partition *partition = source->partition;
    for (int p = 0; p < partition->param_count; p++) {
        const struct ah_param *param = &partition->params[p];
        if (partition->shared_group < 0 || param->group != partition->shared_group ||
            ah__weight_tensors_find(&source->tensors, own_name(source, param)))
            continue;
        for (size_t i = 0; i < AH_LENGTH(head_names) && !source->head_alone; i++)
            if (ah__weight_tensors_find(&source->tensors, head_names[i])) {
                source->head_alone = head_names[i];
                source->embedding = param;
            }
    }
}

static bool matches(const char *name, const char *const *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(patterns[i], name, 0) == 0)
            return true;
    return false;
}

static bool same_values(const struct ah_weight_tensor *a, const struct ah_weight_tensor *b)
{
    return strcmp(a->type_name, b->type_name) == 0 && a->rank == b->rank && a->bytes == b->bytes && !a->parts &&
           !b->parts && !a->scales && !b->scales && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0 &&
           memcmp(a->data, b->data, a->bytes) == 0;
}

/* Checks that the head of a tied model equals the embedding: other values would be lost. */
static int head_check(struct source *source, const struct ah_weight_tensor *head)
{
    const struct ah_partition *partition = source->partition;
    for (int p = 0; p < partition->param_count; p++) {
        const struct ah_param *param = &partition->params[p];
        const struct ah_weight_tensor *tensor = ah__weight_tensors_find(&source->tensors, name_of(source, param));
        if (param->group == partition->shared_group && tensor && same_values(tensor, head)) {
            source->head = head->name;
            return AH_OK;
        }
    }
    return ah__fail(AH_EINPUT,
                    "%s: tensor '%s': found other values than the embedding's, expected the same: the model "
                    "ties its head to the embedding (tie_word_embeddings)",
                    source->path, head->name);
}

/* Fails if a tensor of the files that is not taken would be left out silently. */
static int surplus_find(struct source *source, const bool *taken)
{
    const char *surplus = NULL;
    size_t count = 0;
    for (size_t i = 0; i < source->tensors.count; i++) {
        const struct ah_weight_tensor *tensor = &source->tensors.tensors[i];
        if (taken[i])
            continue;
        if (matches(tensor->name, buffer_patterns, AH_LENGTH(buffer_patterns))) {
            source->buffer = tensor->name;
            source->buffers++;
        } else if (source->partition->shared_group >= 0 && matches(tensor->name, head_names, AH_LENGTH(head_names))) {
            AH_TRY(head_check(source, tensor));
        } else {
            surplus = count++ ? surplus : tensor->name;
        }
    }
    if (count > 1)
        return ah__fail(AH_EINPUT, "%s: found tensor '%.80s' and %zu more, which the model does not have", source->path,
                        surplus, count - 1);
    return count ? ah__fail(AH_EINPUT, "%s: found tensor '%.80s', which the model does not have", source->path, surplus)
                 : AH_OK;
}

static int surplus_check(struct source *source)
{
    bool *taken;
    AH_TRY(ah__new(&taken, source->tensors.count, sizeof *taken));
    taken_mark(taken, source);
    int status = surplus_find(source, taken);
    ah__free(taken);
    return status;
}

/* Fails for a missing tensor. The message has names of the file's tensors, which may show why it is missing. */
static int fail_missing(const struct source *source, const char *missing, size_t more)
{
    const struct ah_weight_tensors *tensors = &source->tensors;
    char others[32] = "";
    if (more)
        snprintf(others, sizeof others, " and %zu more", more);
    if (!tensors->count)
        return ah__fail(AH_EINPUT, "%s: found no tensors, expected '%.80s'%s", source->path, missing, others);
    return ah__fail(AH_EINPUT,
                    "%s: found no tensor '%.80s'%s, which the model has; it has %zu, from '%.80s' to '%.80s'",
                    source->path, missing, others, tensors->count, tensors->tensors[0].name,
                    tensors->tensors[tensors->count - 1].name);
}

static bool is_beside(const struct source *source, const struct ah_param *param)
{
    return source->beside && ah__adapter_tensors_whole(source->beside, param->name);
}

/* Returns the tensor of a parameter. A head that the adapter separated from the embedding is read from the
 * embedding's. */
static const struct ah_weight_tensor *tensor_of(const struct source *source, const struct ah_param *param)
{
    const struct ah_weight_tensor *tensor = ah__weight_tensors_find(&source->tensors, name_of(source, param));
    if (!tensor && source->beside && source->beside->untied && matches(param->name, head_names, AH_LENGTH(head_names)))
        tensor = ah__weight_tensors_find(&source->tensors, own_name(source, &source->partition->params[0]));
    return tensor;
}

static int missing_check(const struct source *source)
{
    const struct ah_partition *partition = source->partition;
    const char *missing = NULL;
    size_t count = 0;
    for (int p = 0; p < partition->param_count; p++) {
        const struct ah_param *param = &partition->params[p];
        if (!param->adapter && !is_beside(source, param) && !tensor_of(source, param))
            missing = count++ ? missing : name_of(source, param);
    }
    return count ? fail_missing(source, missing, count - 1) : AH_OK;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static int load_one(float *buffer, const struct source *source, const struct ah_param *param)
{
    const struct ah_weight_tensor *tensor = tensor_of(source, param);
    if (source->hash)
        *source->hash = ah__weight_tensor_hash(tensor, *source->hash);
    return ah__weight_tensor_read(buffer, &source->tensors, tensor, param->shape);
}

static int load_all(struct source *source, struct ah_run *run)
{
    float *buffer;
    find_cut(source);
    find_head_alone(source);
    AH_TRY(missing_check(source));
    AH_TRY(surplus_check(source));
    AH_TRY(ah__new(&buffer, (size_t)ah__partition_largest(source->partition), sizeof *buffer));
    int status = AH_OK;
    for (int p = 0; p < source->partition->param_count && status == AH_OK; p++) {
        if (source->partition->params[p].adapter || is_beside(source, &source->partition->params[p]))
            continue;
        status = load_one(buffer, source, &source->partition->params[p]);
        if (status == AH_OK)
            status = ah__run_load(run, p, AH_RUN_PARAM, buffer);
    }
    ah__free(buffer);
    return status;
}

/* Writes one line: "left out of the weights: ..." */
static void describe_left_out(char note[AH_WEIGHTS_NOTE_SIZE], const struct source *source)
{
    char buffers[160] = "", head[130] = "";
    note[0] = 0;
    if (source->buffers == 1)
        snprintf(buffers, sizeof buffers, "'%.80s', a constant and no weight", source->buffer);
    if (source->buffers > 1)
        snprintf(buffers, sizeof buffers, "'%.80s' and %zu more constants that are no weights", source->buffer,
                 source->buffers - 1);
    if (source->head)
        snprintf(head, sizeof head, "'%.80s', which is the embedding once more", source->head);
    if (buffers[0] || head[0])
        snprintf(note, AH_WEIGHTS_NOTE_SIZE, "left out of the weights: %s%s%s", buffers,
                 buffers[0] && head[0] ? "; " : "", head);
}

/* Returns a hash of the bytes at either end. */
static uint64_t ends_hash(const unsigned char *data, size_t bytes, uint64_t hash)
{
    const size_t most = 4096;
    size_t length = bytes < most ? bytes : most;
    return ah__hash(data + bytes - length, length, ah__hash(data, length, hash));
}

/* Returns a hash of a tensor's name, type, shape and the bytes at either end of each part: reading all bytes would take
 * as long as loading. */
static uint64_t tensor_hash(const struct ah_weight_tensor *tensor, uint64_t hash)
{
    hash = ah__hash_int(tensor->bytes, ah__hash_text(tensor->type_name, ah__hash_text(tensor->name, hash)));
    hash = ah__hash(tensor->dim, (size_t)tensor->rank * sizeof *tensor->dim, hash);
    if (tensor->scales)
        hash = ends_hash(tensor->scales, ah__weight_scales(tensor), hash);
    if (!tensor->parts)
        return ends_hash(tensor->data, tensor->bytes, hash);
    for (size_t i = 0; i < tensor->part_count; i++)
        hash = ends_hash(tensor->parts[i], tensor->bytes / tensor->part_count, hash);
    return hash;
}

int ah__weights_signature(uint64_t *out, const char *path)
{
    struct ah_weight_tensors tensors = {.count = 0};
    int status = ah__weight_tensors_open(&tensors, path);
    *out = 0;
    for (size_t i = 0; status == AH_OK && i < tensors.count; i++)
        *out = tensor_hash(&tensors.tensors[i], *out);
    ah__weight_tensors_close(&tensors);
    return status;
}

/* Reads a factor of the adapter, or a tensor that replaces the model's own. */
static int adapter_read(float *buffer, const struct ah_adapter_tensors *adapter, const struct ah_param *param)
{
    return param->adapter ? ah__adapter_tensors_read(buffer, adapter, param->name, param->shape)
                          : ah__weight_tensor_read(buffer, &adapter->tensors,
                                                   ah__adapter_tensors_whole(adapter, param->name), param->shape);
}

static int adapter_load(uint64_t *hash, const struct ah_adapter_tensors *adapter, const struct ah_partition *partition,
                        struct ah_run *run)
{
    float *buffer;
    AH_TRY(ah__new(&buffer, (size_t)ah__partition_largest(partition), sizeof *buffer));
    int status = AH_OK;
    for (int p = 0; p < partition->param_count && status == AH_OK; p++) {
        const struct ah_param *param = &partition->params[p];
        if (!param->adapter && !ah__adapter_tensors_whole(adapter, param->name))
            continue;
        status = adapter_read(buffer, adapter, param);
        if (status == AH_OK && hash)
            *hash = ah__hash(buffer, (size_t)ah__shape_count(&param->shape) * sizeof *buffer, *hash);
        if (status == AH_OK)
            status = ah__run_load(run, p, AH_RUN_PARAM, buffer);
    }
    ah__free(buffer);
    return status;
}

int ah__weights_load(char note[AH_WEIGHTS_NOTE_SIZE], uint64_t *hash, const char *path,
                     const struct ah_adapter_tensors *adapter, const struct ah_partition *partition, struct ah_run *run)
{
    struct source source = {.path = path, .partition = partition, .beside = adapter, .hash = hash};
    int status = ah__weight_tensors_open(&source.tensors, path);
    if (status == AH_OK)
        status = load_all(&source, run);
    if (status == AH_OK)
        describe_left_out(note, &source);
    ah__weight_tensors_close(&source.tensors);
    return status == AH_OK && adapter ? adapter_load(hash, adapter, partition, run) : status;
}
