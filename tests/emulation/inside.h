/* Between the files of the emulation. */
#ifndef EMULATION_INSIDE_H
#define EMULATION_INSIDE_H

#include "emulation.h"
#include "launch.h"

/* Which sanitizer the build has, also in files that it does not instrument: from CMake. */
#ifndef EMULATION_THREAD_SANITIZER
#define EMULATION_THREAD_SANITIZER 0
#endif
#ifndef EMULATION_ADDRESS_SANITIZER
#define EMULATION_ADDRESS_SANITIZER 0
#endif

/* ---- state.c */

enum emulation_count {
    COUNT_DEVICE_ALLOCATIONS,
    COUNT_DEVICE_BYTES,
    COUNT_PINNED,
    COUNT_PINNED_BYTES,
    COUNT_STREAMS,
    COUNT_EVENTS,
    COUNT_LIBRARY_OBJECTS,
    COUNT_ALIVE, /* those above */
    COUNT_CALLS = COUNT_ALIVE,
    COUNT_CALLS_AFTER_FAILURE,
    COUNT_LAUNCHES,
    COUNT_COPIES,
    COUNT_COPIED_BYTES,
    COUNT_CALLBACKS,
    COUNT_PRODUCTS,
    COUNT_DEVICE_BYTES_MOST,
    COUNT_COUNT
};
void emulation_count(enum emulation_count count, long change);
long emulation_counted(enum emulation_count count);

/* One lock for all tables and queues, held shortly. */
void emulation_lock(void);
void emulation_unlock(void);
/* What threads wait for: it rings when something has changed. */
struct emulation_bell {
    unsigned rung, waiting;
};
extern struct emulation_bell
    emulation_progress; /* an event has passed, an operation is done, a fault is there to stay */
void emulation_ring(struct emulation_bell *bell);
/* With the lock held, which is given away meanwhile: returns when the bell has rung since. */
void emulation_await(struct emulation_bell *bell);
void emulation_sleep_ns(long ns);

/* A whole number from the environment, or `otherwise`. */
long emulation_setting(const char *name, long otherwise);
/* Numbers of a seed. */
uint64_t emulation_random(uint64_t seed, uint64_t index);

/* Whether a fault is armed for what happens now on a stream ("kernel", "copy"): its error or 0. */
int emulation_fault_here(const char *what);
/* The error that every call returns since a kernel fault; 0. */
int emulation_sticky(void);
void emulation_sticky_set(int error);
/* The thread runs a callback: it must not call the runtime. */
void emulation_in_callback(bool in);
/* The thread is a stream's: what it objects to, no caller has learned yet. */
void emulation_on_stream(void);

/* How each function of the runtime begins: counted, failing on demand, and with a sticky error. */
#define ENTER(function)                                                                                                \
    do {                                                                                                               \
        int error_ = emulation_enter(function);                                                                        \
        if (error_ || (error_ = emulation_sticky()) != 0)                                                              \
            return emulation_failed((cudaError_t)error_);                                                              \
    } while (0)
/* One that gives something back does so even when everything fails, so that leaks can be counted; then it returns the
 * sticky error. */
#define ENTER_RELEASE(function)                                                                                        \
    do {                                                                                                               \
        int error_ = emulation_enter_release(function);                                                                \
        if (error_)                                                                                                    \
            return emulation_failed((cudaError_t)error_);                                                              \
    } while (0)
/* Sets what cudaGetLastError() gives. */
cudaError_t emulation_failed(cudaError_t error);
#define REFUSE(error, ...) return emulation_failed((cudaError_t)emulation_object(error, __VA_ARGS__))

/* ---- memory.c */

bool emulation_is_pinned(const void *address, size_t bytes);
size_t emulation_memory_bytes(void); /* of each device */

/* ---- copy.c: of device memory, which host code must not touch */

void emulation_copy(void *to, const void *from, size_t bytes);
void emulation_fill(void *to, int byte, size_t bytes);
void emulation_fill_unseen(void *to, int byte, size_t bytes); /* by ThreadSanitizer, too */
/* A number that host and device share. */
uint64_t emulation_value_read(const uint64_t *at);
void emulation_value_write(uint64_t *at, uint64_t value);

/* ---- device.c */

int emulation_device(void); /* of the calling thread */

/* ---- stream.c */

struct CUevent_st;

enum operation_kind { RUN, COPY, FILL, LAUNCH, RECORD, WAIT_EVENT, WAIT_VALUE, WRITE_VALUE, CALLBACK, HOST_FUNCTION };

/* What a stream does; what each kind reads is told beside it. */
struct operation {
    struct operation *next;
    enum operation_kind kind;
    const char *what;
    union {
        struct { /* RUN: run(bytes behind the operation) */
            void (*run)(void *argument);
        } run;
        struct { /* COPY, FILL */
            void *to;
            const void *from;
            size_t bytes;
            int byte;
        } copy;
        struct emulation_launch launch; /* LAUNCH: the arguments lie behind the operation */
        struct {                        /* RECORD, WAIT_EVENT */
            struct CUevent_st *event;
            uint64_t version;
        } event;
        struct { /* WAIT_VALUE, WRITE_VALUE */
            uint64_t *at;
            uint64_t value;
            unsigned flags;
        } value;
        struct {
            cudaStreamCallback_t function;
            cudaHostFn_t host;
            void *argument;
        } callback;
    } as;
    max_align_t behind[];
};

/* `bytes` of room behind it. */
struct operation *operation_new(enum operation_kind kind, const char *what, size_t bytes);
/* Hands it to the stream. cudaErrorInvalidResourceHandle, and it is freed, when that is none. */
cudaError_t operation_push(cudaStream_t stream, struct operation *operation);
/* Waits until all streams of the calling thread's device are idle. */
void emulation_drain(void);

/* ---- event.c */

void event_passed(struct CUevent_st *event, uint64_t version); /* on the stream's thread */
void event_wait(struct CUevent_st *event, uint64_t version);   /* likewise */
void event_release(struct CUevent_st *event);                  /* one operation less needs it */

/* What orders memory for ThreadSanitizer, and nothing else does: a token is released by what comes first and acquired
 * by what comes after. */
#if EMULATION_THREAD_SANITIZER
void __tsan_acquire(void *token);
void __tsan_release(void *token);
#define ORDER_RELEASE(token) __tsan_release(token)
#define ORDER_ACQUIRE(token) __tsan_acquire(token)
#else
#define ORDER_RELEASE(token) ((void)(token))
#define ORDER_ACQUIRE(token) ((void)(token))
#endif

/* ---- block.c */

/* What a stream's thread runs blocks with: fibres, shared memory. */
struct emulation_blocks;
struct emulation_blocks *emulation_blocks_new(void);
void emulation_blocks_free(struct emulation_blocks *blocks);
/* All blocks of a launch, in an order that the seed gives. 0, or the error after an objection. */
int emulation_blocks_run(struct emulation_blocks *blocks, const struct emulation_launch *launch, uint64_t seed);

#endif
