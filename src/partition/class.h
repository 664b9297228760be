/* Classes: the three sorts of partition. All blocks are one structure, so everything that is known of partitions
 * (programs, sizes, times) is known once for each class; partition and group numbers are 0 embedding, 1..layers blocks,
 * layers+1 head. */
#ifndef AH_PARTITION_CLASS_H
#define AH_PARTITION_CLASS_H

enum ah_class { AH_CLASS_EMBEDDING, AH_CLASS_BLOCK, AH_CLASS_HEAD, AH_CLASS_COUNT };
/* "embedding", "block", "head" */
extern const char *const ah__class_names[AH_CLASS_COUNT];

/* The class of a partition or group. */
enum ah_class ah__class_of(int partition, int layers);
/* The partition (and group) that stands for a class: what is true of it is true of all of the class. */
int ah__class_representative(enum ah_class class, int layers);
/* How many partitions are of a class. */
int ah__class_size(enum ah_class class, int layers);

#endif
