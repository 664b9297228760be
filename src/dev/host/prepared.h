/* The first steps of every device's prepare: checks a program's calls against the operator table, and finds the bytes
 * of each space that they cover. Knows no kernels: each device checks itself which operators, shapes and dtypes it can
 * run. */
#ifndef AH_DEV_HOST_PREPARED_H
#define AH_DEV_HOST_PREPARED_H

#include "dev/dev.h"

/* Fills *out for `program`, which must outlive it. AH_EDEVICE names device, call, operand, what it is and what is
 * expected. */
int ah__prepared_init(struct ah_prepared *out, const struct ah_program *program, const char *device);
/* Raises the workspace to the scratch of a call. */
void ah__prepared_workspace(struct ah_prepared *prepared, int64_t bytes);

#endif
