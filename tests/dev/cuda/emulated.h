/* The CUDA device on the emulated GPU. */
#ifndef AH_TESTS_DEV_CUDA_EMULATED_H
#define AH_TESTS_DEV_CUDA_EMULATED_H

#include "test.h"

#include <emulation.h>

#include "dev/dev.h"

/* Between the two, "cuda" is the plugin on the emulated GPU. Where AH_TEST_GPU is set (bench/gpu_check, on a machine
 * that has one) it stays what the environment says: the plugin for a real one. */
void emulated_begin(void);
void emulated_end(void);
/* Opens "cuda" or "cuda:N" from the plugin on the emulated GPU. */
int emulated_open_as(struct ah_dev **out, const char *name, const struct ah_dev_options *options);
int emulated_open(struct ah_dev **out, const struct ah_dev_options *options);
/* Nothing of the emulation's is alive, nothing was called after a failure, and it had nothing to object to. */
void emulated_assert_clean(void);

#endif
