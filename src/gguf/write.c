#include "gguf/write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/output.h"
#include "op/bf16.h"
#include "op/f16.h"

enum { VERSION = 3, ALIGNMENT = 32, INT = 4, FLOAT = 6, BOOL = 7, TEXT = 8, ARRAY = 9 }; /* INT to ARRAY: types */

struct ah_gguf_writer {
    struct ah_buf keys, tensors;
    uint64_t key_count, tensor_count;
    uint64_t end;  /* bytes of the tensors' data, padded */
    uint64_t done; /* bytes of them that are written */
    struct ah_output out;
};

int ah__gguf_writer_new(struct ah_gguf_writer **out)
{
    AH_TRY(ah__new(out, 1, sizeof **out));
    (*out)->out.fd = -1;
    return AH_OK;
}

void ah__gguf_writer_free(struct ah_gguf_writer *writer)
{
    if (!writer)
        return;
    ah__output_drop(&writer->out);
    ah__buf_free(&writer->keys);
    ah__buf_free(&writer->tensors);
    ah__free(writer);
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

static void add_u32(struct ah_buf *to, uint32_t value)
{
    ah__buf_add(to, (const char *)&value, sizeof value);
}

static void add_u64(struct ah_buf *to, uint64_t value)
{
    ah__buf_add(to, (const char *)&value, sizeof value);
}

static void add_text(struct ah_buf *to, const char *text, size_t length)
{
    add_u64(to, length);
    ah__buf_add(to, text, length);
}

static void add_key(struct ah_gguf_writer *writer, const char *key, uint32_t type)
{
    add_text(&writer->keys, key, strlen(key));
    add_u32(&writer->keys, type);
    writer->key_count++;
}

void ah__gguf_put_int(struct ah_gguf_writer *writer, const char *key, uint32_t value)
{
    add_key(writer, key, INT);
    add_u32(&writer->keys, value);
}

void ah__gguf_put_float(struct ah_gguf_writer *writer, const char *key, float value)
{
    add_key(writer, key, FLOAT);
    ah__gguf_item_float(writer, value);
}

void ah__gguf_put_bool(struct ah_gguf_writer *writer, const char *key, bool value)
{
    add_key(writer, key, BOOL);
    ah__gguf_item_bool(writer, value);
}

void ah__gguf_put_text(struct ah_gguf_writer *writer, const char *key, const char *value)
{
    add_key(writer, key, TEXT);
    add_text(&writer->keys, value, strlen(value));
}

void ah__gguf_put_array(struct ah_gguf_writer *writer, const char *key, enum ah_gguf_items kind, uint64_t count)
{
    add_key(writer, key, ARRAY);
    add_u32(&writer->keys, kind);
    add_u64(&writer->keys, count);
}

void ah__gguf_item_text(struct ah_gguf_writer *writer, const char *text, size_t length)
{
    add_text(&writer->keys, text, length);
}

void ah__gguf_item_int(struct ah_gguf_writer *writer, int32_t value)
{
    ah__buf_add(&writer->keys, (const char *)&value, sizeof value);
}

void ah__gguf_item_float(struct ah_gguf_writer *writer, float value)
{
    ah__buf_add(&writer->keys, (const char *)&value, sizeof value);
}

void ah__gguf_item_bool(struct ah_gguf_writer *writer, bool value)
{
    ah__buf_add(&writer->keys, value ? "\1" : "", 1);
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

void ah__gguf_put_tensor(struct ah_gguf_writer *writer, const char *name, const struct ah_gguf_type *type,
                         const struct ah_shape *shape)
{
    uint64_t count = 1;
    add_text(&writer->tensors, name, strlen(name));
    add_u32(&writer->tensors, (uint32_t)shape->rank);
    for (int i = shape->rank - 1; i >= 0; i--) {
        add_u64(&writer->tensors, (uint64_t)shape->dim[i]);
        count *= (uint64_t)shape->dim[i];
    }
    add_u32(&writer->tensors, type->id);
    add_u64(&writer->tensors, writer->end);
    writer->end += padded(count / (uint64_t)type->block * (uint64_t)type->bytes);
    writer->tensor_count++;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

static int put(const struct ah_gguf_writer *writer, const void *data, size_t bytes)
{
    return bytes ? ah__file_put(writer->out.fd, data, bytes, writer->out.path) : AH_OK;
}

static int put_padding(const struct ah_gguf_writer *writer, uint64_t bytes)
{
    static const char zeros[ALIGNMENT];
    return put(writer, zeros, (size_t)(padded(bytes) - bytes));
}

static int put_head(const struct ah_gguf_writer *writer)
{
    struct ah_buf head = {0};
    ah__buf_add(&head, "GGUF", 4);
    add_u32(&head, VERSION);
    add_u64(&head, writer->tensor_count);
    add_u64(&head, writer->key_count);
    int status = head.status;
    if (status == AH_OK)
        status = put(writer, head.text, head.length);
    ah__buf_free(&head);
    AH_TRY(status);
    AH_TRY(put(writer, writer->keys.text, writer->keys.length));
    AH_TRY(put(writer, writer->tensors.text, writer->tensors.length));
    return put_padding(writer, 24 + writer->keys.length + writer->tensors.length);
}

int ah__gguf_writer_open(struct ah_gguf_writer *writer, const char *path)
{
    AH_TRY(writer->keys.status);
    AH_TRY(writer->tensors.status);
    AH_TRY(ah__output_open(&writer->out, path));
    return put_head(writer);
}

int ah__gguf_writer_add(struct ah_gguf_writer *writer, const void *data, size_t bytes)
{
    AH_TRY(put(writer, data, bytes));
    AH_TRY(put_padding(writer, bytes));
    writer->done += padded(bytes);
    return AH_OK;
}

int ah__gguf_writer_close(struct ah_gguf_writer *writer)
{
    if (writer->done != writer->end)
        return ah__fail(AH_EINTERNAL, "%s: found %llu bytes of data, expected %llu", writer->out.path,
                        (unsigned long long)writer->done, (unsigned long long)writer->end);
    return ah__output_close(&writer->out);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Makes blocks of d [1], q [32]: the largest magnitude becomes 127. */
static void narrow_q8_0(unsigned char *to, const float *from, int64_t count)
{
    enum { BLOCK = 32 };
    for (int64_t b = 0; b < count / BLOCK; b++, from += BLOCK, to += 2 + BLOCK) {
        float most = 0;
        for (int i = 0; i < BLOCK; i++)
            most = fabsf(from[i]) > most ? fabsf(from[i]) : most;
        float scale = most / 127, inverse = scale > 0 ? 1 / scale : 0;
        uint16_t half = ah__f16_of(scale);
        memcpy(to, &half, sizeof half);
        for (int i = 0; i < BLOCK; i++)
            to[2 + i] = (unsigned char)(signed char)roundf(from[i] * inverse);
    }
}

void ah__gguf_narrow(void *to, const struct ah_gguf_type *type, const float *from, int64_t count)
{
    switch (type->id) {
    case AH_GGUF_F16:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)to)[i] = ah__f16_of(from[i]);
        break;
    case AH_GGUF_BF16:
        ah__bf16_narrow(to, from, count);
        break;
    case AH_GGUF_Q8_0:
        narrow_q8_0(to, from, count);
        break;
    default:
        memcpy(to, from, (size_t)count * sizeof *from);
    }
}
