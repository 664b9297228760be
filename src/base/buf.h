/* A growing text buffer with a sticky error, for writers of JSON, SVG and tables. */
#ifndef AH_BASE_BUF_H
#define AH_BASE_BUF_H

#include "base/status.h"

struct ah_buf {
    char *text; /* terminated once anything was added; null before */
    size_t length, capacity;
    int status; /* the first failure, AH_OK so far */
};
void ah__buf_printf(struct ah_buf *buf, const char *format, ...) AH_PRINTF(2, 3);
void ah__buf_add(struct ah_buf *buf, const char *text, size_t length);
/* Adds text escaped for the inside of a JSON string / an XML text or attribute. */
void ah__buf_json(struct ah_buf *buf, const char *text);
void ah__buf_xml(struct ah_buf *buf, const char *text);
void ah__buf_free(struct ah_buf *buf);

#endif
