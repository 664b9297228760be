/* Compiles a section's operators into programs whose operands are (space, offset). Private to partition/. */
#ifndef AH_PARTITION_COMPILE_H
#define AH_PARTITION_COMPILE_H

#include "partition/section.h"

enum { AH_OPERAND_ALIGN = 64 }; /* offsets in SAVED and WORK */

/* Compiles all programs into *code, whose arrays belong to partition->arena. `number`: the section's partition;
 * `param_of`: recorded value -> index in partition->params. May append operators to the section. */
int ah__code_compile(struct ah_code *code, struct ah_partition *partition, struct ah_section *section, int number,
                     const int *param_of);

/* Finds the storages that selective recomputation recomputes: cheap[storage] is set if backward reads it (`saved`) or
 * if it leads to such a storage. All of them follow from the section's input, parameters and saved storages that are
 * not set, by operators that are neither products nor attention. */
void ah__cheap_find(bool *cheap, const struct ah_section *section, const bool *saved);

/* A piece of memory of `bytes` bytes that is in use from the first to the last position, both included. */
struct ah_interval {
    int first, last;
    int64_t bytes;
    int64_t offset; /* result */
};
/* Gives every interval an offset so that no two in use at the same time overlap: largest first, each into the smallest
 * gap that is large enough. *total receives the bytes needed. Bytes must be multiples of AH_OPERAND_ALIGN. */
int ah__intervals_place(struct ah_interval *intervals, int count, int64_t *total);

#endif
