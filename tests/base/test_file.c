#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

static char path[256];

static const char *in(const char *folder, const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    while (readdir(list))
        count++;
    closedir(list);
    return count - 2;
}

static void expect_content(const char *name, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    assert_ok(ah__file_read(&text, &length, name, 100));
    assert_int_equal(length, strlen(expected));
    assert_string_equal(text, expected);
    ah__free(text);
}

static void writes_and_replaces(void **state)
{
    const char *folder = ah_test_folder(), *name = in(folder, "a");
    assert_ok(ah__file_write(name, "one", 3));
    expect_content(name, "one");
    assert_ok(ah__file_write(name, "two!", 4));
    expect_content(name, "two!");
    assert_ok(ah__file_write(name, "", 0));
    expect_content(name, "");
    assert_int_equal(entries(folder), 1);
}

static void writes_through_links(void **state)
{
    char folder[128], link[256];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(link, sizeof link, "%s/link", folder);
    assert_ok(ah__file_write(in(folder, "real"), "one", 3));
    assert_int_equal(symlink("real", link), 0);
    assert_ok(ah__file_write(link, "two", 3));
    expect_content(in(folder, "real"), "two");
    assert_ok(ah__file_write("/dev/null", "x", 1));
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

/* What a full disk does, made with a limit on file sizes. */
static void full_disk_leaves_the_old_file(void **state)
{
    static char data[100000];
    const char *folder = ah_test_folder(), *name = in(folder, "a");
    assert_ok(ah__file_write(name, "old", 3));
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status = ah__file_write(name, data, sizeof data);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_fails(status, AH_EIO, "cannot write: File too large");
    expect_content(name, "old");
    assert_int_equal(entries(folder), 1);
    assert_fails(ah__file_write("/dev/full", "x", 1), AH_EIO, "/dev/full: cannot write: No space left on device");
}

static void bad_names(void **state)
{
    char *text = NULL, folder[128];
    size_t length = 0;
    struct ah_map map = {0};
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    assert_fails(ah__file_read(&text, &length, in(folder, "absent"), 9), AH_EINPUT,
                 "absent: cannot open: No such file");
    assert_fails(ah__file_read(&text, &length, folder, 9), AH_EINPUT, "found a folder, expected a regular file");
    assert_fails(ah__file_read(&text, &length, "/dev/zero", 9), AH_EINPUT,
                 "found a device or pipe, expected a regular file");
    assert_fails(ah__map_open(&map, in(folder, "absent")), AH_EINPUT, "absent: cannot open: No such file");
    assert_fails(ah__map_open(&map, folder), AH_EINPUT, "found a folder, expected a regular file");
    assert_ok(ah__file_write(in(folder, "empty"), "", 0));
    assert_fails(ah__map_open(&map, path), AH_EINPUT, "empty: found an empty file, expected data");
    assert_ok(ah__file_write(in(folder, "ten"), "0123456789", 10));
    assert_fails(ah__file_read(&text, &length, path, 9), AH_EINPUT, "ten: found 10 bytes, expected at most 9");
    assert_fails(ah__file_write(folder, "x", 1), AH_EINPUT, "found a folder, expected a file name");
    assert_fails(ah__file_write(in(folder, "absent/x"), "x", 1), AH_EINPUT, "absent/x: cannot write: No such file");
    assert_null(text);
    assert_null(map.data);
}

static void maps(void **state)
{
    struct ah_map map = {0};
    const char *name = in(ah_test_folder(), "a");
    assert_ok(ah__file_write(name, "mapped", 6));
    assert_ok(ah__map_open(&map, name));
    assert_int_equal(map.length, 6);
    assert_memory_equal(map.data, "mapped", 6);
    ah__map_close(&map);
    assert_null(map.data);
    ah__map_close(&map);
}

static void folders(void **state)
{
    char folder[128], kept[256];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    assert_ok(ah__folder_make(in(folder, "a/b//c/")));
    assert_ok(ah__folder_make(path));
    assert_true(ah__path_exists(in(folder, "a/b/c")));
    assert_true(ah__path_has(in(folder, "a/b"), "c"));
    assert_false(ah__path_has(in(folder, "a/b"), "d"));
    assert_ok(ah__file_write(in(folder, "a/b/file"), "x", 1));
    assert_fails(ah__folder_make(path), AH_EINPUT, "a/b/file: found a file, expected a folder");
    assert_fails(ah__folder_make(in(folder, "a/b/file/c")), AH_EINPUT, "a/b/file: found a file, expected a folder");
    assert_fails(ah__folder_make(""), AH_EINPUT, "found an empty name");
    assert_fails(ah__folder_make("/proc/none"), AH_EINPUT, "/proc/none: cannot make folder");
    snprintf(kept, sizeof kept, "%s/kept", folder);
    assert_ok(ah__folder_make(kept));
    assert_ok(ah__file_write(in(kept, "file"), "x", 1));
    assert_int_equal(symlink(kept, in(folder, "a/link")), 0);
    assert_ok(ah__folder_sync(folder));
    assert_ok(ah__folder_remove(in(folder, "a")));
    assert_false(ah__path_exists(path));
    assert_true(ah__path_exists(in(kept, "file")));
    assert_ok(ah__folder_remove(in(folder, "a")));
}

/* A name of our own: a link goes, what it leads to and files stay, a pipe or device is refused. */
static void names_of_our_own(void **state)
{
    char folder[128], kept[256];
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    snprintf(kept, sizeof kept, "%s/kept", folder);
    assert_ok(ah__file_write(kept, "kept", 4));
    assert_ok(ah__file_own(kept));
    assert_true(ah__path_exists(kept));
    assert_int_equal(symlink(kept, in(folder, "link")), 0);
    assert_ok(ah__file_own(path));
    assert_false(ah__path_exists(path));
    assert_ok(ah__file_write(path, "new", 3));
    assert_int_equal(symlink("nowhere", in(folder, "dangling")), 0);
    assert_ok(ah__file_own(path));
    assert_int_equal(readlink(path, folder, 1), -1);
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
    assert_int_equal(mkfifo(in(folder, "pipe"), 0600), 0);
    assert_fails(ah__file_own(path), AH_EINPUT, "pipe: found a device, pipe or socket, expected a file");
    assert_true(ah__path_exists(path));
    char *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, kept, 10));
    assert_string_equal(text, "kept");
    ah__free(text);
    assert_ok(ah__file_own(in(folder, "missing")));
}

AH_TEST_CASES("base/file", names_of_our_own, writes_and_replaces, writes_through_links, full_disk_leaves_the_old_file,
              bad_names, maps, folders)
