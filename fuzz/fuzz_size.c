/* Any text as a size and as a rate: refused, or not negative; what formatting prints stays short. */
#include "fuzz.h"

#include <string.h>

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    char text[256], formatted[32];
    int64_t bytes = -1, rate = -1;
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    int status = ah_size_parse(&bytes, text);
    FUZZ_CHECK(status == AH_OK ? bytes >= 0 : status == AH_EINPUT && bytes == -1);
    FUZZ_CHECK(!strpbrk(ah_error(), "\n\r"));
    if (status == AH_OK)
        FUZZ_CHECK(strlen(ah_size_format(formatted, sizeof formatted, bytes)) < sizeof formatted - 1);
    status = ah_rate_parse(&rate, text);
    FUZZ_CHECK(status == AH_OK ? rate >= 0 : status == AH_EINPUT && rate == -1);
    return 0;
}
