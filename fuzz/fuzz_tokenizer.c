/* The bytes before the first line break as parts of a tokenizer.json, those behind it as a text. */
#include "fuzz_text.h"

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    fuzz_tokenizer_file("tokenizer.json", data, size, line ? (size_t)(line - data) : size);
    return 0;
}
