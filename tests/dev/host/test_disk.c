/* Scratch space on disk: reads give what was written, faulty drives end in a line, nothing stays in the folders. */
#include "dev/host/disk.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "dev/host/clock.h"
#include "dev/host/pages.h"
#include "test.h"

enum { PAGE = AH_DISK_ALIGN, REQUEST = 4 << 20, SPACE = 5 * REQUEST + 3 * PAGE };

static const char *root;

/* Makes folders a, b and c below the case's own and names the first `count` of them. */
static const char *folders_make(int count)
{
    static char names[3 * 512];
    char path[512];
    root = ah_test_folder();
    names[0] = 0;
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%c", root, 'a' + i);
        assert_int_equal(mkdir(path, 0777), 0);
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? "," : "", path);
    }
    return names;
}

static int entries(const char *folder)
{
    int count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* All three folders, as far as they are there, have no entry. */
static void assert_nothing_left(void)
{
    char path[512];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%c", root, 'a' + i);
        if (access(path, F_OK) == 0)
            assert_int_equal(entries(path), 0);
    }
}

/* ---- scratch space beside memory that should be the same --------------------------------------------------------- */

struct beside {
    struct ah_disk *disk;
    struct ah_pages expected, memory;
};

static struct beside beside_open(const char *folders, int threads)
{
    struct beside b;
    assert_ok(ah__pages_new(&b.expected, SPACE, "test"));
    assert_ok(ah__pages_new(&b.memory, SPACE, "test"));
    assert_ok(ah__disk_open(&b.disk, folders, SPACE, threads));
    return b;
}

static void beside_close(struct beside *b)
{
    ah__disk_close(b->disk);
    ah__pages_free(&b->expected);
    ah__pages_free(&b->memory);
}

static int64_t draw(uint64_t *counter, int64_t below)
{
    return (int64_t)(ah__random_bits(ah_test_seed(), (*counter)++) % (uint64_t)below);
}

static void part_draw(int64_t *offset, int64_t *bytes, uint64_t *counter)
{
    int64_t pages = SPACE / PAGE, first = draw(counter, pages);
    int64_t most = draw(counter, 2) ? pages - first : 1 + draw(counter, pages - first);
    *offset = first * PAGE;
    *bytes = (1 + draw(counter, most)) * PAGE;
}

/* Writes random parts and reads others, which must be what memory has. */
static void beside_rounds(struct beside *b, int rounds)
{
    uint64_t counter = 0;
    int64_t offset, bytes;
    for (int round = 0; round < rounds; round++) {
        part_draw(&offset, &bytes, &counter);
        for (int64_t at = offset; at < offset + bytes; at += 512)
            memset(b->expected.base + at, (int)draw(&counter, 256), 512);
        assert_ok(ah__disk_write(b->disk, offset, b->expected.base + offset, bytes));
        part_draw(&offset, &bytes, &counter);
        assert_ok(ah__disk_read(b->disk, b->memory.base, offset, bytes));
        assert_memory_equal(b->memory.base, b->expected.base + offset, (size_t)bytes);
    }
    assert_ok(ah__disk_read(b->disk, b->memory.base, 0, SPACE));
    assert_memory_equal(b->memory.base, b->expected.base, SPACE);
}

static void is_a_copy_of_memory(void **state)
{
    const int threads[] = {0, 1, 3};
    for (int folders = 1; folders <= 3; folders++) {
        struct beside b = beside_open(folders_make(folders), threads[folders - 1]);
        beside_rounds(&b, ah_test_rounds(8, 30, 500));
        assert_nothing_left();
        beside_close(&b);
        assert_nothing_left();
    }
}

static void any_size_over_folders(void **state)
{
    const int64_t sizes[] = {0, PAGE, REQUEST - PAGE, REQUEST, REQUEST + PAGE, 3 * REQUEST, 4 * REQUEST + PAGE};
    const char *folders = folders_make(3);
    struct ah_pages written, read;
    assert_ok(ah__pages_new(&written, 5 * REQUEST, "test"));
    assert_ok(ah__pages_new(&read, 5 * REQUEST, "test"));
    for (int64_t i = 0; i < 5 * REQUEST; i++)
        written.base[i] = (char)(i / PAGE);
    for (size_t i = 0; i < AH_LENGTH(sizes); i++) {
        struct ah_disk *disk;
        assert_ok(ah__disk_open(&disk, folders, sizes[i], 0));
        assert_ok(ah__disk_write(disk, 0, written.base, sizes[i]));
        assert_ok(ah__disk_read(disk, read.base, 0, sizes[i]));
        assert_memory_equal(read.base, written.base, (size_t)sizes[i]);
        assert_fails(ah__disk_read(disk, read.base, 0, sizes[i] + PAGE), AH_EINTERNAL, "bytes at 0");
        ah__disk_close(disk);
    }
    ah__pages_free(&written);
    ah__pages_free(&read);
}

static void calls_that_do_not_fit(void **state)
{
    const char *folders = folders_make(1);
    struct beside b = beside_open(folders, 2);
    struct ah_disk *disk;
    char *memory = b.memory.base;
    assert_fails(ah__disk_read(b.disk, memory + 512, 0, PAGE), AH_EINTERNAL, "expected multiples of 4096");
    assert_fails(ah__disk_read(b.disk, memory, 512, PAGE), AH_EINTERNAL, "expected multiples of 4096");
    assert_fails(ah__disk_write(b.disk, 0, memory, 512), AH_EINTERNAL, "expected multiples of 4096");
    assert_fails(ah__disk_write(b.disk, SPACE, memory, PAGE), AH_EINTERNAL, "within");
    assert_fails(ah__disk_write(b.disk, -PAGE, memory, PAGE), AH_EINTERNAL, "within");
    assert_fails(ah__disk_read(b.disk, memory, PAGE, INT64_MAX / PAGE * PAGE), AH_EINTERNAL, "within");
    assert_fails(ah__disk_open(&disk, folders, 100, 0), AH_EINTERNAL, "multiple of 4096");
    beside_close(&b);
    ah__disk_close(NULL);
}

static void calls_allocate_nothing(void **state)
{
    struct beside b = beside_open(folders_make(2), 4);
    uint64_t before = ah__alloc_count();
    beside_rounds(&b, 3);
    assert_true(ah__alloc_count() == before);
    beside_close(&b);
}

/* ---- folders ----------------------------------------------------------------------------------------------------- */

static void folders_that_are_none(void **state)
{
    struct ah_disk *disk;
    struct ah_disk_rates rates;
    int64_t bytes;
    char text[1200], file[512];
    const char *good = folders_make(1);
    const char *const wrong[] = {"", ",", "%s,", ",%s", "%s,,%s"};
    for (size_t i = 0; i < AH_LENGTH(wrong); i++) {
        snprintf(text, sizeof text, wrong[i], good, good);
        assert_fails(ah__disk_open(&disk, text, PAGE, 0), AH_EINPUT, "expected folders for scratch space");
    }
    snprintf(text, sizeof text, "%s,%s/none", good, root);
    assert_fails(ah__disk_open(&disk, text, PAGE, 0), AH_EINPUT, "/none: cannot find folder: No such file");
    assert_fails(ah__disk_measure(&rates, text, PAGE), AH_EINPUT, "/none: cannot find folder: No such file");
    assert_fails(ah__disk_free_bytes(&bytes, text), AH_EINPUT, "/none: cannot find folder: No such file");
    snprintf(file, sizeof file, "%s/file", root);
    fclose(fopen(file, "w"));
    assert_fails(ah__disk_open(&disk, file, PAGE, 0), AH_EINPUT, "/file: found a file, expected a folder");
    assert_fails(ah__disk_open(&disk, "/proc", PAGE, 0), AH_EINPUT, "/proc: cannot make a file in this folder: ");
    memset(text, ',', 100);
    text[100] = 0;
    assert_fails(ah__disk_open(&disk, text, PAGE, 0), AH_EINPUT, "found 101 folders");
    assert_nothing_left();
}

static void more_than_there_is(void **state)
{
    struct ah_disk *disk;
    int64_t one, two;
    const char *folders = folders_make(2);
    char first[512], expected[64];
    snprintf(first, sizeof first, "%s/a", root);
    assert_ok(ah__disk_free_bytes(&one, first));
    assert_ok(ah__disk_free_bytes(&two, folders));
    assert_true(one > 0 && one % PAGE == 0 && two > 0 && two <= one + one / 8); /* both are on one drive */
    int64_t bytes = (one + one / 4) / PAGE * PAGE;
    snprintf(expected, sizeof expected, "(%lld bytes) for scratch space", (long long)bytes);
    assert_fails(ah__disk_open(&disk, first, bytes, 0), AH_EIO, expected);
    assert_non_null(strstr(ah_error(), first));
    assert_non_null(strstr(ah_error(), " free ("));
    assert_fails(ah__disk_open(&disk, folders, bytes, 0), AH_EIO, expected);
    assert_nothing_left();
}

/* Newer kernels allow direct I/O there; it is memory all the same. */
static void folders_in_memory_are_noted(void **state)
{
    char name[] = "/dev/shm/autohete-test-XXXXXX";
    if (!mkdtemp(name))
        skip();
    struct beside b = beside_open(name, 2);
    assert_non_null(strstr(ah__disk_note(b.disk), name));
    assert_non_null(strstr(ah__disk_note(b.disk), "is in memory"));
    beside_rounds(&b, 5);
    assert_int_equal(entries(name), 0);
    beside_close(&b);
    assert_int_equal(rmdir(name), 0);
}

/* ---- drives and systems with faults ------------------------------------------------------------------------------ */

static atomic_int short_left, nameless_refused, direct_refused, zeros_needed;
static int fault_error; /* of transfers that hold the page at `fault_at` */
static int64_t fault_at, fault_most;
static _Atomic uint64_t short_draws;

/* Returns true if the transfer is to fail, with errno set. */
static bool fault_met(size_t bytes, off_t at)
{
    if (!fault_error || fault_at < at || fault_at >= at + (off_t)bytes)
        return false;
    errno = fault_error;
    return true;
}

/* A transfer may be interrupted, or end early: at a page, elsewhere, or at once. */
static ssize_t shortened(size_t bytes)
{
    if (atomic_load(&short_left) <= 0)
        return (ssize_t)bytes;
    atomic_fetch_sub(&short_left, 1);
    uint64_t bits = ah__random_bits(7, atomic_fetch_add(&short_draws, 1));
    errno = EINTR;
    switch (bytes > PAGE || bits % 2 ? bits / 2 % 4 : 3) {
    case 0:
        return -1;
    case 1:
        return (ssize_t)(bits / 4 % (bytes / PAGE + 1) * PAGE);
    case 2:
        return (ssize_t)(bits / 4 % bytes);
    default:
        return (ssize_t)bytes;
    }
}

static ssize_t faulty_read(int fd, void *to, size_t bytes, off_t at)
{
    if (fault_met(bytes, at))
        return -1;
    if (fault_most)
        return at >= fault_most ? 0 : pread(fd, to, bytes < PAGE ? bytes : PAGE, at);
    ssize_t most = shortened(bytes);
    if (most > 0)
        memset(to, 0xEE, (size_t)most); /* behind the last whole page there is no good byte */
    ssize_t got = most < PAGE ? 0 : pread(fd, to, (size_t)most / PAGE * PAGE, at);
    return most < 0 || got < 0 ? -1 : most;
}

static ssize_t faulty_write(int fd, const void *from, size_t bytes, off_t at)
{
    if (fault_met(bytes, at))
        return -1;
    ssize_t most = shortened(bytes);
    ssize_t got = most < PAGE ? 0 : pwrite(fd, from, (size_t)most / PAGE * PAGE, at);
    return most < 0 || got < 0 ? -1 : most;
}

static const struct ah_disk_calls faulty = {.read = faulty_read, .write = faulty_write};

static void a_drive_that_fails_ends_in_a_line(void **state)
{
    const struct {
        int error;
        const char *text;
    } errors[] = {{EIO, "Input/output error"}, {ENOSPC, "No space left on device"}, {EROFS, "Read-only file system"}};
    for (int folders = 1; folders <= 2; folders++) {
        struct beside b = beside_open(folders_make(folders), 3);
        ah__disk_calls(&faulty);
        beside_rounds(&b, 1);
        for (size_t i = 0; i < AH_LENGTH(errors); i++) {
            fault_error = errors[i].error;
            fault_at = REQUEST + 5 * PAGE;
            char words[64];
            snprintf(words, sizeof words, "bytes at offset %d: %s", REQUEST, errors[i].text);
            assert_fails(ah__disk_read(b.disk, b.memory.base, 0, SPACE), AH_EIO, words);
            assert_non_null(strstr(ah_error(), root));
            assert_non_null(strstr(ah_error(), "cannot read 4194304 bytes"));
            assert_fails(ah__disk_write(b.disk, 0, b.expected.base, SPACE), AH_EIO, words);
            assert_non_null(strstr(ah_error(), "cannot write 4194304 bytes"));
            assert_ok(ah__disk_read(b.disk, b.memory.base, 0, REQUEST)); /* beside it all is well */
        }
        fault_error = 0;
        assert_ok(ah__disk_write(b.disk, 0, b.expected.base, SPACE));
        beside_rounds(&b, 2);
        beside_close(&b);
        ah__disk_calls(NULL);
    }
}

static void short_transfers_go_on(void **state)
{
    struct beside b = beside_open(folders_make(2), 3);
    ah__disk_calls(&faulty);
    for (int round = 0; round < ah_test_rounds(3, 10, 200); round++) {
        atomic_store(&short_left, 30);
        beside_rounds(&b, 2);
    }
    atomic_store(&short_left, 0);
    beside_close(&b);
    ah__disk_calls(NULL);
}

static void a_file_that_ends_is_no_endless_loop(void **state)
{
    struct beside b = beside_open(folders_make(1), 3);
    ah__disk_calls(&faulty);
    fault_most = 3 * PAGE;
    assert_ok(ah__disk_read(b.disk, b.memory.base, 0, 3 * PAGE));
    assert_fails(ah__disk_read(b.disk, b.memory.base, PAGE, 3 * PAGE), AH_EIO,
                 "cannot read at offset 4096: found 8192 bytes, expected 12288");
    assert_non_null(strstr(ah_error(), root));
    fault_most = 0;
    beside_close(&b);
    ah__disk_calls(NULL);
}

static int no_nameless(const char *folder)
{
    atomic_fetch_add(&nameless_refused, 1);
    errno = EOPNOTSUPP;
    return -1;
}

static int no_direct(int fd, bool on)
{
    (void)fd, (void)on;
    atomic_fetch_add(&direct_refused, 1);
    errno = EINVAL;
    return -1;
}

static int direct_later(int fd, bool on)
{
    atomic_store(&direct_refused, on);
    return 0;
}

static ssize_t write_not_direct(int fd, const void *from, size_t bytes, off_t at)
{
    errno = EINVAL;
    return atomic_load(&direct_refused) ? -1 : pwrite(fd, from, bytes, at);
}

static int no_allocate(int fd, int mode, off_t at, off_t bytes)
{
    (void)fd, (void)mode, (void)at, (void)bytes;
    errno = atomic_fetch_add(&zeros_needed, 1) ? EOPNOTSUPP : EINTR;
    return -1;
}

static int full_allocate(int fd, int mode, off_t at, off_t bytes)
{
    (void)fd, (void)mode, (void)at, (void)bytes;
    errno = (int)fault_at;
    return -1;
}

static void systems_that_know_less(void **state)
{
    const struct {
        struct ah_disk_calls calls;
        bool noted;
    } systems[] = {
        {{.nameless = no_nameless}, false},
        {{.direct = no_direct}, true},
        {{.direct = direct_later, .write = write_not_direct}, true},
        {{.allocate = no_allocate}, false},
        {{.nameless = no_nameless, .direct = no_direct, .allocate = no_allocate}, true},
    };
    for (size_t i = 0; i < AH_LENGTH(systems); i++) {
        ah__disk_calls(&systems[i].calls);
        struct beside b = beside_open(folders_make(2), 3);
        bool noted = strstr(ah__disk_note(b.disk), "refuses direct I/O") || strstr(ah__disk_note(b.disk), "in memory");
        if (systems[i].noted)
            assert_true(noted && strstr(ah__disk_note(b.disk), root));
        assert_nothing_left();
        beside_rounds(&b, 4);
        beside_close(&b);
        assert_nothing_left();
    }
    ah__disk_calls(NULL);
    assert_true(atomic_load(&nameless_refused) == 4 && atomic_load(&zeros_needed) == 5);
}

static _Atomic int64_t written;

static ssize_t counted_write(int fd, const void *from, size_t bytes, off_t at)
{
    atomic_fetch_add(&written, (int64_t)bytes);
    return pwrite(fd, from, bytes, at);
}

/* Where zeros stand for room, there are as many as were asked for, and one page of each file that tries direct I/O. */
static void zeros_are_as_many_as_asked_for(void **state)
{
    (void)state;
    const struct ah_disk_calls calls = {.allocate = no_allocate, .write = counted_write};
    ah__disk_calls(&calls);
    struct beside b = beside_open(folders_make(2), 3);
    assert_int_equal(atomic_load(&written), SPACE + 2 * PAGE);
    assert_ok(ah__disk_read(b.disk, b.memory.base, 0, SPACE));
    assert_memory_equal(b.memory.base, b.expected.base, SPACE);
    beside_close(&b);
    ah__disk_calls(NULL);
}

/* Free bytes are not all that a drive can refuse by. */
static void room_that_is_refused(void **state)
{
    const struct ah_disk_calls calls = {.allocate = full_allocate};
    struct ah_disk *disk;
    ah__disk_calls(&calls);
    const char *folders = folders_make(2);
    fault_at = ENOSPC;
    assert_fails(ah__disk_open(&disk, folders, REQUEST, 0), AH_EIO,
                 "expected 4.0 MiB (4194304 bytes) for scratch space: No space left on device");
    fault_at = EDQUOT;
    assert_fails(ah__disk_open(&disk, folders, REQUEST, 0), AH_EIO, "for scratch space: Disk quota exceeded");
    fault_at = EIO;
    assert_fails(ah__disk_open(&disk, folders, REQUEST, 0), AH_EIO,
                 "/a: cannot allocate 4194304 bytes: Input/output error");
    assert_nothing_left();
    const struct ah_disk_calls zeros = {.allocate = no_allocate, .write = faulty_write};
    ah__disk_calls(&zeros);
    fault_error = ENOSPC;
    fault_at = 2 * REQUEST;
    assert_fails(ah__disk_open(&disk, folders, SPACE, 0), AH_EIO, "at offset 8388608: No space left on device");
    assert_nothing_left();
    ah__disk_calls(NULL);
}

static void no_memory_leaves_nothing(void **state)
{
    const char *folders = folders_make(3);
    int files = entries("/proc/self/fd"), failed = 0;
    struct ah_disk *disk;
    for (uint64_t n = 1; n < 100; n++) {
        ah__alloc_fail_at(n);
        int status = ah__disk_open(&disk, folders, SPACE, 3);
        ah__alloc_fail_at(0);
        if (status == AH_OK) {
            ah__disk_close(disk);
            break;
        }
        failed++;
        assert_int_equal(status, AH_ENOMEM);
        assert_int_equal(entries("/proc/self/fd"), files);
        assert_nothing_left();
    }
    assert_true(failed > 4 && failed < 50);
}

static void a_killed_process_leaves_nothing(void **state)
{
    const char *folders = folders_make(2);
    for (int named = 0; named < 2; named++) {
        int ready[2], status;
        char byte;
        const struct ah_disk_calls calls = {.nameless = no_nameless};
        ah__disk_calls(named ? &calls : NULL);
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
            struct ah_disk *disk;
            if (ah__disk_open(&disk, folders, SPACE, 3) != AH_OK || write(ready[1], "x", 1) != 1)
                _exit(1);
            for (;;)
                pause();
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        close(ready[0]);
        assert_nothing_left();
    }
    ah__disk_calls(NULL);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

enum { READ_NS = 2000000, THREADS = 8 };

static ssize_t read_nothing(int fd, void *to, size_t bytes, off_t at)
{
    (void)fd, (void)to, (void)at;
    ah__host_sleep_until(ah__host_now_ns() + READ_NS);
    return (ssize_t)bytes;
}

static ssize_t write_nothing(int fd, const void *from, size_t bytes, off_t at)
{
    (void)fd, (void)from, (void)at;
    return (ssize_t)bytes;
}

static int allocate_nothing(int fd, int mode, off_t at, off_t bytes)
{
    (void)fd, (void)mode, (void)at;
    return bytes <= (off_t)1 << 30 ? 0 : -1;
}

/* On a drive that does nothing, since tests should not wear a real one out; its reads take a while. */
static void rates_are_measured(void **state)
{
    const struct ah_disk_calls calls = {.read = read_nothing, .write = write_nothing, .allocate = allocate_nothing};
    const char *folders = folders_make(2);
    struct ah_disk_rates rates = {0};
    ah__disk_calls(&calls);
    assert_ok(ah__disk_measure(&rates, folders, 8 * REQUEST));
    assert_true(rates.read_bytes_per_s > 0 && rates.write_bytes_per_s > 0 && rates.both_bytes_per_s > 0);
    assert_true(rates.latency_ns >= READ_NS && rates.free_bytes > 0);
    assert_true(rates.read_bytes_per_s <= (int64_t)THREADS * REQUEST * 1000 / (READ_NS / 1000000));
    assert_fails(ah__disk_measure(&rates, folders, 100), AH_EINTERNAL, "expected a multiple of 4096");
    const struct ah_disk_calls failing = {.read = faulty_read, .allocate = allocate_nothing, .write = write_nothing};
    ah__disk_calls(&failing);
    fault_error = EIO;
    fault_at = 2 * PAGE;
    assert_fails(ah__disk_measure(&rates, folders, 8 * REQUEST), AH_EIO, "Input/output error");
    ah__disk_calls(NULL);
    assert_nothing_left();
}

AH_TEST_CASES("dev/host/disk", is_a_copy_of_memory, any_size_over_folders, calls_that_do_not_fit,
              calls_allocate_nothing, folders_that_are_none, more_than_there_is, folders_in_memory_are_noted,
              a_drive_that_fails_ends_in_a_line, short_transfers_go_on, a_file_that_ends_is_no_endless_loop,
              systems_that_know_less, zeros_are_as_many_as_asked_for, room_that_is_refused, no_memory_leaves_nothing,
              a_killed_process_leaves_nothing, rates_are_measured)
