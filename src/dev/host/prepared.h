/* What every device's prepare begins with: whether a program's calls are as the operator table has them, and which
 * bytes of each space they cover. Knows no kernels: which operators, shapes and dtypes it can run a device adds
 * itself. */
#ifndef AH_DEV_HOST_PREPARED_H
#define AH_DEV_HOST_PREPARED_H

#include "dev/dev.h"

/* Fills *out for `program`, which must outlive it. AH_EDEVICE names device, call, operand, what it is and what is
 * expected. */
int ah__prepared_init(struct ah_prepared *out, const struct ah_program *program, const char *device);
/* A call wants that much scratch while it runs. */
void ah__prepared_workspace(struct ah_prepared *prepared, int64_t bytes);

#endif
