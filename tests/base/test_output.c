/* Files that somebody named to be written: what is replaced, followed, written to as it is, refused. */
#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"

static char folder[128], path[256];

static void folder_set(void)
{
    snprintf(folder, sizeof folder, "%s", ah_test_folder());
}

static const char *in(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int entries(void)
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
    assert_ok(ah__file_read(&text, &length, in(name), 100));
    assert_string_equal(text, expected);
    ah__free(text);
}

static int put(const char *name, const char *text)
{
    return ah__file_write(in(name), text, strlen(text));
}

static void nothing_is_seen_half_done(void **state)
{
    struct ah_output out;
    struct stat info;
    folder_set();
    assert_ok(put("a", "old"));
    assert_int_equal(chmod(path, 0600), 0);
    assert_ok(ah__output_open(&out, in("a")));
    assert_ok(ah__file_put(out.fd, "new", 3, path));
    expect_content("a", "old");
    ah__output_drop(&out);
    expect_content("a", "old");
    assert_int_equal(entries(), 1);
    assert_ok(ah__output_open(&out, in("a")));
    assert_ok(ah__file_put(out.fd, "new", 3, path));
    assert_ok(ah__output_close(&out));
    ah__output_drop(&out);
    expect_content("a", "new");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(entries(), 1);
}

static void links_are_followed(void **state)
{
    struct stat info;
    char long_name[251];
    folder_set();
    assert_ok(ah__folder_make(in("sub")));
    assert_int_equal(symlink("sub/none", in("new")), 0);
    assert_int_equal(symlink("new", in("twice")), 0);
    assert_int_equal(symlink("away/none", in("lost")), 0);
    assert_int_equal(symlink("round", in("round")), 0);
    assert_ok(put("twice", "text"));
    expect_content("sub/none", "text");
    assert_int_equal(lstat(in("twice"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_fails(ah__output_check(in("lost"), false), AH_EINPUT, "lost: cannot write into folder '/");
    assert_fails(put("lost", "x"), AH_EINPUT, "lost: cannot write: No such file");
    assert_fails(ah__output_check(in("round"), false), AH_EINPUT, "round: cannot write: Too many levels");
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = 0;
    assert_ok(put(long_name, "the name of its temporary is shorter"));
    assert_int_equal(entries(), 6);
}

static void others_are_no_files(void **state)
{
    struct stat info;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    folder_set();
    int end = socket(AF_UNIX, SOCK_STREAM, 0), pipe_end;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", in("socket"));
    assert_int_equal(bind(end, (struct sockaddr *)&address, sizeof address), 0);
    assert_fails(ah__output_check(path, false), AH_EINPUT, "socket: found a socket, expected a file name");
    close(end);
    assert_fails(ah__output_check(folder, false), AH_EINPUT, "found a folder, expected a file name");
    assert_fails(ah__output_check(in("name/"), false), AH_EINPUT, "name/: found a folder's name, expected");
    assert_fails(ah__output_check("", false), AH_EINPUT, "found an empty name");
    assert_fails(ah__output_check(in("no/name"), false), AH_EINPUT, "no/name: cannot write into folder");
    assert_int_equal(mkfifo(in("pipe"), 0600), 0);
    assert_true((pipe_end = open(path, O_RDONLY | O_NONBLOCK)) >= 0);
    assert_ok(ah__output_check(path, false));
    assert_fails(ah__output_check(path, true), AH_EINPUT, "pipe: found a pipe or an open file, expected a file");
    assert_ok(put("pipe", "through"));
    char text[8] = "";
    assert_int_equal(read(pipe_end, text, 7), 7);
    assert_string_equal(text, "through");
    close(pipe_end);
    assert_ok(ah__output_check("/dev/null", true));
    assert_ok(ah__file_write("/dev/null", "x", 1));
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
    assert_int_equal(entries(), 2);
}

/* Of a file that the process has open the name is not replaced, nor is what was written to it lost. */
static void open_files_are_written_to(void **state)
{
    char name[64];
    folder_set();
    assert_ok(put("a", "one "));
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    assert_ok(ah__output_check(name, false));
    assert_ok(ah__file_write(name, "two", 3));
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_ok(ah__file_write(name, ".", 1));
    close(fd);
    expect_content("a", "one two.");
    assert_int_equal(entries(), 1);
}

static void what_the_dead_left_goes(void **state)
{
    folder_set();
    pid_t child = fork();
    if (child == 0) {
        struct ah_output out;
        _exit(ah__output_open(&out, in("a")) != AH_OK);
    }
    int code = -1;
    assert_true(waitpid(child, &code, 0) == child && code == 0);
    assert_int_equal(entries(), 1);
    assert_ok(put("b", "x"));
    assert_int_equal(entries(), 2);
    assert_ok(put("a", "x"));
    assert_int_equal(entries(), 2);
}

AH_TEST_CASES("base/output", nothing_is_seen_half_done, links_are_followed, others_are_no_files,
              open_files_are_written_to, what_the_dead_left_goes)
