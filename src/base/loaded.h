/* What this process is made of: who keeps what it found for the next one asks whether that is the same. */
#ifndef AH_BASE_LOADED_H
#define AH_BASE_LOADED_H

#include <stdint.h>

/* Of the files of the program and of everything loaded now (this library, a device's plugin, oneDNN, OpenMP, ...), as
 * the file system tells them apart: any of them may be another build tomorrow. */
uint64_t ah__loaded_hash(void);

#endif
