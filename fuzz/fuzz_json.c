/* Any bytes as JSON: refused, or what is printed from it reads back as the same tree. */
#include "fuzz.h"

#include <string.h>

#include "base/json.h"

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    struct ah_json json = {0}, back = {0};
    int status = ah__json_parse(&json, (const char *)data, size, "fuzz");
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    if (status != AH_OK)
        return 0;
    for (int one_line = 0; one_line < 2; one_line++) {
        char *text = NULL, *again = NULL;
        FUZZ_CHECK(ah__json_text(&text, json.node, one_line) == AH_OK);
        /* Bytes that are no UTF-8 print as U+FFFD, which may make two keys equal: the one refusal allowed. */
        status = ah__json_parse(&back, text, strlen(text), "fuzz");
        FUZZ_CHECK(status == AH_OK || strstr(ah_error(), "found twice"));
        if (status == AH_OK) {
            FUZZ_CHECK(ah__json_text(&again, back.node, one_line) == AH_OK);
            FUZZ_CHECK(strcmp(text, again) == 0);
            ah__json_free(&back);
        }
        free(again);
        free(text);
    }
    ah__json_free(&json);
    return 0;
}
