#include "base/loaded.h"

#include <link.h>
#include <sys/stat.h>

#include "base/hash.h"

static uint64_t hash_file(const char *path, uint64_t seed)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return seed;
    seed = ah__hash_int((uint64_t)info.st_size, seed);
    seed = ah__hash_int((uint64_t)info.st_mtim.tv_sec, seed);
    return ah__hash_int((uint64_t)info.st_mtim.tv_nsec, seed);
}

/* Adds the hash of a loaded object to the sum, which does not depend on their order. */
static int add_object(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    uint64_t *sum = context;
    const char *path = object->dlpi_name && object->dlpi_name[0] ? object->dlpi_name : "/proc/self/exe";
    *sum += hash_file(path, ah__hash_text(path, 0));
    return 0;
}

uint64_t ah__loaded_hash(void)
{
    uint64_t sum = 0;
    dl_iterate_phdr(add_object, &sum);
    return sum;
}
