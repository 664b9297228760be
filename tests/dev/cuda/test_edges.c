/* What a CUDA device rarely meets: machines, libraries and drivers that lack something, clocks that fail, sizes beyond
 * all. On the emulated GPU only. */
#include "dev/cuda/emulated.h"
#include "dev/cuda/operators.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "dev/host/regions.h"
#include "test_paths.h"

static bool is_real(void)
{
    return getenv("AH_TEST_GPU") || access("/dev/nvidiactl", F_OK) == 0;
}

static void file_write(const char *folder, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* What the kernel says of the buffer; without a file nothing is said. */
static void the_link_is_what_the_kernel_says(void **state)
{
    struct ah_dev *dev;
    struct ah_dev_info info;
    char folder[400], gpu[480];
    if (is_real())
        skip();
    snprintf(folder, sizeof folder, "%s/pci", ah_test_folder());
    snprintf(gpu, sizeof gpu, "%s/0000:17:00.0", folder);
    assert_int_equal(mkdir(folder, 0700) | mkdir(gpu, 0700), 0);
    file_write(gpu, "max_link_speed", "32.0 GT/s PCIe\n");
    setenv("AUTOHETE_EMULATION_PCI", folder, 1);
    assert_ok(emulated_open(&dev, NULL));
    dev->ops->info(dev, &info);
    assert_null(info.link_kind); /* half of it is none */
    ah_dev_close(dev);
    file_write(gpu, "max_link_width", "16\n");
    assert_ok(emulated_open(&dev, NULL));
    dev->ops->info(dev, &info);
    assert_string_equal(info.link_kind, "PCIe 32.0 GT/s x16");
    ah_dev_close(dev);
    unsetenv("AUTOHETE_EMULATION_PCI");
    emulated_assert_clean();
}

/* Without a folder the system's libraries are taken: those that are there know no GPU here. */
static void libraries_are_looked_for_where_the_system_does(void **state)
{
    struct ah_dev *dev = NULL;
#ifdef AH_TEST_SANITIZED
    skip(); /* NVIDIA's libraries are not made for it */
#endif
    if (is_real() ||
        dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_NOLOAD)) /* which an earlier case has loaded, for good */
        skip();
    emulated_begin();
    unsetenv("AUTOHETE_CUDA_LIBRARIES");
    assert_int_equal(ah_dev_open(&dev, "cuda", NULL), AH_EDEVICE);
    emulated_end();
    if (!strstr(ah_error(), "cublasLtCreate: "))
        assert_non_null(strstr(ah_error(), "does not load (AUTOHETE_CUDA_LIBRARIES is \"\")"));
    assert_null(dev);
    emulated_assert_clean();
}

static void a_library_without_a_function_is_refused(void **state)
{
    struct ah_dev *dev = NULL;
    const char *folder = ah_test_folder();
    char path[512];
    if (is_real())
        skip();
    snprintf(path, sizeof path, "%s/libcublasLt.so.13", folder);
    assert_int_equal(symlink(AH_TEST_PLUGINS "/libautohete-none.so", path), 0); /* a library, but another one */
    emulated_begin();
    setenv("AUTOHETE_CUDA_LIBRARIES", folder, 1);
    assert_fails(ah_dev_open(&dev, "cuda", NULL), AH_EDEVICE, "libcublasLt.so.13: no function cublasLtCreate");
    emulated_end();
    assert_null(dev);
    emulated_assert_clean();
}

static void an_older_driver_is_refused(void **state)
{
    struct ah_dev *dev = NULL;
    if (is_real())
        skip();
    emulation_fail("symbol", 1, 1);
    assert_fails(emulated_open(&dev, NULL), AH_EDEVICE, "the driver has no cuStreamWaitValue64, expected one of CUDA ");
    assert_null(dev);
    emulation_reset();
    emulated_assert_clean();
}

static void more_host_memories_than_there_is_room_for_are_refused(void **state)
{
    struct ah_dev *dev;
    char *base;
    assert_ok(emulated_open(&dev, NULL));
    for (int i = 0; i < AH_REGIONS_HOST; i++)
        assert_ok(dev->ops->host_memory(dev, 4096, &base));
    assert_fails(dev->ops->host_memory(dev, 4096, &base), AH_EINTERNAL, "cuda device: ");
    assert_ok(dev->ops->memory_release(dev));
    assert_ok(dev->ops->host_memory(dev, 4096, &base));
    ah_dev_close(dev);
    emulated_assert_clean();
}

static void one_rank_gathers_and_reduces_what_it_has(void **state)
{
    struct test_device gpu = test_device_open("cuda");
    struct ah_work work = {.lane = AH_LANE_COMM, .tasks = 1, .task = {{.type = AH_TASK_COLLECTIVE}}};
    work.task[0].as.collective.buffer = gpu.region;
    work.task[0].as.collective.part_count = 64;
    memset(gpu.host, 0x3F, 512);
    test_device_copy(&gpu, AH_LANE_H2D, gpu.region, gpu.host, 512);
    for (int kind = 0; kind < 2; kind++) {
        work.task[0].as.collective.kind = kind ? AH_REDUCE_SCATTER : AH_ALL_GATHER;
        assert_ok(ah__dev_run(gpu.dev, &work, NULL));
    }
    test_device_copy(&gpu, AH_LANE_D2H, gpu.host + 512, gpu.region, 512);
    assert_memory_equal(gpu.host, gpu.host + 512, 512);
    test_device_close(&gpu);
    emulated_assert_clean();
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static void tokens_beyond_the_sorts_keys_are_refused(void **state)
{
    const int64_t tokens = (int64_t)1 << 31;
    struct ah_call call = {.op = AH_OP_EMBEDDING_BWD};
    struct ah_program program = {.count = 1, .calls = &call};
    struct ah_prepared *prepared = NULL;
    struct test_device gpu = test_device_open("cuda");
    call.in[0] = (struct ah_operand){AH_SPACE_WORK, 0, {AH_F32, (struct ah_shape){3, {1, tokens, 1, 0}}}};
    call.in[1] = (struct ah_operand){AH_SPACE_WORK, 0, {AH_I32, ah_shape2(1, tokens)}};
    call.out[0] = (struct ah_operand){AH_SPACE_WORK, 0, {AH_F32, ah_shape2(4, 1)}};
    assert_fails(gpu.dev->ops->prepare(gpu.dev, &program, &prepared), AH_EDEVICE,
                 "cuda: call 0, embedding_bwd: input 0 (dx) is [1,2147483648,1], expected at most 2147483647 tokens");
    assert_null(prepared);
    test_device_close(&gpu);
}

/* Operators of several launches: each of them may be the one that is refused. */
static void any_launch_of_an_operator_may_fail(void **state)
{
    static const struct op_case cases[] = {
        {"embedding_bwd", AH_OP_EMBEDDING_BWD, {0}, {S3(1, 3000, 8), S2(1, 3000)}, S2(5, 8), 5},
        {"layernorm_bwd", AH_OP_LAYERNORM_BWD, {.eps = 1e-5F}, {S2(9, 16), S2(9, 16), S1(16), S1(9), S1(9)}, {0}, 0},
        {"linear_bwd_b", AH_OP_LINEAR_BWD_B, {0}, {S2(9, 16)}, {0}, 0},
        {"attention_bwd",
         AH_OP_ATTENTION_BWD,
         {.heads = 2},
         {S3(1, 7, 16), S3(1, 7, 48), S3(1, 7, 16), S3(1, 2, 7)},
         {0},
         0},
    };
    if (getenv("AH_TEST_GPU"))
        skip();
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        enum { MOST = 12 };
        long nth = 0;
        for (int status = AH_EDEVICE; status != AH_OK;) {
            struct test_device gpu = test_device_open("cuda");
            struct op_data data;
            struct ah_prepared *prepared;
            op_data_init_in(&data, &cases[i], AH_F32, 1);
            struct ah_program program = {.count = 1, .calls = &data.call};
            assert_ok(gpu.dev->ops->prepare(gpu.dev, &program, &prepared));
            test_device_fill(&gpu, data.memory, data.bytes, 0, 1 << 20);
            struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_PROGRAM}}};
            work.task[0].as.program.prepared = prepared;
            work.task[0].as.program.base[AH_SPACE_WORK] = gpu.region;
            work.task[0].as.program.base[AH_SPACE_WORKSPACE] = gpu.region + (16 << 20);
            emulation_fail("cudaLaunchKernelEx", ++nth, cudaErrorLaunchOutOfResources);
            status = ah__dev_run(gpu.dev, &work, NULL);
            if (status != AH_OK)
                assert_fails(status, AH_EDEVICE, cases[i].name);
            emulation_reset();
            gpu.dev->ops->prepared_free(gpu.dev, prepared);
            op_data_fini(&data);
            test_device_close(&gpu);
        }
        assert_in_range(nth, 2, MOST);
    }
    emulated_assert_clean();
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static struct ah_done copy_run(struct test_device *gpu, int expected)
{
    struct ah_work work = {.lane = AH_LANE_H2D, .tasks = 1, .task = {{.type = AH_TASK_COPY}}};
    struct ah_done done;
    work.task[0].as.copy.to = gpu->region;
    work.task[0].as.copy.from = gpu->host;
    work.task[0].as.copy.bytes = 4096;
    assert_int_equal(ah__dev_run(gpu->dev, &work, &done), expected);
    return done;
}

/* An event without a time: the work's is the clocks' last meeting. */
static void a_time_that_is_not_told_fails_nothing(void **state)
{
    if (getenv("AH_TEST_GPU"))
        skip();
    struct test_device gpu = test_device_open("cuda");
    emulation_fail("cudaEventElapsedTime", 1, cudaErrorInvalidResourceHandle);
    struct ah_done first = copy_run(&gpu, AH_OK);
    emulation_reset();
    struct ah_done second = copy_run(&gpu, AH_OK);
    assert_true(first.end_ns >= first.start_ns && second.start_ns >= first.end_ns);
    test_device_close(&gpu);
    emulated_assert_clean();
}

/* Times of events are off, yet what waits begins when what it waits for is over, whichever is reported first. */
static void spans_are_in_order_on_a_clock_with_noise(void **state)
{
    enum { PAIRS = 200, NOISE_NS = 50000 };
    char noise[16];
    if (getenv("AH_TEST_GPU"))
        skip();
    snprintf(noise, sizeof noise, "%d", NOISE_NS);
    setenv("AUTOHETE_EMULATION_NOISE", noise, 1);
    struct test_device gpu = test_device_open("cuda");
    struct ah_event before = {0};
    for (int i = 0; i < PAIRS; i++) { /* each work waits for the one before, which is another lane's */
        struct ah_done done[AH_LANE_COUNT];
        for (int back = 0; back < 2; back++) {
            struct ah_work work = {.lane = back ? AH_LANE_D2H : AH_LANE_H2D,
                                   .waits = before.sequence > 0,
                                   .wait = {before},
                                   .tasks = 1,
                                   .task = {{.type = AH_TASK_COPY}}};
            work.task[0].as.copy.to = back ? gpu.host : gpu.region;
            work.task[0].as.copy.from = back ? gpu.region : gpu.host;
            work.task[0].as.copy.bytes = 64;
            assert_ok(gpu.dev->ops->submit(gpu.dev, &work, &before));
        }
        for (int k = 0; k < 2; k++) {
            struct ah_done one;
            assert_ok(gpu.dev->ops->wait_any(gpu.dev, &one));
            done[one.lane] = one;
        }
        assert_true(done[AH_LANE_H2D].end_ns <= done[AH_LANE_D2H].start_ns);
    }
    test_device_close(&gpu);
    unsetenv("AUTOHETE_EMULATION_NOISE");
    emulated_assert_clean();
}

/* A second later the clocks are compared again: that this fails is the next work's failure, and forgotten with the
 * memory. */
static void clocks_that_cannot_be_compared_end_the_work(void **state)
{
    char *base;
    if (getenv("AH_TEST_GPU"))
        skip();
    struct test_device gpu = test_device_open("cuda");
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 10000000}, NULL);
    emulation_fail("cudaEventQuery", 1, cudaErrorUnknown);
    copy_run(&gpu, AH_OK);
    copy_run(&gpu, AH_EDEVICE);
    assert_non_null(strstr(ah_error(), "cudaEventQuery: "));
    emulation_reset();
    assert_ok(gpu.dev->ops->memory_release(gpu.dev));
    assert_ok(gpu.dev->ops->device_memory(gpu.dev, 4096, &gpu.region));
    assert_ok(gpu.dev->ops->host_memory(gpu.dev, 4096, &base));
    gpu.host = base;
    copy_run(&gpu, AH_OK);
    test_device_close(&gpu);
    emulated_assert_clean();
}

AH_TEST_CASES("dev/cuda/edges", libraries_are_looked_for_where_the_system_does, the_link_is_what_the_kernel_says,
              a_library_without_a_function_is_refused, an_older_driver_is_refused,
              more_host_memories_than_there_is_room_for_are_refused, one_rank_gathers_and_reduces_what_it_has,
              tokens_beyond_the_sorts_keys_are_refused, any_launch_of_an_operator_may_fail,
              a_time_that_is_not_told_fails_nothing, spans_are_in_order_on_a_clock_with_noise,
              clocks_that_cannot_be_compared_end_the_work)
