/* Any bytes as a GGUF file: refused, or every tensor that is read can be widened, and model and tokenizer are made of
 * its metadata or refused. */
#include "base/alloc.h"
#include "fuzz.h"
#include "gguf/config.h"
#include "gguf/gguf.h"
#include "source/model_tokenizer.h"

static void tensor_read(const struct ah_gguf_tensor *tensor)
{
    enum { ELEMENTS_MOST = 1 << 16 };
    int64_t count = (int64_t)tensor->bytes / tensor->type->bytes * tensor->type->block;
    float *values;
    if (!tensor->type->widen || count > ELEMENTS_MOST || ah__new(&values, (size_t)count, sizeof *values) != AH_OK)
        return;
    tensor->type->widen(values, tensor->data, count);
    ah__free(values);
}

static bool is_refusal(int status)
{
    return status == AH_EINPUT || status == AH_ECORRUPT;
}

static void file_use(const struct ah_gguf *file, const char *path)
{
    const struct ah_tokenizer *tokenizer;
    struct ah_model *model;
    char name[AH_GGUF_NAME_SIZE];
    for (size_t i = 0; i < ah__gguf_count(file); i++) {
        const struct ah_gguf_tensor *tensor = ah__gguf_at(file, i);
        FUZZ_CHECK(ah__gguf_find(file, tensor->name) == tensor);
        ah__gguf_param(name, file, tensor->name);
        struct ah_gguf_swap swap;
        int status = ah__gguf_swapped(&swap, file, tensor);
        FUZZ_CHECK(status == AH_OK ? swap.outer >= 0 : is_refusal(status));
        tensor_read(tensor);
    }
    int status = ah_model_load(&model, path);
    FUZZ_CHECK(status == AH_OK || is_refusal(status));
    if (status == AH_OK)
        ah_model_free(model);
    status = ah__model_tokenizer_open(&tokenizer, path);
    FUZZ_CHECK(status == AH_OK || is_refusal(status));
    if (status == AH_OK)
        ah__tokenizer_close(tokenizer);
}

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    char path[64];
    struct ah_gguf *file = NULL;
    int fd = fuzz_file(path, sizeof path, data, size);
    int status = ah__gguf_open(&file, path);
    FUZZ_CHECK(status == AH_OK || status == AH_ECORRUPT || (status == AH_EINPUT && (!size || size > 24)));
    if (status == AH_OK)
        file_use(file, path);
    ah__gguf_close(file);
    close(fd);
    return 0;
}
