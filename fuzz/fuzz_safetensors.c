/* Any bytes as a safetensors file: refused, or every tensor's bytes can be read. */
#include "base/hash.h"
#include "fuzz.h"
#include "io/safetensors.h"

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    char path[64];
    struct ah_safetensors *file = NULL;
    int fd = fuzz_file(path, sizeof path, data, size);
    int status = ah__safetensors_open(&file, path);
    FUZZ_CHECK(status == AH_OK || status == AH_ECORRUPT || (status == AH_EINPUT && !size));
    uint64_t bytes = 0;
    for (size_t i = 0; status == AH_OK && i < ah__safetensors_count(file); i++) {
        const struct ah_safetensors_tensor *tensor = ah__safetensors_at(file, i);
        FUZZ_CHECK(ah__safetensors_find(file, tensor->name) == tensor);
        volatile uint64_t hash = ah__hash(tensor->data, tensor->bytes, 0);
        (void)hash;
        bytes += tensor->bytes;
    }
    FUZZ_CHECK(bytes <= size);
    ah__safetensors_close(file);
    close(fd);
    return 0;
}
