#include "train/adapter_tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/tuning.h"
#include "io/stack.h"
#include "model/model.h"

enum { NAME_SIZE = 256 };

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Shortens "lm_head.modules_to_save.default.weight" to "lm_head.weight". Returns true if the name had such a part. */
static bool cut_part(char name[NAME_SIZE])
{
    static const char part[] = ".modules_to_save.";
    char *at = strstr(name, part), *end = at ? strrchr(at + sizeof part - 2, '.') : NULL;
    if (end)
        memmove(at, end, strlen(end) + 1);
    return end != NULL;
}

/* Removes the adapter's name from tensor names, as PEFT saves them. Drops a wrapper's copy of a model's original
 * module, and a tensor that the file also has under PEFT's short name. */
static int names_set(struct ah_weight_tensors *tensors)
{
    struct ah_weight_tensor *all;
    size_t kept = 0, module;
    AH_TRY(ah__arena_new(&tensors->arena, &all, tensors->count, sizeof *all));
    for (size_t i = 0; i < tensors->count; i++) {
        const struct ah_weight_tensor *tensor = &tensors->tensors[i];
        char name[NAME_SIZE], which;
        if (strstr(tensor->name, ".original_module."))
            continue;
        if (ah__adapter_factor(&module, &which, tensor->name))
            snprintf(name, sizeof name, "%.*s.lora_%c.weight", (int)module, tensor->name, which);
        else
            snprintf(name, sizeof name, "%s", tensor->name);
        if (cut_part(name) && ah__weight_tensors_find(tensors, name))
            continue;
        all[kept] = *tensor;
        AH_TRY(ah__arena_strdup(&tensors->arena, &all[kept++].name, name));
    }
    tensors->tensors = all;
    tensors->count = kept;
    return ah__weight_tensors_sort(tensors);
}

int ah__adapter_tensors_open(struct ah_adapter_tensors *out, const char *folder)
{
    char *path;
    *out = (struct ah_adapter_tensors){.uneven = false};
    AH_TRY(ah__adapter_config_load(&out->config, folder));
    int status = ah__sprintf(&path, "%s/" AH_ADAPTER_FILE, folder);
    if (status == AH_OK) {
        status = ah__weight_tensors_open(&out->tensors, path);
        ah__free(path);
    }
    if (status == AH_OK)
        status = names_set(&out->tensors);
    if (status == AH_OK && !out->tensors.count)
        status = ah__fail(AH_EINPUT, "%s: found no tensors, expected '" AH_ADAPTER_PREFIX "NAME.lora_A.weight'",
                          out->tensors.path);
    if (status != AH_OK)
        ah__adapter_tensors_close(out);
    return status;
}

void ah__adapter_tensors_close(struct ah_adapter_tensors *adapter)
{
    ah__adapter_config_free(&adapter->config);
    ah__weight_tensors_close(&adapter->tensors);
    adapter->uneven = false;
}

/* Finds a tensor by its name, or by the name without its first part, as in a model's body that was saved alone. */
static const struct ah_weight_tensor *find(const struct ah_adapter_tensors *adapter, const char *name)
{
    const struct ah_weight_tensor *tensor = ah__weight_tensors_find(&adapter->tensors, name);
    const char *dot = strchr(name, '.');
    return tensor || !dot ? tensor : ah__weight_tensors_find(&adapter->tensors, dot + 1);
}

const struct ah_weight_tensor *ah__adapter_tensors_whole(const struct ah_adapter_tensors *adapter, const char *name)
{
    size_t module;
    char which;
    return ah__adapter_factor(&module, &which, name) ? NULL : find(adapter, name);
}

/* ---- which modules ----------------------------------------------------------------------------------------------- */

/* An adapter that is fitted to a model. `graph`: the model recorded with adapters of all its linear layers and experts.
 */
struct fit {
    struct ah_adapter_tensors *adapter;
    struct ah_graph *graph;
    const char *embedding, *head; /* names of parameters; head null: it is the embedding */
};

static const struct ah_value *value_of(const struct fit *fit, const char *name)
{
    for (size_t i = 0; i < fit->graph->value_count; i++) {
        const char *own = fit->graph->values[i].name, *dot = own ? strchr(own, '.') : NULL;
        if (own && (strcmp(own, name) == 0 || (dot && strcmp(dot + 1, name) == 0)))
            return &fit->graph->values[i];
    }
    return NULL;
}

/* Returns true if `target`, of `length` bytes, is the last parts of a module's name. */
static bool is_last(const char *module, size_t all, const char *target, size_t length)
{
    return all >= length && strncmp(module + all - length, target, length) == 0 &&
           (all == length || module[all - length - 1] == '.');
}

/* Returns true if the module of the factor is one of the targets. */
static bool is_target(const char *targets, const char *factor)
{
    size_t module;
    char which;
    if (!ah__adapter_factor(&module, &which, factor))
        return false;
    if (strcmp(targets, AH_LORA_ALL) == 0)
        return !ah__stack_is(factor);    /* those of experts are no linear layers for PEFT */
    size_t plain = strcspn(factor, "^"); /* targets have no marks (io/stack.h) */
    module = plain < module ? plain : module;
    for (const char *at = targets; *at; at += strcspn(at, ","), at += *at == ',')
        if (is_last(factor, module, at, strcspn(at, ",")))
            return true;
    return false;
}

static int fail_targets(const struct fit *fit)
{
    const struct ah_adapter_config *config = &fit->adapter->config;
    char list[NAME_SIZE] = "";
    for (size_t i = 0, used = 0; i < fit->graph->linear_count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", fit->graph->linears[i]);
    return ah__fail(AH_EINPUT,
                    "%s: key 'target_modules': found '%.160s', expected one of the linear layers of the model's blocks "
                    "at least: %s",
                    config->path, config->targets, list);
}

/* Drops the targets that the model does not have. */
static int targets_fit(struct fit *fit)
{
    struct ah_adapter_config *config = &fit->adapter->config;
    char all[AH_ADAPTER_TARGETS], *rest = all, kept[AH_ADAPTER_TARGETS] = "";
    size_t used = 0;
    if (strcmp(config->targets, AH_LORA_ALL) == 0)
        return AH_OK;
    snprintf(all, sizeof all, "%s", config->targets);
    for (char *name; (name = strsep(&rest, ","));) {
        bool found = false;
        for (size_t i = 0; i < fit->graph->value_count && !found; i++)
            found = fit->graph->values[i].adapter && is_target(name, fit->graph->values[i].name);
        if (found)
            used += (size_t)snprintf(kept + used, sizeof kept - used, "%s%s", used ? "," : "", name);
    }
    if (!used)
        return fail_targets(fit);
    snprintf(config->targets, sizeof config->targets, "%s", kept);
    return AH_OK;
}

/* Returns the number of the block that a module is in; -1: none. */
static int layer_of(const char *name)
{
    for (const char *part = name; *part; part += strcspn(part, "."), part += *part == '.') {
        size_t digits = strspn(part, "0123456789");
        if (digits > 0 && part[digits] == '.')
            return atoi(part);
    }
    return -1;
}

/* ---- is it whole? ------------------------------------------------------------------------------------------------ */

/* Fails if the file has a tensor that would be left out. */
static int surplus_check(const struct fit *fit)
{
    const struct ah_weight_tensors *tensors = &fit->adapter->tensors;
    for (size_t i = 0; i < tensors->count; i++) {
        const char *name = tensors->tensors[i].name;
        const struct ah_value *value = value_of(fit, name);
        size_t module;
        char which;
        bool factor = ah__adapter_factor(&module, &which, name), own = value && !value->adapter;
        if (factor ? value && is_target(fit->adapter->config.targets, name) &&
                         ah__adapter_config_layer(&fit->adapter->config, layer_of(name))
                   : own)
            continue;
        if (strstr(name, ".lora_") || strstr(name, ".base_layer."))
            return ah__fail(AH_EINPUT,
                            "%s: found tensor '%.120s', expected adapters of the model's linear layers in its blocks "
                            "that " AH_ADAPTER_CONFIG " names, and of nothing else",
                            tensors->path, name);
        return ah__fail(AH_EINPUT, "%s: found tensor '%.120s', which the model does not have", tensors->path, name);
    }
    return AH_OK;
}

static int fail_missing(const struct fit *fit, const char *name)
{
    const struct ah_weight_tensors *tensors = &fit->adapter->tensors;
    return ah__fail(AH_EINPUT, "%s: found no tensor '%.120s'; it has %zu, from '%.80s' to '%.80s'", tensors->path, name,
                    tensors->count, tensors->tensors[0].name, tensors->tensors[tensors->count - 1].name);
}

/* Returns true if the file has the other factor of the same module. */
static bool has_other(const struct ah_adapter_tensors *adapter, const char *name, size_t module, char which)
{
    char other[NAME_SIZE];
    snprintf(other, sizeof other, "%.*s.lora_%c.weight", (int)module, name, which == 'A' ? 'B' : 'A');
    return find(adapter, other) != NULL;
}

/* Checks that one factor of the graph is in the file, or was left out on purpose. */
static int factor_check(const struct fit *fit, const char *name)
{
    struct ah_adapter_tensors *adapter = fit->adapter;
    double factor;
    size_t module;
    char which, text[NAME_SIZE];
    int rank;
    if (!ah__adapter_factor(&module, &which, name) || !is_target(adapter->config.targets, name))
        return AH_OK;
    bool there = find(adapter, name) != NULL;
    bool wanted = !adapter->config.by_file || has_other(adapter, name, module, which) ||
                  (adapter->config.layers && ah__adapter_config_layer(&adapter->config, layer_of(name)));
    if (!there && wanted)
        return fail_missing(fit, name);
    snprintf(text, sizeof text, "%.*s", (int)module, name);
    AH_TRY(ah__adapter_config_module(&rank, &factor, &adapter->config, text));
    adapter->uneven = adapter->uneven || (there && (factor < 1 || factor > 1));
    return AH_OK;
}

/* Returns true if the adapter saves the module whole: the end of its name is listed, as PEFT finds it. */
static bool is_whole(const struct ah_adapter_config *config, const char *name)
{
    const char *last = strrchr(name, '.');
    size_t all = last ? (size_t)(last - name) : strlen(name);
    const cJSON *each;
    cJSON_ArrayForEach(each, config->whole)
    {
        size_t length = cJSON_IsString(each) ? strlen(each->valuestring) : 0;
        if (length && length <= all && strncmp(name + all - length, each->valuestring, length) == 0)
            return true;
    }
    return false;
}

static int missing_check(const struct fit *fit)
{
    for (size_t i = 0; i < fit->graph->value_count; i++) {
        const struct ah_value *value = &fit->graph->values[i];
        if (!value->name)
            continue;
        if (value->adapter)
            AH_TRY(factor_check(fit, value->name));
        else if (is_whole(&fit->adapter->config, value->name) && !find(fit->adapter, value->name))
            return fail_missing(fit, value->name);
    }
    return AH_OK;
}

/* ---- embedding and head ------------------------------------------------------------------------------------------ */

static void tables_find(struct fit *fit)
{
    static const char *const heads[] = {"lm_head.weight", "embed_out.weight"};
    const struct ah_graph *graph = fit->graph;
    fit->embedding = fit->head = NULL;
    for (size_t i = 0; i < graph->node_count && !fit->embedding; i++)
        if (graph->nodes[i].op == AH_OP_EMBEDDING && graph->nodes[i].in[1] == graph->tokens)
            fit->embedding = graph->values[graph->values[graph->nodes[i].in[0]].whole].name;
    for (size_t i = 0; i < AH_LENGTH(heads) && !fit->head; i++) {
        const struct ah_value *value = value_of(fit, heads[i]);
        fit->head = value ? value->name : NULL;
    }
}

static bool same_values(const struct ah_weight_tensor *a, const struct ah_weight_tensor *b)
{
    return strcmp(a->type_name, b->type_name) == 0 && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0;
}

/* Returns true if the model ties its head to the embedding, but the adapter has two that differ, or only one of
 * them. */
static bool is_untied(const struct fit *fit, const struct ah_weight_tensor *embedding)
{
    const struct ah_adapter_tensors *adapter = fit->adapter;
    const struct ah_weight_tensor *head = ah__weight_tensors_find(&adapter->tensors, "lm_head.weight");
    if (fit->head)
        return false;
    if (head)
        return !embedding || !same_values(embedding, head);
    return embedding && is_whole(&adapter->config, fit->embedding) &&
           !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(adapter->config.json.node, "ensure_weight_tying"));
}

static int set(cJSON *tree, const char *key, cJSON *value)
{
    if (value && cJSON_ReplaceItemInObjectCaseSensitive(tree, key, value))
        return AH_OK;
    cJSON_Delete(value);
    return ah__fail(AH_ENOMEM, "out of host memory: %s", key);
}

static int model_again(struct ah_model **model, int64_t rows, bool untied)
{
    const struct ah_model_def *def = ah_model_get(*model);
    struct ah_model *made;
    struct ah_json json;
    char *text = NULL;
    AH_TRY(ah__json_parse(&json, def->config, strlen(def->config), def->name));
    int status = set(json.node, "vocab_size", cJSON_CreateNumber((double)rows));
    if (status == AH_OK && untied)
        status = set(json.node, "tie_word_embeddings", cJSON_CreateFalse());
    if (status == AH_OK)
        status = ah__json_text(&text, json.node, true);
    if (status == AH_OK)
        status = ah__model_parse(&made, text, strlen(text), def->name);
    free(text);
    ah__json_free(&json);
    AH_TRY(status);
    ah_model_free(*model);
    *model = made;
    return AH_OK;
}

static int record(struct fit *fit, const struct ah_model *model)
{
    const struct ah_record_options options = {
        .batch = 1, .seq = 1, .compute = AH_F32, .tuning = {.lora_rank = 1, .lora_targets = AH_LORA_EVERY}};
    ah_graph_free(fit->graph);
    fit->graph = NULL;
    AH_TRY(ah_model_record(&fit->graph, model, &options));
    tables_find(fit);
    return AH_OK;
}

/* Replaces the model by one whose embedding and head have the adapter's sizes. */
static int tables_fit(struct fit *fit, struct ah_model **model)
{
    const struct ah_weight_tensor *embedding = fit->embedding ? find(fit->adapter, fit->embedding) : NULL;
    const struct ah_weight_tensor *head = find(fit->adapter, fit->head ? fit->head : "lm_head.weight");
    const struct ah_weight_tensor *table = embedding ? embedding : head;
    int64_t rows = ah_model_get(*model)->vocab_size;
    bool untied = is_untied(fit, embedding), resized = table && table->rank == 2 && table->dim[0] != rows;
    fit->adapter->untied = untied;
    if (!untied && !resized)
        return AH_OK;
    AH_TRY(model_again(model, resized ? table->dim[0] : rows, untied));
    return record(fit, *model);
}

/* Drops a head that equals the embedding of a tied model; is_untied has compared them. */
static void tied_head_drop(const struct fit *fit)
{
    struct ah_weight_tensors *tensors = &fit->adapter->tensors;
    size_t kept = 0;
    for (size_t i = 0; i < tensors->count; i++)
        if (fit->head || strcmp(tensors->tensors[i].name, "lm_head.weight") != 0)
            tensors->tensors[kept++] = tensors->tensors[i];
    tensors->count = kept;
}

int ah__adapter_tensors_fit(struct ah_adapter_tensors *adapter, struct ah_model **model)
{
    struct fit fit = {.adapter = adapter};
    int status = record(&fit, *model);
    if (status == AH_OK)
        status = tables_fit(&fit, model);
    if (status == AH_OK) {
        tied_head_drop(&fit);
        status = targets_fit(&fit);
    }
    if (status == AH_OK)
        status = surplus_check(&fit);
    if (status == AH_OK)
        status = missing_check(&fit);
    ah_graph_free(fit.graph);
    return status;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Widens a factor of `rank` rows or columns, [rows, width] in the end, in place, with zeros after them. */
static void widen(float *to, char which, int64_t rank, int64_t rows, int64_t width)
{
    if (which == 'A') {
        memset(to + rank * width, 0, (size_t)((rows - rank) * width) * sizeof *to);
        return;
    }
    for (int64_t row = rows - 1; row >= 0 && rank < width; row--) {
        memmove(to + row * width, to + row * rank, (size_t)rank * sizeof *to);
        memset(to + row * width + rank, 0, (size_t)(width - rank) * sizeof *to);
    }
}

/* Widens the factors of all experts, the last one first. */
static void widen_all(float *to, char which, int64_t rank, const struct ah_shape *shape)
{
    int64_t rows = shape->dim[shape->rank - 2], width = shape->dim[shape->rank - 1];
    int64_t had = which == 'A' ? rank * width : rows * rank;
    for (int64_t expert = shape->rank == 3 ? shape->dim[0] - 1 : 0; expert >= 0; expert--) {
        memmove(to + expert * rows * width, to + expert * had, (size_t)had * sizeof *to);
        widen(to + expert * rows * width, which, rank, rows, width);
    }
}

int ah__adapter_tensors_read(float *to, const struct ah_adapter_tensors *adapter, const char *name,
                             struct ah_shape shape)
{
    const struct ah_weight_tensor *tensor = find(adapter, name);
    char text[NAME_SIZE], which;
    int64_t count = ah__shape_count(&shape);
    double factor;
    size_t module;
    int rank;
    if (!ah__adapter_factor(&module, &which, name))
        return ah__fail(AH_EINTERNAL, "'%s' is no adapter's", name);
    if (!tensor) {
        memset(to, 0, (size_t)count * sizeof *to);
        return AH_OK;
    }
    snprintf(text, sizeof text, "%.*s", (int)module, name);
    AH_TRY(ah__adapter_config_module(&rank, &factor, &adapter->config, text));
    struct ah_shape own = shape;
    own.dim[shape.rank - (which == 'A' ? 2 : 1)] = rank;
    AH_TRY(ah__weight_tensor_read(to, &adapter->tensors, tensor, own));
    widen_all(to, which, rank, &shape);
    for (int64_t i = 0; i < count && which == 'B' && (factor < 1 || factor > 1); i++)
        to[i] = (float)(to[i] * factor);
    return AH_OK;
}
