#include "partition/class.h"

const char *const ah__class_names[AH_CLASSES_MOST] = {
    "embedding", "block",   "head",    "block 2",  "block 3",  "block 4",  "block 5",  "block 6",
    "block 7",   "block 8", "block 9", "block 10", "block 11", "block 12", "block 13", "block 14",
};

enum ah_class ah__class_of(int partition, int layers)
{
    return partition == 0 ? AH_CLASS_EMBEDDING : partition <= layers ? AH_CLASS_BLOCK : AH_CLASS_HEAD;
}

int ah__class_representative(enum ah_class class, int layers)
{
    return class == AH_CLASS_EMBEDDING ? 0 : class == AH_CLASS_BLOCK ? layers : layers + 1;
}
