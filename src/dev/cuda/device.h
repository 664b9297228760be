/* The CUDA device: opened, and what a device does (struct ah_dev_ops). state.h has its parts. */
#ifndef AH_DEV_CUDA_DEVICE_H
#define AH_DEV_CUDA_DEVICE_H

#include "dev/dev.h"

extern const struct ah_dev_ops ah__dev_cuda_ops;

/* options->ordinal is the GPU's number. AH_EINPUT: no driver, no GPU, none of this number, an option that a GPU has
 * not; AH_EDEVICE: it is there but cannot be used, or a library is missing; AH_ENOMEM. */
int ah__dev_cuda_open(struct ah_dev **out, const struct ah_dev_options *options);

#endif
