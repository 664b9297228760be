/* The files that this process runs. A cached result is used again only by a process of the same files. */
#ifndef AH_BASE_LOADED_H
#define AH_BASE_LOADED_H

#include <stdint.h>

/* Returns a hash of the program and of everything loaded now (this library, a device's plugin, oneDNN, OpenMP, ...), by
 * path, size and time of change: any of them may be another build tomorrow. */
uint64_t ah__loaded_hash(void);

#endif
