/* Characters of UTF-8 texts. */
#ifndef AH_BASE_TEXT_H
#define AH_BASE_TEXT_H

#include "base/status.h"

/* Returns the length in bytes of the UTF-8 character that begins a text of `length` bytes; 0 if it is cut or malformed,
 * or a zero byte. */
size_t ah__utf8_length(const unsigned char *text, size_t length);

#endif
