/* Weights in several files: what an index may say and what it may not. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "io/shards.h"
#include "op/op.h"

static char folder[256];

static void write_file(const char *name, const char *const *tensors, size_t count)
{
    struct ah_safetensors_decl decls[4];
    struct ah_safetensors_writer *writer;
    float values[2] = {1, 2};
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (size_t i = 0; i < count; i++)
        decls[i] = (struct ah_safetensors_decl){tensors[i], AH_F32, ah_shape1(2)};
    assert_ok(ah__safetensors_writer_open(&writer, path, decls, count));
    for (size_t i = 0; i < count; i++, values[0]++)
        assert_ok(ah__safetensors_writer_append(writer, values, sizeof values));
    assert_ok(ah__safetensors_writer_close(writer, NULL, NULL));
    ah__safetensors_writer_free(writer);
}

/* Opens an index with this weight_map, beside a.safetensors with tensors p and q and b.safetensors with r. */
static int open_index(struct ah_shards **out, const char *map)
{
    static const char *const first[] = {"p", "q"}, *const second[] = {"r"};
    char path[512], text[1024];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    write_file("a.safetensors", first, 2);
    write_file("b.safetensors", second, 1);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    snprintf(text, sizeof text, "{\"metadata\": {\"total_size\": 24}%s%s}", map[0] ? ", \"weight_map\": " : "", map);
    assert_ok(ah__file_write(path, text, strlen(text)));
    return ah__shards_open(out, path);
}

static void files_are_one_set(void **state)
{
    struct ah_shards *shards = NULL;
    const struct ah_safetensors_tensor *tensor;
    assert_ok(open_index(&shards, "{\"p\": \"a.safetensors\", \"q\": \"a.safetensors\", \"r\": \"b.safetensors\"}"));
    assert_int_equal(ah__shards_count(shards), 3);
    assert_string_equal(ah__shards_at(shards, 0)->name, "p");
    assert_string_equal(ah__shards_at(shards, 2)->name, "r");
    assert_null(ah__shards_find(shards, "s"));
    assert_ok(ah__shards_get(&tensor, shards, "q", AH_F32, ah_shape1(2)));
    assert_true(memcmp(tensor->data, &(float){2}, sizeof(float)) == 0);
    assert_fails(ah__shards_get(&tensor, shards, "r", AH_F32, ah_shape1(3)), AH_ECORRUPT, "b.safetensors: tensor 'r'");
    assert_fails(ah__shards_get(&tensor, shards, "s", AH_F32, ah_shape1(3)), AH_ECORRUPT, "tensor 's': found nothing");
    ah__shards_close(shards);
    ah__shards_close(NULL);
}

static void an_index_that_lies_is_refused(void **state)
{
#define PQ "\"p\": \"a.safetensors\", \"q\": \"a.safetensors\""
    static const struct {
        const char *map, *words;
        int status;
    } cases[] = {
        {"", "key 'weight_map'", AH_EINPUT},
        {"[]", "key 'weight_map'", AH_EINPUT},
        {"{}", "key 'weight_map': found nothing, expected tensors", AH_ECORRUPT},
        {"{" PQ ", \"r\": 3}", "key 'weight_map.r': found no string", AH_ECORRUPT},
        {"{" PQ ", \"r\": \"../b.safetensors\"}", "found '../b.safetensors', expected a file beside it", AH_ECORRUPT},
        {"{" PQ ", \"r\": \"..\"}", "found '..', expected a file beside it", AH_ECORRUPT},
        {"{" PQ ", \"r\": \"\"}", "found '', expected a file beside it", AH_ECORRUPT},
        {"{" PQ ", \"r\": \"/etc/passwd\"}", "expected a file beside it", AH_ECORRUPT},
        {"{" PQ ", \"r\": \"c.safetensors\"}", "c.safetensors: cannot open", AH_EINPUT},
        {"{" PQ ", \"r\": \"a.safetensors\"}", "key 'weight_map.r': found no such tensor in 'a.safetensors'",
         AH_ECORRUPT},
        {"{" PQ ", \"s\": \"b.safetensors\"}", "key 'weight_map.s': found no such tensor in 'b.safetensors'",
         AH_ECORRUPT},
        {"{\"p\": \"a.safetensors\", \"r\": \"b.safetensors\"}",
         "tensor 'q': found in 'a.safetensors', expected no such tensor by the index", AH_ECORRUPT},
    };
    struct ah_shards *shards = NULL;
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        assert_fails(open_index(&shards, cases[i].map), cases[i].status, cases[i].words);
    assert_null(shards);
    /* a tensor in two files */
    static const char *const again[] = {"q", "r"};
    char path[512];
    write_file("b.safetensors", again, 2);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    static const char text[] = "{\"weight_map\": {" PQ ", \"r\": \"b.safetensors\"}}";
    assert_ok(ah__file_write(path, text, sizeof text - 1));
    assert_fails(ah__shards_open(&shards, path), AH_ECORRUPT,
                 "tensor 'q': found in 'b.safetensors', expected in a.safetensors by the index");
#undef PQ
}

static void shards_have_names(void **state)
{
    char text[AH_SHARDS_NAME_SIZE];
    assert_string_equal(ah__shards_name(text, 0, 1), "model.safetensors");
    assert_string_equal(ah__shards_name(text, 1, 12), "model-00002-of-00012.safetensors");
    assert_true(ah__shards_is_name("model-00002-of-00012.safetensors"));
    static const char *const others[] = {"model.safetensors",
                                         "model-00003-of-00002.safetensors",
                                         "model-00000-of-00002.safetensors",
                                         "model-00001-of-00002.safetensors.tmp",
                                         "optimizer.safetensors",
                                         "model-1.safetensors"};
    for (size_t i = 0; i < AH_LENGTH(others); i++)
        assert_false(ah__shards_is_name(others[i]));
}

AH_TEST_CASES("io/shards", files_are_one_set, an_index_that_lies_is_refused, shards_have_names)
