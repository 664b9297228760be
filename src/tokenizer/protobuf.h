/* Reads the fields of a message in the wire format of protocol buffers, as its published description defines it. Takes
 * any bytes, returns parts of them; knows no message. */
#ifndef AH_TOKENIZER_PROTOBUF_H
#define AH_TOKENIZER_PROTOBUF_H

#include "base/status.h"

struct ah_protobuf {
    const char *at, *end;
    bool wrong; /* the rest is no field; no more fields are returned */
};

enum ah_protobuf_kind { AH_PROTOBUF_INT = 0, AH_PROTOBUF_8_BYTES = 1, AH_PROTOBUF_BYTES = 2, AH_PROTOBUF_4_BYTES = 5 };

struct ah_protobuf_field {
    uint32_t number;
    enum ah_protobuf_kind kind;
    uint64_t value;    /* value of an int, or of a field of 4 or 8 bytes */
    const char *bytes; /* content of a field of bytes: text, an array, or a message */
    size_t length;
};

/* Reads the next field. Returns false if there is none, or `wrong`. Groups, which are obsolete, are wrong. */
bool ah__protobuf_next(struct ah_protobuf_field *field, struct ah_protobuf *from);
/* Returns the message in a field of bytes. */
static inline struct ah_protobuf ah__protobuf_message(const struct ah_protobuf_field *field)
{
    return (struct ah_protobuf){field->bytes, field->bytes + field->length, false};
}

#endif
