#include "test.h"

#include <pthread.h>
#include <string.h>

#include "base/format.h"
#include "base/status.h"

static void names(void **state)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", AH_VERSION_MAJOR, AH_VERSION_MINOR, AH_VERSION_PATCH);
    assert_string_equal(ah_version(), version);
    assert_string_equal(ah_status_name(AH_OK), "AH_OK");
    assert_string_equal(ah_status_name(AH_EINPUT), "AH_EINPUT");
    assert_string_equal(ah_status_name(AH_EINTERNAL), "AH_EINTERNAL");
    assert_string_equal(ah_status_name(-99), "unknown status");
    assert_true(ah_status_is_input(AH_ECORRUPT));
    assert_true(ah_status_is_input(AH_EBUDGET));
    assert_false(ah_status_is_input(AH_EIO));
    assert_false(ah_status_is_input(AH_OK));
    assert_false(ah_status_is_input(-99));
}

static void message_stays_one_line(void **state)
{
    assert_int_equal(ah__fail(AH_EIO, "a\nb%d\x1b", 7), AH_EIO);
    assert_string_equal(ah_error(), "a b7 ");
}

static void prefix_goes_before(void **state)
{
    ah__fail(AH_EIO, "inner");
    assert_int_equal(ah__fail_prefix(AH_EINPUT, "step %d", 3), AH_EINPUT);
    assert_string_equal(ah_error(), "step 3: inner");
    ah__fail(AH_EIO, "again: %s", ah_error());
    assert_string_equal(ah_error(), "again: step 3: inner");
}

static void long_messages_are_cut(void **state)
{
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ah__fail(AH_EIO, "%s", text);
    assert_int_equal(strlen(ah_error()), 1023);
    ah__fail_prefix(AH_EIO, "%s", text);
    assert_int_equal(strlen(ah_error()), 1023);
}

static void *fail_elsewhere(void *unused)
{
    ah__fail(AH_EIO, "of another thread");
    return NULL;
}

static void each_thread_has_its_own(void **state)
{
    pthread_t thread;
    ah__fail(AH_EIO, "mine");
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_equal(ah_error(), "mine");
}

/* Controls of both kinds, and bytes that are no UTF-8: a terminal shows them and obeys none. */
static void texts_are_plain(void **state)
{
    static const char *const rows[][2] = {
        {"a\x1b[2Jb\n\x7f", "a [2Jb  "},
        {"\xc2\x9b"
         "31m \xc2\x80\xc2\x9f",
         "  31m     "},
        {"\xc2\xa0\xc3\xa9 \xe2\x82\xac", "\xc2\xa0\xc3\xa9 \xe2\x82\xac"},
        {"\x9b"
         "1m\xff\xc3",
         "?1m??"},
        {"", ""},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        char text[64];
        snprintf(text, sizeof text, "%s", rows[i][0]);
        assert_string_equal(ah_text_plain(text), rows[i][1]);
        ah__fail(AH_EINPUT, "%s", rows[i][0]);
        assert_string_equal(ah_error(), rows[i][1]);
    }
}

/* What a text begins with: bytes, whether a terminal obeys it. */
static void characters_are_known(void **state)
{
    static const struct {
        const char *text;
        size_t length, bytes;
        bool control;
    } rows[] = {
        {"a", 1, 1, false},
        {"\0", 1, 1, true},
        {"\x1b[", 2, 1, true},
        {"\x7f", 1, 1, true},
        {"\xc2\x80", 2, 2, true},
        {"\xc2\x9f", 2, 2, true},
        {"\xc2\xa0", 2, 2, false},
        {"\xc2", 1, 2, false},
        {"\xe2\x82", 2, 3, false},
        {"\xe2\x28", 2, 0, false},
        {"\xed\xa0\x80", 3, 0, false},
        {"\xc0\x80", 2, 0, false},
        {"\xf4\x90", 2, 0, false},
        {"\xf0\x9f\x98\x80", 4, 4, false},
        {"\x80", 1, 0, false},
        {"\xff", 1, 0, false},
        {"\xf0", 1, 4, false},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        bool control = !rows[i].control;
        size_t bytes = ah_text_character(&control, rows[i].text, rows[i].length);
        if (bytes != rows[i].bytes || control != rows[i].control)
            fail_msg("row %zu: %zu bytes, control %d", i, bytes, control);
    }
}

AH_TEST_CASES("base/status", characters_are_known, texts_are_plain, names, message_stays_one_line, prefix_goes_before,
              long_messages_are_cut, each_thread_has_its_own)
