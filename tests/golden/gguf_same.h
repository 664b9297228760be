/* Two GGUF files with the same tensors, for tests that write what another program wrote. */
#ifndef AH_TESTS_GOLDEN_GGUF_SAME_H
#define AH_TESTS_GOLDEN_GGUF_SAME_H

#include <string.h>

#include "gguf/gguf.h"
#include "test.h"

/* To the byte, and no others. */
static inline void expect_same_tensors(const char *expected, const char *found)
{
    struct ah_gguf *left, *right;
    assert_ok(ah__gguf_open(&left, expected));
    assert_ok(ah__gguf_open(&right, found));
    for (size_t i = 0; i < ah__gguf_count(left); i++) {
        const struct ah_gguf_tensor *a = ah__gguf_at(left, i), *b = ah__gguf_find(right, a->name);
        if (!b || a->type != b->type || a->rank != b->rank || memcmp(a->dim, b->dim, sizeof a->dim) != 0 ||
            memcmp(a->data, b->data, a->bytes) != 0)
            fail_msg("%s: tensor '%s': %s", found, a->name, b ? "another type, shape or other bytes" : "none");
    }
    assert_int_equal(ah__gguf_count(left), ah__gguf_count(right));
    ah__gguf_close(left);
    ah__gguf_close(right);
}

#endif
