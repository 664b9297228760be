/* GGUF files made by llama.cpp's package (tests/golden/gguf_files.py), and what is refused of damaged ones. */
#include "gguf/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "golden/crc.h"
#include "test.h"

static const char *golden(char path[512], const char *name)
{
    snprintf(path, 512, "%s/golden/gguf/%s", ah_test_source(), name);
    return path;
}

static struct ah_gguf *opened(const char *name)
{
    char path[512];
    struct ah_gguf *file;
    assert_ok(ah__gguf_open(&file, golden(path, name)));
    return file;
}

static uint32_t values_crc(const struct ah_gguf_tensor *tensor)
{
    int64_t count = (int64_t)tensor->bytes / tensor->type->bytes * tensor->type->block;
    float *values;
    assert_non_null(tensor->type->widen);
    assert_ok(ah__new(&values, (size_t)count, sizeof *values));
    tensor->type->widen(values, tensor->data, count);
    uint32_t crc = crc_add(0, values, (size_t)count * sizeof *values);
    ah__free(values);
    return crc;
}

static void every_type_has_the_values_of_gguf(void **state)
{
    enum { TYPES = 12 };
    char path[512], name[64], *text;
    size_t length, count = 0;
    struct ah_gguf *file = opened("types.gguf");
    assert_ok(ah__file_read(&text, &length, golden(path, "types.crc"), 1 << 16));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), count++) {
        uint32_t expected;
        assert_int_equal(sscanf(line, "%63s %" SCNu32, name, &expected), 2);
        const struct ah_gguf_tensor *tensor = ah__gguf_find(file, name);
        assert_non_null(tensor);
        assert_int_equal(tensor->dim[0], 3);
        assert_int_equal(tensor->dim[1], 512);
        if (values_crc(tensor) != expected)
            fail_msg("%s: other values", name);
    }
    assert_int_equal(count, TYPES);
    assert_int_equal(ah__gguf_count(file), TYPES);
    ah__free(text);
    ah__gguf_close(file);
}

static void metadata_is_read_by_type(void **state)
{
    struct ah_gguf *file = opened("llama.gguf");
    const char *text = NULL;
    int64_t number = -1;
    double real = 0;
    bool flag = true;
    assert_ok(ah__gguf_text(&text, file, "general.architecture"));
    assert_string_equal(text, "llama");
    assert_ok(ah__gguf_int(&number, file, "llama.block_count", 0, 10));
    assert_int_equal(number, 2);
    assert_ok(ah__gguf_double(&real, file, "llama.rope.freq_base", 1, 1e9));
    assert_true(real > 499999 && real < 500001);
    assert_ok(ah__gguf_bool(&flag, file, "llama.no.such.key"));
    assert_true(flag);
    assert_int_equal(ah__gguf_int(&number, file, "llama.block_count", 0, 1), AH_EINPUT);
    assert_non_null(strstr(ah_error(), "key 'llama.block_count': found 2, expected 0 to 1"));
    assert_int_equal(ah__gguf_text(&text, file, "llama.block_count"), AH_EINPUT);
    assert_non_null(strstr(ah_error(), "found an integer, expected a text"));
    ah__gguf_close(file);
}

static void arrays_are_read_one_by_one(void **state)
{
    struct ah_gguf *file = opened("llama.gguf");
    struct ah_gguf_array texts, types;
    size_t length;
    assert_ok(ah__gguf_texts(&texts, file, "tokenizer.ggml.tokens"));
    assert_ok(ah__gguf_ints(&types, file, "tokenizer.ggml.token_type"));
    assert_int_equal(texts.count, 3 + 256 + 9);
    assert_int_equal(types.count, texts.count);
    assert_memory_equal(ah__gguf_next_text(&length, &texts), "<unk>", 5);
    assert_int_equal(length, 5);
    assert_memory_equal(ah__gguf_next_text(&length, &texts), "<s>", 3);
    assert_int_equal(ah__gguf_next_int(&types), 2);
    assert_int_equal(ah__gguf_ints(&types, file, "tokenizer.ggml.tokens"), AH_EINPUT);
    ah__gguf_close(file);
}

static void put(struct ah_buf *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++, value >>= 8)
        ah__buf_add(to, &(char){(char)value}, 1);
}

static void put_text(struct ah_buf *to, const char *text)
{
    put(to, strlen(text), 8);
    ah__buf_add(to, text, strlen(text));
}

/* A tensor of four floats whose data lie at an offset; the file aligns data to 64 bytes, where 32 is usual. */
static const char *aligned_write(uint64_t offset)
{
    static char path[512];
    static const float values[] = {1, 2, 3, 4};
    struct ah_buf file = {0};
    ah__buf_add(&file, "GGUF", 4);
    put(&file, 3, 4), put(&file, 1, 8), put(&file, 1, 8);
    put_text(&file, "general.alignment");
    put(&file, 4, 4), put(&file, 64, 4);
    put_text(&file, "a");
    put(&file, 1, 4), put(&file, 4, 8), put(&file, 0, 4), put(&file, offset, 8);
    assert_in_range(file.length % 64, 1, 32); /* so that 32 would be another place */
    while (file.length % 64)
        put(&file, 0, 1);
    put(&file, 0, (int)offset);
    ah__buf_add(&file, (const char *)values, sizeof values);
    snprintf(path, sizeof path, "%s/aligned.gguf", ah_test_folder());
    assert_ok(file.status);
    assert_ok(ah__file_write(path, file.text, file.length));
    ah__buf_free(&file);
    return path;
}

static void data_lie_where_the_file_aligns_them(void **state)
{
    struct ah_gguf *file;
    for (uint64_t offset = 0; offset <= 64; offset += 64) {
        assert_ok(ah__gguf_open(&file, aligned_write(offset)));
        assert_memory_equal(ah__gguf_at(file, 0)->data, ((const float[]){1, 2, 3, 4}), 16);
        ah__gguf_close(file);
    }
    assert_fails(ah__gguf_open(&file, aligned_write(32)), AH_ECORRUPT, "no multiple of the alignment");
}

/* Corpus files of the fuzzer, by what is wrong with them. */
static void damage_is_named(void **state)
{
    static const char *const files[][2] = {
        {"version", "found version 9, expected version 2 or 3"},
        {"big-endian", "found big-endian version 3"},
        {"many-tensors", "found 18446744073709551615 tensors"},
        {"many-keys", "keys, expected fewer"},
        {"huge-shape", "tensor 'token_embd.weight'"},
        {"rank", "tensor 'token_embd.weight': found another number of dimensions"},
        {"type", "tensor 'token_embd.weight': found type 99"},
        {"offset", "tensor 'token_embd.weight': found offset"},
        {"overlap", "found data that another tensor has"},
        {"cut", "is the file whole?"},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        struct ah_gguf *file;
        snprintf(path, sizeof path, "%s/../fuzz/corpus/gguf/%s", ah_test_source(), files[i][0]);
        assert_int_equal(ah__gguf_open(&file, path), AH_ECORRUPT);
        if (!strstr(ah_error(), files[i][1]))
            fail_msg("%s: found '%s', expected '%s' in it", files[i][0], ah_error(), files[i][1]);
    }
}

AH_TEST_CASES("gguf/gguf", every_type_has_the_values_of_gguf, metadata_is_read_by_type, arrays_are_read_one_by_one,
              data_lie_where_the_file_aligns_them, damage_is_named)
