/* The bytes before the last line break as a tokenizer.model, those behind it as a text. */
#include "fuzz_text.h"

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memrchr(data, '\n', size) : NULL;
    fuzz_tokenizer_file("tokenizer.model", data, size, line ? (size_t)(line - data) : size);
    return 0;
}
