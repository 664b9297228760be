/* Ids and texts of every kind of tokenizer as the tokenizers library has them (tests/golden/tokenizer_ids.py),
 * and the sentencepiece library (tests/golden/piece_ids.py). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "golden/crc.h"
#include "source/model_tokenizer.h"
#include "test.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_strings.h"

struct golden {
    char *data;
    size_t length;
    const unsigned char *full; /* the next list of ids */
};

static uint32_t golden_check(const struct golden *golden, size_t index)
{
    uint32_t value;
    memcpy(&value, golden->data + 4 * index, sizeof value);
    return value;
}

/* The ids of the first strings are all there, so that a difference can be seen. */
static void full_check(struct golden *golden, const char *kind, uint64_t i, const struct ah_buf *text,
                       const int32_t *ids, int64_t count)
{
    uint16_t expected, id;
    memcpy(&expected, golden->full, sizeof expected);
    golden->full += sizeof expected;
    for (int64_t k = 0; k < expected; k++, golden->full += sizeof id) {
        memcpy(&id, golden->full, sizeof id);
        if (k >= count || ids[k] != id)
            fail_msg("%s: string %d '%s': id %d of %d: found %d of %d, expected %d", kind, (int)i, text->text, (int)k,
                     expected, k < count ? ids[k] : -1, (int)count, id);
    }
    if (count != expected)
        fail_msg("%s: string %d '%s': found %d ids, expected %d", kind, (int)i, text->text, (int)count, expected);
}

static uint32_t text_crc(uint32_t crc, const struct ah_tokenizer *tokenizer, const int32_t *ids, int64_t count)
{
    char *text;
    size_t length;
    assert_ok(tokenizer->decode(&text, &length, tokenizer, ids, count));
    crc = crc_add(crc, text, length);
    ah__free(text);
    return crc;
}

static void string_check(struct golden *golden, const char *kind, const struct ah_tokenizer *tokenizer, uint64_t i,
                         const struct ah_buf *text)
{
    int32_t *ids, *around;
    int64_t count, around_count;
    assert_ok(tokenizer->encode(&ids, &count, tokenizer, text->text, text->length));
    assert_ok(tokenizer->encode_prompt(&around, &around_count, tokenizer, text->text, text->length));
    if (i < AH_TEST_FULL)
        full_check(golden, kind, i, text, ids, count);
    uint32_t crc = crc_add(0, ids, (size_t)count * sizeof *ids);
    crc = crc_add(crc, around, (size_t)around_count * sizeof *around);
    crc = text_crc(crc, tokenizer, ids, count);
    if (crc != golden_check(golden, (size_t)i))
        fail_msg("%s: string %d '%s': its ids or the text they decode to are others", kind, (int)i, text->text);
    ah__free(ids);
    ah__free(around);
}

static void ids_check(const struct golden *golden, const char *kind, const struct ah_tokenizer *tokenizer, uint64_t i)
{
    int32_t ids[30];
    size_t count = 1 + (size_t)(test_id_draw(i, 0) % 30);
    for (size_t k = 0; k < count; k++)
        ids[k] = (int32_t)(test_id_draw(i, 1 + k) % (uint64_t)tokenizer->vocab_size);
    if (text_crc(0, tokenizer, ids, (int64_t)count) != golden_check(golden, (size_t)(AH_TEST_STRINGS + i)))
        fail_msg("%s: list %d of ids: the text they decode to is another", kind, (int)i);
}

static void golden_run(const char *kind, const char *folder)
{
    char path[512];
    struct golden golden;
    struct ah_buf text = {0};
    const struct ah_tokenizer *tokenizer;
    struct test_strings *strings = test_strings_open();
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s/golden.bin", ah_test_source(), kind);
    assert_ok(ah__file_read(&golden.data, &golden.length, path, 1 << 24));
    golden.full = (unsigned char *)golden.data + 4 * (AH_TEST_STRINGS + AH_TEST_ID_LISTS);
    assert_ok(ah__model_tokenizer_open(&tokenizer, folder));
    uint64_t step = ah_test_samples() ? 7 : 1;
    for (uint64_t i = 0; i < AH_TEST_STRINGS; i += i < AH_TEST_FULL ? 1 : step) {
        test_string(&text, strings, i);
        string_check(&golden, kind, tokenizer, i, &text);
    }
    assert_ptr_equal(golden.full, golden.data + golden.length);
    for (uint64_t i = 0; i < AH_TEST_ID_LISTS; i++)
        ids_check(&golden, kind, tokenizer, i);
    ah__tokenizer_close(tokenizer);
    ah__buf_free(&text);
    ah__free(golden.data);
    test_strings_close(strings);
}

static void kind_run(const char *kind)
{
    char folder[512];
    snprintf(folder, sizeof folder, "%s/golden/tokenizers/%s", ah_test_source(), kind);
    golden_run(kind, folder);
}

/* The same tokenizer as llama.cpp's files have it. */
static void gguf_run(const char *kind)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/gguf/tokens-%s.gguf", ah_test_source(), kind);
    golden_run(kind, path);
}

static void gguf_llama3(void **state)
{
    gguf_run("llama3");
}

static void gguf_qwen2(void **state)
{
    gguf_run("qwen2");
}

#define KIND(name)                                                                                                     \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        kind_run(#name);                                                                                               \
    }
KIND(gpt2)
KIND(llama3)
KIND(o200k)
KIND(qwen2)
KIND(gpt_neox)
KIND(llama2)
KIND(mistral)
KIND(metaspace)
KIND(gemma)
KIND(splits)
KIND(pieces_bpe)
KIND(pieces_unigram)

AH_TEST_CASES("tokenizer/tokenizer_golden", gpt2, llama3, o200k, qwen2, gpt_neox, llama2, mistral, metaspace, gemma,
              splits, pieces_bpe, pieces_unigram, gguf_llama3, gguf_qwen2)
