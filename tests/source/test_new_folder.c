/* Folders that are there complete or not at all. */
#include "source/new_folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "test.h"

static char out[200], path[300];

static const char *in(const char *folder, const char *name)
{
    snprintf(path, sizeof path, "%s%s", folder, name);
    return path;
}

static bool is_ours(const char *name)
{
    return strcmp(name, "config.json") == 0 || strcmp(name, "more") == 0;
}

static int begin(struct ah_new_folder **folder)
{
    return ah__new_folder_begin(folder, out, is_ours);
}

static void it_is_there_when_it_is_whole(void **state)
{
    struct ah_new_folder *folder;
    snprintf(out, sizeof out, "%s/deep/out//", ah_test_folder());
    assert_ok(begin(&folder));
    assert_ok(ah__file_write(in(ah__new_folder_path(folder), "/config.json"), "{}", 2));
    assert_false(ah__path_exists(out));
    assert_ok(ah__new_folder_commit(folder));
    ah__new_folder_free(folder);
    assert_true(ah__path_exists(in(out, "config.json")));
    out[strlen(out) - 2] = 0;
    assert_false(ah__path_exists(in(out, ".tmp")));
    assert_fails(begin(&folder), AH_EINPUT, "out: found something there, expected a new folder's name");
    strcat(out, "/./");
    assert_fails(begin(&folder), AH_EINPUT, "out: found something there, expected a new folder's name");
    snprintf(out, sizeof out, "%s/other", ah_test_folder());
    assert_ok(begin(&folder));
    ah__new_folder_free(folder);
    assert_false(ah__path_exists(out) || ah__path_exists(in(out, ".tmp")));
}

/* What a killed program left is swept, and nothing else. */
static void leftovers_are_swept(void **state)
{
    struct ah_new_folder *folder, *second;
    snprintf(out, sizeof out, "%s/out", ah_test_folder());
    assert_int_equal(mkdir(in(out, ".tmp"), 0777), 0);
    assert_int_equal(mkdir(in(out, ".tmp/more"), 0777), 0);
    assert_ok(ah__file_write(in(out, ".tmp/config.json"), "{", 1));
    assert_ok(begin(&folder));
    assert_false(ah__path_exists(in(out, ".tmp/config.json")));
    assert_fails(begin(&second), AH_EINPUT, "out.tmp: found another program at work there, expected another name than");
    ah__new_folder_free(folder);
    assert_int_equal(mkdir(in(out, ".tmp"), 0777), 0);
    assert_ok(ah__file_write(in(out, ".tmp/notes.txt"), "mine", 4));
    assert_fails(begin(&folder), AH_EINPUT, "out.tmp/notes.txt: found a file of others where the folder is to be made");
    assert_true(ah__path_exists(in(out, ".tmp/notes.txt")));
}

static void what_cannot_be_made_is_refused(void **state)
{
    struct ah_new_folder *folder;
    snprintf(out, sizeof out, "%s/link", ah_test_folder());
    assert_int_equal(symlink("nowhere/there", out), 0);
    assert_fails(begin(&folder), AH_EINPUT, "link: found a link that leads nowhere, expected a new folder's name");
    snprintf(out, sizeof out, "%s/file", ah_test_folder());
    assert_ok(ah__file_write(out, "x", 1));
    strcat(out, "/out");
    assert_fails(begin(&folder), AH_EINPUT, "file: found a file, expected a folder");
    snprintf(out, sizeof out, "%s/file2", ah_test_folder());
    assert_ok(ah__file_write(in(out, ".tmp"), "x", 1));
    assert_fails(begin(&folder), AH_EINPUT, "file2.tmp: found something there that is no folder, expected nothing");
}

AH_TEST_CASES("source/new_folder", it_is_there_when_it_is_whole, leftovers_are_swept, what_cannot_be_made_is_refused)
