/* What this machine's processor is. */
#ifndef AH_DEV_HOST_MACHINE_H
#define AH_DEV_HOST_MACHINE_H

#include "base/status.h"

/* Its name as the kernel has it, "" when it does not say; returns text. */
char *ah__host_model(char *text, size_t size);
/* Cores this process may use; *in_order: they are numbered 0..count-1, as binding threads to them needs (may be
 * null). */
int ah__host_cores(bool *in_order);

#endif
