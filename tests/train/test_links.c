/* Folders from elsewhere: links in them are replaced, not followed; what they lead to is not passed on. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "train/tiny.h"

/* DIR/NAME becomes a link to a file outside, which says "precious". */
static void link_out(const char *dir, const char *name)
{
    char path[PATH_SIZE], target[PATH_SIZE + 16];
    snprintf(target, sizeof target, "%s-precious-%s", dir, name);
    write_text(target, "precious");
    unlink(at(path, dir, name));
    assert_int_equal(symlink(target, path), 0);
}

static void expect_own(const char *dir, const char *name)
{
    char path[PATH_SIZE], target[PATH_SIZE + 16];
    struct stat info;
    snprintf(target, sizeof target, "%s-precious-%s", dir, name);
    assert_int_equal(lstat(at(path, dir, name), &info), 0);
    if (!S_ISREG(info.st_mode))
        fail_msg("%s is no file of its folder", path);
    char *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, target, 100));
    if (strcmp(text, "precious") != 0)
        fail_msg("%s was written through", path);
    ah__free(text);
}

static void a_resumed_folder_writes_its_own(void **state)
{
    (void)state;
    static const char *const names[] = {"metrics.jsonl", "plan.json", "profile.json",
                                        "timeline.svg",  "loss.svg",  "timeline.json"};
    struct place place;
    struct ah_train_result result;
    place_init(&place);
    train_part(&place, STEPS / 2);
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        link_out(place.out, names[i]);
    struct ah_train_options options = resume_of(&place);
    assert_ok(ah_train(&result, &options));
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        expect_own(place.out, names[i]);
}

static void a_report_is_the_folders_own(void **state)
{
    (void)state;
    struct place place;
    struct ah_train_result result;
    char named[PATH_SIZE + 8], target[PATH_SIZE + 16];
    place_init(&place);
    struct ah_train_options options = options_of(&place);
    assert_ok(ah_train(&result, &options));
    link_out(place.out, "report.html");
    assert_ok(ah_report_save(place.out, NULL));
    expect_own(place.out, "report.html");
    /* what the user names is followed */
    snprintf(named, sizeof named, "%s-page", place.out);
    snprintf(target, sizeof target, "%s-target", place.out);
    write_text(target, "old");
    assert_int_equal(symlink(target, named), 0);
    assert_ok(ah_report_save(place.out, named));
    char *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, target, 1 << 24));
    assert_non_null(strstr(text, "<html"));
    ah__free(text);
}

AH_TEST_SUITE("train/links", cmocka_unit_test(a_resumed_folder_writes_its_own),
              cmocka_unit_test(a_report_is_the_folders_own))
