#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "model/model.h"
#include "test.h"

#define SIZES "\"vocab_size\":61,\"n_positions\":16,\"n_embd\":32,\"n_layer\":2,\"n_head\":2"

static int parse(struct ah_model **out, const char *text)
{
    return ah__model_parse(out, text, strlen(text), "m.json");
}

static void wrong_configs(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"{}", "m.json: key 'model_type': found nothing, expected a string"},
        {"{\"model_type\":\"bert\"}",
         "m.json: key 'model_type': found 'bert', expected 'gemma' or 'gemma2' or 'gemma3_text' or 'gpt2' or "
         "'gpt_neox' or 'gpt_oss' or "
         "'granite' or 'granitemoe' or "
         "'llama' or 'ministral' or 'mistral' or 'mixtral' or 'olmo2' or 'olmo3' or 'olmoe' or 'opt' or 'phi3' or "
         "'qwen2' or 'qwen2_moe' or 'qwen3' or 'qwen3_moe' or 'smollm3'"},
        {"{\"model_type\":\"gpt2\"}", "key 'vocab_size': found nothing"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":61,\"n_positions\":16,\"n_embd\":32,\"n_layer\":2,\"n_head\":3}",
         "key 'n_head': found 3, expected a divisor of n_embd 32"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":61,\"n_positions\":16,\"n_embd\":32,\"n_layer\":0,\"n_head\":2}",
         "key 'n_layer': found 0"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":1e30,\"n_positions\":16,\"n_embd\":32,\"n_layer\":1,\"n_head\":2}",
         "key 'vocab_size': found 1e+30"},
        {"{\"model_type\":\"gpt2\",\"vocab_size\":\"61\"}", "key 'vocab_size': found '61'"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"activation_function\":\"silu\"}",
         "key 'activation_function': found 'silu', expected 'gelu' or 'gelu_new' or 'relu' or 'gelu_fast'"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"attn_pdrop\":1.1}", "key 'attn_pdrop': found 1.1"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"add_cross_attention\":true}",
         "key 'add_cross_attention': found true, expected false"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"scale_attn_weights\":false}",
         "key 'scale_attn_weights': found false, expected true"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"scale_attn_by_inverse_layer_idx\":true}",
         "key 'scale_attn_by_inverse_layer_idx': found true, expected false"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"n_inner\":0}", "key 'n_inner': found 0"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"layer_norm_epsilon\":0}", "key 'layer_norm_epsilon': found 0"},
        {"{\"model_type\":\"gpt2\"," SIZES ",\"tie_word_embeddings\":1}", "key 'tie_word_embeddings': found 1"},
        {"{\"model_type\":\"gpt2\"," SIZES, "expected JSON"},
        {"[]", "no object at the root"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_model *model = NULL;
        assert_fails(parse(&model, cases[i].text), AH_EINPUT, cases[i].words);
        assert_null(model);
    }
}

/* What tools of the Hugging Face family write is accepted; what means the same gives the same canonical text. */
static void canonical(void **state)
{
    static const char *const texts[] = {
        "{\"model_type\":\"gpt2\"," SIZES "}",
        "{\"n_inner\":null,\"model_type\":\"gpt2\",\"architectures\":[\"GPT2LMHeadModel\"],\"bos_token_id\":50256,"
        "\"eos_token_id\":50256,\"n_ctx\":16,\"summary_activation\":null,\"summary_first_dropout\":0.1,"
        "\"summary_proj_to_labels\":true,\"summary_type\":\"cls_index\",\"summary_use_proj\":true,"
        "\"task_specific_params\":{\"a\":1},\"transformers_version\":\"4.40.0\",\"torch_dtype\":\"float32\",\"use_"
        "cache\":true,"
        "\"reorder_and_upcast_attn\":false,\"scale_attn_by_inverse_layer_idx\":false,\"scale_attn_weights\":true,"
        "\"attn_pdrop\":0.0,\"embd_pdrop\":0,\"resid_pdrop\":0,\"activation_function\":\"gelu_new\","
        "\"layer_norm_epsilon\":1e-05,\"initializer_range\":0.02,\"tie_word_embeddings\":true," SIZES "}",
    };
    struct ah_model *model, *again;
    char first[2048];
    for (size_t i = 0; i < AH_LENGTH(texts); i++) {
        assert_ok(parse(&model, texts[i]));
        const struct ah_model_def *def = ah_model_get(model);
        if (i == 0)
            snprintf(first, sizeof first, "%s", def->config);
        assert_string_equal(def->config, first);
        assert_string_equal(def->name, "gpt2");
        assert_int_equal(def->vocab_size, 61);
        assert_int_equal(def->max_seq, 16);
        assert_int_equal(def->layers, 2);
        assert_ok(parse(&again, def->config));
        assert_string_equal(ah_model_get(again)->config, first);
        ah_model_free(again);
        ah_model_free(model);
    }
}

static const struct ah_value *find(const struct ah_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].name && strcmp(graph->values[i].name, name) == 0)
            return &graph->values[i];
    return NULL;
}

static void expect_param(const struct ah_graph *graph, const char *name, struct ah_shape shape, enum ah_init init,
                         double std)
{
    const struct ah_value *value = find(graph, name);
    if (!value)
        fail_msg("no parameter %s", name);
    else if (!ah__shape_equal(&value->meta.shape, &shape) || value->init != init || (float)std < value->init_std ||
             (float)std > value->init_std)
        fail_msg("parameter %s", name);
}

static void names_and_layouts(void **state)
{
    enum { C = 32 };
    for (int tied = 0; tied < 2; tied++) {
        struct ah_model *model;
        struct ah_graph *graph;
        assert_ok(parse(&model, tied ? "{\"model_type\":\"gpt2\"," SIZES "}"
                                     : "{\"model_type\":\"gpt2\",\"tie_word_embeddings\":false," SIZES "}"));
        assert_ok(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 3, .seq = 8, .compute = AH_F32}));
        expect_param(graph, "transformer.wte.weight", ah_shape2(61, C), AH_INIT_NORMAL, 0.02);
        expect_param(graph, "transformer.wpe.weight", ah_shape2(16, C), AH_INIT_NORMAL, 0.02);
        expect_param(graph, "transformer.h.1.ln_1.weight", ah_shape1(C), AH_INIT_ONES, 0);
        expect_param(graph, "transformer.h.1.ln_1.bias", ah_shape1(C), AH_INIT_ZEROS, 0);
        expect_param(graph, "transformer.h.1.attn.c_attn.weight", ah_shape2(C, 3 * C), AH_INIT_NORMAL, 0.02);
        expect_param(graph, "transformer.h.1.attn.c_attn.bias", ah_shape1(3 * C), AH_INIT_ZEROS, 0);
        expect_param(graph, "transformer.h.1.attn.c_proj.weight", ah_shape2(C, C), AH_INIT_NORMAL, 0.01);
        expect_param(graph, "transformer.h.1.ln_2.bias", ah_shape1(C), AH_INIT_ZEROS, 0);
        expect_param(graph, "transformer.h.1.mlp.c_fc.weight", ah_shape2(C, 4 * C), AH_INIT_NORMAL, 0.02);
        expect_param(graph, "transformer.h.1.mlp.c_proj.weight", ah_shape2(4 * C, C), AH_INIT_NORMAL, 0.01);
        expect_param(graph, "transformer.h.1.mlp.c_proj.bias", ah_shape1(C), AH_INIT_ZEROS, 0);
        expect_param(graph, "transformer.ln_f.weight", ah_shape1(C), AH_INIT_ONES, 0);
        if (tied)
            assert_null(find(graph, "lm_head.weight"));
        else
            expect_param(graph, "lm_head.weight", ah_shape2(61, C), AH_INIT_NORMAL, 0.02);
        ah_graph_free(graph);
        ah_model_free(model);
    }
}

static void switches(void **state)
{
    struct ah_model *model;
    struct ah_graph *graph;
    assert_ok(parse(&model, "{\"model_type\":\"gpt2\",\"activation_function\":\"relu\",\"n_inner\":48," SIZES "}"));
    assert_ok(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 16, .compute = AH_F32}));
    expect_param(graph, "transformer.h.0.mlp.c_fc.weight", ah_shape2(32, 48), AH_INIT_NORMAL, 0.02);
    for (size_t i = 0; i < graph->node_count; i++)
        assert_int_not_equal(graph->nodes[i].op, AH_OP_GELU);
    ah_graph_free(graph);
    assert_fails(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 17, .compute = AH_F32}),
                 AH_EINPUT, "sequence length: found 17, expected 1 to 16");
    assert_fails(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 0, .seq = 16, .compute = AH_F32}),
                 AH_EINPUT, "batch: found 0");
    ah_model_free(model);
}

/* ---- the files in models/ ---------------------------------------------------------------------------------------- */

static int64_t parameters_of(const char *name)
{
    char path[512];
    struct ah_model *model;
    struct ah_graph *graph;
    int64_t count = 0;
    snprintf(path, sizeof path, "%s/../models/%s.json", ah_test_source(), name);
    assert_ok(ah_model_load(&model, path));
    assert_ok(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 16, .compute = AH_F32}));
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].kind == AH_VALUE_PARAM)
            count += ah__shape_count(&graph->values[i].meta.shape);
    ah_graph_free(graph);
    ah_model_free(model);
    return count;
}

static void shipped_models(void **state)
{
    static const double billions[] = {2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22};
    for (size_t i = 0; i < AH_LENGTH(billions); i++) {
        char name[16];
        snprintf(name, sizeof name, "gpt-%.0fb", billions[i]);
        double found = (double)parameters_of(name) / 1e9;
        if (found < billions[i] || found > billions[i] * 1.2)
            fail_msg("%s has %g billion parameters", name, found);
    }
    assert_int_equal(parameters_of("gpt2-124m"), 124439808);
    assert_true(parameters_of("gpt-quickstart") < 20000000);
}

static void loads_files_and_folders(void **state)
{
    char path[300];
    struct ah_model *model;
    const char *folder = ah_test_folder();
    assert_fails(ah_model_load(&model, folder), AH_EINPUT, "config.json");
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"model_type\":\"gpt2\"," SIZES "}", file);
    fclose(file);
    assert_ok(ah_model_load(&model, folder));
    ah_model_free(model);
    assert_ok(ah_model_load(&model, path));
    ah_model_free(model);
    assert_fails(ah_model_load(&model, "no/such/file.json"), AH_EINPUT, "no/such/file.json");
}

/* ---- a user's own definition ------------------------------------------------------------------------------------- */

static int record_small(struct ah_graph *graph, int64_t batch, int64_t seq, void *context)
{
    const int64_t *rows = context;
    struct ah_tensor tokens = ah_graph_tokens(graph, batch, seq), targets = ah_graph_targets(graph, batch, seq);
    struct ah_tensor table = ah_graph_param(graph, "table", ah_shape2(*rows, 4), AH_INIT_NORMAL, 1);
    struct ah_tensor logits =
        ah_graph_linear(graph, ah_graph_embedding(graph, table, tokens), table, (struct ah_tensor){-1}, true);
    struct ah_tensor loss = ah_graph_cross_entropy(graph, logits, targets);
    return *rows > 100 ? AH_OK : ah_graph_finish(graph, loss);
}

static void own_definition(void **state)
{
    int64_t rows = 8;
    char name[] = "small";
    struct ah_model_def def = {
        .name = name, .vocab_size = 8, .max_seq = 4, .layers = 1, .record = record_small, .context = &rows};
    struct ah_model *model;
    struct ah_graph *graph;
    assert_ok(ah_model_new(&model, &def));
    name[0] = 'x';
    assert_string_equal(ah_model_get(model)->name, "small");
    assert_string_equal(ah_model_get(model)->config, "{}");
    assert_ok(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 4, .compute = AH_F32}));
    assert_true(graph->config_hash != 0);
    ah_graph_free(graph);
    rows = 7;
    assert_fails(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 4, .compute = AH_F32}),
                 AH_EINPUT, "embedding table: found 7 rows, expected at least");
    rows = 101;
    assert_fails(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 4, .compute = AH_F32}),
                 AH_EINPUT, "model 'small': its record function did not call");
    rows = 0;
    assert_fails(ah_model_record(&graph, model, &(struct ah_record_options){.batch = 1, .seq = 4, .compute = AH_F32}),
                 AH_EINPUT, "model 'small': (top level): parameter: shape: found [0,4]");
    ah_model_free(model);
    def.record = NULL;
    assert_fails(ah_model_new(&model, &def), AH_EINPUT, "no record function");
}

AH_TEST_CASES("model/gpt2", wrong_configs, canonical, names_and_layouts, switches, shipped_models,
              loads_files_and_folders, own_definition)
