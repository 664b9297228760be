#include "partition/class.h"

const char *const ah__class_names[AH_CLASS_COUNT] = {"embedding", "block", "head"};

enum ah_class ah__class_of(int partition, int layers)
{
    return partition == 0 ? AH_CLASS_EMBEDDING : partition <= layers ? AH_CLASS_BLOCK : AH_CLASS_HEAD;
}

int ah__class_representative(enum ah_class class, int layers)
{
    return class == AH_CLASS_EMBEDDING ? 0 : class == AH_CLASS_BLOCK ? 1 : layers + 1;
}

int ah__class_size(enum ah_class class, int layers)
{
    return class == AH_CLASS_BLOCK ? layers : 1;
}
