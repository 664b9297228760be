/* Reading what the scripts beside this file wrote, and the rules by which they draw what they did not write. */
#ifndef AH_TESTS_GOLDEN_GOLDEN_H
#define AH_TESTS_GOLDEN_GOLDEN_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "test.h"

enum { GOLDEN_STEPS = 10, GOLDEN_MOST_TENSORS = 64, GOLDEN_MOST_BYTES = 1 << 20 };
static const double golden_tolerance = 1e-5; /* of the largest element of a tensor, in fp32 */

/* Ends the line at `at` and returns where the next one begins. */
static inline char *golden_next_line(char *at)
{
    char *end = strchr(at, '\n');
    assert_non_null(end);
    *end = 0;
    return end + 1;
}

static inline void golden_numbers(double out[GOLDEN_STEPS], char *line, const char *name)
{
    assert_memory_equal(line, name, strlen(name));
    line += strlen(name);
    for (int i = 0; i < GOLDEN_STEPS; i++)
        out[i] = strtod(line, &line);
    assert_int_equal(*line, 0);
}

/* Parameter number `index` in the order of the file, by the rule of gpt2.py: multiples of 2^-26 in [-1/8, 1/8), norm
 * weights around one. */
static inline void golden_fill_param(float *values, int64_t count, int index, const char *name)
{
    float base = strstr(name, ".ln_") && strstr(name, "weight") ? 1.0f : 0.0f;
    for (int64_t j = 0; j < count; j++) {
        int64_t k = (int64_t)(ah__random_bits(1000 + (uint64_t)index, (uint64_t)j) >> 40) - (1 << 23);
        values[j] = base + (float)k * 0x1p-26f;
    }
}

/* Numbers first .. first + count - 1 of a seed's ids. */
static inline void golden_fill_ids(int32_t *ids, int64_t first, int64_t count, uint64_t seed, int vocab)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = (int32_t)(ah__random_bits(seed, (uint64_t)(first + i)) % (uint64_t)vocab);
}

/* The config.json of such a GPT-2, below ah_test_folder(). */
static inline void golden_write_config(char *path, size_t size, int layers, int embd, int heads, int vocab, int seq,
                                       bool tied)
{
    snprintf(path, size, "%s/config.json", ah_test_folder());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "{\"model_type\":\"gpt2\",\"n_layer\":%d,\"n_embd\":%d,\"n_head\":%d,\"vocab_size\":%d,\"n_positions\":%d,"
            "\"tie_word_embeddings\":%s}",
            layers, embd, heads, vocab, seq, tied ? "true" : "false");
    assert_int_equal(fclose(file), 0);
}

/* golden: floats at any alignment. */
static inline void golden_expect_close(const char *what, const char *name, const float *found, const char *golden,
                                       int64_t count)
{
    double error = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        float expected;
        memcpy(&expected, golden + 4 * i, sizeof expected);
        double difference = fabs((double)found[i] - (double)expected);
        error = difference <= error ? error : difference; /* NaN counts as an error */
        largest = fmax(largest, fabs((double)expected));
    }
    if (!(error <= golden_tolerance * largest))
        fail_msg("%s of %s: error %g of %g", what, name, error, largest);
}

static inline void golden_expect_number(const char *what, double found, double expected)
{
    if (!(fabs(found - expected) <= golden_tolerance * fabs(expected)))
        fail_msg("%s: found %.9g, expected %.9g", what, found, expected);
}

/* The gradient of a key's bias is zero but for rounding (softmax does not see it), and Adam makes steps of full size
 * out of rounding: after steps, only the other two thirds of c_attn.bias can be compared. */
static inline bool golden_has_keys(const char *name)
{
    return strstr(name, "c_attn.bias");
}

static inline void golden_expect_after(const char *name, const float *found, const char *after, int64_t count)
{
    int64_t third = count / 3;
    if (!golden_has_keys(name)) {
        golden_expect_close("parameter after ten steps", name, found, after, count);
        return;
    }
    golden_expect_close("query part after ten steps", name, found, after, third);
    golden_expect_close("value part after ten steps", name, found + 2 * third, after + 4 * 2 * third, third);
}

#endif
