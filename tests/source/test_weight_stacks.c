/* Tensors of experts in files: one by one, or fused as transformers has them in memory. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "io/stack.h"
#include "op/op.h"
#include "source/weight_tensors.h"

enum { EXPERTS = 11, ROWS = 4, WIDTH = 3, MOST = 64 };

/* A file that is being made: its tensors hold 1, 2, 3 .. one after the other. */
struct made {
    struct ah_safetensors_decl decl[MOST];
    char name[MOST][96];
    size_t count;
    char path[512];
};

static void declare(struct made *made, const char *name, struct ah_shape shape)
{
    snprintf(made->name[made->count], sizeof made->name[0], "%s", name);
    made->decl[made->count] = (struct ah_safetensors_decl){made->name[made->count], AH_F32, shape};
    made->count++;
}

/* Experts from `last` down to `first`, so that no order helps. */
static void declare_experts(struct made *made, int first, int last, const char *layer, struct ah_shape shape)
{
    char name[96];
    for (int i = last; i >= first; i--) {
        snprintf(name, sizeof name, "model.layers.0.mlp.experts.%d.%s.weight", i, layer);
        declare(made, name, shape);
    }
}

static int open_made(struct ah_weight_tensors *out, struct made *made)
{
    struct ah_safetensors_writer *writer;
    float value = 0;
    snprintf(made->path, sizeof made->path, "%s/model.safetensors", ah_test_folder());
    assert_ok(ah__safetensors_writer_open(&writer, made->path, made->decl, made->count));
    for (size_t i = 0; i < made->count; i++)
        for (int64_t k = 0; k < ah__shape_count(&made->decl[i].shape); k++) {
            value += 1;
            assert_ok(ah__safetensors_writer_append(writer, &value, sizeof value));
        }
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
    return ah__weight_tensors_open(out, made->path);
}

static void experts_are_gathered_by_their_numbers(void **state)
{
    static struct made made;
    struct ah_weight_tensors tensors;
    float values[EXPERTS * ROWS * WIDTH];
    made.count = 0;
    declare_experts(&made, 0, EXPERTS - 1, "up_proj", ah_shape2(ROWS, WIDTH));
    declare(&made, "model.layers.0.mlp.gate.weight", ah_shape2(EXPERTS, WIDTH));
    declare_experts(&made, 0, EXPERTS - 1, "down_proj", ah_shape2(WIDTH, ROWS));
    declare(&made, "model.layers.0.mlp.experts.01.up_proj.weight", ah_shape1(2)); /* no number as one is written */
    declare(&made, "model.layers.0.myexperts.1.up_proj.weight", ah_shape1(2));
    assert_ok(open_made(&tensors, &made));
    assert_int_equal(tensors.count, 5);
    const struct ah_weight_tensor *up =
        ah__weight_tensors_find(&tensors, "model.layers.0.mlp.experts.*.up_proj.weight");
    assert_non_null(up);
    assert_int_equal(up->rank, 3);
    assert_int_equal(up->dim[0], EXPERTS);
    assert_int_equal(up->dim[1], ROWS);
    assert_int_equal(up->bytes, sizeof values);
    assert_ok(ah__weight_tensor_read(values, &tensors, up, ah_shape3(EXPERTS, ROWS, WIDTH)));
    for (int e = 0; e < EXPERTS; e++)
        for (int i = 0; i < ROWS * WIDTH; i++)
            assert_true(values[e * ROWS * WIDTH + i] == (float)((EXPERTS - 1 - e) * ROWS * WIDTH + i + 1));
    assert_fails(ah__weight_tensor_read(values, &tensors, up, ah_shape3(EXPERTS - 1, ROWS, WIDTH)), AH_ECORRUPT,
                 "experts.*.up_proj.weight': found F32 [11, 4, 3], expected F32 [10, 4, 3]");
    assert_null(ah__weight_tensors_find(&tensors, "model.layers.0.mlp.experts.3.up_proj.weight"));
    assert_non_null(ah__weight_tensors_find(&tensors, "model.layers.0.mlp.experts.01.up_proj.weight"));
    ah__weight_tensors_close(&tensors);
}

/* The hash of a stack is that of its experts, in their order. */
static void every_expert_counts_in_the_hash(void **state)
{
    static struct made made;
    struct ah_weight_tensors tensors;
    float part[ROWS * WIDTH];
    uint64_t hash = 7;
    made.count = 0;
    declare_experts(&made, 0, 1, "up_proj", ah_shape2(ROWS, WIDTH));
    assert_ok(open_made(&tensors, &made));
    for (int e = 0; e < 2; e++) {
        for (int i = 0; i < ROWS * WIDTH; i++)
            part[i] = (float)((1 - e) * ROWS * WIDTH + i + 1);
        hash = ah__hash(part, sizeof part, hash);
    }
    assert_true(ah__weight_tensor_hash(&tensors.tensors[0], 7) == hash);
    ah__weight_tensors_close(&tensors);
}

static void expect_values(const struct ah_weight_tensors *tensors, const char *name, struct ah_shape shape,
                          const float *expected)
{
    float values[EXPERTS * ROWS * WIDTH];
    const struct ah_weight_tensor *tensor = ah__weight_tensors_find(tensors, name);
    assert_non_null(tensor);
    assert_ok(ah__weight_tensor_read(values, tensors, tensor, shape));
    for (int64_t i = 0; i < ah__shape_count(&shape); i++)
        assert_true(values[i] == expected[i]);
}

/* Fused tensors are seen under the names of either family of the hub, ended by ".weight" or not. */
static void fused_experts_have_views(void **state)
{
    enum { FEW = 3, HALF = ROWS * WIDTH };
    static const char *const ends[] = {"", ".weight"};
    float gate[FEW * HALF], up[FEW * HALF], down[FEW * HALF];
    for (int i = 0; i < FEW * HALF; i++) {
        gate[i] = (float)(i / HALF * 2 * HALF + i % HALF + 1);
        up[i] = gate[i] + HALF;
        down[i] = (float)(2 * FEW * HALF + i + 1);
    }
    for (size_t k = 0; k < AH_LENGTH(ends); k++) {
        static struct made made;
        struct ah_weight_tensors tensors;
        char name[96];
        made.count = 0;
        snprintf(name, sizeof name, "module.a.mlp.experts.gate_up_proj%s", ends[k]);
        declare(&made, name, ah_shape3(FEW, 2 * ROWS, WIDTH));
        snprintf(name, sizeof name, "module.a.mlp.experts.down_proj%s", ends[k]);
        declare(&made, name, ah_shape3(FEW, WIDTH, ROWS));
        declare(&made, "module.a.mlp.gate.weight", ah_shape2(FEW, WIDTH));
        assert_ok(open_made(&tensors, &made));
        assert_int_equal(tensors.count, 3);
        assert_int_equal(tensors.view_count, 9);
        expect_values(&tensors, "a.mlp.experts.*.gate_proj.weight", ah_shape3(FEW, ROWS, WIDTH), gate);
        expect_values(&tensors, "a.mlp.experts.*.up_proj.weight", ah_shape3(FEW, ROWS, WIDTH), up);
        expect_values(&tensors, "a.mlp.experts.*.down_proj.weight", ah_shape3(FEW, WIDTH, ROWS), down);
        expect_values(&tensors, "a.block_sparse_moe.experts.*.w1.weight", ah_shape3(FEW, ROWS, WIDTH), gate);
        expect_values(&tensors, "a.block_sparse_moe.experts.*.w3.weight", ah_shape3(FEW, ROWS, WIDTH), up);
        expect_values(&tensors, "a.block_sparse_moe.experts.*.w2.weight", ah_shape3(FEW, WIDTH, ROWS), down);
        const struct ah_weight_tensor *router = ah__weight_tensors_find(&tensors, "a.block_sparse_moe.gate.weight");
        assert_ptr_equal(router->of, ah__weight_tensors_find(&tensors, "a.mlp.gate.weight"));
        ah__weight_tensors_close(&tensors);
    }
}

static void experts_that_do_not_fit_are_named(void **state)
{
    static struct made made;
    struct ah_weight_tensors tensors;
    made.count = 0;
    declare_experts(&made, 0, 4, "up_proj", ah_shape2(ROWS, WIDTH));
    declare_experts(&made, 6, 7, "up_proj", ah_shape2(ROWS, WIDTH));
    assert_fails(open_made(&tensors, &made), AH_EINPUT,
                 "found no tensor 'model.layers.0.mlp.experts.5.up_proj.weight', expected one for each expert, from 0 "
                 "to 7");
    ah__weight_tensors_close(&tensors);
    made.count = 0;
    declare_experts(&made, 0, 4, "up_proj", ah_shape2(ROWS, WIDTH));
    declare_experts(&made, 5, 5, "up_proj", ah_shape2(ROWS, WIDTH + 1));
    assert_fails(open_made(&tensors, &made), AH_ECORRUPT,
                 "tensor 'model.layers.0.mlp.experts.5.up_proj.weight': found another type or shape than expert 0's");
    ah__weight_tensors_close(&tensors);
}

/* 48 blocks of 128 experts, three layers each: opening sorts, and compares no name with all others. */
static void many_experts_are_quick(void **state)
{
    enum { BLOCKS = 48, MANY = 128, LAYERS = 3 };
    static struct ah_safetensors_decl stacks[BLOCKS * LAYERS];
    static char names[BLOCKS * LAYERS][96];
    struct ah_stack_decls decls = {.count = 0};
    struct ah_safetensors_writer *writer;
    struct ah_weight_tensors tensors;
    static const float zeros[MANY];
    char path[512];
    for (int i = 0; i < BLOCKS * LAYERS; i++) {
        snprintf(names[i], sizeof names[i], "model.layers.%d.mlp.experts.*.l%d.weight", i / LAYERS, i % LAYERS);
        stacks[i] = (struct ah_safetensors_decl){names[i], AH_F32, ah_shape2(MANY, 1)};
    }
    assert_ok(ah__stack_decls_fill(&decls, stacks, AH_LENGTH(stacks)));
    assert_int_equal(decls.count, BLOCKS * LAYERS * MANY);
    assert_string_equal(decls.decl[MANY + 12].name, "model.layers.0.mlp.experts.12.l1.weight");
    assert_int_equal(decls.decl[MANY + 12].shape.rank, 1);
    snprintf(path, sizeof path, "%s/model.safetensors", ah_test_folder());
    assert_ok(ah__safetensors_writer_open(&writer, path, decls.decl, decls.count));
    for (int i = 0; i < BLOCKS * LAYERS; i++)
        assert_ok(ah__safetensors_writer_append(writer, zeros, sizeof zeros));
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
    ah__stack_decls_fini(&decls);
    assert_ok(ah__weight_tensors_open(&tensors, path));
    assert_int_equal(tensors.count, BLOCKS * LAYERS);
    for (int i = 0; i < BLOCKS * LAYERS; i++)
        assert_non_null(ah__weight_tensors_find(&tensors, names[i]));
    ah__weight_tensors_close(&tensors);
}

/* ---- as transformers has gpt_oss --------------------------------------------------------------------------------- */

enum { OUTS = 34, INS = 35, FEW = 3 };

/* Returns where files have element (o, i) of an expert. */
static int place_in_file(int o, int i, bool alternate)
{
    int row = !alternate ? o : o < OUTS / 2 ? 2 * o : 2 * (o - OUTS / 2) + 1;
    return i * OUTS + row;
}

/* Transposed matrices are read as they are here, and what is written of them are the bytes of the file. */
static void transposed_experts_go_both_ways(void **state)
{
    static const char *const names[] = {"model.layers.0.mlp.experts.gate_up_proj",
                                        "model.layers.0.mlp.experts.down_proj"};
    static const char *const marks[] = {"^T2", "^T"};
    static struct made made;
    static float here[FEW * OUTS * INS];
    static uint16_t narrow[2][FEW * OUTS * INS];
    struct ah_weight_tensors tensors;
    made.count = 0;
    for (int n = 0; n < 2; n++) {
        char bias[96];
        snprintf(bias, sizeof bias, "%s_bias", names[n]);
        declare(&made, names[n], ah_shape3(FEW, INS, OUTS));
        declare(&made, bias, ah_shape2(FEW, OUTS));
    }
    declare(&made, "model.layers.0.self_attn.sinks", ah_shape1(2));
    assert_ok(open_made(&tensors, &made));
    for (int n = 0; n < 4; n++) {
        char name[128], *in_file;
        const bool bias = n % 2;
        const int ins = bias ? 1 : INS;
        snprintf(name, sizeof name, "%s%s.%s", names[n / 2], marks[n / 2], bias ? "bias" : "weight");
        const struct ah_shape shape = bias ? ah_shape2(FEW, OUTS) : ah_shape3(FEW, OUTS, INS);
        const struct ah_weight_tensor *view = ah__weight_tensors_find(&tensors, name);
        assert_non_null(view);
        assert_ok(ah__weight_tensor_read(here, &tensors, view, shape));
        const float *file = (const float *)(const void *)view->of->data;
        for (int k = 0; k < FEW * OUTS * ins; k++) {
            int e = k / (OUTS * ins), o = k / ins % OUTS, i = k % ins;
            assert_true(here[k] == file[e * OUTS * ins + place_in_file(o, i, n < 2)]);
            narrow[0][k] = (uint16_t)k;
        }
        struct ah_safetensors_writer *writer;
        char path[512];
        assert_ok(ah__stack_part_name(&in_file, name, 0));
        assert_string_equal(in_file, view->of->name);
        const struct ah_safetensors_decl decl = {in_file, AH_F32, ah__stack_part_shape(name, &shape)};
        snprintf(path, sizeof path, "%s/again.safetensors", ah_test_folder());
        assert_ok(ah__safetensors_writer_open(&writer, path, &decl, 1));
        assert_ok(ah__stack_append(writer, name, here, &shape, AH_F32));
        assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
        ah__safetensors_writer_free(writer);
        struct ah_weight_tensors again;
        assert_ok(ah__weight_tensors_open(&again, path));
        assert_memory_equal(ah__weight_tensors_find(&again, in_file)->data, file, view->of->bytes);
        ah__weight_tensors_close(&again);
        ah__stack_copy(narrow[1], name, narrow[0], &shape, AH_BF16);
        for (int k = 0; k < FEW * OUTS * ins; k++)
            assert_int_equal(narrow[1][k],
                             k / (OUTS * ins) * OUTS * ins + place_in_file(k / ins % OUTS, k % ins, n < 2));
        ah__free(in_file);
    }
    assert_non_null(ah__weight_tensors_find(&tensors, "model.layers.0.self_attn.sinks^.weight"));
    ah__weight_tensors_close(&tensors);
}

AH_TEST_CASES("source/weight_stacks", transposed_experts_go_both_ways, experts_are_gathered_by_their_numbers,
              every_expert_counts_in_the_hash, fused_experts_have_views, experts_that_do_not_fit_are_named,
              many_experts_are_quick)
