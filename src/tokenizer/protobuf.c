#include "tokenizer/protobuf.h"

/* Reads seven bits from each byte, the lowest first; the highest bit says that more bytes follow. */
static bool varint(uint64_t *value, struct ah_protobuf *from)
{
    enum { BITS = 7, MOST = 70 };
    *value = 0;
    for (unsigned shift = 0; shift < MOST && from->at < from->end; shift += BITS) {
        unsigned char byte = (unsigned char)*from->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Reads a little-endian number. */
static bool fixed(uint64_t *value, struct ah_protobuf *from, unsigned bytes)
{
    *value = 0;
    if ((size_t)(from->end - from->at) < bytes)
        return false;
    for (unsigned i = 0; i < bytes; i++)
        *value |= (uint64_t)(unsigned char)*from->at++ << 8 * i;
    return true;
}

static bool bytes_take(struct ah_protobuf_field *field, struct ah_protobuf *from)
{
    uint64_t length;
    if (!varint(&length, from) || length > (uint64_t)(from->end - from->at))
        return false;
    field->bytes = from->at;
    field->length = (size_t)length;
    from->at += length;
    return true;
}

static bool value_take(struct ah_protobuf_field *field, struct ah_protobuf *from)
{
    switch (field->kind) {
    case AH_PROTOBUF_INT:
        return varint(&field->value, from);
    case AH_PROTOBUF_8_BYTES:
        return fixed(&field->value, from, 8);
    case AH_PROTOBUF_BYTES:
        return bytes_take(field, from);
    case AH_PROTOBUF_4_BYTES:
        return fixed(&field->value, from, 4);
    }
    return false;
}

bool ah__protobuf_next(struct ah_protobuf_field *field, struct ah_protobuf *from)
{
    enum { KIND_BITS = 3, NUMBER_MOST = (1 << 29) - 1 };
    uint64_t key;
    if (from->wrong || from->at == from->end)
        return false;
    *field = (struct ah_protobuf_field){0};
    from->wrong = !varint(&key, from) || key >> KIND_BITS == 0 || key >> KIND_BITS > NUMBER_MOST;
    if (from->wrong)
        return false;
    field->number = (uint32_t)(key >> KIND_BITS);
    field->kind = (enum ah_protobuf_kind)(key & 7);
    from->wrong = !value_take(field, from);
    return !from->wrong;
}
