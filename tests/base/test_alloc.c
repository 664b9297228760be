#include "test.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"

static void zeroed_and_counted(void **state)
{
    uint64_t before = ah__alloc_count();
    int *numbers = NULL;
    assert_ok(ah__new(&numbers, 100, sizeof *numbers));
    for (int i = 0; i < 100; i++)
        assert_int_equal(numbers[i], 0);
    assert_int_equal(ah__alloc_count(), before + 1);
    ah__free(numbers);
    void *nothing = NULL;
    assert_ok(ah__new(&nothing, 0, 8));
    assert_non_null(nothing);
    ah__free(nothing);
    ah__free(NULL);
}

static void overflow_is_refused(void **state)
{
    void *out = state;
    assert_fails(ah__new(&out, SIZE_MAX / 2, 3), AH_ENOMEM, "out of host memory");
    assert_ptr_equal(out, state);
    int *array = NULL;
    size_t capacity = 0;
    assert_fails(ah__grow(&array, &capacity, SIZE_MAX / 3, sizeof *array), AH_ENOMEM, "out of host memory");
    assert_null(array);
    struct ah_arena arena = {0};
    assert_fails(ah__arena_new(&arena, &out, SIZE_MAX / 8, 16), AH_ENOMEM, "out of host memory");
    ah__arena_free(&arena);
}

static void grows_and_zeroes(void **state)
{
    int *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_ok(ah__grow(&array, &capacity, i + 1, sizeof *array));
        assert_int_equal(array[i], 0);
        array[i] = (int)i + 1;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(array[i], i + 1);
    assert_true(capacity >= 1000);
    ah__free(array);
}

static void nth_allocation_fails_once(void **state)
{
    char *text = NULL;
    ah__alloc_fail_at(2);
    assert_ok(ah__strdup(&text, "one"));
    ah__free(text);
    text = NULL;
    assert_fails(ah__sprintf(&text, "%d", 2), AH_ENOMEM, "out of host memory");
    assert_null(text);
    assert_ok(ah__sprintf(&text, "%s %d", "three", 3));
    assert_string_equal(text, "three 3");
    ah__free(text);
    ah__alloc_fail_at(1);
    ah__alloc_fail_at(0);
    assert_ok(ah__strdup(&text, "none"));
    ah__free(text);
}

static void *allocate_many(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        void *memory = NULL;
        if (ah__new(&memory, 1, 8) == AH_OK)
            ah__free(memory);
    }
    return NULL;
}

static void threads_lose_no_count(void **state)
{
    pthread_t threads[4];
    uint64_t before = ah__alloc_count();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_many, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(ah__alloc_count(), before + 4000);
}

static void arena_keeps_objects_apart(void **state)
{
    struct ah_arena arena = {0};
    unsigned char *parts[200];
    for (size_t i = 0; i < 200; i++) {
        assert_ok(ah__arena_new(&arena, &parts[i], i * 10 + 1, 1));
        assert_int_equal((uintptr_t)parts[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k <= i * 10; k++)
            assert_int_equal(parts[i][k], 0);
        memset(parts[i], (int)i, i * 10 + 1);
    }
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(parts[i][i * 10], i);
    const char *text = NULL;
    assert_ok(ah__arena_strdup(&arena, &text, "kept"));
    assert_string_equal(text, "kept");
    ah__arena_free(&arena);
    assert_null(arena.chunk);
}

static void buffer_adds_and_escapes(void **state)
{
    struct ah_buf buf = {0};
    ah__buf_printf(&buf, "%d ", 5);
    ah__buf_json(&buf, "a\"\\\n\x01\xc3\xa9\xff\xe2\x82");
    assert_string_equal(buf.text, "5 a\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    ah__buf_free(&buf);
    ah__buf_xml(&buf, "<a b='\"&\x02>\xed\xa0\x80");
    assert_string_equal(buf.text, "&lt;a b=&#39;&quot;&amp;\xef\xbf\xbd&gt;\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    ah__buf_free(&buf);
    assert_null(buf.text);
}

static void buffer_error_sticks(void **state)
{
    struct ah_buf buf = {0};
    ah__alloc_fail_at(1);
    ah__buf_printf(&buf, "lost");
    ah__buf_printf(&buf, "also lost");
    assert_int_equal(buf.status, AH_ENOMEM);
    assert_int_equal(buf.length, 0);
    ah__buf_free(&buf);
    assert_int_equal(buf.status, AH_OK);
}

AH_TEST_CASES("base/alloc", zeroed_and_counted, overflow_is_refused, grows_and_zeroes, nth_allocation_fails_once,
              threads_lose_no_count, arena_keeps_objects_apart, buffer_adds_and_escapes, buffer_error_sticks)
