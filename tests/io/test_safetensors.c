#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "io/safetensors.h"

static char path[256];

static void path_set(void)
{
    snprintf(path, sizeof path, "%s/x.safetensors", ah_test_folder());
}

/* Header text and data as a file. */
static void file_make(const char *header, const void *data, size_t length)
{
    unsigned char bytes[4096] = {0};
    size_t size = strlen(header);
    assert_true(8 + size + length <= sizeof bytes);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(size >> (8 * i));
    memcpy(bytes + 8, header, size);
    if (length)
        memcpy(bytes + 8 + size, data, length);
    assert_ok(ah__file_write(path, bytes, 8 + size + length));
}

static const struct ah_safetensors_decl decls[] = {{"b.weight", AH_F32, {2, {2, 3, 0, 0}}},
                                                   {"a", AH_BF16, {1, {4, 0, 0, 0}}},
                                                   {"scalar", AH_I32, {0, {0}}},
                                                   {"none", AH_F16, {2, {0, 5, 0, 0}}},
                                                   {"q\"\\", AH_F16, {1, {1, 0, 0, 0}}}};
static const unsigned char content[38] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
                                          20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38};

static int write_all(int64_t *bytes, uint64_t *hash)
{
    struct ah_safetensors_writer *writer = NULL;
    AH_TRY(ah__safetensors_writer_open(&writer, path, decls, AH_LENGTH(decls)));
    int status = ah__safetensors_writer_append(writer, content, 5);
    if (status == AH_OK)
        status = ah__safetensors_writer_append(writer, content + 5, 0);
    if (status == AH_OK)
        status = ah__safetensors_writer_append(writer, content + 5, 33);
    if (status == AH_OK)
        status = ah__safetensors_writer_close(writer, bytes, hash);
    ah__safetensors_writer_free(writer);
    return status;
}

static void round_trip(void **state)
{
    path_set();
    int64_t bytes = 0;
    uint64_t hash = 0;
    assert_ok(write_all(&bytes, &hash));
    char *text = NULL;
    size_t length = 0;
    assert_ok(ah__file_read(&text, &length, path, 4096));
    assert_int_equal(length, bytes);
    assert_true(ah__hash(text, length, 0) == hash);
    assert_int_equal((length - sizeof content) % 8, 0);
    ah__free(text);
    struct ah_safetensors *file = NULL;
    assert_ok(ah__safetensors_open(&file, path));
    assert_int_equal(ah__safetensors_count(file), 5);
    assert_string_equal(ah__safetensors_at(file, 0)->name, "a");
    assert_string_equal(ah__safetensors_meta(file, "format"), "pt");
    assert_null(ah__safetensors_meta(file, "other"));
    size_t at = 0;
    for (size_t i = 0; i < AH_LENGTH(decls); i++) {
        const struct ah_safetensors_tensor *tensor = NULL;
        assert_ok(ah__safetensors_get(&tensor, file, decls[i].name, decls[i].dtype, decls[i].shape));
        assert_memory_equal(tensor->data, content + at, tensor->bytes);
        at += tensor->bytes;
    }
    assert_int_equal(at, sizeof content);
    ah__safetensors_close(file);
}

static void lookups_refuse(void **state)
{
    path_set();
    assert_ok(write_all(NULL, NULL));
    struct ah_safetensors *file = NULL;
    const struct ah_safetensors_tensor *tensor = NULL;
    assert_ok(ah__safetensors_open(&file, path));
    assert_null(ah__safetensors_find(file, "c"));
    assert_fails(ah__safetensors_get(&tensor, file, "c", AH_F32, ah_shape2(2, 3)), AH_ECORRUPT,
                 "x.safetensors: tensor 'c': found nothing, expected F32 [2, 3]");
    assert_fails(ah__safetensors_get(&tensor, file, "b.weight", AH_F32, ah_shape2(3, 2)), AH_ECORRUPT,
                 "x.safetensors: tensor 'b.weight': found F32 [2, 3], expected F32 [3, 2]");
    assert_fails(ah__safetensors_get(&tensor, file, "b.weight", AH_BF16, ah_shape2(2, 3)), AH_ECORRUPT,
                 "tensor 'b.weight': found F32 [2, 3], expected BF16 [2, 3]");
    assert_null(tensor);
    ah__safetensors_close(file);
}

static void broken_headers(void **state)
{
    static const struct {
        const char *header;
        size_t data_bytes;
        const char *words;
    } rows[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}", 8, "header: "},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         "tensor 'a': found F33, expected a dtype such as F32"},
        {"{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "key 'a.dtype': found 7, expected a string"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8,
         "key 'a.x': found an unknown key, expected one of: dtype, shape, data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "key 'a.data_offsets': found nothing, expected an array"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8,
         "tensor 'a': found 1 data offset, expected 2"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
         "tensor 'a': found data_offsets [8, 0], expected a range within the 8 bytes of data"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]}}", 8,
         "tensor 'a': found data_offsets [0, 12], expected a range within the 8 bytes of data"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
         "tensor 'a': found data_offsets [0, 8], expected 12 bytes by dtype and shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8,
         "key 'a.shape[0]': found -2, expected an integer of at least 0"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}", 8,
         "key 'a.shape[0]': found 4.6"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
         "tensor 'a': found [4294967296, 4294967296], expected a shape below 2^60 bytes"},
        {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3,3],\"data_offsets\":[0,5]}}", 5,
         "tensor 'a': found [3, 3], expected one that fills whole bytes with F4"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
         "key 'a.shape': found an array, expected an array of at most 8 integers"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
         "\"data_offsets\":[0,4]}}",
         4, "found data at offset 0, expected 4, where the tensor before it ends"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
         "\"data_offsets\":[8,12]}}",
         12, "tensor 'b': found data at offset 8, expected 4, where the tensor before it ends"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 5,
         "found 5 bytes of data, expected 4 by the header"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
         "\"data_offsets\":[4,8]}}",
         8, "key 'a': found twice in one object, expected once"},
        {"{\"a\":[]}", 0, "tensor 'a': found no object, expected one with dtype, shape and data_offsets"},
        {"{\"__metadata__\":{\"k\":1}}", 0, "key '__metadata__.k': found no string, expected one"},
        {"{\"__metadata__\":7}", 0, "key '__metadata__': found no object, expected one"},
        {" {}", 0, "found byte 0x20 at the start of the header, expected '{'"},
    };
    static const unsigned char data[16];
    path_set();
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        struct ah_safetensors *file = NULL;
        file_make(rows[i].header, data, rows[i].data_bytes);
        assert_fails(ah__safetensors_open(&file, path), AH_ECORRUPT, rows[i].words);
        assert_non_null(strstr(ah_error(), "x.safetensors"));
        assert_null(file);
    }
}

static void unusual_but_good(void **state)
{
    static const unsigned char data[16] = {9};
    struct ah_safetensors *file = NULL;
    path_set();
    file_make("{}", data, 0);
    assert_ok(ah__safetensors_open(&file, path));
    assert_int_equal(ah__safetensors_count(file), 0);
    assert_null(ah__safetensors_find(file, "a"));
    ah__safetensors_close(file);
    file_make("{\"__metadata__\":null,\"i\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}", data, 8);
    assert_ok(ah__safetensors_open(&file, path)); /* as some programs write it */
    assert_int_equal(ah__safetensors_count(file), 1);
    ah__safetensors_close(file);
    file_make("{\"z\":{\"dtype\":\"BOOL\",\"shape\":[1,1,1,1,1],\"data_offsets\":[8,9]},\"e\":{\"shape\":[0],\"dtype\":"
              "\"F32\","
              "\"data_offsets\":[8,8]},\"i\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]}}  ",
              data, 9);
    assert_ok(ah__safetensors_open(&file, path));
    assert_int_equal(ah__safetensors_find(file, "i")->dtype, AH_DTYPE_COUNT);
    assert_string_equal(ah__safetensors_find(file, "i")->dtype_name, "I64");
    assert_int_equal(ah__safetensors_find(file, "z")->rank, 5);
    assert_int_equal(ah__safetensors_find(file, "i")->data[0], 9);
    ah__safetensors_close(file);
}

/* Dtypes of the format that AutoHete has no use for are no damage; whoever wants the tensor is told what it is. */
static void dtypes_are_named(void **state)
{
    static const struct {
        const char *name;
        size_t bytes; /* of eight elements */
    } rows[] = {
        {"F64", 64},    {"C64", 64},    {"I64", 64},    {"U64", 64},        {"U32", 32},        {"I16", 16},
        {"U16", 16},    {"I8", 8},      {"U8", 8},      {"BOOL", 8},        {"F8_E4M3", 8},     {"F8_E5M2", 8},
        {"F8_E8M0", 8}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F4", 4},
    };
    static const unsigned char data[64];
    struct ah_shape shape = {.rank = 2, .dim = {2, 4}};
    path_set();
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        const struct ah_safetensors_tensor *tensor;
        struct ah_safetensors *file = NULL;
        char header[160], words[80];
        snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,4],\"data_offsets\":[0,%zu]}}",
                 rows[i].name, rows[i].bytes);
        file_make(header, data, rows[i].bytes);
        assert_ok(ah__safetensors_open(&file, path));
        snprintf(words, sizeof words, "tensor 'a': found %s [2, 4], expected F32 [2, 4]", rows[i].name);
        assert_fails(ah__safetensors_get(&tensor, file, "a", AH_F32, shape), AH_ECORRUPT, words);
        ah__safetensors_close(file);
    }
}

static void missing_and_short(void **state)
{
    struct ah_safetensors *file = NULL;
    path_set();
    assert_fails(ah__safetensors_open(&file, path), AH_EINPUT, "x.safetensors: cannot open: No such file");
    assert_ok(ah__file_write(path, "\2\0\0\0\0\0\0\0{", 9));
    assert_fails(ah__safetensors_open(&file, path), AH_ECORRUPT,
                 "found 9 bytes, expected a safetensors file of at least 10");
    assert_ok(ah__file_write(path, "\3\0\0\0\0\0\0\0{}", 10));
    assert_fails(ah__safetensors_open(&file, path), AH_ECORRUPT, "found a header of 3 bytes, expected 2 to 2");
    assert_ok(ah__file_write(path, "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
    assert_fails(ah__safetensors_open(&file, path), AH_ECORRUPT, "found a header of 18446744073709551615 bytes");
}

/* Every truncation is found out; every flipped bit leaves a clean error or a file whose every tensor can be read. */
static void damage_never_crashes(void **state)
{
    path_set();
    int64_t bytes = 0;
    assert_ok(write_all(&bytes, NULL));
    char *good = NULL, other[256];
    size_t length = 0;
    assert_ok(ah__file_read(&good, &length, path, 4096));
    snprintf(other, sizeof other, "%s/damaged", ah_test_folder());
    struct ah_safetensors *file = NULL;
    for (size_t cut = 1; cut < length; cut++) {
        FILE *to = fopen(other, "wb");
        assert_int_equal(fwrite(good, 1, cut, to), cut);
        fclose(to);
        assert_fails(ah__safetensors_open(&file, other), AH_ECORRUPT, "damaged");
    }
    for (size_t at = 0; at < length * 8; at++) {
        good[at / 8] = (char)(good[at / 8] ^ (1 << at % 8));
        FILE *to = fopen(other, "wb");
        assert_int_equal(fwrite(good, 1, length, to), length);
        fclose(to);
        good[at / 8] = (char)(good[at / 8] ^ (1 << at % 8));
        int status = ah__safetensors_open(&file, other);
        assert_true(status == AH_OK || status == AH_ECORRUPT);
        uint64_t sum = 0;
        for (size_t i = 0; status == AH_OK && i < ah__safetensors_count(file); i++)
            sum += ah__hash(ah__safetensors_at(file, i)->data, ah__safetensors_at(file, i)->bytes, 0);
        assert_true(sum || status != AH_OK);
        if (status == AH_OK)
            ah__safetensors_close(file);
    }
    ah__free(good);
}

static void writer_counts(void **state)
{
    path_set();
    struct ah_safetensors_writer *writer = NULL;
    assert_ok(ah__safetensors_writer_open(&writer, path, decls, AH_LENGTH(decls)));
    assert_ok(ah__safetensors_writer_append(writer, content, 30));
    assert_fails(ah__safetensors_writer_close(writer, NULL, NULL), AH_EINTERNAL, "bytes written, expected");
    assert_fails(ah__safetensors_writer_append(writer, content, 9), AH_EINTERNAL, "+ 9 bytes, expected");
    ah__safetensors_writer_free(writer);
    assert_false(ah__path_exists(path));
    assert_fails(ah__safetensors_writer_open(&writer, "/nowhere/x", decls, 1), AH_EINPUT,
                 "/nowhere/x: cannot write: No such");
    ah__safetensors_writer_free(NULL);
}

static void full_disk_is_reported(void **state)
{
    path_set();
    struct ah_safetensors_writer *writer = NULL;
    assert_fails(ah__safetensors_writer_open(&writer, "/dev/full", decls, 5), AH_EIO,
                 "/dev/full: cannot write: No space left");
    assert_true(ah__path_exists("/dev/full"));
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    assert_ok(ah__safetensors_writer_open(&writer, path, decls, AH_LENGTH(decls)));
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status = ah__safetensors_writer_append(writer, content, sizeof content);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_fails(status, AH_EIO, "x.safetensors: cannot write: File too large");
    ah__safetensors_writer_free(writer);
    assert_false(ah__path_exists(path));
}

/* JSON and safetensors, out and in again. */
static int everything(const char *folder)
{
    char name[256];
    snprintf(name, sizeof name, "%s/tree.json", folder);
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    cJSON *tree = cJSON_CreateObject();
    struct ah_json json = {0}, inner;
    struct ah_safetensors *file = NULL;
    int64_t value = 0;
    int status = ah__json_add_int(cJSON_AddObjectToObject(tree, "o"), "i", 5);
    status = status == AH_OK ? ah__json_save(tree, name) : status;
    status = status == AH_OK ? ah__json_load(&json, name) : status;
    status = status == AH_OK ? ah__json_object(&inner, &json, "o") : status;
    status = status == AH_OK ? ah__json_int(&value, &inner, "i", 5, 5) : status;
    status = status == AH_OK ? write_all(NULL, NULL) : status;
    status = status == AH_OK ? ah__safetensors_open(&file, path) : status;
    ah__safetensors_close(file);
    ah__json_free(&json);
    cJSON_Delete(tree);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    const char *folder = ah_test_folder();
    uint64_t before = ah__alloc_count();
    assert_ok(everything(folder));
    uint64_t count = ah__alloc_count() - before;
    assert_true(count > 50);
    for (uint64_t n = 1; n <= count; n++) {
        ah__alloc_fail_at(n);
        assert_fails(everything(folder), AH_ENOMEM, "out of host memory");
    }
    ah__alloc_fail_at(0);
    assert_ok(everything(folder));
}

AH_TEST_CASES("io/safetensors", round_trip, lookups_refuse, broken_headers, unusual_but_good, dtypes_are_named,
              missing_and_short, damage_never_crashes, writer_counts, full_disk_is_reported, every_allocation_may_fail)
