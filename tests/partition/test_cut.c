/* Blocks that are not equal, and graphs that cannot be cut: each with its one line. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "dev/sim.h"
#include "models.h"
#include "partition/partition.h"

enum { C = MODEL_EMBD };

static struct ah_tensor residual(struct ah_graph *graph, struct ah_tensor y, struct ah_tensor x)
{
    return ah_graph_add_inplace(graph, y, x);
}

static void expect(model_block block, const char *words)
{
    struct ah_graph *graph = model_graph(block, 3, true);
    struct ah_partition *partition = NULL;
    assert_fails(ah_partition_new(&partition, graph, NULL), AH_EINPUT, words);
    assert_null(partition);
    ah_graph_free(graph);
}

/* ---- unequal blocks: the third one differs ---------------------------------------------------------------------- */

static struct ah_tensor other_operator(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = model_linear(graph, "fc", x, C, C);
    y = number == 2 ? ah_graph_gelu(graph, y) : ah_graph_relu(graph, y);
    return residual(graph, model_linear(graph, "out", y, C, C), x);
}

static struct ah_tensor other_heads(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return residual(graph, model_attention(graph, x, number == 2 ? 4 : 2), x);
}

static struct ah_tensor other_eps(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor a = ah_graph_param(graph, "a", ah_shape1(C), AH_INIT_ONES, 0);
    struct ah_tensor b = ah_graph_param(graph, "b", ah_shape1(C), AH_INIT_ZEROS, 0);
    return ah_graph_layernorm(graph, x, a, b, number == 2 ? 1e-5f : 0);
}

static struct ah_tensor each_eps(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor a = ah_graph_param(graph, "a", ah_shape1(C), AH_INIT_ONES, 0);
    struct ah_tensor b = ah_graph_param(graph, "b", ah_shape1(C), AH_INIT_ZEROS, 0);
    return ah_graph_layernorm(graph, x, a, b, 1e-5f * (float)(number + 1));
}

static struct ah_tensor other_width(struct ah_graph *graph, struct ah_tensor x, int number)
{
    int64_t width = number == 2 ? 3 * C : 2 * C;
    return residual(
        graph, model_linear(graph, "out", ah_graph_relu(graph, model_linear(graph, "fc", x, C, width)), width, C), x);
}

static struct ah_tensor longer(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = ah_graph_relu(graph, model_linear(graph, "fc", x, C, C));
    y = residual(graph, model_linear(graph, "out", y, C, C), x);
    return number == 2 ? ah_graph_relu(graph, y) : y;
}

/* The same operators, but the second norm reads the first one's result instead of the input. */
static struct ah_tensor other_wiring(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor a = model_norm(graph, "a", x), b = model_norm(graph, "b", number == 2 ? a : x);
    return residual(graph, ah_graph_relu(graph, a), ah_graph_relu(graph, b));
}

static struct ah_tensor other_parameters(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor a = ah_graph_param(graph, "a", ah_shape1(C), AH_INIT_ONES, 0);
    struct ah_tensor b = ah_graph_param(graph, "b", ah_shape1(C), AH_INIT_ZEROS, 0);
    return number == 2 ? ah_graph_layernorm(graph, x, b, a, 1e-5f) : ah_graph_layernorm(graph, x, a, b, 1e-5f);
}

static void unequal_blocks(void **state)
{
    expect(other_operator, "blocks 'h.0' and 'h.2' differ at operator 1 (relu in h.0): operator: relu against gelu");
    expect(other_heads,
           "blocks 'h.0' and 'h.2' differ at operator 1 (attention in h.0): output 1: result 1 of operator 1 [2,2,8]");
    expect(other_width,
           "differ at operator 0 (linear in h.0.fc): input 1: parameter 0 [16,32] against parameter 0 [16,48]");
    expect(longer, "blocks 'h.0' and 'h.2' differ at operator 3 (add in h.0): number of operators: 4 against 5");
    expect(other_wiring,
           "operator 1 (layernorm in h.0.b): input 0: the block's input [2,8,16] against result 0 of operator 0");
    expect(other_parameters, "input 1: parameter 0 [16] against parameter 1 [16]");
}

/* Each block has a norm of its own, so that there are as many kinds as blocks. */
static void many_kinds(void **state)
{
    struct ah_graph *graph = model_graph(each_eps, 14, true), *too_many = model_graph(each_eps, 15, true);
    struct ah_partition *partition = NULL;
    assert_ok(ah_partition_new(&partition, graph, NULL));
    assert_int_equal(partition->class_count, AH_CLASSES_MOST);
    for (int block = 1; block <= 14; block++) {
        const struct ah_call *norm = &ah__code_of(partition, block)->program[AH_PROGRAM_FORWARD].calls[0];
        assert_true(norm->attr.eps == 1e-5f * (float)block);
    }
    ah_partition_free(partition);
    partition = NULL;
    assert_fails(ah_partition_new(&partition, too_many, NULL), AH_EINPUT, "found more than 14 kinds of blocks");
    assert_null(partition);
    ah_graph_free(graph);
    ah_graph_free(too_many);
}

/* Blocks that differ in an attribute are of two kinds, each with programs of its own in the same memory. */
static void two_kinds(void **state)
{
    struct ah_graph *graph = model_graph(other_eps, 4, true), *alike = model_graph(model_llama, 4, true);
    struct ah_partition *partition, *plain;
    assert_ok(ah_partition_new(&partition, graph, NULL));
    assert_ok(ah_partition_new(&plain, alike, NULL));
    assert_int_equal(plain->class_count, AH_CLASS_COUNT);
    assert_int_equal(partition->class_count, AH_CLASS_COUNT + 1);
    for (int number = 0; number < 6; number++) {
        assert_int_equal(partition->class_of[number], number == 3 ? AH_CLASS_COUNT : (int)ah__class_of(number, 4));
        assert_int_equal(plain->class_of[number], ah__class_of(number, 4));
    }
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK], *other = &partition->code[AH_CLASS_COUNT];
    for (int i = 0; i < AH_PROGRAM_COUNT; i++) {
        assert_int_equal(block->program[i].work_bytes, other->program[i].work_bytes);
        assert_int_equal(block->program[i].count, other->program[i].count);
    }
    assert_true(block->program[AH_PROGRAM_FORWARD].calls[0].attr.eps <= 0);
    assert_true(other->program[AH_PROGRAM_FORWARD].calls[0].attr.eps > 0);
    ah_partition_free(partition);
    ah_partition_free(plain);
    ah_graph_free(graph);
    ah_graph_free(alike);
}

/* ---- graphs that cannot be cut ---------------------------------------------------------------------------------- */

static struct ah_tensor kept_tensor;

static struct ah_tensor second_crossing(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = model_linear(graph, "a", x, C, C), z = model_linear(graph, "b", x, C, C);
    if (number > 0)
        y = residual(graph, y, kept_tensor);
    kept_tensor = z;
    return number == 2 ? residual(graph, y, z) : y;
}

static struct ah_tensor far_read(struct ah_graph *graph, struct ah_tensor x, int number)
{
    struct ah_tensor y = model_linear(graph, "a", x, C, C);
    y = number == 2 ? residual(graph, y, kept_tensor) : y;
    if (number == 0)
        kept_tensor = y;
    return y;
}

static struct ah_tensor shared_weight(struct ah_graph *graph, struct ah_tensor x, int number)
{
    if (number == 0)
        kept_tensor = ah_graph_param(graph, "w", ah_shape2(C, C), AH_INIT_NORMAL, 1);
    return ah_graph_linear(graph, x, kept_tensor, (struct ah_tensor){-1}, false);
}

static struct ah_tensor widening(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return number == 2 ? model_linear(graph, "a", x, C, C + 1) : model_linear(graph, "a", x, C, C);
}

static struct ah_tensor open_scope(struct ah_graph *graph, struct ah_tensor x, int number)
{
    ah_graph_scope_pop(graph);
    ah_graph_scope_push(graph, "%s.%d", number == 1 ? "g" : "h", number);
    return model_linear(graph, "a", x, C, C);
}

static struct ah_tensor skips_a_number(struct ah_graph *graph, struct ah_tensor x, int number)
{
    ah_graph_scope_pop(graph);
    ah_graph_scope_push(graph, "h.%d", number * 2);
    return model_linear(graph, "a", x, C, C);
}

static struct ah_tensor gap(struct ah_graph *graph, struct ah_tensor x, int number)
{
    if (number == 1) {
        ah_graph_scope_pop(graph);
        ah_graph_scope_push(graph, "between");
        x = ah_graph_relu(graph, x);
        ah_graph_scope_pop(graph);
        ah_graph_scope_push(graph, "h.1");
    }
    return model_linear(graph, "a", x, C, C);
}

static struct ah_tensor no_block(struct ah_graph *graph, struct ah_tensor x, int number)
{
    ah_graph_scope_pop(graph);
    ah_graph_scope_push(graph, "layer%d", number);
    return model_linear(graph, "a", x, C, C);
}

static void no_cut(void **state)
{
    expect(second_crossing, "enters h.1 beside");
    expect(far_read, "made by linear in h.0.a, is read by add in h.2: an activation may enter only the next partition");
    expect(shared_weight, "parameter 'h.0.w' of h.0 is also read by linear in h.1");
    expect(open_scope, "scope 'g.1': found a second family of blocks");
    expect(skips_a_number, "scope 'h.2': found block 2, expected block 1");
    expect(gap, "scope 'h.1': linear in h.1.a stands after operators outside the blocks");
    expect(no_block, "the graph has no blocks");
}

/* A model whose pieces fit, but whose head, ids or targets are in the wrong place. */
static struct ah_graph *custom(void (*record)(struct ah_graph *graph, struct ah_tensor tokens,
                                              struct ah_tensor targets))
{
    struct ah_graph *graph;
    assert_ok(ah_graph_new(&graph, AH_F32));
    record(graph, ah_graph_tokens(graph, 2, 4), ah_graph_targets(graph, 2, 4));
    return graph;
}

static struct ah_tensor embed(struct ah_graph *graph, struct ah_tensor tokens, const char *name)
{
    return ah_graph_embedding(graph, ah_graph_param(graph, name, ah_shape2(8, C), AH_INIT_NORMAL, 1), tokens);
}

static void loss_in_block(struct ah_graph *graph, struct ah_tensor tokens, struct ah_tensor targets)
{
    struct ah_tensor x = embed(graph, tokens, "wte");
    ah_graph_scope_push(graph, "h.0");
    x = ah_graph_cross_entropy(graph, model_linear(graph, "a", x, C, 8), targets);
    ah_graph_scope_pop(graph);
    assert_ok(ah_graph_finish(graph, x));
}

static void tokens_in_block(struct ah_graph *graph, struct ah_tensor tokens, struct ah_tensor targets)
{
    struct ah_tensor x = embed(graph, tokens, "wte");
    ah_graph_scope_push(graph, "h.0");
    x = ah_graph_add_inplace(graph, embed(graph, tokens, "again"), x);
    ah_graph_scope_pop(graph);
    assert_ok(ah_graph_finish(graph, ah_graph_cross_entropy(graph, model_linear(graph, "head", x, C, 8), targets)));
}

static void widening_block(struct ah_graph *graph, struct ah_tensor tokens, struct ah_tensor targets)
{
    struct ah_tensor x = embed(graph, tokens, "wte");
    ah_graph_scope_push(graph, "h.0");
    x = widening(graph, x, 2);
    ah_graph_scope_pop(graph);
    assert_ok(ah_graph_finish(graph, ah_graph_cross_entropy(graph, model_linear(graph, "head", x, C + 1, 8), targets)));
}

static void wrong_places(void **state)
{
    static const struct {
        void (*record)(struct ah_graph *graph, struct ah_tensor tokens, struct ah_tensor targets);
        const char *words;
    } cases[] = {
        {loss_in_block, "the loss is computed in block 'h.0'"},
        {tokens_in_block, "embedding in h.0 reads the token ids: only the embedding may"},
        {widening_block, "block 'h.0' makes [2,4,17], expected [2,4,16]"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_graph *graph = custom(cases[i].record);
        struct ah_partition *partition;
        assert_fails(ah_partition_new(&partition, graph, NULL), AH_EINPUT, cases[i].words);
        ah_graph_free(graph);
    }
}

static void unfinished(void **state)
{
    struct ah_graph *graph;
    struct ah_partition *partition;
    assert_ok(ah_graph_new(&graph, AH_F32));
    assert_fails(ah_partition_new(&partition, graph, NULL), AH_EINPUT, "not closed by ah_graph_finish()");
    ah_graph_free(graph);
}

/* ---- a good cut ------------------------------------------------------------------------------------------------- */

static void groups(void **state)
{
    for (int tied = 0; tied < 2; tied++) {
        struct ah_graph *graph = model_graph(model_cases[0].block, 3, tied);
        struct ah_partition *p;
        assert_ok(ah_partition_new(&p, graph, NULL));
        ah_graph_free(graph);
        assert_int_equal(p->layers, 3);
        assert_int_equal(p->group_count, 5);
        assert_int_equal(p->shared_group, tied ? 0 : -1);
        assert_int_equal(p->vocab, MODEL_VOCAB);
        assert_int_equal(p->groups[4].elements, 2 * C + (tied ? 0 : MODEL_VOCAB * C));
        assert_true(p->code[AH_CLASS_HEAD].uses_shared == (tied == 1));
        assert_false(p->code[AH_CLASS_BLOCK].uses_shared);
        assert_false(p->code[AH_CLASS_EMBEDDING].backward_needs_params);
        assert_true(p->code[AH_CLASS_BLOCK].backward_needs_params);
        for (int g = 0; g < p->group_count; g++) {
            int64_t offset = 0, elements = 0;
            for (int i = 0; i < p->groups[g].param_count; i++) {
                const struct ah_param *param = &p->params[p->groups[g].first_param + i];
                assert_int_equal(param->group, g);
                assert_int_equal(param->offset, offset);
                assert_true((param->shape.rank >= 2) == (offset < p->groups[g].decayed));
                offset += (ah__shape_count(&param->shape) + AH_PARAM_ALIGN - 1) / AH_PARAM_ALIGN * AH_PARAM_ALIGN;
                elements += ah__shape_count(&param->shape);
            }
            assert_int_equal(offset, p->groups[g].count);
            assert_int_equal(elements, p->groups[g].elements);
        }
        ah_partition_free(p);
    }
}

static uint64_t signature_of(model_block block, int layers, bool tied)
{
    struct ah_graph *graph = model_graph(block, layers, tied);
    struct ah_partition *partition;
    assert_ok(ah_partition_new(&partition, graph, NULL));
    uint64_t signature = partition->signature;
    ah_partition_free(partition);
    ah_graph_free(graph);
    return signature;
}

static struct ah_tensor heads_2(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return residual(graph, model_attention(graph, x, 2), x);
}

static struct ah_tensor heads_4(struct ah_graph *graph, struct ah_tensor x, int number)
{
    return residual(graph, model_attention(graph, x, 4), x);
}

static void signatures(void **state)
{
    uint64_t first = signature_of(model_cases[0].block, 2, true);
    assert_true(first == signature_of(model_cases[0].block, 2, true));
    assert_true(first != signature_of(model_cases[0].block, 3, true));
    assert_true(first != signature_of(model_cases[0].block, 2, false));
    assert_true(first != signature_of(model_cases[1].block, 2, true));
    assert_true(signature_of(heads_2, 2, true) != signature_of(heads_4, 2, true));
}

/* Every (allocation failed) way out leaves nothing behind and reports it. */
static void failing_allocations(void **state)
{
    struct ah_graph *graph = model_graph(model_cases[8].block, 2, true);
    struct ah_partition *partition = NULL;
    int status = AH_ENOMEM;
    for (uint64_t n = 1; status == AH_ENOMEM; n++) {
        assert_true(n < 1000);
        ah__alloc_fail_at(n);
        status = ah_partition_new(&partition, graph, NULL);
        ah__alloc_fail_at(0);
    }
    assert_ok(status);
    ah_partition_free(partition);
    ah_graph_free(graph);
}

/* A reader of the file can tell two blocks apart that differ in an attribute, and finds what generation runs. */
static void check_json_text(const char *path)
{
    static const char *const expected[] = {
        "\"heads\":", "\"eps\":", "\"out_in\":", "\"acc\":", "\"infer\":", "\"logits\":"};
    char *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    for (size_t i = 0; i < AH_LENGTH(expected); i++)
        if (!strstr(text, expected[i]))
            fail_msg("%s has no %s", path, expected[i]);
    ah__free(text);
}

static void saves_json(void **state)
{
    char path[256];
    struct ah_graph *graph = model_graph(model_cases[0].block, 2, true);
    struct ah_partition *partition;
    assert_ok(ah_partition_new(&partition, graph, NULL));
    snprintf(path, sizeof path, "%s/partition.json", ah_test_folder());
    assert_ok(ah_partition_save(partition, path));
    struct ah_json json, block;
    uint64_t signature;
    int64_t saved;
    assert_ok(ah__json_load(&json, path));
    assert_ok(ah__json_hash(&signature, &json, "signature"));
    assert_true(signature == partition->signature);
    assert_ok(ah__json_object(&block, &json, "block"));
    assert_ok(ah__json_int(&saved, &block, "saved_bytes", 0, INT64_MAX));
    assert_int_equal(saved, partition->code[AH_CLASS_BLOCK].saved_bytes);
    ah__json_free(&json);
    check_json_text(path);
    ah_partition_free(partition);
    ah_graph_free(graph);
}

static void prints(void **state)
{
    char *text = NULL;
    size_t length = 0;
    struct ah_graph *graph = model_graph(model_cases[0].block, 2, true);
    struct ah_partition *partition;
    assert_ok(ah_partition_new(&partition, graph, NULL));
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    assert_ok(ah_partition_print(partition, to));
    fclose(to);
    assert_non_null(strstr(text, "2 blocks, batch 2 x 8 tokens, F32"));
    assert_non_null(strstr(text, "block backward: 18 calls"));
    assert_non_null(strstr(text, "head infer: 2 calls"));
    assert_null(strstr(text, "block infer"));
    assert_non_null(strstr(text, "grad+0 [24,16] = embedding_bwd(boundary+0 [2,8,16], input+0 [2,8], acc=1)"));
    free(text);
    ah_partition_free(partition);
    ah_graph_free(graph);
}

/* 15 activations of width C are saved beside the input, and per token four floats of the norms and one for each
 * head. */
static void saved_of_gpt2(void **state)
{
    struct ah_graph *graph = model_graph(model_cases[0].block, 2, true);
    struct ah_partition *partition;
    assert_ok(ah_partition_new(&partition, graph, NULL));
    int64_t tokens = MODEL_BATCH * MODEL_SEQ, mlp = 2 * C; /* this block's MLP is 2C wide, not 4C */
    int64_t floats = tokens * (C + 3 * C + C + C + C + 2 * mlp) + tokens * (4 + 2);
    assert_int_equal(partition->code[AH_CLASS_BLOCK].saved_bytes, floats * 4);
    ah_partition_free(partition);
    ah_graph_free(graph);
}

AH_TEST_CASES("partition/cut", unequal_blocks, many_kinds, two_kinds, no_cut, wrong_places, unfinished, groups,
              signatures, failing_allocations, saves_json, prints, saved_of_gpt2)
