/* ah_merge(): a model with its adapters added to its weights, as a folder that needs neither. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "graph/graph.h"
#include "infer/inference.h"
#include "io/adapter_config.h"
#include "io/model_files.h"
#include "io/safetensors.h"
#include "io/shards.h"
#include "op/bf16.h"
#include "train/weight_tensors.h"
#include "train/weights.h"

struct merge {
    const char *folder;
    struct ah_inference from;
    struct ah_graph *graph; /* with adapters */
    struct ah_model_files files;
    struct ah_weight_tensors base, adapter;
    enum ah_dtype dtype;
    float *weight, *a, *b; /* of the largest */
    uint16_t *narrow;
};

static int tensors_open(struct merge *merge, const char *path, const char *given)
{
    char *weights = NULL, *adapter = NULL;
    AH_TRY(ah__inference_open(&merge->from, path, given));
    if (!merge->from.adapter)
        return ah__fail(AH_EINPUT, "%s: found no adapter, expected one: it has " AH_ADAPTER_CONFIG, path);
    merge->folder = ah__inference_folder(&merge->from, path);
    int status = ah__weights_find(&weights, merge->folder);
    if (status == AH_OK && !weights)
        status = ah__fail(AH_EINPUT, "%s: found no weights, expected " AH_SHARDS_FILE " in it", merge->folder);
    if (status == AH_OK)
        status = ah__sprintf(&adapter, "%s/" AH_ADAPTER_FILE, merge->from.adapter);
    if (status == AH_OK)
        status = ah__weight_tensors_open(&merge->base, weights);
    if (status == AH_OK)
        status = ah__weight_tensors_open(&merge->adapter, adapter);
    ah__free(adapter);
    ah__free(weights);
    return status;
}

/* A parameter of the model's own. */
static bool is_own(const struct ah_value *value)
{
    return value->name && !value->adapter;
}

static int room_new(struct merge *merge)
{
    int64_t own = 1, adapter = 1;
    for (size_t i = 0; i < merge->graph->value_count; i++) {
        const struct ah_value *value = &merge->graph->values[i];
        int64_t count = value->name ? ah__shape_count(&value->meta.shape) : 0, *most = is_own(value) ? &own : &adapter;
        *most = count > *most ? count : *most;
    }
    AH_TRY(ah__new(&merge->weight, (size_t)own, sizeof *merge->weight));
    AH_TRY(ah__new(&merge->narrow, (size_t)own, sizeof *merge->narrow));
    AH_TRY(ah__new(&merge->a, (size_t)adapter, sizeof *merge->a));
    return ah__new(&merge->b, (size_t)adapter, sizeof *merge->b);
}

/* What bf16 would round is not rounded without being asked to. */
static enum ah_dtype default_dtype(const struct ah_weight_tensors *base)
{
    for (size_t i = 0; i < base->count; i++) {
        const char *type = base->tensors[i].type_name;
        if (base->tensors[i].rank >= 2 && (strcmp(type, "F32") == 0 || strcmp(type, "F16") == 0))
            return AH_F32;
    }
    return AH_BF16;
}

static const struct ah_value *find(const struct ah_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].name && strcmp(graph->values[i].name, name) == 0)
            return &graph->values[i];
    return NULL;
}

/* Nothing of an adapter is left out. */
static int check_surplus(const struct merge *merge)
{
    for (size_t i = 0; i < merge->adapter.count; i++) {
        const struct ah_value *value = find(merge->graph, merge->adapter.tensors[i].name);
        if (!value || !value->adapter)
            return ah__fail(AH_EINPUT, "%s: found tensor '%.80s', expected those of adapters alone",
                            merge->adapter.path, merge->adapter.tensors[i].name);
    }
    return AH_OK;
}

static int files_load(struct merge *merge)
{
    char *path;
    AH_TRY(ah__model_files_load(&merge->files, merge->folder));
    if (!merge->from.own_template)
        return AH_OK;
    AH_TRY(ah__sprintf(&path, "%s/chat_template.jinja", merge->from.adapter));
    int status = ah__model_files_set(&merge->files, "chat_template.jinja", path);
    ah__free(path);
    return status;
}

static int merge_open(struct merge *merge, const char *path, const char *adapter, const char *dtype)
{
    AH_TRY(tensors_open(merge, path, adapter));
    const struct ah_record_options options = {
        .batch = 1, .seq = 1, .compute = AH_F32, .tuning = ah__tuning_view(&merge->from.tuning)};
    merge->dtype = default_dtype(&merge->base);
    if (dtype)
        AH_TRY(ah_dtype_parse(&merge->dtype, dtype));
    AH_TRY(files_load(merge));
    AH_TRY(ah_model_record(&merge->graph, merge->from.model, &options));
    AH_TRY(check_surplus(merge));
    return room_new(merge);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static int read(float *to, const struct ah_weight_tensors *from, const char *name, struct ah_shape shape)
{
    const struct ah_weight_tensor *tensor = ah__weight_tensors_find(from, name);
    const char *dot = strchr(name, '.');
    if (!tensor && dot) /* a body that was saved alone */
        tensor = ah__weight_tensors_find(from, dot + 1);
    if (!tensor && strcmp(name, "model.embed_tokens.weight") == 0) /* a tied head that was saved instead */
        tensor = ah__weight_tensors_find(from, "lm_head.weight");
    if (!tensor)
        return ah__fail(AH_EINPUT, "%s: found no tensor '%.80s', which the model has", from->path, name);
    return ah__weight_tensor_read(to, from, tensor, shape);
}

/* weight += scale B A: [O, I], or its transpose. */
static void add(struct merge *merge, int64_t outs, int64_t ins, int64_t rank, bool transposed)
{
    for (int64_t o = 0; o < outs; o++)
        for (int64_t r = 0; r < rank; r++) {
            float b = merge->b[o * rank + r] * merge->graph->lora_scale;
            for (int64_t i = 0; i < ins; i++)
                merge->weight[transposed ? i * outs + o : o * ins + i] += b * merge->a[r * ins + i];
        }
}

/* The value's weights, with what its adapter adds. */
static int merged(struct merge *merge, const struct ah_value *value)
{
    char name[2][256];
    const struct ah_value *factor[2];
    const struct ah_shape *shape = &value->meta.shape;
    size_t length = strlen(value->name), suffix = strlen(".weight");
    size_t module = length > suffix && strcmp(value->name + length - suffix, ".weight") == 0 ? length - suffix : length;
    AH_TRY(read(merge->weight, &merge->base, value->name, *shape));
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%.*s.lora_%c.weight", (int)module, value->name, "AB"[i]);
        factor[i] = find(merge->graph, name[i]);
        if (!factor[i])
            return AH_OK;
    }
    AH_TRY(read(merge->a, &merge->adapter, name[0], factor[0]->meta.shape));
    AH_TRY(read(merge->b, &merge->adapter, name[1], factor[1]->meta.shape));
    int64_t rank = factor[0]->meta.shape.dim[0], ins = factor[0]->meta.shape.dim[1];
    int64_t outs = factor[1]->meta.shape.dim[0];
    /* A square weight does not tell by its shape which way round it is; the product that reads it does. */
    add(merge, outs, ins, rank, !ah__graph_is_out_in(merge->graph, (int)(value - merge->graph->values)));
    return AH_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int append(struct merge *merge, struct ah_safetensors_writer *writer, const struct ah_value *value)
{
    int64_t count = ah__shape_count(&value->meta.shape);
    AH_TRY(merged(merge, value));
    if (merge->dtype == AH_F32)
        return ah__safetensors_writer_append(writer, merge->weight, (size_t)count * sizeof *merge->weight);
    ah__bf16_narrow(merge->narrow, merge->weight, count);
    return ah__safetensors_writer_append(writer, merge->narrow, (size_t)count * sizeof *merge->narrow);
}

static int weights_fill(struct merge *merge, struct ah_safetensors_writer *writer)
{
    for (size_t i = 0; i < merge->graph->value_count; i++)
        if (is_own(&merge->graph->values[i]))
            AH_TRY(append(merge, writer, &merge->graph->values[i]));
    return ah__safetensors_writer_close(writer, NULL, NULL);
}

static int weights_write(struct merge *merge, const char *path)
{
    struct ah_safetensors_decl *decls;
    struct ah_safetensors_writer *writer = NULL;
    size_t count = 0;
    AH_TRY(ah__new(&decls, merge->graph->value_count, sizeof *decls));
    for (size_t i = 0; i < merge->graph->value_count; i++) {
        const struct ah_value *value = &merge->graph->values[i];
        if (is_own(value))
            decls[count++] = (struct ah_safetensors_decl){value->name, merge->dtype, value->meta.shape};
    }
    int status = ah__safetensors_writer_open(&writer, path, decls, count);
    if (status == AH_OK)
        status = weights_fill(merge, writer);
    ah__safetensors_writer_free(writer);
    ah__free(decls);
    return status;
}

static int folder_fill(struct merge *merge, const char *folder)
{
    const struct ah_model_def *def = ah_model_get(merge->from.model);
    char *path, *config;
    AH_TRY(ah__sprintf(&path, "%s/" AH_SHARDS_FILE, folder));
    int status = weights_write(merge, path);
    ah__free(path);
    AH_TRY(status);
    AH_TRY(ah__model_files_config(&config, &merge->files, def->config, def->vocab_size));
    status = ah__sprintf(&path, "%s/config.json", folder);
    if (status == AH_OK) {
        status = ah__file_write(path, config, strlen(config));
        ah__free(path);
    }
    ah__free(config);
    for (size_t i = 0; status == AH_OK && i < merge->files.count; i++)
        status = ah__model_file_save(&merge->files.file[i], folder);
    return status;
}

static int check_new(const char *path)
{
    return ah__path_exists(path) ? ah__fail(AH_EINPUT, "%s: found something there, expected a new folder's name", path)
                                 : AH_OK;
}

/* Complete or absent. */
static int folder_write(struct merge *merge, const char *out)
{
    char *making;
    AH_TRY(ah__sprintf(&making, "%s.tmp", out));
    int status = check_new(making);
    if (status != AH_OK) {
        ah__free(making);
        return status;
    }
    status = ah__folder_make(making);
    if (status == AH_OK)
        status = folder_fill(merge, making);
    if (status == AH_OK && rename(making, out) != 0)
        status = ah__fail(AH_EIO, "%s: cannot rename to %s: %s", making, out, strerror(errno));
    if (status != AH_OK)
        (void)ah__folder_remove(making);
    ah__free(making);
    return status;
}

static void merge_close(struct merge *merge)
{
    ah__free(merge->weight);
    ah__free(merge->narrow);
    ah__free(merge->a);
    ah__free(merge->b);
    ah__weight_tensors_close(&merge->base);
    ah__weight_tensors_close(&merge->adapter);
    ah__model_files_free(&merge->files);
    ah_graph_free(merge->graph);
    ah__inference_close(&merge->from);
}

static int merge_to(const char *out, const char *model, const char *adapter, const char *dtype)
{
    struct merge merge = {.graph = NULL};
    int status = check_new(out);
    if (status == AH_OK)
        status = merge_open(&merge, model, adapter, dtype);
    if (status == AH_OK)
        status = folder_write(&merge, out);
    merge_close(&merge);
    return status;
}

int ah_merge(const char *out, const char *model, const char *adapter, const char *dtype)
{
    char *bare; /* without slashes at its end */
    AH_TRY(ah__strdup(&bare, out));
    for (size_t length = strlen(bare); length > 1 && bare[length - 1] == '/'; length--)
        bare[length - 1] = 0;
    int status = merge_to(bare, model, adapter, dtype);
    ah__free(bare);
    return status;
}
