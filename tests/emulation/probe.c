/* probe CASE: one thing done wrong, or right, for a sanitizer to find (tests/emulation/sanitizers).
 *   ordered    a stream writes, another reads after its event, the host after synchronizing
 *   no_wait    the other stream does not wait
 *   no_sync    the host reads what a copy writes, without synchronizing
 *   too_early  the host writes what a copy reads, after the copy was put on its stream
 *   host_read  the host reads device memory */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emulation.h"
#include "test_kernels.h"

enum { COUNT = 4096 };

static cudaStream_t first, second;
static cudaEvent_t event;
static float *device, *device2, *pinned;

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        if ((call) != cudaSuccess) {                                                                                   \
            fprintf(stderr, "%s: %s\n", #call, emulation_message());                                                   \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void open_all(void)
{
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMalloc((void **)&device, COUNT * sizeof *device));
    CHECK(cudaMalloc((void **)&device2, COUNT * sizeof *device));
    CHECK(cudaHostAlloc((void **)&pinned, COUNT * sizeof *device, cudaHostAllocDefault));
}

static void close_all(void)
{
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaFree(device));
    CHECK(cudaFree(device2));
    CHECK(cudaFreeHost(pinned));
}

/* Host, copy, kernel, another stream's kernel and copy, host; `name` leaves one link of the chain out. */
static float chain(const char *name)
{
    for (int i = 0; i < COUNT; i++)
        pinned[i] = (float)i;
    CHECK(cudaMemcpyAsync(device, pinned, COUNT * sizeof *device, cudaMemcpyHostToDevice, first));
    for (int i = 0; i < COUNT && strcmp(name, "too_early") == 0; i++)
        pinned[i] = 5;
    CHECK(test_add_one(first, device2, device, COUNT));
    CHECK(cudaEventRecord(event, first));
    if (strcmp(name, "no_wait") != 0)
        CHECK(cudaStreamWaitEvent(second, event, 0));
    CHECK(test_add_one(second, device, device2, COUNT));
    CHECK(cudaMemcpyAsync(pinned, device, COUNT * sizeof *device, cudaMemcpyDeviceToHost, second));
    if (strcmp(name, "no_sync") != 0)
        CHECK(cudaStreamSynchronize(second));
    if (strcmp(name, "host_read") == 0)
        return device[9];
    float sum = 0; /* of all: ThreadSanitizer may have forgotten a single access */
    for (int i = 0; i < COUNT; i++)
        sum += pinned[i] - (float)i;
    return sum / COUNT;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "ordered";
    open_all();
    float got = chain(name);
    CHECK(cudaDeviceSynchronize());
    close_all();
    printf("%g\n", (double)got);
    return emulation_alive() != 0;
}
