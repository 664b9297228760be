/* ah_export_adapter() writes the factors of an adapter as tensors NAME.lora_a and NAME.lora_b, where NAME is
 * llama.cpp's name of the adapted weight. llama.cpp adds alpha / rank * B A, with the rank of each tensor and the same
 * alpha for all tensors. */
#include "infer/export_adapter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gguf/config.h"
#include "graph/graph.h"
#include "infer/export_name.h"
#include "infer/export_type.h"
#include "source/adapter_config.h"

enum { NAME_SIZE = 256 };

struct adapter_export {
    const struct ah_inference *from;
    const struct ah_model_def *def;
    struct ah_graph *graph; /* with adapters */
    struct ah_gguf_writer *writer;
    const struct ah_gguf_type *type;
    float *a, *b, *moved; /* [elements of the largest factor] */
    int written;          /* number of pairs */
};

/* The two factors of a weight as the file stores them. */
struct pair {
    char name[AH_GGUF_NAME_SIZE]; /* name of the weight */
    struct ah_shape a, b;         /* [rank, I], [O, rank]; rank 0: the file has no factors for it */
    struct ah_gguf_swap swap;     /* new order of b's rows */
};

/* ---- factors ----------------------------------------------------------------------------------------------------- */

static const struct ah_value *factor_find(const struct adapter_export *to, const char *weight, char which)
{
    char name[NAME_SIZE];
    static const char end[] = ".weight";
    size_t length = strlen(weight), module = length > sizeof end - 1 ? length - (sizeof end - 1) : 0;
    if (!module || strcmp(weight + module, end) != 0)
        return NULL;
    snprintf(name, sizeof name, "%.*s.lora_%c.weight", (int)module, weight, which);
    for (size_t i = 0; i < to->graph->value_count; i++)
        if (to->graph->values[i].name && strcmp(to->graph->values[i].name, name) == 0)
            return &to->graph->values[i];
    return NULL;
}

/* Returns the number of ranks up to the last that is not zero in both factors. Modules of a lower rank are padded with
 * zeros. */
static int64_t rank_of(const float *a, const float *b, const struct ah_shape *shape_a, const struct ah_shape *shape_b)
{
    int64_t most = shape_a->dim[0], ins = shape_a->dim[1], outs = shape_b->dim[0];
    for (int64_t rank = most; rank > 0; rank--) {
        for (int64_t i = 0; i < ins; i++)
            if (fpclassify(a[(rank - 1) * ins + i]) != FP_ZERO)
                return rank;
        for (int64_t o = 0; o < outs; o++)
            if (fpclassify(b[o * most + rank - 1]) != FP_ZERO)
                return rank;
    }
    return 0;
}

/* Keeps the first `rank` columns of B, times rank / (all columns): llama.cpp scales each tensor by alpha / its own
 * rank, but alpha is that of the largest rank. */
static void columns_take(float *b, const struct ah_shape *shape, int64_t rank)
{
    int64_t most = shape->dim[1];
    float factor = (float)rank / (float)most;
    for (int64_t o = 0; rank < most && o < shape->dim[0]; o++)
        for (int64_t r = 0; r < rank; r++)
            b[o * rank + r] = b[o * most + r] * factor;
}

/* Reads both factors into to->a and to->b. Rank 0: the value is no weight with an adapter. */
static int pair_read(struct pair *out, struct adapter_export *to, const struct ah_value *value)
{
    const struct ah_value *a = value->name && !value->adapter ? factor_find(to, value->name, 'A') : NULL;
    const struct ah_value *b = a ? factor_find(to, value->name, 'B') : NULL;
    *out = (struct pair){.name = ""};
    if (!b)
        return AH_OK;
    AH_TRY(ah__adapter_tensors_read(to->a, &to->from->adapted, a->name, a->meta.shape));
    AH_TRY(ah__adapter_tensors_read(to->b, &to->from->adapted, b->name, b->meta.shape));
    int64_t rank = rank_of(to->a, to->b, &a->meta.shape, &b->meta.shape);
    out->a = ah_shape2(rank, a->meta.shape.dim[1]);
    out->b = ah_shape2(b->meta.shape.dim[0], rank);
    if (!rank)
        return AH_OK;
    columns_take(to->b, &b->meta.shape, rank);
    if (!ah__gguf_name(out->name, to->def, value->name))
        return ah__fail(AH_EINPUT, "parameter '%.80s': found no name for it in GGUF", value->name);
    AH_TRY(ah__gguf_swaps(&out->swap, to->def, value->name, &out->b));
    if (out->swap.turned) /* only weights are transposed: their factors are of [O, I] here, too */
        out->swap.outer = 0;
    return AH_OK;
}

/* ---- file -------------------------------------------------------------------------------------------------------- */

static int pair_declare(struct adapter_export *to, const struct ah_value *value)
{
    char name[AH_GGUF_NAME_SIZE + 16];
    struct pair pair;
    AH_TRY(pair_read(&pair, to, value));
    if (!pair.a.dim[0])
        return AH_OK;
    snprintf(name, sizeof name, "%s.lora_a", pair.name);
    ah__gguf_put_tensor(to->writer, name, ah__export_stored(to->type, &pair.a), &pair.a);
    snprintf(name, sizeof name, "%s.lora_b", pair.name);
    ah__gguf_put_tensor(to->writer, name, ah__export_stored(to->type, &pair.b), &pair.b);
    to->written++;
    return AH_OK;
}

/* Writes a factor. `room` is scratch for as many numbers as the factor has. */
static int factor_write(struct adapter_export *to, const float *values, const struct ah_shape *shape, float *room)
{
    const struct ah_gguf_type *type = ah__export_stored(to->type, shape);
    int64_t count = ah__shape_count(shape);
    ah__gguf_narrow(room, type, values, count);
    return ah__gguf_writer_add(to->writer, room, (size_t)(count / type->block * type->bytes));
}

static int pair_write(struct adapter_export *to, const struct ah_value *value)
{
    struct pair pair;
    AH_TRY(pair_read(&pair, to, value));
    if (!pair.a.dim[0])
        return AH_OK;
    AH_TRY(factor_write(to, to->a, &pair.a, to->moved));
    if (!pair.swap.outer)
        return factor_write(to, to->b, &pair.b, to->moved);
    ah__gguf_swap(to->moved, to->b, &pair.swap);
    return factor_write(to, to->moved, &pair.b, to->b);
}

/* Writes general.name from the adapter's folder, or, if it is a checkpoint, from the training's folder around it. */
static int name_put(struct adapter_export *to)
{
    char *folder, *name = NULL;
    AH_TRY(ah__strdup(&folder, to->from->adapter));
    char *last = strrchr(folder, '/');
    if (last && last > folder && (strcmp(last, "/checkpoint") == 0 || strncmp(last, "/step-", 6) == 0))
        *last = 0;
    int status = ah__export_name(&name, NULL, to->from->adapter, folder);
    if (status == AH_OK)
        ah__gguf_put_text(to->writer, "general.name", name);
    ah__free(name);
    ah__free(folder);
    return status;
}

static int keys_put(struct adapter_export *to)
{
    const struct ah_tuning_settings *tuning = &to->from->tuning;
    double rank = tuning->lora_rank, alpha = tuning->lora_alpha > 0 ? tuning->lora_alpha : rank;
    AH_TRY(ah__gguf_put_architecture(to->writer, to->def));
    ah__gguf_put_text(to->writer, "general.type", "adapter");
    ah__gguf_put_text(to->writer, "adapter.type", "lora");
    AH_TRY(name_put(to));
    ah__gguf_put_float(to->writer, "adapter.lora.alpha", (float)(tuning->lora_rslora ? alpha * sqrt(rank) : alpha));
    ah__export_put_type(to->writer, to->type);
    return AH_OK;
}

static int room_new(struct adapter_export *to)
{
    int64_t most = 1;
    for (size_t i = 0; i < to->graph->value_count; i++) {
        const struct ah_value *value = &to->graph->values[i];
        int64_t count = value->name && value->adapter ? ah__shape_count(&value->meta.shape) : 0;
        most = count > most ? count : most;
    }
    AH_TRY(ah__new(&to->a, (size_t)most, sizeof *to->a));
    AH_TRY(ah__new(&to->b, (size_t)most, sizeof *to->b));
    return ah__new(&to->moved, (size_t)most, sizeof *to->moved);
}

static int pairs_do(struct adapter_export *to, int (*pair_do)(struct adapter_export *to, const struct ah_value *value))
{
    for (size_t i = 0; i < to->graph->value_count; i++)
        AH_TRY(pair_do(to, &to->graph->values[i]));
    return AH_OK;
}

static int file_write(struct adapter_export *to, const char *path)
{
    AH_TRY(room_new(to));
    AH_TRY(ah__gguf_writer_new(&to->writer));
    AH_TRY(keys_put(to));
    AH_TRY(pairs_do(to, pair_declare));
    AH_TRY(ah__gguf_writer_open(to->writer, path));
    AH_TRY(pairs_do(to, pair_write));
    return ah__gguf_writer_close(to->writer);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Records the graph. Fails for an adapter with whole tensors beside the factors, since GGUF adapters have no place for
 * them. */
static int record(struct adapter_export *to)
{
    const struct ah_record_options options = {
        .batch = 1, .seq = 1, .compute = AH_F32, .tuning = ah__tuning_view(&to->from->tuning)};
    AH_TRY(ah_model_record(&to->graph, to->from->model, &options));
    for (size_t i = 0; i < to->graph->value_count; i++) {
        const struct ah_value *value = &to->graph->values[i];
        if (value->name && !value->adapter && ah__adapter_tensors_whole(&to->from->adapted, value->name))
            return ah__fail(
                AH_EINPUT,
                "%s: found tensor '%.120s' beside adapters, which GGUF has no place for; autohete merge and "
                "then export make a whole model",
                to->from->adapted.tensors.path, value->name);
    }
    return AH_OK;
}

static int note_make(char **note, const struct adapter_export *to, const char *path)
{
    return ah__sprintf(note,
                       "%s: an adapter of %d weights, to be used beside its model's own file (llama-completion -m "
                       "MODEL.gguf --lora %s); autohete merge and then export make a whole model",
                       path, to->written, path);
}

int ah__export_adapter(char **note, const char *path, const struct ah_inference *from, const char *type)
{
    struct adapter_export to = {.from = from, .def = ah_model_get(from->model)};
    AH_TRY(ah__export_type(&to.type, type ? type : "f32"));
    int status = record(&to);
    if (status == AH_OK)
        status = file_write(&to, path);
    if (status == AH_OK && note)
        status = note_make(note, &to, path);
    ah__gguf_writer_free(to.writer);
    ah__free(to.a);
    ah__free(to.b);
    ah__free(to.moved);
    ah_graph_free(to.graph);
    return status;
}

int ah_export_adapter(char **note, const char *path, const char *model, const char *adapter, const char *type)
{
    const char *const inputs[] = {model, adapter};
    struct ah_inference from = {.ids_alone = true};
    AH_TRY(ah_output_check(path, inputs, AH_LENGTH(inputs)));
    int status = ah__inference_open(&from, model, adapter);
    if (status == AH_OK && !from.adapter)
        status = ah__fail(AH_EINPUT, "%s: found no adapter, expected one: it has " AH_ADAPTER_CONFIG, model);
    if (status == AH_OK)
        status = ah__export_adapter(note, path, &from, type);
    ah__inference_close(&from);
    return status;
}
