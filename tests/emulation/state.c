/* What the whole emulation shares: its lock, counts, faults on demand, errors.
 *
 * Not instrumented for threads, and its lock is none that ThreadSanitizer knows: what orders what on a GPU is said by
 * stream.c alone, so that nothing here hides a missing event. */
#include "inside.h"

#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FAULTS_MOST = 16, NAME_BYTES = 64, MESSAGE_BYTES = 1024 };

static struct {
    char function[NAME_BYTES];
    long left; /* calls until it fails; 0: not armed */
    int error;
} faults[FAULTS_MOST];

struct emulation_bell emulation_progress;
static long counted[COUNT_COUNT];
static char message[MESSAGE_BYTES];
static int sticky, failed;
static __thread int last_error;
static __thread bool in_callback, on_stream;
static unsigned lock_word; /* 0 free, 1 taken, 2 taken and somebody waits */

/* ---- the lock, and waiting for something to change */

static void futex_wait(unsigned *word, unsigned value, const struct timespec *timeout)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL, 0);
}

static void futex_wake(unsigned *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void emulation_lock(void)
{
    unsigned expected = 0;
    if (__atomic_compare_exchange_n(&lock_word, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
        futex_wait(&lock_word, 2, NULL);
}

void emulation_unlock(void)
{
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
        futex_wake(&lock_word, 1);
}

void emulation_ring(struct emulation_bell *bell)
{
    __atomic_fetch_add(&bell->rung, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&bell->waiting, __ATOMIC_SEQ_CST))
        futex_wake(&bell->rung, 1 << 30);
}

void emulation_await(struct emulation_bell *bell)
{
    unsigned seen = __atomic_load_n(&bell->rung, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&bell->waiting, 1, __ATOMIC_SEQ_CST);
    emulation_unlock();
    futex_wait(&bell->rung, seen, NULL);
    __atomic_fetch_sub(&bell->waiting, 1, __ATOMIC_SEQ_CST);
    emulation_lock();
}

void emulation_sleep_ns(long ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    syscall(SYS_nanosleep, &time, NULL);
}

/* ---- numbers */

long emulation_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 0) : otherwise;
}

uint64_t emulation_random(uint64_t seed, uint64_t index)
{
    uint64_t x = seed + (index + 1) * 0x9E3779B97F4A7C15U;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
    x = (x ^ x >> 27) * 0x94D049BB133111EBU;
    return x ^ x >> 31;
}

void emulation_count(enum emulation_count count, long change)
{
    long now = __atomic_add_fetch(&counted[count], change, __ATOMIC_RELAXED);
    if (count == COUNT_DEVICE_BYTES && now > __atomic_load_n(&counted[COUNT_DEVICE_BYTES_MOST], __ATOMIC_RELAXED))
        __atomic_store_n(&counted[COUNT_DEVICE_BYTES_MOST], now, __ATOMIC_RELAXED);
}

long emulation_counted(enum emulation_count count)
{
    return __atomic_load_n(&counted[count], __ATOMIC_RELAXED);
}

void emulation_library_object(int change)
{
    emulation_count(COUNT_LIBRARY_OBJECTS, change);
}

void emulation_count_product(void)
{
    emulation_count(COUNT_PRODUCTS, 1);
}

void emulation_counts(struct emulation_counts *out)
{
    *out = (struct emulation_counts){
        .device_allocations = emulation_counted(COUNT_DEVICE_ALLOCATIONS),
        .device_bytes = emulation_counted(COUNT_DEVICE_BYTES),
        .pinned = emulation_counted(COUNT_PINNED),
        .pinned_bytes = emulation_counted(COUNT_PINNED_BYTES),
        .streams = emulation_counted(COUNT_STREAMS),
        .events = emulation_counted(COUNT_EVENTS),
        .library_objects = emulation_counted(COUNT_LIBRARY_OBJECTS),
        .device_bytes_most = emulation_counted(COUNT_DEVICE_BYTES_MOST),
        .calls = emulation_counted(COUNT_CALLS),
        .calls_after_failure = emulation_counted(COUNT_CALLS_AFTER_FAILURE),
        .launches = emulation_counted(COUNT_LAUNCHES),
        .copies = emulation_counted(COUNT_COPIES),
        .copied_bytes = emulation_counted(COUNT_COPIED_BYTES),
        .callbacks = emulation_counted(COUNT_CALLBACKS),
        .products = emulation_counted(COUNT_PRODUCTS),
    };
}

long emulation_alive(void)
{
    long alive = 0;
    for (int i = 0; i < COUNT_ALIVE; i++)
        alive += emulation_counted((enum emulation_count)i);
    return alive;
}

/* ---- errors */

static int object(int error, const char *format, va_list arguments)
{
    char text[MESSAGE_BYTES];
    vsnprintf(text, sizeof text, format, arguments);
    fprintf(stderr, "emulated GPU: %s\n", text);
    emulation_lock();
    memcpy(message, text, sizeof message);
    emulation_unlock();
    if (!on_stream)
        __atomic_store_n(&failed, 1, __ATOMIC_RELAXED); /* the caller learns it now */
    return error;
}

int emulation_object(int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int status = object(error, format, arguments);
    va_end(arguments);
    return status;
}

const char *emulation_message(void)
{
    static __thread char copy[MESSAGE_BYTES];
    emulation_lock();
    memcpy(copy, message, sizeof copy);
    emulation_unlock();
    return copy;
}

cudaError_t emulation_failed(cudaError_t error)
{
    last_error = (int)error;
    __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    return error;
}

int emulation_sticky(void)
{
    return __atomic_load_n(&sticky, __ATOMIC_ACQUIRE);
}

void emulation_sticky_set(int error)
{
    int none = 0;
    __atomic_compare_exchange_n(&sticky, &none, error, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    emulation_ring(&emulation_progress);
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = (cudaError_t)last_error;
    last_error = emulation_sticky();
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return (cudaError_t)last_error;
}

/* ---- faults, and how each function begins */

void emulation_fail(const char *function, long nth, int error)
{
    emulation_lock();
    int slot = 0;
    while (slot < FAULTS_MOST - 1 && faults[slot].left)
        slot++;
    snprintf(faults[slot].function, NAME_BYTES, "%s", function);
    faults[slot].left = nth;
    faults[slot].error = error;
    emulation_unlock();
}

int emulation_fault_here(const char *what)
{
    int error = 0;
    emulation_lock();
    for (int i = 0; i < FAULTS_MOST; i++)
        if (faults[i].left > 0 && strcmp(faults[i].function, what) == 0 && --faults[i].left == 0)
            error = faults[i].error;
    emulation_unlock();
    return error;
}

static int enter(const char *function, bool release)
{
    emulation_count(COUNT_CALLS, 1);
    if (in_callback)
        return emulation_object(cudaErrorNotPermitted, "%s: called from a callback", function);
    if (!release && __atomic_load_n(&failed, __ATOMIC_RELAXED))
        emulation_count(COUNT_CALLS_AFTER_FAILURE, 1);
    int error = emulation_fault_here(function);
    if (!error && !release)
        error = emulation_fault_here("any");
    if (error)
        __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
    return error;
}

int emulation_enter(const char *function)
{
    return enter(function, false);
}

int emulation_enter_release(const char *function)
{
    return enter(function, true);
}

void emulation_in_callback(bool in)
{
    in_callback = in;
}

void emulation_on_stream(void)
{
    on_stream = true;
}

void emulation_reset(void)
{
    emulation_lock();
    memset(faults, 0, sizeof faults);
    memset(counted + COUNT_ALIVE, 0, (COUNT_COUNT - COUNT_ALIVE) * sizeof *counted);
    counted[COUNT_DEVICE_BYTES_MOST] = counted[COUNT_DEVICE_BYTES];
    message[0] = 0;
    emulation_unlock();
    __atomic_store_n(&sticky, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&failed, 0, __ATOMIC_RELAXED);
    last_error = 0;
}

/* FUNCTION:N:ERROR[,...] */
__attribute__((constructor)) static void faults_from_environment(void)
{
    const char *text = getenv("AUTOHETE_EMULATION_FAULT");
    char name[NAME_BYTES];
    long nth;
    int error, length;
    while (text && sscanf(text, "%63[^:]:%ld:%d%n", name, &nth, &error, &length) == 3) {
        emulation_fail(name, nth, error);
        text += length;
        text += *text == ',';
    }
}

/* What a program of its own did, for tests that start one. */
__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("AUTOHETE_EMULATION_REPORT");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    fprintf(file, "alive %ld\ncalls %ld\ncalls_after_failure %ld\nlaunches %ld\ncopies %ld\nproducts %ld\nmessage %s\n",
            emulation_alive(), emulation_counted(COUNT_CALLS), emulation_counted(COUNT_CALLS_AFTER_FAILURE),
            emulation_counted(COUNT_LAUNCHES), emulation_counted(COUNT_COPIES), emulation_counted(COUNT_PRODUCTS),
            message);
    fclose(file);
}
