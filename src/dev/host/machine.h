/* Reads the name and the cores of this machine's processor. */
#ifndef AH_DEV_HOST_MACHINE_H
#define AH_DEV_HOST_MACHINE_H

#include "base/status.h"

/* Writes the kernel's name of the processor, or "" if it has none. Returns text. */
char *ah__host_model(char *text, size_t size);
/* Returns the number of cores that this process may use. *in_order: they are numbered 0..count-1, which binding threads
 * to them requires (may be null). */
int ah__host_cores(bool *in_order);
/* Reads the value of the first "KEY: VALUE" line that begins with `key` within the first 8 KiB of a file in /proc, cut
 * to `size`. False: there is no such line, and text is unchanged. Allocates nothing. */
bool ah__host_line(char *text, size_t size, const char *path, const char *key);

#endif
