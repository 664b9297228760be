#include "model/model.h"

#include <string.h>

#include "base/hash.h"
#include "graph/graph.h"
#include "graph/tuning.h"
#include "model/config.h"
#include "model/family.h"
#include "model/keys.h"
#include "source/source.h"

struct ah_model {
    struct ah_model_def def;
    char *name, *config;
    char *note;                     /* names the unknown keys of config.json; null: all are known */
    const struct ah_family *family; /* of a loaded model; null: the caller made the definition */
    void *family_config;            /* the context of a loaded model, which owns it */
};

static int check_def(const struct ah_model_def *def)
{
    if (!def->record)
        return ah__fail(AH_EINPUT, "model definition: found no record function");
    if (def->vocab_size < 1 || def->max_seq < 1 || def->layers < 1)
        return ah__fail(AH_EINPUT,
                        "model definition: found vocab_size %lld, max_seq %lld, layers %d, expected at least 1 of each",
                        (long long)def->vocab_size, (long long)def->max_seq, def->layers);
    return AH_OK;
}

static int model_fill(struct ah_model *model, const struct ah_model_def *def)
{
    model->def = *def;
    AH_TRY(ah__strdup(&model->name, def->name ? def->name : "model"));
    AH_TRY(ah__strdup(&model->config, def->config ? def->config : "{}"));
    model->def.name = model->name;
    model->def.config = model->config;
    return AH_OK;
}

int ah_model_new(struct ah_model **out, const struct ah_model_def *def)
{
    struct ah_model *model;
    AH_TRY(check_def(def));
    AH_TRY(ah__new(&model, 1, sizeof *model));
    int status = model_fill(model, def);
    if (status == AH_OK)
        *out = model;
    else
        ah_model_free(model);
    return status;
}

void ah_model_free(struct ah_model *model)
{
    if (!model)
        return;
    ah__free(model->name);
    ah__free(model->config);
    ah__free(model->note);
    if (model->family)
        ah__free(model->family_config);
    ah__free(model);
}

const struct ah_model_def *ah_model_get(const struct ah_model *model)
{
    return &model->def;
}

int ah__model_check(const struct ah_model *model, bool strict)
{
    return strict && model->note ? ah__fail(AH_EINPUT, "%s; expected none (--strict)", model->note) : AH_OK;
}

const char *ah_model_note(const struct ah_model *model)
{
    return model->note;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Makes a model, which then owns config; after a failure the caller still does. */
static int model_take_config(struct ah_model **out, const struct ah_family *family, void *config)
{
    struct ah_model_def def = {.name = family->model_type, .record = family->record, .context = config};
    char *text;
    AH_TRY(ah__config_text(&text, family->architecture, family->model_type, family->write, config));
    family->describe(&def, config);
    def.config = text;
    int status = ah_model_new(out, &def);
    ah__free(text);
    AH_TRY(status);
    (*out)->family = family;
    (*out)->family_config = config;
    return AH_OK;
}

/* Adds the faults of the keys that the family reads to the message about the keys that it does not read. */
static int faults_join(const struct ah_family *family, const struct ah_json *json)
{
    char *first;
    void *config;
    size_t prefix = strlen(json->path) + strlen(": ");
    AH_TRY(ah__strdup(&first, ah_error()));
    int status = family->parse(&config, family, json);
    if (status == AH_OK)
        ah__free(config);
    if (status == AH_OK || status == AH_EINPUT)
        status = ah__fail(AH_EINPUT, "%s%s%s", first, status == AH_OK ? "" : "; ",
                          status == AH_OK ? "" : ah_error() + prefix);
    ah__free(first);
    return status;
}

static int model_from_json(struct ah_model **out, const struct ah_json *json)
{
    const struct ah_family *family;
    void *config;
    char *note;
    AH_TRY(ah__family_find(&family, json));
    int status = ah__config_check(&note, json, family->keys);
    if (status == AH_EINPUT)
        status = faults_join(family, json);
    AH_TRY(status);
    status = family->parse(&config, family, json);
    if (status == AH_OK) {
        status = model_take_config(out, family, config);
        if (status != AH_OK)
            ah__free(config);
    }
    if (status == AH_OK)
        (*out)->note = note;
    else
        ah__free(note);
    return status;
}

int ah__model_parse(struct ah_model **out, const char *text, size_t length, const char *path)
{
    struct ah_json json;
    AH_TRY(ah__json_parse(&json, text, length, path));
    int status = model_from_json(out, &json);
    ah__json_free(&json);
    return status;
}

/* Appends a note to the model's notes. */
static int note_add(struct ah_model *model, const char *added)
{
    char *note;
    AH_TRY(ah__sprintf(&note, "%s%s%s", model->note ? model->note : "", model->note ? "; " : "", added));
    ah__free(model->note);
    model->note = note;
    return AH_OK;
}

int ah_model_load(struct ah_model **out, const char *path)
{
    struct ah_source_config config;
    AH_TRY(ah__source_config(&config, path));
    int status = ah__model_parse(out, config.text, config.length, config.path);
    if (status == AH_OK && config.note && (status = note_add(*out, config.note)) != AH_OK)
        ah_model_free(*out);
    ah__source_config_free(&config);
    return status;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* Checks that all ids below vocab_size fit the embedding table and the logits. */
static int check_vocab(const struct ah_graph *graph, const struct ah_model_def *def)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct ah_node *node = &graph->nodes[i];
        bool embedding = node->op == AH_OP_EMBEDDING && node->in[1] == graph->tokens;
        if (!embedding && !ah__op_table[node->op]->classes)
            continue;
        const struct ah_meta in[] = {graph->values[node->in[0]].meta, graph->values[node->in[1]].meta};
        int64_t found = embedding ? in[0].shape.dim[0] : ah__op_table[node->op]->classes(in);
        if (found < def->vocab_size)
            return ah__fail(AH_EINPUT, "model '%s': %s: found %lld rows, expected at least vocab_size %lld", def->name,
                            embedding ? "embedding table" : "logits", (long long)found, (long long)def->vocab_size);
    }
    return AH_OK;
}

static int record(struct ah_graph *graph, const struct ah_model_def *def, int64_t batch, int64_t seq)
{
    int status = def->record(graph, batch, seq, def->context);
    if (status != AH_OK)
        return ah__fail_prefix(status, "model '%s'", def->name);
    if (!graph->finished)
        return ah__fail(AH_EINPUT, "model '%s': %s", def->name,
                        graph->message ? graph->message : "its record function did not call ah_graph_finish()");
    graph->config_hash = ah__hash_text(def->config, ah__hash_text(def->name, 0));
    return check_vocab(graph, def);
}

int ah_model_record(struct ah_graph **out, const struct ah_model *model, const struct ah_record_options *options)
{
    const struct ah_model_def *def = &model->def;
    int64_t seq = options->seq;
    if (options->batch < 1)
        return ah__fail(AH_EINPUT, "batch: found %lld, expected at least 1", (long long)options->batch);
    if (seq < 1 || seq > def->max_seq)
        return ah__fail(AH_EINPUT, "sequence length: found %lld, expected 1 to %lld, the longest that model '%s' takes",
                        (long long)seq, (long long)def->max_seq, def->name);
    if (options->cache < 0 || options->cache > def->max_seq || (options->decodes && !options->cache))
        return ah__fail(AH_EINPUT, "cache: found %lld positions, expected 1 to %lld", (long long)options->cache,
                        (long long)def->max_seq);
    struct ah_graph *graph;
    AH_TRY(ah_graph_new(&graph, options->compute));
    graph->packed = options->packed;
    graph->cache = options->cache;
    graph->decodes = options->decodes;
    int status = ah__graph_tune(graph, &options->tuning);
    if (status == AH_OK)
        status = record(graph, def, options->batch, seq);
    if (status == AH_OK)
        *out = graph;
    else
        ah_graph_free(graph);
    return status;
}
