/* ah_merge() adds a model's adapters to its weights and writes a folder that needs neither of both. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "graph/graph.h"
#include "infer/inference.h"
#include "io/safetensors.h"
#include "io/shards.h"
#include "io/stack.h"
#include "op/bf16.h"
#include "source/adapter_files.h"
#include "source/new_folder.h"
#include "source/source.h"
#include "source/weight_tensors.h"

struct merge {
    const char *folder;
    struct ah_inference from;
    struct ah_graph *graph; /* with adapters */
    struct ah_model_files files;
    struct ah_weight_tensors base;
    enum ah_dtype dtype;
    float *weight, *a, *b; /* [elements of the largest parameter or factor] */
    uint16_t *narrow;
    int64_t bytes, count; /* bytes written; parameters in them */
};

static int tensors_open(struct merge *merge, const char *path, const char *given)
{
    AH_TRY(ah__inference_open(&merge->from, path, given));
    if (!merge->from.adapter)
        return ah__fail(AH_EINPUT, "%s: found no adapter, expected one: it has " AH_ADAPTER_CONFIG, path);
    merge->folder = ah__inference_folder(&merge->from);
    return ah__weight_tensors_open(&merge->base, merge->from.weights);
}

/* Returns true if the value is a parameter of the model, not of an adapter. */
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

/* Sets *out if the adapter comes from a training of AutoHete that computed in fp32. */
static int trained_exactly(bool *out, const struct merge *merge)
{
    struct ah_json json;
    AH_TRY(ah__json_load_any(&json, merge->from.adapter, "state.json"));
    const char *dtype = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json.node, "dtype"));
    *out = dtype && strcmp(dtype, "fp32") == 0;
    ah__json_free(&json);
    return AH_OK;
}

/* Chooses the dtype that was asked for; else fp32 if bf16 would round the parameters. */
static int dtype_choose(struct merge *merge, const char *asked)
{
    bool exact;
    if (asked)
        return ah_dtype_parse(&merge->dtype, asked);
    AH_TRY(trained_exactly(&exact, merge));
    for (size_t i = 0; i < merge->base.count; i++)
        exact = exact || (merge->base.tensors[i].rank >= 2 && strcmp(merge->base.tensors[i].type_name, "BF16") != 0);
    merge->dtype = exact ? AH_F32 : AH_BF16;
    return AH_OK;
}

static const struct ah_value *find(const struct ah_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].name && strcmp(graph->values[i].name, name) == 0)
            return &graph->values[i];
    return NULL;
}

static int merge_open(struct merge *merge, const char *path, const char *adapter, const char *dtype)
{
    AH_TRY(tensors_open(merge, path, adapter));
    const struct ah_record_options options = {
        .batch = 1, .seq = 1, .compute = AH_F32, .tuning = ah__tuning_view(&merge->from.tuning)};
    AH_TRY(dtype_choose(merge, dtype));
    AH_TRY(ah__model_files_load(&merge->files, merge->folder));
    AH_TRY(ah__adapter_files_over(&merge->files, merge->from.adapter));
    AH_TRY(ah_model_record(&merge->graph, merge->from.model, &options));
    return room_new(merge);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* Reads a parameter into merge->weight: from the adapter if that has it whole, else from the model. The model's tensor
 * may lack the first part of the name, if its body was saved without the head; of a tied embedding and head it may have
 * the name of the other. */
static int read(struct merge *merge, const char *name, struct ah_shape shape)
{
    static const char embedding[] = "model.embed_tokens.weight", head[] = "lm_head.weight";
    const struct ah_weight_tensor *whole = ah__adapter_tensors_whole(&merge->from.adapted, name);
    const struct ah_weight_tensor *tensor = ah__weight_tensors_find(&merge->base, name);
    const char *dot = strchr(name, '.');
    if (whole)
        return ah__weight_tensor_read(merge->weight, &merge->from.adapted.tensors, whole, shape);
    if (!tensor && dot)
        tensor = ah__weight_tensors_find(&merge->base, dot + 1);
    if (!tensor && strcmp(name, embedding) == 0)
        tensor = ah__weight_tensors_find(&merge->base, head);
    if (!tensor && merge->from.adapted.untied && strcmp(name, head) == 0)
        tensor = ah__weight_tensors_find(&merge->base, embedding);
    if (!tensor)
        return ah__fail(AH_EINPUT, "%s: found no tensor '%.80s', which the model has", merge->base.path, name);
    return ah__weight_tensor_read(merge->weight, &merge->base, tensor, shape);
}

/* Sizes of a weight and its factors: outputs, inputs and rank. */
struct product {
    int64_t outs, ins, rank;
};

/* weight += scale B A, where weight is [O, I], or [I, O] if transposed. `expert`: which of several such products. */
static void add(struct merge *merge, const struct product *p, int64_t expert, bool transposed)
{
    float *weight = merge->weight + expert * p->outs * p->ins;
    const float *from_a = merge->a + expert * p->rank * p->ins, *from_b = merge->b + expert * p->outs * p->rank;
    for (int64_t o = 0; o < p->outs; o++)
        for (int64_t r = 0; r < p->rank; r++) {
            float b = from_b[o * p->rank + r] * merge->graph->lora_scale;
            for (int64_t i = 0; i < p->ins; i++)
                weight[transposed ? i * p->outs + o : o * p->ins + i] += b * from_a[r * p->ins + i];
        }
}

/* Computes the value's weights plus the product of its adapter's factors. */
static int merged(struct merge *merge, const struct ah_value *value)
{
    char name[2][256];
    const struct ah_value *factor[2];
    const struct ah_shape *shape = &value->meta.shape;
    size_t length = strlen(value->name), suffix = strlen(".weight");
    size_t module = length > suffix && strcmp(value->name + length - suffix, ".weight") == 0 ? length - suffix : length;
    AH_TRY(read(merge, value->name, *shape));
    for (int i = 0; i < 2; i++) {
        snprintf(name[i], sizeof name[i], "%.*s.lora_%c.weight", (int)module, value->name, "AB"[i]);
        factor[i] = find(merge->graph, name[i]);
        if (!factor[i])
            return AH_OK;
    }
    AH_TRY(ah__adapter_tensors_read(merge->a, &merge->from.adapted, name[0], factor[0]->meta.shape));
    AH_TRY(ah__adapter_tensors_read(merge->b, &merge->from.adapted, name[1], factor[1]->meta.shape));
    const struct ah_shape *a = &factor[0]->meta.shape, *b = &factor[1]->meta.shape;
    const struct product product = {
        .outs = b->dim[b->rank - 2], .ins = a->dim[a->rank - 1], .rank = b->dim[b->rank - 1]};
    /* The shape of a square weight does not tell whether it is transposed; the product that reads it does. */
    bool transposed = !ah__graph_is_out_in(merge->graph, (int)(value - merge->graph->values));
    for (int64_t expert = 0; expert < (a->rank == 3 ? a->dim[0] : 1); expert++)
        add(merge, &product, expert, transposed);
    return AH_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int append(struct merge *merge, struct ah_safetensors_writer *writer, const struct ah_value *value)
{
    int64_t count = ah__shape_count(&value->meta.shape);
    AH_TRY(merged(merge, value));
    merge->count += count;
    if (merge->dtype == AH_F32)
        return ah__stack_append(writer, value->name, merge->weight, &value->meta.shape, AH_F32);
    ah__bf16_narrow(merge->narrow, merge->weight, count);
    return ah__stack_append(writer, value->name, merge->narrow, &value->meta.shape, AH_BF16);
}

static int weights_fill(struct merge *merge, struct ah_safetensors_writer *writer)
{
    for (size_t i = 0; i < merge->graph->value_count; i++)
        if (is_own(&merge->graph->values[i]))
            AH_TRY(append(merge, writer, &merge->graph->values[i]));
    return ah__safetensors_writer_close(writer, &merge->bytes, NULL);
}

static int weights_write(struct merge *merge, const char *path)
{
    struct ah_safetensors_decl *decls;
    struct ah_stack_decls apart = {.count = 0};
    struct ah_safetensors_writer *writer = NULL;
    size_t count = 0;
    AH_TRY(ah__new(&decls, merge->graph->value_count, sizeof *decls));
    for (size_t i = 0; i < merge->graph->value_count; i++) {
        const struct ah_value *value = &merge->graph->values[i];
        if (is_own(value))
            decls[count++] = (struct ah_safetensors_decl){value->name, merge->dtype, value->meta.shape};
    }
    int status = ah__stack_decls_fill(&apart, decls, count);
    if (status == AH_OK)
        status = ah__safetensors_writer_open(&writer, path, apart.decl, apart.count);
    if (status == AH_OK)
        status = weights_fill(merge, writer);
    ah__safetensors_writer_free(writer);
    ah__stack_decls_fini(&apart);
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

/* Returns true for the file names that folder_fill gives. */
static bool is_ours(const char *name)
{
    return strcmp(name, AH_SHARDS_FILE) == 0 || strcmp(name, "config.json") == 0 ||
           strcmp(name, AH_MORE_TEMPLATES) == 0 || ah__model_files_are(name);
}

static void merge_close(struct merge *merge)
{
    ah__free(merge->weight);
    ah__free(merge->narrow);
    ah__free(merge->a);
    ah__free(merge->b);
    ah__weight_tensors_close(&merge->base);
    ah__model_files_free(&merge->files);
    ah_graph_free(merge->graph);
    ah__inference_close(&merge->from);
}

static int note_make(char **note, const struct merge *merge, const char *out, bool asked)
{
    char size[32];
    bool exact = merge->dtype == AH_F32;
    return ah__sprintf(
        note,
        "%s: wrote %s, %lld parameters in %s, %s%s, and %zu files of its tokenizer and templates; --model "
        "%s reads it, export --model %s --gguf FILE makes a GGUF file of it",
        out, AH_SHARDS_FILE, (long long)merge->count, exact ? "fp32" : "bf16",
        ah_size_format(size, sizeof size, merge->bytes),
        exact || asked ? "" : " (rounded to the model's own type; --dtype fp32 rounds nothing)", merge->files.count,
        out, out);
}

/* Creates the folder before the work begins. */
int ah_merge_noted(char **note, const char *out, const char *model, const char *adapter, const char *dtype)
{
    struct merge merge = {.graph = NULL};
    struct ah_new_folder *folder = NULL;
    char *line = NULL;
    int status = ah__new_folder_begin(&folder, out, is_ours);
    if (status == AH_OK)
        status = merge_open(&merge, model, adapter, dtype);
    if (status == AH_OK)
        status = folder_fill(&merge, ah__new_folder_path(folder));
    if (status == AH_OK && note)
        status = note_make(&line, &merge, out, dtype != NULL);
    if (status == AH_OK)
        status = ah__new_folder_commit(folder);
    if (status == AH_OK && note)
        *note = line;
    else
        ah__free(line);
    ah__new_folder_free(folder);
    merge_close(&merge);
    return status;
}

int ah_merge(const char *out, const char *model, const char *adapter, const char *dtype)
{
    return ah_merge_noted(NULL, out, model, adapter, dtype);
}
