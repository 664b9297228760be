#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "source/folder.h"

static char dir[128], path[300];
static const char *const required[] = {"model.safetensors", "config.json", NULL};

static void dir_new(void)
{
    snprintf(dir, sizeof dir, "%s/run", ah_test_folder());
}

static const char *in(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static int file_put(const struct ah_folder *folder, const char *name, const char *text)
{
    char file[400];
    snprintf(file, sizeof file, "%s/%s", ah__folder_path(folder), name);
    return ah__file_write(file, text, strlen(text));
}

static int save(int64_t step, int keep, const char *text)
{
    struct ah_folder *folder = NULL;
    AH_TRY(ah__folder_begin(&folder, dir, step));
    int status = file_put(folder, "model.safetensors", text);
    status = status == AH_OK ? ah__folder_add(folder, "model.safetensors") : status;
    status = status == AH_OK ? file_put(folder, "config.json", "{}") : status;
    status = status == AH_OK ? ah__folder_add(folder, "config.json") : status;
    status = status == AH_OK ? file_put(folder, "empty", "") : status;
    status = status == AH_OK ? ah__folder_note(folder, "empty", 0, ah__hash("", 0, 0)) : status;
    status = status == AH_OK ? ah__folder_commit(folder, keep) : status;
    ah__folder_free(folder);
    return status;
}

static void expect_text(const char *name, const char *expected)
{
    char *text = NULL;
    size_t length = 0;
    assert_ok(ah__file_read(&text, &length, in(name), 100));
    assert_string_equal(text, expected);
    ah__free(text);
}

/* from, as find resolves it, is the complete folder of this name. */
static void expect_found(const char *from, const char *name)
{
    char *found = NULL;
    assert_ok(ah__folder_find(&found, from));
    assert_ok(ah__folder_verify(found, required));
    assert_string_equal(strrchr(found, '/') + 1, name);
    ah__free(found);
}

static void saves_and_finds(void **state)
{
    dir_new();
    assert_ok(save(100, 2, "first"));
    expect_text("model.safetensors", "first");
    expect_text("config.json", "{}");
    assert_ok(save(200, 2, "second"));
    expect_text("model.safetensors", "second");
    expect_text("step-00000100/model.safetensors", "first");
    expect_found(dir, "step-00000200");
    expect_found(in("checkpoint"), "step-00000200");
    expect_found(in("checkpoint/"), "step-00000200");
    expect_found(in("step-00000100"), "step-00000100");
    char target[64] = "";
    assert_true(readlink(in("checkpoint"), target, sizeof target - 1) > 0);
    assert_string_equal(target, "step-00000200");
}

static void prunes_lower_steps(void **state)
{
    dir_new();
    assert_ok(save(900, 2, "of a longer run"));
    for (int64_t step = 1; step <= 4; step++)
        assert_ok(save(step, 2, "text"));
    assert_false(ah__path_exists(in("step-00000001")));
    assert_false(ah__path_exists(in("step-00000002")));
    assert_true(ah__path_exists(in("step-00000003")));
    assert_true(ah__path_exists(in("step-00000004")));
    assert_true(ah__path_exists(in("step-00000900")));
    expect_found(dir, "step-00000004");
    assert_ok(save(5, 1, "text"));
    assert_false(ah__path_exists(in("step-00000004")));
}

/* What is no checkpoint's is not removed with it, whatever the reason. */
static void what_others_put_there_stays(void **state)
{
    dir_new();
    assert_ok(save(1, 1, "one"));
    assert_ok(ah__file_write(in("step-00000001/notes"), "mine", 4));
    assert_ok(ah__folder_make(in("step-00000007.tmp/more")));
    assert_ok(ah__file_write(in("step-00000007.tmp/state.json"), "{}", 2));
    assert_ok(ah__folder_make(in("step-00000001.tmp/theirs")));
    struct ah_folder *folder = NULL;
    assert_ok(ah__folder_begin(&folder, dir, 2));
    assert_string_equal(ah__folder_left(folder), in("step-00000007.tmp"));
    assert_true(ah__path_exists(in("step-00000007.tmp/more")));
    assert_false(ah__path_exists(in("step-00000007.tmp/state.json")));
    assert_ok(file_put(folder, "model.safetensors", "half"));
    assert_ok(file_put(folder, "notes", "mine"));
    ah__folder_free(folder);
    expect_text("step-00000002.tmp/notes", "mine");
    assert_false(ah__path_exists(in("step-00000002.tmp/model.safetensors")));
    assert_ok(save(3, 1, "three"));
    expect_text("step-00000001/notes", "mine");
    assert_false(ah__path_exists(in("step-00000001/model.safetensors")));
    assert_true(ah__path_exists(in("step-00000001.tmp/theirs")));
    expect_found(dir, "step-00000003");
    assert_ok(save(4, 1, "four")); /* no checkpoint any more, it does not count */
    expect_text("step-00000001/notes", "mine");
    assert_false(ah__path_exists(in("step-00000003")));
    assert_ok(ah__file_write(in("step-00000004/notes"), "mine", 4));
    assert_ok(save(4, 1, "again"));
    expect_text("step-00000004.tmp/notes", "mine");
    assert_false(ah__path_exists(in("step-00000004.tmp/model.safetensors")));
}

static void same_step_is_replaced(void **state)
{
    dir_new();
    assert_ok(save(7, 2, "old"));
    assert_ok(save(7, 2, "new"));
    expect_text("model.safetensors", "new");
    expect_found(dir, "step-00000007");
    assert_false(ah__path_exists(in("step-00000007.tmp")));
}

static void abandoned_is_removed(void **state)
{
    dir_new();
    assert_ok(save(1, 2, "kept"));
    struct ah_folder *folder = NULL;
    assert_ok(ah__folder_begin(&folder, dir, 2));
    assert_ok(file_put(folder, "model.safetensors", "half"));
    assert_true(ah__path_exists(in("step-00000002.tmp/model.safetensors")));
    ah__fail(AH_EIO, "the cause");
    ah__folder_free(folder);
    assert_string_equal(ah_error(), "the cause");
    assert_false(ah__path_exists(in("step-00000002.tmp")));
    expect_found(dir, "step-00000001");
    ah__folder_free(NULL);
}

/* A process that dies at each place between two steps of a commit leaves something complete to find. */
static void crashes_lose_nothing(void **state)
{
    dir_new();
    assert_ok(save(1, 3, "one"));
    pid_t child = fork();
    if (child == 0) { /* killed while files are written */
        struct ah_folder *folder = NULL;
        _exit(ah__folder_begin(&folder, dir, 2) != AH_OK || file_put(folder, "model.safetensors", "half") != AH_OK);
    }
    int code = -1;
    assert_true(waitpid(child, &code, 0) == child && code == 0);
    assert_true(ah__path_exists(in("step-00000002.tmp")));
    expect_found(dir, "step-00000001");
    assert_ok(save(3, 3, "three"));
    assert_false(ah__path_exists(in("step-00000002.tmp")));
    /* After the rename, before the link moved. */
    assert_int_equal(unlink(in("checkpoint")), 0);
    assert_int_equal(symlink("step-00000001", in("checkpoint")), 0);
    expect_found(dir, "step-00000001");
    /* Before the first link was ever made; a dangling one. */
    assert_int_equal(unlink(in("checkpoint")), 0);
    expect_found(dir, "step-00000003");
    assert_int_equal(symlink("step-00000009", in("checkpoint")), 0);
    expect_found(dir, "step-00000003");
    /* A step folder without checksums was never committed. */
    assert_ok(ah__folder_make(in("step-00000008")));
    expect_found(dir, "step-00000003");
    assert_ok(save(10, 3, "ten"));
    expect_found(dir, "step-00000010");
}

static void expect_damaged(const char *step, const char *words)
{
    assert_fails(ah__folder_verify(step, required), AH_ECORRUPT, words);
}

static void damage_is_found(void **state)
{
    dir_new();
    assert_ok(save(1, 1, "abcdef"));
    char step[300];
    snprintf(step, sizeof step, "%s", in("step-00000001"));
    assert_ok(ah__folder_verify(step, required));
    assert_ok(ah__file_write(in("step-00000001/model.safetensors"), "abcdeg", 6));
    expect_damaged(step, "step-00000001/model.safetensors: found checksum ");
    assert_ok(ah__file_write(path, "abcde", 5));
    expect_damaged(step, "step-00000001/model.safetensors: found 5 bytes, expected 6 by");
    assert_ok(ah__file_write(path, "", 0));
    expect_damaged(step, "step-00000001/model.safetensors: found 0 bytes, expected 6 by");
    assert_int_equal(unlink(path), 0);
    expect_damaged(step, "step-00000001/model.safetensors: cannot open: No such file");
    assert_ok(ah__file_write(in("step-00000001/checksums.json"), "{", 1));
    expect_damaged(step, "checksums.json: line 1");
    static const char outside[] =
        "{\"version\": 1, \"files\": {\"../x\": {\"bytes\": 1, \"xxh3\": \"0123456789abcdef\"}}}";
    assert_ok(ah__file_write(path, outside, strlen(outside)));
    static const char *const nothing[] = {NULL};
    assert_fails(ah__folder_verify(step, nothing), AH_ECORRUPT, "found '../x', expected a plain file name");
    assert_int_equal(unlink(path), 0);
    expect_damaged(step, "checksums.json: cannot open: No such file");
}

/* Temporaries of a process that is gone; another's, and names that only look alike, stay. */
static void remains_are_swept(void **state)
{
    dir_new();
    assert_ok(ah__folder_make(dir));
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    int code;
    assert_true(waitpid(child, &code, 0) == child);
    char *own, names[7][96];
    assert_ok(ah__file_temporary(&own, "run.json"));
    const char *place = strrchr(own, '-') + 1;
    assert_int_equal(strlen(place), 16);
    long dead = (long)child, alive = (long)getppid();
    snprintf(names[0], sizeof names[0], "run.json.tmp-%ld-%s", dead, place);
    snprintf(names[1], sizeof names[1], "model.safetensors.tmp-%ld-%s", dead, place);
    snprintf(names[2], sizeof names[2], "run.json.tmp-%ld-%s", alive, place);
    snprintf(names[3], sizeof names[3], "notes.tmp-%ld-%s", dead, place);           /* no name of ours */
    snprintf(names[4], sizeof names[4], "run.json.tmp-%ld-0123456789abcdef", dead); /* of another machine */
    snprintf(names[5], sizeof names[5], "run.json.tmp-%ld", dead);
    snprintf(names[6], sizeof names[6], "run.json.tmp-x");
    ah__free(own);
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        assert_ok(ah__file_write(in(names[i]), "x", 1));
    assert_ok(save(1, 1, "text"));
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        assert_int_equal(ah__path_exists(in(names[i])), i >= 2);
}

static void the_one_before(void **state)
{
    char *before;
    dir_new();
    for (int64_t step = 10; step <= 30; step += 10)
        assert_ok(save(step, 9, "text"));
    assert_ok(ah__folder_before(&before, in("step-00000030")));
    assert_string_equal(strrchr(before, '/'), "/step-00000020");
    ah__free(before);
    assert_ok(ah__folder_before(&before, in("step-00000010")));
    assert_null(before);
    assert_ok(ah__folder_before(&before, in("elsewhere")));
    assert_null(before);
}

/* The calls of one function by their numbers, old and new, of which a machine may have only the new one. */
#ifdef SYS_symlink
static const unsigned link_calls[2] = {SYS_symlink, SYS_symlinkat}, access_calls[2] = {SYS_access, SYS_faccessat};
#else
static const unsigned link_calls[2] = {SYS_symlinkat, SYS_symlinkat}, access_calls[2] = {SYS_faccessat, SYS_faccessat};
#endif

/* From now on the kernel refuses these calls to this process. False: a kernel without filters. */
static bool calls_refuse(const unsigned calls[2], int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[0], 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[1], 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {AH_LENGTH(code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* As on a file system that knows no symbolic links. */
static void without_links_the_highest_step_counts(void **state)
{
    dir_new();
    pid_t child = fork();
    if (child == 0) {
        if (!calls_refuse(link_calls, EPERM))
            _exit(77);
        bool refused = symlink("x", in("x")) != 0 && errno == EPERM;
        _exit(!refused || save(1, 2, "one") != AH_OK || save(2, 2, "two") != AH_OK);
    }
    int code = -1;
    assert_true(waitpid(child, &code, 0) == child && WIFEXITED(code));
    if (WEXITSTATUS(code) == 77)
        skip();
    assert_int_equal(code, 0);
    assert_false(ah__path_exists(in("checkpoint")));
    expect_found(dir, "step-00000002");
    assert_ok(save(3, 2, "three")); /* moved to one that has them */
    expect_found(dir, "step-00000003");
    expect_text("model.safetensors", "three");
}

static void find_refuses(void **state)
{
    char *found = NULL;
    dir_new();
    assert_fails(ah__folder_find(&found, dir), AH_EINPUT, "run: cannot open folder: No such file");
    assert_ok(ah__folder_make(dir));
    assert_fails(ah__folder_find(&found, dir), AH_EINPUT, "run: found no complete checkpoint, expected a step folder");
    assert_ok(ah__file_write(in("file"), "x", 1));
    assert_fails(ah__folder_find(&found, path), AH_EINPUT, "file: cannot open folder: Not a directory");
    assert_null(found);
}

static void check_refuses(void **state)
{
    dir_new();
    assert_ok(ah__folder_check(dir));
    assert_ok(ah__folder_check(in("deep/er/")));
    assert_ok(ah__folder_check("relative-name"));
    assert_false(ah__path_exists(dir)); /* looks, makes nothing */
    assert_fails(ah__folder_check(""), AH_EINPUT, "found an empty name");
    assert_ok(save(1, 1, "text"));
    assert_ok(ah__folder_check(dir));
    assert_ok(ah__file_write(in("file"), "x", 1));
    assert_fails(ah__folder_check(path), AH_EINPUT, "file: found a file, expected a folder for checkpoints");
    assert_fails(ah__folder_check(in("file/x")), AH_EINPUT, "file/x: ");
    assert_fails(save(1, 1, "text") == AH_OK ? ah__folder_check(in("file/x/y")) : AH_OK, AH_EINPUT, "file/x/y: ");
    struct ah_folder *folder = NULL;
    assert_fails(ah__folder_begin(&folder, in("file"), 1), AH_EINPUT, "file: found a file");
    assert_int_equal(unlink(in("config.json")), 0);
    assert_ok(ah__file_write(path, "{\"mine\": 1}", 11));
    assert_fails(ah__folder_check(dir), AH_EINPUT,
                 "config.json: found one that is no checkpoint's and would be overwritten");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("../blobs/1234", path), 0);
    assert_fails(ah__folder_check(dir), AH_EINPUT, "config.json: found one that is no checkpoint's");
}

/* Root may write anywhere, so a child becomes another user. */
static void unwritable_is_refused(void **state)
{
    dir_new();
    assert_ok(ah__folder_make(dir));
    char above[128];
    snprintf(above, sizeof above, "%s", dir);
    for (int i = 0; i < 3; i++) { /* others must get as far as dir */
        *strrchr(above, '/') = 0;
        assert_int_equal(chmod(above, 0755), 0);
    }
    assert_int_equal(chmod(dir, 0555), 0);
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            _exit(3);
        bool refused = ah__folder_check(dir) == AH_EINPUT && strstr(ah_error(), "cannot write into folder");
        bool refused_below = ah__folder_check(in("sub")) == AH_EINPUT && strstr(ah_error(), "cannot write into folder");
        _exit(!refused || !refused_below);
    }
    int code = -1;
    assert_true(waitpid(child, &code, 0) == child);
    assert_int_equal(code, 0);
}

/* What the user asked for where the folder says no; a failure to read where nothing could be told. */
static void denial_is_no_failure(void **state)
{
    static const struct {
        int error, status;
    } causes[] = {{EACCES, AH_EINPUT}, {EPERM, AH_EINPUT}, {EROFS, AH_EINPUT}, {EIO, AH_EIO}, {ENOMEM, AH_EIO}};
    dir_new();
    assert_ok(ah__folder_make(dir));
    for (size_t i = 0; i < AH_LENGTH(causes); i++) {
        pid_t child = fork();
        if (child == 0) {
            if (!calls_refuse(access_calls, causes[i].error))
                _exit(77);
            bool in_it = ah__folder_check(dir) == causes[i].status && strstr(ah_error(), strerror(causes[i].error));
            bool below =
                ah__folder_check(in("sub")) == causes[i].status && strstr(ah_error(), strerror(causes[i].error));
            _exit(!in_it || !below);
        }
        int code = -1;
        assert_true(waitpid(child, &code, 0) == child && WIFEXITED(code));
        if (WEXITSTATUS(code) == 77)
            skip();
        if (code != 0)
            fail_msg("%s: found another status or message", strerror(causes[i].error));
    }
}

static void full_disk_keeps_the_last(void **state)
{
    static char text[20000];
    memset(text, 'x', sizeof text - 1);
    dir_new();
    assert_ok(save(1, 1, "one"));
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 4096;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int status = save(2, 1, text);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_fails(status, AH_EIO, "model.safetensors: cannot write: File too large");
    assert_false(ah__path_exists(in("step-00000002.tmp")));
    expect_found(dir, "step-00000001");
}

static void every_allocation_may_fail(void **state)
{
    dir_new();
    assert_ok(save(1, 1, "first"));
    uint64_t before = ah__alloc_count();
    assert_ok(save(2, 1, "text"));
    uint64_t count = ah__alloc_count() - before;
    for (uint64_t n = 1; n <= count; n++) {
        ah__alloc_fail_at(n);
        assert_fails(save(3, 1, "text"), AH_ENOMEM, "out of host memory");
        ah__alloc_fail_at(0);
        char *found = NULL;
        assert_ok(ah__folder_find(&found, dir));
        assert_ok(ah__folder_verify(found, required));
        ah__free(found);
    }
    assert_ok(save(3, 1, "text"));
}

AH_TEST_CASES("source/folder", saves_and_finds, prunes_lower_steps, what_others_put_there_stays, same_step_is_replaced,
              abandoned_is_removed, crashes_lose_nothing, damage_is_found, remains_are_swept, the_one_before,
              without_links_the_highest_step_counts, find_refuses, check_refuses, unwritable_is_refused,
              denial_is_no_failure, full_disk_keeps_the_last, every_allocation_may_fail)
