/* The emulated GPU: NVIDIA's runtime as far as the CUDA plugin uses it, on the processor (README.md beside this). The
 * functions of the runtime are declared by NVIDIA's own headers; this header is what tests and the emulated libraries
 * need beyond them. May be called from any thread unless said otherwise. */
#ifndef EMULATION_H
#define EMULATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- for tests */

/* What was taken and not given back, and what happened since the last emulation_reset(). */
struct emulation_counts {
    /* Alive. */
    long device_allocations, device_bytes; /* cudaMalloc */
    long pinned, pinned_bytes;             /* cudaHostRegister and cudaHostAlloc */
    long streams, events;
    long library_objects; /* handles, descriptors, layouts and preferences of cuBLASLt */
    /* Since the reset. */
    long device_bytes_most;
    long calls;               /* of the runtime and the libraries */
    long calls_after_failure; /* of those, calls that start or allocate something although an earlier call failed */
    long launches, copies, copied_bytes, callbacks, products;
};
void emulation_counts(struct emulation_counts *out);
/* How much is alive altogether: 0 when everything was given back. */
long emulation_alive(void);

/* The n-th call from now (1: the next one) of a function returns `error` and does nothing; several may be armed. "any"
 * is any function but those that only give back or ask; "callback" a callback that never comes. A kernel fault or a
 * copy that fails while it runs is the function "kernel" or "copy": the error is then sticky. The environment variable
 * AUTOHETE_EMULATION_FAULT does the same: FUNCTION:N:ERROR[,...]. */
void emulation_fail(const char *function, long nth, int error);
/* Disarms faults, forgets failures, a sticky error and what was counted; not what is alive. No work may be in flight.
 */
void emulation_reset(void);
/* The last thing the emulation objected to, or "": misuse of the runtime, a deadlocked block. Also on stderr. */
const char *emulation_message(void);

/* ---- for emulated libraries */

/* To begin every function with: counts the call; gives the error it is to return, or 0. */
int emulation_enter(const char *function);
/* Does the same for functions that only give something back: those are no calls after a failure. */
int emulation_enter_release(const char *function);
/* Puts an objection on record. Gives `error` back, which then counts as a failed call. */
int emulation_object(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Runs run(copy of argument) in the stream's order, on its thread. At most EMULATION_ARGUMENT_BYTES. */
enum { EMULATION_ARGUMENT_BYTES = 512 };
cudaError_t emulation_enqueue(cudaStream_t stream, const char *what, void (*run)(void *argument), const void *argument,
                              size_t bytes);
/* Whether all of [address, address + bytes) is of one cudaMalloc. */
bool emulation_is_device(const void *address, size_t bytes);
/* The cudaMalloc that an address lies in, or false. */
bool emulation_device_range(const void *address, const void **from, size_t *bytes);
/* Counts a library's object that is made (1) or given back (-1). */
void emulation_library_object(int change);
void emulation_count_product(void);

#ifdef __cplusplus
}
#endif

#endif
