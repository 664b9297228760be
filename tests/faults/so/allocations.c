/* Preloaded into a program: lets its n-th request for memory or a thread fail, counted from the start of main.
 *
 *   AH_FAULT_AT=n      the n-th fails, as if there were no memory
 *   AH_FAULT_ALL=1     and so do all after it
 *   AH_FAULT_THREADS=1 no thread can be started
 *   AH_FAULT_LOG=FILE  when main returns, writes how many there were
 *   AH_FAULT_PLACES=1  and then the numbers of those that came from a place (the innermost calls that lead there) for
 *                      the first time: a loop over them fails each place once
 *
 * Counted are malloc, calloc, realloc, the aligned ones, mmap and pthread_create. Three kinds are left alone, since
 * nothing can be done when they fail, and the library asks for more right before: what libgomp keeps of a thread (it
 * ends the process itself; src/dev/host/pool.c), what oneDNN does once, which is generating its code (it does not look
 * at what it gets; src/dev/cpu/gemm.c), and what CBC does (it asserts, or frees twice; src/plan/milp.c). */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t align, size_t size);

enum { PLACES = 1 << 16, FRAMES = 10 };

static atomic_bool armed;
static atomic_long counted;
static long fail_at;
static bool fail_rest, no_threads;
static const char *log_path;
static bool places;
static atomic_uint_fast64_t place_hash[PLACES];
static long place_number[PLACES];
static _Thread_local bool inside;
static _Thread_local int alone; /* above 0: within what is left alone */

/* ---- where a call comes from ------------------------------------------------------------------------------------- */

struct trace {
    int skip, frames;
    uint64_t hash;
};

/* Addresses within their library or program, which are the same in every run. */
static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *argument)
{
    struct trace *trace = argument;
    Dl_info info;
    uintptr_t at = _Unwind_GetIP(context);
    if (trace->skip-- > 0)
        return _URC_NO_REASON;
    if (!at || trace->frames++ == FRAMES)
        return _URC_END_OF_STACK;
    if (dladdr((void *)at, &info))
        at -= (uintptr_t)info.dli_fbase;
    trace->hash = (trace->hash ^ at) * 0x9e3779b97f4a7c15u;
    trace->hash ^= trace->hash >> 29;
    return _URC_NO_REASON;
}

static void place_note(long number)
{
    struct trace trace = {.skip = 2, .hash = 1};
    _Unwind_Backtrace(frame, &trace);
    for (size_t at = trace.hash % PLACES, tried = 0; tried < PLACES; at = (at + 1) % PLACES, tried++) {
        uint_fast64_t empty = 0;
        if (atomic_compare_exchange_strong(&place_hash[at], &empty, trace.hash)) {
            place_number[at] = number;
            return;
        }
        if (empty == trace.hash)
            return;
    }
}

static bool comes_from(const void *caller, const char *library)
{
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, library);
}

/* Whether this request is the one to fail. */
static bool fails(const void *caller)
{
    if (!atomic_load(&armed) || inside)
        return false;
    long number = atomic_fetch_add(&counted, 1) + 1;
    bool wanted = fail_at && (number == fail_at || (fail_rest && number > fail_at));
    if (!wanted && !places)
        return false;
    inside = true;
    if (places)
        place_note(number);
    wanted = wanted && !alone && !comes_from(caller, "libgomp");
    inside = false;
    if (wanted)
        errno = ENOMEM;
    return wanted;
}

/* ---- what is counted --------------------------------------------------------------------------------------------- */

#define FAILS fails(__builtin_return_address(0))

void *malloc(size_t size)
{
    return FAILS ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return FAILS ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    return FAILS ? NULL : __libc_realloc(memory, size);
}

void *memalign(size_t align, size_t size)
{
    return FAILS ? NULL : __libc_memalign(align, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    return FAILS ? NULL : __libc_memalign(align, size);
}

int posix_memalign(void **out, size_t align, size_t size)
{
    int before = errno;
    void *memory = FAILS ? NULL : __libc_memalign(align, size);
    errno = before;
    if (!memory)
        return ENOMEM;
    *out = memory;
    return 0;
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset)
{
    return FAILS ? MAP_FAILED : (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}

static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    if (FAILS || (no_threads && atomic_load(&armed)))
        return EAGAIN;
    if (!real_create)
        *(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
    return real_create(thread, attributes, start, argument);
}

int pthread_once(pthread_once_t *control, void (*routine)(void))
{
    static int (*real)(pthread_once_t *, void (*)(void));
    bool left_alone = comes_from(__builtin_return_address(0), "libdnnl");
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_once");
    alone += left_alone;
    int status = real(control, routine);
    alone -= left_alone;
    return status;
}

/* CBC's first and last calls for one model. */
void *Cbc_newModel(void)
{
    void *(*real)(void);
    *(void **)&real = dlsym(RTLD_NEXT, "Cbc_newModel");
    alone++;
    return real();
}

void Cbc_deleteModel(void *model)
{
    void (*real)(void *);
    *(void **)&real = dlsym(RTLD_NEXT, "Cbc_deleteModel");
    real(model);
    alone--;
}

/* ---- from the start of main to its end --------------------------------------------------------------------------- */

static int (*program)(int, char **, char **);

static void log_write(void)
{
    char line[32];
    int fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int length = snprintf(line, sizeof line, "%ld\n", atomic_load(&counted));
    bool good = fd >= 0 && write(fd, line, (size_t)length) == length;
    for (size_t i = 0; i < PLACES && good; i++)
        if (atomic_load(&place_hash[i])) {
            length = snprintf(line, sizeof line, "%ld\n", place_number[i]);
            good = write(fd, line, (size_t)length) == length;
        }
    if (fd >= 0)
        close(fd);
}

static int watched(int argc, char **argv, char **environment)
{
    const char *at = getenv("AH_FAULT_AT");
    fail_at = at ? atol(at) : 0;
    fail_rest = getenv("AH_FAULT_ALL") != NULL;
    no_threads = getenv("AH_FAULT_THREADS") != NULL;
    log_path = getenv("AH_FAULT_LOG");
    places = getenv("AH_FAULT_PLACES") != NULL;
    *(void **)&real_create = dlsym(RTLD_NEXT, "pthread_create");
    atomic_store(&armed, true);
    int status = program(argc, argv, environment);
    atomic_store(&armed, false);
    if (log_path)
        log_write();
    return status;
}

int __libc_start_main(int (*begin)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*loader_fini)(void), void *stack_end)
{
    int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    program = begin;
    return real(watched, argc, argv, init, fini, loader_fini, stack_end);
}
