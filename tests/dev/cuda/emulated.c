#include "emulated.h"

#include <stdlib.h>

#include "test_paths.h"

void emulated_begin(void)
{
    if (getenv("AH_TEST_GPU"))
        return;
    const char *plugins = getenv("AH_TEST_CUDA_PLUGIN"); /* another build of it: tests/emulation/coverage */
    setenv("AUTOHETE_PLUGINS", plugins ? plugins : AH_TEST_EMULATION, 1);
    setenv("AUTOHETE_CUDA_LIBRARIES", AH_TEST_EMULATION "/libraries", 1);
}

void emulated_end(void)
{
    if (getenv("AH_TEST_GPU"))
        return;
    unsetenv("AUTOHETE_PLUGINS");
    unsetenv("AUTOHETE_CUDA_LIBRARIES");
}

int emulated_open_as(struct ah_dev **out, const char *name, const struct ah_dev_options *options)
{
    emulated_begin();
    int status = ah_dev_open(out, name, options);
    emulated_end();
    return status;
}

int emulated_open(struct ah_dev **out, const struct ah_dev_options *options)
{
    return emulated_open_as(out, "cuda", options);
}

void emulated_assert_clean(void)
{
    struct emulation_counts counts;
    emulation_counts(&counts);
    assert_string_equal(emulation_message(), "");
    assert_int_equal(counts.calls_after_failure, 0);
    if (emulation_alive())
        fail_msg("alive: %ld allocations, %ld pinned, %ld streams, %ld events, %ld objects of libraries",
                 counts.device_allocations, counts.pinned, counts.streams, counts.events, counts.library_objects);
}
