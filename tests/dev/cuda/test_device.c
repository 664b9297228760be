/* The CUDA device behind the seam, on the emulated GPU: what every device does, what it says of itself, what it
 * refuses. */
#include "emulated.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "dev/seam.h"

/* What the test before it asked for is forgotten. */
static int open_afresh(struct ah_dev **out, const struct ah_dev_options *options)
{
    emulation_reset();
    return emulated_open(out, options);
}

static const struct seam cuda = {.open = open_afresh};

/* What a real GPU is like, and how it fails, is its own. */
static void emulated_only(void)
{
    if (getenv("AH_TEST_GPU"))
        skip();
}

static void tells_what_it_is(void **state)
{
    emulated_only();
    struct ah_dev *dev;
    struct ah_dev_info info, again;
    struct ah_device device;
    assert_ok(emulated_open(&dev, &(struct ah_dev_options){.host_threads = 3}));
    dev->ops->info(dev, &info);
    ah_dev_get(&device, dev);
    assert_string_equal(info.name, "cuda:0");
    assert_int_equal(info.host_threads, 3);
    assert_int_equal(device.host_threads, 3);
    assert_true(info.threads > 0 && device.units == info.threads);
    assert_true(info.device_bytes > 0 && info.device_bytes < info.memory_bytes);
    assert_true(info.machine_bytes > info.device_bytes);
    assert_int_equal(device.free_bytes, info.device_bytes);
    assert_true(strlen(device.model) > 0);
    assert_string_equal(device.why, "");
    assert_non_null(strstr(info.arithmetic, "cublasLt "));
    assert_non_null(strstr(info.arithmetic, ", sm_"));
    ah_dev_close(dev);
    assert_ok(emulated_open(&dev, &(struct ah_dev_options){.host_threads = 3, .jitter_seed = 9}));
    dev->ops->info(dev, &again);
    assert_true(again.signature == info.signature); /* jitter is no property of the machine */
    ah_dev_close(dev);
    assert_ok(emulated_open(&dev, &(struct ah_dev_options){.host_threads = 2}));
    dev->ops->info(dev, &again);
    assert_true(again.signature != info.signature);
    ah_dev_close(dev);
    emulated_assert_clean();
}

static void refuses_what_a_gpu_has_not(void **state)
{
    struct ah_dev *dev = NULL;
    assert_fails(emulated_open(&dev, &(struct ah_dev_options){.threads = 2}), AH_EINPUT,
                 "device \"cuda\": found 2 device threads, expected none");
    assert_fails(emulated_open(&dev, &(struct ah_dev_options){.link_bytes_per_s = 1000}), AH_EINPUT,
                 "device \"cuda\": found a link speed of 1000 bytes/s, expected none");
    assert_fails(emulated_open_as(&dev, "cuda:99", NULL), AH_EINPUT, "device \"cuda\": found GPU 99, expected 0 to ");
    assert_null(dev);
    emulated_assert_clean();
}

/* A driver that is too old, a machine without a GPU: there is no such device. Anything else is a failure. */
static void says_why_there_is_none(void **state)
{
    emulated_only();
    static const struct {
        const char *function;
        int error, status;
        const char *words;
    } faults[] = {
        {"cudaGetDeviceCount", cudaErrorInsufficientDriver, AH_EINPUT, "device \"cuda\": no GPU: "},
        {"cudaGetDeviceCount", cudaErrorNoDevice, AH_EINPUT, "device \"cuda\": no GPU: "},
        {"cudaGetDeviceCount", cudaErrorUnknown, AH_EDEVICE, "device \"cuda\": cudaGetDeviceCount: "},
        {"cudaSetDevice", cudaErrorDevicesUnavailable, AH_EDEVICE, "device \"cuda\": cudaSetDevice: "},
        {"cudaStreamCreateWithFlags", cudaErrorMemoryAllocation, AH_ENOMEM, "cudaStreamCreateWithFlags: "},
        {"cudaGetDriverEntryPointByVersion", cudaErrorNotSupported, AH_EDEVICE,
         "cudaGetDriverEntryPointByVersion of cuStreamWaitValue64: "},
        {"cuStreamWaitValue64", 801, AH_EDEVICE, "streams cannot wait for a value in memory here"},
        {"cuStreamWriteValue64", 801, AH_EDEVICE, "streams cannot write a value to memory here"},
        {"cublasLtCreate", 1, AH_EDEVICE, "cublasLtCreate: "},
    };
    for (size_t i = 0; i < AH_LENGTH(faults); i++) {
        struct ah_dev *dev = NULL;
        emulation_reset();
        emulation_fail(faults[i].function, 1, faults[i].error);
        assert_fails(emulated_open(&dev, NULL), faults[i].status, faults[i].words);
        assert_null(dev);
        emulated_assert_clean();
    }
    emulation_reset();
}

static void auto_takes_the_gpu(void **state)
{
    emulated_only();
    struct ah_dev *dev;
    struct ah_device device;
    emulation_reset();
    assert_ok(emulated_open_as(&dev, "auto", NULL));
    ah_dev_get(&device, dev);
    assert_string_equal(device.name, "cuda:0");
    ah_dev_close(dev);
    /* what only the CPU device has asks for it */
    assert_ok(emulated_open_as(&dev, "auto", &(struct ah_dev_options){.threads = 1}));
    ah_dev_get(&device, dev);
    assert_string_equal(device.name, "cpu");
    assert_string_equal(device.why, "");
    ah_dev_close(dev);
    /* no GPU: quietly */
    emulation_fail("cudaGetDeviceCount", 1, cudaErrorNoDevice);
    assert_ok(emulated_open_as(&dev, "auto", NULL));
    ah_dev_get(&device, dev);
    assert_string_equal(device.name, "cpu");
    assert_string_equal(device.why, "");
    ah_dev_close(dev);
    emulated_assert_clean();
    /* a GPU that does not work: with a reason */
    emulation_reset();
    emulation_fail("cudaSetDevice", 1, cudaErrorDevicesUnavailable);
    assert_ok(emulated_open_as(&dev, "auto", NULL));
    ah_dev_get(&device, dev);
    assert_string_equal(device.name, "cpu");
    assert_non_null(strstr(device.why, "device \"cuda\": cudaSetDevice: "));
    ah_dev_close(dev);
    emulated_assert_clean();
    emulation_reset();
}

static void missing_libraries_are_named(void **state)
{
    struct ah_dev *dev = NULL;
    if (getenv("AH_TEST_GPU")) /* whose libraries are where they are */
        skip();
    emulated_begin();
    setenv("AUTOHETE_CUDA_LIBRARIES", ah_test_folder(), 1);
    int status = ah_dev_open(&dev, "cuda", NULL);
    emulated_end();
    assert_fails(status, AH_EDEVICE,
                 "device \"cuda\": libcublasLt.so.13 does not load (AUTOHETE_CUDA_LIBRARIES is \"/");
    assert_non_null(strstr(ah_error(), "no such file in these folders"));
    assert_null(dev);
    emulated_assert_clean();
}

static void devices_are_listed(void **state)
{
    emulated_only();
    struct ah_device *devices;
    int count, found = 0;
    emulated_begin();
    assert_ok(ah_devices(&devices, &count));
    emulated_end();
    assert_string_equal(devices[0].name, "cpu");
    for (int i = 0; i < count; i++) {
        assert_string_equal(devices[i].why, "");
        assert_true(devices[i].h2d_bytes_per_s > 0 && devices[i].d2h_bytes_per_s > 0);
        found += strncmp(devices[i].name, "cuda:", 5) == 0;
    }
    assert_true(found >= 1);
    free(devices);
    emulated_assert_clean();
}

/* More than the GPU has, by its own word and by CUDA's. */
static void memory_that_is_not_there_is_refused(void **state)
{
    emulated_only();
    struct ah_dev *dev;
    struct ah_dev_info info;
    char *base = NULL;
    assert_ok(emulated_open(&dev, NULL));
    dev->ops->info(dev, &info);
    assert_fails(dev->ops->device_memory(dev, info.memory_bytes + 1, &base), AH_ENOMEM, "device memory: ");
    assert_non_null(strstr(ah_error(), "available on cuda:0"));
    emulation_fail("cudaMalloc", 1, cudaErrorMemoryAllocation);
    assert_fails(dev->ops->device_memory(dev, 4096, &base), AH_ENOMEM, "device memory: cudaMalloc: ");
    emulation_fail("cudaHostRegister", 1, cudaErrorMemoryAllocation);
    assert_fails(dev->ops->host_memory(dev, 4096, &base), AH_ENOMEM, "host memory: cudaHostRegister: ");
    assert_null(base);
    emulation_reset();
    assert_ok(dev->ops->device_memory(dev, 4096, &base));
    ah_dev_close(dev);
    emulated_assert_clean();
}

AH_TEST_SUITE("dev/cuda/device", cmocka_unit_test(tells_what_it_is), cmocka_unit_test(refuses_what_a_gpu_has_not),
              cmocka_unit_test(says_why_there_is_none), cmocka_unit_test(auto_takes_the_gpu),
              cmocka_unit_test(missing_libraries_are_named), cmocka_unit_test(devices_are_listed),
              cmocka_unit_test(memory_that_is_not_there_is_refused), SEAM_CASES(&cuda))
