/* ah_export_gguf() writes the weights of a checkpoint, or of any readable model, tensor by tensor into a GGUF file. */
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gguf/by_name.h"
#include "gguf/config.h"
#include "gguf/tokenizer.h"
#include "graph/graph.h"
#include "infer/export_adapter.h"
#include "infer/export_name.h"
#include "infer/export_type.h"
#include "source/model_files.h"
#include "source/weight_tensors.h"

struct export
{
    const char *folder;
    struct ah_inference from; /* the model, its tokenizer and the path of its weights */
    const struct ah_model_def *def;
    struct ah_graph *graph; /* its parameters are written, in its order */
    struct ah_model_files files;
    struct ah_weight_tensors tensors;
    struct ah_gguf_writer *writer;
    const struct ah_gguf_type *type;
    float *values, *moved; /* [elements of the largest parameter] */
    struct ah_gguf_factors rope[2];
    struct ah_buf notes; /* differences in what llama.cpp does, clause by clause */
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int export_open(struct export *to)
{
    const struct ah_record_options options = {.batch = 1, .seq = 1, .compute = AH_F32};
    to->folder = ah__inference_folder(&to->from);
    AH_TRY(ah__weight_tensors_open(&to->tensors, to->from.weights));
    AH_TRY(ah__model_files_load(&to->files, to->folder));
    AH_TRY(ah_model_record(&to->graph, to->from.model, &options));
    to->def = ah_model_get(to->from.model);
    return ah__gguf_rope_factors(to->rope, to->def);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* Finds the tensor of a parameter: by its name, by its name without the first part, or, for the embedding, by the name
 * of the LM head that is tied to it. */
static int tensor_find(const struct ah_weight_tensor **out, const struct export *to, const char *name)
{
    const char *dot = strchr(name, '.');
    *out = ah__weight_tensors_find(&to->tensors, name);
    if (!*out && dot)
        *out = ah__weight_tensors_find(&to->tensors, dot + 1);
    if (!*out && strcmp(name, "model.embed_tokens.weight") == 0)
        *out = ah__weight_tensors_find(&to->tensors, "lm_head.weight");
    return *out ? AH_OK
                : ah__fail(AH_EINPUT, "%s: found no tensor '%.80s', which the model has", to->tensors.path, name);
}

/* A parameter as the file stores it. */
struct stored {
    char name[AH_GGUF_NAME_SIZE];
    struct ah_shape shape;
    struct ah_gguf_swap swap;
    const struct ah_gguf_type *type;
    int copies;                     /* number of copies of the data, one behind the other */
    char second[AH_GGUF_NAME_SIZE]; /* name of a tensor for the second half of each expert's rows; "": there is none */
};

/* Returns true for tensors that stay fp32, as vectors do: llama.cpp's converter leaves position embeddings and the
 * routers of experts so. */
static bool stays_exact(const char *name)
{
    static const char *const ends[] = {".ffn_gate_inp.weight", ".ffn_gate_inp_shexp.weight", ".bias"};
    size_t all = strlen(name);
    for (size_t i = 0; i < AH_LENGTH(ends); i++)
        if (all > strlen(ends[i]) && strcmp(name + all - strlen(ends[i]), ends[i]) == 0)
            return true;
    return strcmp(name, "position_embd.weight") == 0;
}

/* Computes how the file stores a parameter. */
static int stored_find(struct stored *out, const struct export *to, const struct ah_value *value)
{
    *out = (struct stored){.shape = value->meta.shape, .copies = 1};
    struct ah_shape *shape = &out->shape;
    if (!ah__gguf_name(out->name, to->def, value->name))
        return ah__fail(AH_EINPUT, "parameter '%.80s': found no name for it in GGUF", value->name);
    AH_TRY(ah__gguf_swaps(&out->swap, to->def, value->name, shape));
    if (out->swap.turned)
        *shape = ah_shape2(shape->dim[1], shape->dim[0]);
    if (shape->rank == 2 && shape->dim[0] == 1)
        *shape = ah_shape1(shape->dim[1]); /* as llama.cpp's converter has a single row */
    if (shape->rank >= 2 && ah__gguf_second(out->second, to->def, value->name)) {
        int64_t ins = shape->rank == 3 ? shape->dim[2] : 1;
        shape->dim[1] /= 2;
        out->swap = (struct ah_gguf_swap){.outer = 1, .x = shape->dim[0], .y = 2, .inner = shape->dim[1] * ins};
    }
    out->type = stays_exact(out->name) ? ah__gguf_type(AH_GGUF_F32) : ah__export_stored(to->type, shape);
    if (strcmp(out->name, "token_embd.weight") == 0 && ah__gguf_needs_head(to->def))
        out->copies = 2;
    return AH_OK;
}

static int param_declare(struct export *to, const struct ah_value *value, int64_t *largest)
{
    struct stored as;
    int64_t count = ah__shape_count(&value->meta.shape);
    AH_TRY(stored_find(&as, to, value));
    ah__gguf_put_tensor(to->writer, as.name, as.type, &as.shape);
    if (as.copies > 1)
        ah__gguf_put_tensor(to->writer, "output.weight", as.type, &as.shape);
    if (as.second[0])
        ah__gguf_put_tensor(to->writer, as.second, as.type, &as.shape);
    *largest = count > *largest ? count : *largest;
    return AH_OK;
}

static int param_write(struct export *to, const struct ah_value *value)
{
    struct stored as;
    const struct ah_weight_tensor *tensor;
    int64_t count = ah__shape_count(&value->meta.shape);
    float *values = to->values, *narrow = to->moved;
    AH_TRY(stored_find(&as, to, value));
    AH_TRY(tensor_find(&tensor, to, value->name));
    AH_TRY(ah__weight_tensor_read(values, &to->tensors, tensor, value->meta.shape));
    const float added = ah__gguf_adds(to->def, value->name);
    for (int64_t i = 0; i < count && added > 0; i++)
        values[i] += added;
    if (as.swap.outer) {
        ah__gguf_swap(to->moved, values, &as.swap);
        values = to->moved;
        narrow = to->values;
    }
    ah__gguf_narrow(narrow, as.type, values, count);
    size_t bytes = (size_t)(count / as.type->block * as.type->bytes), tensors = as.second[0] ? 2 : 1;
    for (size_t i = 0; i < tensors; i++)
        for (int copy = 0; copy < as.copies; copy++)
            AH_TRY(ah__gguf_writer_add(to->writer, (const char *)narrow + i * (bytes / tensors), bytes / tensors));
    return AH_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const char *file_text(const struct export *to, const char *name)
{
    const struct ah_model_file *file = ah__model_files_find(&to->files, name);
    return file ? file->text : NULL;
}

static int tokenizer_put(struct export *to)
{
    static const char name[] = "tokenizer.model";
    bool of_pieces = strcmp(to->from.tokenizer->name, name) == 0;
    const struct ah_model_file *pieces = of_pieces ? ah__model_files_find(&to->files, name) : NULL;
    const struct ah_gguf_tokenizer tokenizer = {.path = to->folder,
                                                .json = file_text(to, "tokenizer.json"),
                                                .config = file_text(to, "tokenizer_config.json"),
                                                .template = file_text(to, "chat_template.jinja"),
                                                .pieces = pieces ? pieces->text : NULL,
                                                .pieces_length = pieces ? pieces->length : 0,
                                                .tokenizer = to->from.tokenizer,
                                                .rows = to->def->vocab_size};
    if (tokenizer.json || tokenizer.pieces)
        return ah__gguf_put_tokenizer(to->writer, &to->notes, &tokenizer);
    return ah__fail(AH_EINPUT,
                    "%s: found %s, expected tokenizer.json with byte-level or SentencePiece's BPE, or tokenizer.model: "
                    "GGUF files have their tokenizer inside, and others are not written",
                    to->folder, to->from.tokenizer->name);
}

/* Returns the folder that names the model. For a checkpoint this is the training's folder. */
static const char *named(const struct export *to)
{
    return to->from.checkpoint.run_folder ? to->from.checkpoint.run_folder : to->folder;
}

static int general_put(struct export *to)
{
    char *name, *settled = NULL, label[16];
    int64_t parameters = 0;
    for (size_t i = 0; i < to->graph->value_count; i++)
        if (to->graph->values[i].name)
            parameters += ah__shape_count(&to->graph->values[i].meta.shape);
    ah__export_size_label(label, parameters);
    AH_TRY(ah__export_name(&name, to->tensors.gguf, to->folder, named(to)));
    int status = ah__gguf_name_settle(&settled, &to->notes, to->from.tokenizer, name);
    ah__free(name);
    AH_TRY(status);
    ah__gguf_put_text(to->writer, "general.type", "model");
    ah__gguf_put_text(to->writer, "general.name", settled);
    ah__gguf_put_text(to->writer, "general.size_label", label);
    ah__free(settled);
    return ah__export_put_sampling(to->writer, file_text(to, "generation_config.json"), to->folder);
}

static int keys_put(struct export *to)
{
    AH_TRY(ah__gguf_put_config(to->writer, to->def));
    AH_TRY(general_put(to));
    AH_TRY(ah__gguf_note_config(&to->notes, to->def));
    ah__export_put_type(to->writer, to->type);
    return tokenizer_put(to);
}

static int tensors_declare(struct export *to)
{
    int64_t largest = 1;
    for (size_t i = 0; i < to->graph->value_count; i++)
        if (to->graph->values[i].name)
            AH_TRY(param_declare(to, &to->graph->values[i], &largest));
    for (int i = 0; i < 2 && to->rope[i].name; i++) {
        const struct ah_shape shape = ah_shape1(to->rope[i].count);
        ah__gguf_put_tensor(to->writer, to->rope[i].name, ah__gguf_type(AH_GGUF_F32), &shape);
    }
    AH_TRY(ah__new(&to->values, (size_t)largest, sizeof *to->values));
    return ah__new(&to->moved, (size_t)largest, sizeof *to->moved);
}

static int file_write(struct export *to, const char *path)
{
    AH_TRY(ah__gguf_writer_new(&to->writer));
    AH_TRY(keys_put(to));
    AH_TRY(tensors_declare(to));
    AH_TRY(ah__gguf_writer_open(to->writer, path));
    for (size_t i = 0; i < to->graph->value_count; i++)
        if (to->graph->values[i].name)
            AH_TRY(param_write(to, &to->graph->values[i]));
    for (int i = 0; i < 2 && to->rope[i].name; i++)
        AH_TRY(ah__gguf_writer_add(to->writer, to->rope[i].values, (size_t)to->rope[i].count * sizeof(float)));
    return ah__gguf_writer_close(to->writer);
}

static void export_close(struct export *to)
{
    ah__gguf_writer_free(to->writer);
    ah__free(to->values);
    ah__free(to->moved);
    ah__free(to->rope[0].values);
    ah__free(to->rope[1].values);
    ah__weight_tensors_close(&to->tensors);
    ah__model_files_free(&to->files);
    ah_graph_free(to->graph);
    ah__inference_close(&to->from);
    ah__buf_free(&to->notes);
}

static int note_fill(char **note, const struct export *to)
{
    *note = NULL;
    AH_TRY(to->notes.status);
    return to->notes.length ? ah__sprintf(note, "%s: %s", to->folder, to->notes.text) : AH_OK;
}

static int model_write(char **note, const char *path, struct export *to)
{
    AH_TRY(export_open(to));
    AH_TRY(file_write(to, path));
    return note ? note_fill(note, to) : AH_OK;
}

int ah_export_gguf(const char *path, const char *model, const char *type)
{
    return ah_export_gguf_noted(NULL, path, model, type);
}

int ah_export_gguf_noted(char **note, const char *path, const char *model, const char *type)
{
    struct export to = {0};
    AH_TRY(ah__export_type(&to.type, type ? type : "f16"));
    AH_TRY(ah_output_check(path, &model, 1));
    int status = ah__inference_open(&to.from, model, NULL);
    if (status == AH_OK && to.from.adapter)
        status = ah__export_adapter(note, path, &to.from, type);
    else if (status == AH_OK)
        status = model_write(note, path, &to);
    export_close(&to);
    return status;
}
