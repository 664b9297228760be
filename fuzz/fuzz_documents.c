/* One byte of settings, then any bytes as a file of documents: refused with a line, or texts that lie within it. */
#include "data/documents.h"
#include "fuzz.h"

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    static const enum ah_data_format formats[] = {AH_DATA_AUTO, AH_DATA_TEXT, AH_DATA_JSONL};
    if (size < 1)
        return 0;
    char path[64];
    struct ah_documents *documents = NULL;
    struct ah_document document;
    bool more = true;
    int fd = fuzz_file(path, sizeof path, data + 1, size - 1);
    const char *const paths[] = {path, path};
    int status = ah__documents_open(&documents, paths, 1 + (data[0] >> 7), formats[data[0] % 3]);
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    while (status == AH_OK && more) {
        status = ah__documents_next(&more, &document, documents);
        FUZZ_CHECK(status == AH_OK || status == AH_EINPUT || status == AH_ECORRUPT);
        if (status == AH_OK && more) {
            volatile char last = 0;
            last = document.length ? document.text[document.length - 1] : last;
            last = document.completion_length ? document.completion[document.completion_length - 1] : last;
            FUZZ_CHECK(ah__documents_where(documents) != NULL);
        }
    }
    ah__documents_close(documents);
    close(fd);
    return 0;
}
