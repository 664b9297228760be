/* Small kernels for tests: PTX around a few lines, run on one buffer. */
#ifndef AH_TESTS_PTX_KERNEL_H
#define AH_TESTS_PTX_KERNEL_H

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "ptx/inside.h"

enum { KERNEL_WORDS = 4096, KERNEL_TEXT = 16384 };

static uint64_t kernel_memory[KERNEL_WORDS];

static bool kernel_extent(uint64_t address, uint64_t *from, uint64_t *to)
{
    *from = (uint64_t)(uintptr_t)kernel_memory;
    *to = *from + sizeof kernel_memory;
    return address >= *from && address < *to;
}

/* Everything before the lines: %rd1 is the buffer's address. */
#define KERNEL_HEAD                                                                                                    \
    ".version 9.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 dynamic[];\n"                        \
    ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<40>;\n"                   \
    ".reg .b64 %rd<40>;\n.reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n.shared .align 16 .b8 fixed[256];\n"                     \
    ".local .align 16 .b8 own[64];\nld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\n"

struct kernel_shape {
    unsigned blocks, threads;
    size_t shared_bytes;
    uint64_t seed;
    enum ptx_approximate approximate;
};

/* Runs the lines; "" or what it said. */
static inline const char *kernel_run(const char *lines, const struct kernel_shape *shape)
{
    static char error[PTX_ERROR_BYTES], text[KERNEL_TEXT];
    static const struct ptx_memory memory = {kernel_extent};
    uint64_t at = (uint64_t)(uintptr_t)kernel_memory;
    error[0] = 0;
    snprintf(text, sizeof text, "%s%s%s", KERNEL_HEAD, lines, "\nret;\n}\n");
    struct ptx_module *module = ptx_module_new(text, "test", error);
    if (!module)
        return error;
    struct ptx_launch launch = {ptx_module_entry(module, "k"),
                                {shape->blocks, 1, 1},
                                {shape->threads, 1, 1},
                                shape->shared_bytes,
                                &at,
                                &memory,
                                shape->seed,
                                shape->approximate};
    if (ptx_run(&launch, error))
        assert_true(error[0]);
    ptx_module_free(module);
    return error;
}

#endif
