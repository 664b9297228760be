/* What this machine's processor is. */
#ifndef AH_DEV_HOST_MACHINE_H
#define AH_DEV_HOST_MACHINE_H

#include "base/status.h"

/* Its name as the kernel has it, "" when it does not say; returns text. */
char *ah__host_model(char *text, size_t size);
/* Cores this process may use; *in_order: they are numbered 0..count-1, as binding threads to them needs (may be
 * null). */
int ah__host_cores(bool *in_order);
/* The value of the first "KEY: VALUE" line that begins with `key` within the first 8 KiB of a file in /proc, cut to
 * `size`; false: there is none, and text is as it was. Allocates nothing. */
bool ah__host_line(char *text, size_t size, const char *path, const char *key);

#endif
