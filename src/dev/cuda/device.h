/* Opens the CUDA device; its operations are struct ah_dev_ops. state.h has its parts. */
#ifndef AH_DEV_CUDA_DEVICE_H
#define AH_DEV_CUDA_DEVICE_H

#include "dev/dev.h"

extern const struct ah_dev_ops ah__dev_cuda_ops;

/* Opens a GPU; options->ordinal is its number. AH_EINPUT: no driver, no GPU, no GPU of this number, or an option that
 * GPUs do not have; AH_EDEVICE: the GPU cannot be used, or a library is missing; AH_ENOMEM. */
int ah__dev_cuda_open(struct ah_dev **out, const struct ah_dev_options *options);

#endif
