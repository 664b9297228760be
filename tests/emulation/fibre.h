/* Fibres: stacks that one thread switches between. No sanitizer is told: what runs on them is not instrumented for
 * addresses, and to ThreadSanitizer they are one thread, which they are. */
#ifndef EMULATION_FIBRE_H
#define EMULATION_FIBRE_H

#include <stddef.h>

enum { FIBRE_STACK_BYTES = 256 << 10 };

#if defined(__x86_64__)
struct fibre {
    void *stack_pointer;
};
#else
#include <ucontext.h>
struct fibre {
    ucontext_t context;
};
#endif

/* At the first switch to it, the fibre runs main(), which never returns, on `stack` of FIBRE_STACK_BYTES. */
void fibre_init(struct fibre *fibre, char *stack, void (*main)(void));
void fibre_switch(struct fibre *from, const struct fibre *to);

#endif
