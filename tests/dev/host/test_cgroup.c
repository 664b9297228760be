#include "dev/host/cgroup.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "test.h"

static const char *root;

static void put(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = 0;
        mkdir(path, 0777);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void fresh(const char *groups)
{
    root = ah_test_folder();
    put("/proc/self/cgroup", groups);
}

static void no_limit(void **state)
{
    root = ah_test_folder();
    assert_true(ah__cgroup_memory_left(root) == INT64_MAX); /* no such file */
    fresh("0::/\n");
    assert_true(ah__cgroup_memory_left(root) == INT64_MAX); /* no controller */
    put("/sys/fs/cgroup/memory.max", "max\n");
    put("/sys/fs/cgroup/memory.current", "4096\n");
    assert_true(ah__cgroup_memory_left(root) == INT64_MAX);
    fresh("no colons here\n::::\n5:cpuset:/a\n");
    assert_true(ah__cgroup_memory_left(root) == INT64_MAX);
}

/* The tightest of the groups around this process counts, with what it could give back. */
static void version_two(void **state)
{
    fresh("0::/slice/job\n");
    put("/sys/fs/cgroup/slice/job/memory.max", "1000000\n");
    put("/sys/fs/cgroup/slice/job/memory.current", "400000\n");
    assert_int_equal(ah__cgroup_memory_left(root), 600000);
    put("/sys/fs/cgroup/slice/job/memory.stat", "anon 1\ninactive_file_x 9\ninactive_file 100000\n");
    assert_int_equal(ah__cgroup_memory_left(root), 700000);
    put("/sys/fs/cgroup/slice/memory.max", "500000\n");
    put("/sys/fs/cgroup/slice/memory.current", "450000\n");
    assert_int_equal(ah__cgroup_memory_left(root), 50000);
    put("/sys/fs/cgroup/slice/memory.current", "600000\n");
    assert_int_equal(ah__cgroup_memory_left(root), 0);
}

/* A container names its group as the host does and mounts it as the root. */
static void version_one(void **state)
{
    fresh("7:cpu:/x\n4:memory:/docker/0123\n0::/x\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "900000\n");
    put("/sys/fs/cgroup/memory/memory.stat", "cache 5\ntotal_inactive_file 200000\n");
    assert_int_equal(ah__cgroup_memory_left(root), 300000);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    assert_true(ah__cgroup_memory_left(root) > (int64_t)1 << 60);
}

AH_TEST_CASES("dev/cgroup", no_limit, version_two, version_one)
