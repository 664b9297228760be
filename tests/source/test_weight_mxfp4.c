/* Tensors in MXFP4 in safetensors: what transformers reads of them (tests/golden/mxfp4.py), and what is refused. */
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "golden/crc.h"
#include "op/op.h"
#include "source/weight_tensors.h"

static const char *golden(char path[512], const char *name)
{
    snprintf(path, 512, "%s/golden/%s", ah_test_source(), name);
    return path;
}

static void values_are_those_of_transformers(void **state)
{
    char path[512], name[128], *text;
    size_t length, count = 0;
    struct ah_weight_tensors tensors;
    static float values[1 << 14];
    assert_ok(ah__weight_tensors_open(&tensors, golden(path, "mxfp4.safetensors")));
    assert_ok(ah__file_read(&text, &length, golden(path, "mxfp4.crc"), 1 << 16));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), count++) {
        uint32_t expected;
        int64_t e, o, i;
        assert_int_equal(
            sscanf(line, "%127s %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNu32, name, &e, &o, &i, &expected), 5);
        const struct ah_weight_tensor *tensor = ah__weight_tensors_find(&tensors, name);
        assert_non_null(tensor);
        assert_true(e * o * i <= (int64_t)AH_LENGTH(values));
        assert_ok(ah__weight_tensor_read(values, &tensors, tensor, ah_shape3(e, o, i)));
        assert_int_equal(crc_add(0, values, (size_t)(e * o * i) * sizeof *values), expected);
        assert_fails(ah__weight_tensor_read(values, &tensors, tensor, ah_shape3(e, i, o)), AH_ECORRUPT,
                     "found MXFP4 [");
    }
    assert_int_equal(count, 2);
    assert_int_equal(tensors.count, 4); /* and two biases */
    assert_null(ah__weight_tensors_find(&tensors, "model.layers.0.mlp.experts.down_proj_scales"));
    ah__free(text);
    ah__weight_tensors_close(&tensors);
}

/* ---- files that are made here ------------------------------------------------------------------------------------ */

struct given {
    const char *name;
    enum ah_dtype dtype;
    struct ah_shape shape;
};

/* Opens a file of one or two tensors, whose bytes are 1, 2, 3 .. */
static int open_given(struct ah_weight_tensors *out, const struct given given[2])
{
    struct ah_safetensors_decl decl[2];
    struct ah_safetensors_writer *writer;
    unsigned char byte = 0;
    char path[512];
    size_t count = given[1].name ? 2 : 1;
    for (size_t i = 0; i < count; i++)
        decl[i] = (struct ah_safetensors_decl){given[i].name, given[i].dtype, given[i].shape};
    snprintf(path, sizeof path, "%s/model.safetensors", ah_test_folder());
    assert_ok(ah__safetensors_writer_open(&writer, path, decl, count));
    for (size_t i = 0; i < count; i++)
        for (int64_t k = 0; k < ah__shape_count(&decl[i].shape) * ah__dtype_bytes(decl[i].dtype); k++) {
            byte++;
            assert_ok(ah__safetensors_writer_append(writer, &byte, 1));
        }
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
    return ah__weight_tensors_open(out, path);
}

static void names_are_those_of_linear_layers(void **state)
{
    static const struct {
        const char *stem, *name;
    } cases[] = {
        {"experts.up", "experts.up"},
        {"model.layers.12.mlp.experts.down_proj", "model.layers.12.mlp.experts.down_proj"},
        {"model.layers.12.mlp.myexperts.up", "model.layers.12.mlp.myexperts.up.weight"},
        {"model.layers.12.mlp.up_proj", "model.layers.12.mlp.up_proj.weight"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        char blocks[96], scales[96];
        struct ah_weight_tensors tensors;
        float values[2 * 32];
        snprintf(blocks, sizeof blocks, "%s_blocks", cases[i].stem);
        snprintf(scales, sizeof scales, "%s_scales", cases[i].stem);
        const struct given given[2] = {{blocks, AH_U8, ah_shape3(2, 1, 16)}, {scales, AH_U8, ah_shape2(2, 1)}};
        assert_ok(open_given(&tensors, given));
        assert_int_equal(tensors.count, 1);
        const struct ah_weight_tensor *tensor = ah__weight_tensors_find(&tensors, cases[i].name);
        assert_non_null(tensor);
        assert_ok(ah__weight_tensor_read(values, &tensors, tensor, ah_shape2(2, 32)));
        assert_true(values[0] == 0x0.8p-94F && values[1] == 0);        /* byte 1, scale 33 */
        assert_true(values[63] == 1.0F * 0x1p-93F && values[62] == 0); /* byte 32, scale 34 */
        ah__weight_tensors_close(&tensors);
    }
}

/* The rows of gates and of what they open alternate in files; matrices are not transposed. */
static void rows_of_gates_come_first(void **state)
{
    enum { ROWS = 6, WIDTH = 32, EXPERTS = 2 };
    static const int order[ROWS] = {0, 2, 4, 1, 3, 5};
    const struct given given[2] = {
        {"model.layers.0.mlp.experts.gate_up_proj_blocks", AH_U8, {.rank = 4, .dim = {EXPERTS, ROWS, 1, 16}}},
        {"model.layers.0.mlp.experts.gate_up_proj_scales", AH_U8, ah_shape3(EXPERTS, ROWS, 1)}};
    float file[EXPERTS][ROWS][WIDTH], here[EXPERTS][ROWS][WIDTH];
    const struct ah_shape shape = ah_shape3(EXPERTS, ROWS, WIDTH);
    struct ah_weight_tensors tensors;
    assert_ok(open_given(&tensors, given));
    const struct ah_weight_tensor *whole = ah__weight_tensors_find(&tensors, "model.layers.0.mlp.experts.gate_up_proj");
    const struct ah_weight_tensor *view =
        ah__weight_tensors_find(&tensors, "model.layers.0.mlp.experts.gate_up_proj^T2.weight");
    assert_non_null(whole);
    assert_non_null(view);
    assert_ok(ah__weight_tensor_read(&file[0][0][0], &tensors, whole, shape));
    assert_ok(ah__weight_tensor_read(&here[0][0][0], &tensors, view, shape));
    for (int e = 0; e < EXPERTS; e++)
        for (int row = 0; row < ROWS; row++)
            assert_memory_equal(here[e][row], file[e][order[row]], sizeof here[0][0]);
    ah__weight_tensors_close(&tensors);
}

static void the_hash_counts_scales(void **state)
{
    const struct given given[2] = {{"a_blocks", AH_U8, ah_shape2(1, 16)}, {"a_scales", AH_U8, ah_shape1(1)}};
    struct ah_weight_tensors tensors;
    unsigned char other = 99;
    assert_ok(open_given(&tensors, given));
    uint64_t hash = ah__weight_tensor_hash(&tensors.tensors[0], 7);
    tensors.tensors[0].scales = &other;
    assert_true(ah__weight_tensor_hash(&tensors.tensors[0], 7) != hash);
    ah__weight_tensors_close(&tensors);
}

static void what_does_not_fit_is_named(void **state)
{
    static const struct {
        struct given given[2];
        int status;
        const char *message;
    } cases[] = {
        {{{"a_blocks", AH_U8, {.rank = 3, .dim = {2, 1, 16}}}},
         AH_EINPUT,
         "model.safetensors: found no tensor 'a_scales', expected one beside 'a_blocks'"},
        {{{"a_blocks", AH_U8, {.rank = 3, .dim = {2, 1, 15}}}, {"a_scales", AH_U8, {.rank = 2, .dim = {2, 1}}}},
         AH_ECORRUPT,
         "tensor 'a_blocks': found rows of 15 bytes, expected 16"},
        {{{"a_blocks", AH_U8, {.rank = 1, .dim = {16}}}, {"a_scales", AH_U8, {.rank = 1, .dim = {1}}}},
         AH_ECORRUPT,
         "tensor 'a_blocks': found a vector, expected blocks [.., 16]"},
        {{{"a_blocks", AH_U8, {.rank = 3, .dim = {2, 1, 16}}}, {"a_scales", AH_F32, {.rank = 2, .dim = {2, 1}}}},
         AH_ECORRUPT,
         "tensor 'a_scales': found F32, expected U8"},
        {{{"a_blocks", AH_U8, {.rank = 3, .dim = {2, 1, 16}}}, {"a_scales", AH_U8, {.rank = 2, .dim = {1, 2}}}},
         AH_ECORRUPT,
         "tensor 'a_scales': found another shape than that of 'a_blocks', expected a byte for each row of it"},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct ah_weight_tensors tensors;
        assert_fails(open_given(&tensors, cases[i].given), cases[i].status, cases[i].message);
        ah__weight_tensors_close(&tensors);
    }
}

AH_TEST_CASES("source/weight_mxfp4", values_are_those_of_transformers, names_are_those_of_linear_layers,
              rows_of_gates_come_first, the_hash_counts_scales, what_does_not_fit_is_named)
