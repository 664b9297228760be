#include "fibre.h"

#include <stdint.h>

#if defined(__x86_64__)

/* Saves what a called function must keep on the old stack, takes it from the new one. */
void fibre_switch_stacks(void **from, void *to);
__asm__(".text\n"
        ".type fibre_switch_stacks, @function\n"
        ".hidden fibre_switch_stacks\n"
        "fibre_switch_stacks:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size fibre_switch_stacks, . - fibre_switch_stacks\n");

enum { SAVED_REGISTERS = 6 };

void fibre_init(struct fibre *fibre, char *stack, void (*main)(void))
{
    /* As if main() had been called: the stack pointer is 8 below a multiple of 16 when its first instruction runs. */
    uintptr_t *top = (uintptr_t *)(void *)(stack + FIBRE_STACK_BYTES);
    *--top = 0;
    *--top = (uintptr_t)main;
    for (int i = 0; i < SAVED_REGISTERS; i++)
        *--top = 0;
    fibre->stack_pointer = top;
}

void fibre_switch(struct fibre *from, const struct fibre *to)
{
    fibre_switch_stacks(&from->stack_pointer, to->stack_pointer);
}

#else

void fibre_init(struct fibre *fibre, char *stack, void (*main)(void))
{
    getcontext(&fibre->context);
    fibre->context.uc_stack.ss_sp = stack;
    fibre->context.uc_stack.ss_size = FIBRE_STACK_BYTES;
    fibre->context.uc_link = 0;
    makecontext(&fibre->context, main, 0);
}

void fibre_switch(struct fibre *from, const struct fibre *to)
{
    swapcontext(&from->context, &to->context);
}

#endif
