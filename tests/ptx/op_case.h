/* One opcode, or a few, of one thread: operands and the result that they have. */
#ifndef AH_TESTS_PTX_OP_CASE_H
#define AH_TESTS_PTX_OP_CASE_H

#include "kernel.h"

/* The lines compute register 0 of its class (r, rd, rs, f, fd, p) from 1 to 4, which hold the low bits of a to d. */
struct op_case {
    const char *line;
    uint64_t a, b, c, expected;
};

/* The class of the register that is stored. */
static inline const char *op_stored(const char *line)
{
    static const char *const classes[][2] = {
        {"%r0", "st.global.u32 [%rd1], %r0;"},   {"%rd0", "st.global.u64 [%rd1], %rd0;"},
        {"%rs0", "st.global.u16 [%rd1], %rs0;"}, {"%f0", "st.global.f32 [%rd1], %f0;"},
        {"%fd0", "st.global.f64 [%rd1], %fd0;"}, {"%p0", "selp.u32 %r0, 1, 0, %p0;st.global.u32 [%rd1], %r0;"}};
    for (size_t i = 0; i < AH_LENGTH(classes); i++)
        if (strstr(line, classes[i][0]))
            return classes[i][1];
    return "";
}

/* Operands in all classes; the buffer's address moves out of their way. */
#define OP_OPERANDS                                                                                                    \
    "mov.u64 %rd30, %rd1;ld.global.u64 %rd2, [%rd30+16];ld.global.u64 %rd3, [%rd30+24];ld.global.u64 %rd1, [%rd30+8];" \
    "cvt.u32.u64 %r1, %rd1;cvt.u32.u64 %r2, %rd2;cvt.u32.u64 %r3, %rd3;"                                               \
    "cvt.u16.u64 %rs1, %rd1;cvt.u16.u64 %rs2, %rd2;cvt.u16.u64 %rs3, %rd3;"                                            \
    "mov.b32 %f1, %r1;mov.b32 %f2, %r2;mov.b32 %f3, %r3;mov.b64 %fd1, %rd1;mov.b64 %fd2, %rd2;"                        \
    "setp.eq.s64 %p1, %rd1, 1;setp.eq.s64 %p2, %rd2, 1;setp.eq.s64 %p3, %rd3, 1;\n"

static inline void op_check(const struct op_case *c)
{
    char lines[4096];
    const uint64_t given[] = {0, c->a, c->b, c->c};
    struct kernel_shape shape = {1, 1, 64, 0, PTX_EXACT};
    memcpy(kernel_memory, given, sizeof given);
    snprintf(lines, sizeof lines, "%s%s\nmov.u64 %%rd1, %%rd30;%s", OP_OPERANDS, c->line, op_stored(c->line));
    const char *said = kernel_run(lines, &shape);
    if (said[0])
        fail_msg("%s: %s", c->line, said);
    if (kernel_memory[0] != c->expected)
        fail_msg("%s of %llx, %llx, %llx: found %llx, expected %llx", c->line, (unsigned long long)c->a,
                 (unsigned long long)c->b, (unsigned long long)c->c, (unsigned long long)kernel_memory[0],
                 (unsigned long long)c->expected);
}

#endif
