/* Classes of partitions: embedding, head, and each kind of block. Blocks have one size and differ only in attributes of
 * operators; programs and times of partitions are stored once for each class. Partition and group numbers are 0
 * embedding, 1..layers blocks, layers+1 head. */
#ifndef AH_PARTITION_CLASS_H
#define AH_PARTITION_CLASS_H

#include <stdbool.h>

/* AH_CLASS_BLOCK is the class of the lowest block with a backward. Blocks of further kinds, and blocks without
 * backward, have the classes from AH_CLASS_COUNT on. All blocks with a backward have the sizes of AH_CLASS_BLOCK. */
enum ah_class { AH_CLASS_EMBEDDING, AH_CLASS_BLOCK, AH_CLASS_HEAD, AH_CLASS_COUNT };
enum { AH_CLASSES_MOST = 16 };
/* "embedding", "block", "head", "block 2", "block 3", ... */
extern const char *const ah__class_names[AH_CLASSES_MOST];

/* Returns the class of a partition or group, if blocks are of one kind. */
enum ah_class ah__class_of(int partition, int layers);
/* Returns the partition (and group) that represents a class: its sizes are those of all of the class. */
int ah__class_representative(enum ah_class class, int layers);

/* Returns true for classes of blocks. */
static inline bool ah__class_is_block(int class)
{
    return class == AH_CLASS_BLOCK || class >= AH_CLASS_COUNT;
}

/* Returns the class with the same sizes, and the same times except for programs: AH_CLASS_BLOCK for any kind of
 * block. */
static inline int ah__class_alike(int class)
{
    return class < AH_CLASS_COUNT ? class : AH_CLASS_BLOCK;
}

#endif
