/* The CPU device behind the seam: what every device does, and what only this one has. */
#include "dev/seam.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int cpu_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return ah_dev_open(out, "cpu", options);
}

static const struct seam cpu = {.open = cpu_open, .threads = 2};

static struct ah_dev *device_open(const struct ah_dev_options *options)
{
    struct ah_dev *dev = NULL;
    assert_ok(cpu_open(&dev, options));
    return dev;
}

static void opens_by_name(void **state)
{
    struct ah_dev *dev = NULL;
    assert_fails(ah_dev_open(&dev, "tpu", NULL), AH_EINPUT, "\"tpu\": unknown");
    assert_fails(ah_dev_open(&dev, "cpu:1", NULL), AH_EINPUT, "\"cpu:1\": there is one cpu device");
    static const char *const odd[] = {"cpu:", "cpu:x", "cpu:-1", "cpu:1x", "cpu:12345", "auto:1"};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_fails(ah_dev_open(&dev, odd[i], NULL), AH_EINPUT, "unknown, expected NAME, or NAME:1");
    assert_fails(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.ordinal = -1}), AH_EINPUT, "number: found -1");
    assert_fails(ah_dev_open(&dev, "a-name-much-longer-than-any-that-a-device-has-or-a-file-of-its-own:1", NULL),
                 AH_EINPUT, "expected a shorter name");
    struct ah_dev_options wrong = {.threads = -2};
    assert_fails(ah_dev_open(&dev, "cpu", &wrong), AH_EINPUT, "threads: found -2");
    wrong = (struct ah_dev_options){.link_bytes_per_s = -5};
    assert_fails(ah_dev_open(&dev, "cpu", &wrong), AH_EINPUT, "link speed: found -5");
    assert_null(dev);
    ah_dev_close(NULL);
}

static void names_every_lane(void **state)
{
    for (int i = 0; i < AH_LANE_COUNT; i++)
        assert_non_null(ah_lane_name((enum ah_lane)i));
    assert_string_equal(ah_lane_name(AH_LANE_D2H), "d2h");
}

static void tells_what_it_is(void **state)
{
    struct ah_dev *slow =
        device_open(&(struct ah_dev_options){.threads = 2, .host_threads = 1, .link_bytes_per_s = 1000});
    struct ah_dev *fast = device_open(&(struct ah_dev_options){.threads = 2, .host_threads = 1, .jitter_seed = 3});
    struct ah_dev_info a, b;
    slow->ops->info(slow, &a);
    fast->ops->info(fast, &b);
    assert_string_equal(a.name, "cpu");
    assert_int_equal(a.threads, 2);
    assert_int_equal(a.link_bytes_per_s, 1000);
    assert_true(a.signature != b.signature);
    ah_dev_close(fast);
    fast = device_open(&(struct ah_dev_options){.threads = 2, .host_threads = 1});
    fast->ops->info(fast, &a);
    assert_true(a.signature == b.signature); /* jitter is no property of the machine */
    ah_dev_close(fast);
    ah_dev_close(slow);
}

/* Whether the kernel can read the byte; asking it does not fault. */
static bool is_readable(const char *at)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    ssize_t written = write(ends[1], at, 1);
    assert_true(written == 1 || errno == EFAULT);
    close(ends[0]);
    close(ends[1]);
    return written == 1;
}

static void memory_is_guarded(void **state)
{
    enum { BYTES = 3 << 20 };
    struct ah_dev *dev = device_open(NULL);
    char *guarded[2];
    assert_ok(dev->ops->device_memory(dev, BYTES, &guarded[0]));
    assert_ok(dev->ops->host_memory(dev, BYTES, &guarded[1]));
    for (int i = 0; i < 2; i++) {
        assert_true(is_readable(guarded[i]) && is_readable(guarded[i] + BYTES - 1));
        assert_false(is_readable(guarded[i] - 1));
        assert_false(is_readable(guarded[i] + BYTES));
    }
    ah_dev_close(dev);
}

static struct ah_work copy_work(enum ah_lane lane, void *to, const void *from, int64_t bytes)
{
    struct ah_work work = {.lane = lane, .tasks = 1};
    work.task[0].type = AH_TASK_COPY;
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = bytes;
    return work;
}

static void a_throttled_copy_takes_its_time(void **state)
{
    enum { BYTES = 1 << 20, RATE = 100000000 };
    struct ah_dev *dev = device_open(&(struct ah_dev_options){.threads = 1, .link_bytes_per_s = RATE});
    char *device, *host;
    struct ah_done done;
    assert_ok(dev->ops->device_memory(dev, BYTES, &device));
    assert_ok(dev->ops->host_memory(dev, BYTES, &host));
    for (int i = 0; i < BYTES; i++)
        host[i] = (char)(i * 31);
    struct ah_work work = copy_work(AH_LANE_H2D, device, host, BYTES);
    assert_ok(ah__dev_run(dev, &work, &done));
    assert_true(done.end_ns - done.start_ns >= (int64_t)BYTES * 1000000000 / RATE);
    assert_memory_equal(device, host, BYTES);
    memset(host, 0, BYTES);
    work = copy_work(AH_LANE_D2H, host, device, BYTES);
    assert_ok(ah__dev_run(dev, &work, &done));
    assert_true(done.end_ns - done.start_ns >= (int64_t)BYTES * 1000000000 / RATE);
    assert_memory_equal(device, host, BYTES);
    ah_dev_close(dev);
}

AH_TEST_SUITE("dev/cpu", cmocka_unit_test(opens_by_name), cmocka_unit_test(names_every_lane),
              cmocka_unit_test(tells_what_it_is), cmocka_unit_test(memory_is_guarded),
              cmocka_unit_test(a_throttled_copy_takes_its_time), SEAM_CASES(&cpu))
