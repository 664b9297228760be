#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/output.h"
#include "io/safetensors.h"
#include "op/op.h"

struct ah_safetensors_writer {
    struct ah_output out;
    XXH3_state_t *hash;
    int64_t written, total; /* bytes of the file */
};

/* Adds one member of the header; *end moves past the tensor's data. */
static int decl_add(struct ah_buf *header, const struct ah_safetensors_decl *decl, int64_t *end)
{
    int64_t bytes = ah__dtype_bytes(decl->dtype), begin = *end;
    ah__buf_printf(header, ",\"");
    ah__buf_json(header, decl->name);
    ah__buf_printf(header, "\":{\"dtype\":\"%s\",\"shape\":[", ah__dtype_name(decl->dtype));
    for (int i = 0; i < decl->shape.rank; i++) {
        ah__buf_printf(header, "%s%" PRId64, i ? "," : "", decl->shape.dim[i]);
        if (decl->shape.dim[i] < 0 || __builtin_mul_overflow(bytes, decl->shape.dim[i], &bytes))
            return ah__fail(AH_EINTERNAL, "tensor '%s': found an impossible shape", decl->name);
    }
    if (__builtin_add_overflow(begin, bytes, end))
        return ah__fail(AH_EINTERNAL, "tensor '%s': found more than 2^63 bytes in one file", decl->name);
    ah__buf_printf(header, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", begin, *end);
    return header->status;
}

/* Builds the header with its length in front, padded with spaces so that the data begins at a multiple of 8. */
static int header_build(struct ah_buf *header, const struct ah_safetensors_decl *tensors, size_t count,
                        int64_t *data_bytes)
{
    static const char length_room[8] = "--------";
    *data_bytes = 0;
    ah__buf_add(header, length_room, sizeof length_room);
    ah__buf_printf(header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++)
        AH_TRY(decl_add(header, &tensors[i], data_bytes));
    ah__buf_printf(header, "}");
    while (header->status == AH_OK && header->length % 8)
        ah__buf_add(header, " ", 1);
    AH_TRY(header->status);
    uint64_t bytes = header->length - sizeof length_room;
    for (size_t i = 0; i < sizeof length_room; i++)
        header->text[i] = (char)(bytes >> (8 * i));
    return AH_OK;
}

static int writer_put(struct ah_safetensors_writer *writer, const void *data, size_t bytes)
{
    if (!bytes)
        return AH_OK;
    AH_TRY(ah__file_put(writer->out.fd, data, bytes, writer->out.path));
    XXH3_64bits_update(writer->hash, data, bytes);
    writer->written += (int64_t)bytes;
    return AH_OK;
}

static int writer_begin(struct ah_safetensors_writer *writer, const char *path,
                        const struct ah_safetensors_decl *tensors, size_t count)
{
    struct ah_buf header = {0};
    int64_t data_bytes;
    int status = header_build(&header, tensors, count, &data_bytes);
    if (status == AH_OK)
        status = ah__output_open(&writer->out, path);
    if (status == AH_OK)
        status = writer_put(writer, header.text, header.length);
    writer->total = (int64_t)header.length + data_bytes;
    ah__buf_free(&header);
    return status;
}

int ah__safetensors_writer_open(struct ah_safetensors_writer **out, const char *path,
                                const struct ah_safetensors_decl *tensors, size_t count)
{
    struct ah_safetensors_writer *writer;
    AH_TRY(ah__new(&writer, 1, sizeof *writer));
    writer->out.fd = -1;
    int status = AH_OK;
    if (!(writer->hash = XXH3_createState()))
        status = ah__fail(AH_ENOMEM, "out of host memory: checksum of %s", path);
    if (status == AH_OK) {
        XXH3_64bits_reset(writer->hash);
        status = writer_begin(writer, path, tensors, count);
    }
    if (status == AH_OK)
        *out = writer;
    else
        ah__safetensors_writer_free(writer);
    return status;
}

int ah__safetensors_writer_append(struct ah_safetensors_writer *writer, const void *data, size_t bytes)
{
    if (bytes > (uint64_t)(writer->total - writer->written))
        return ah__fail(AH_EINTERNAL, "%s: found %" PRId64 " + %zu bytes, expected %" PRId64, writer->out.path,
                        writer->written, bytes, writer->total);
    return writer_put(writer, data, bytes);
}

int ah__safetensors_writer_close(struct ah_safetensors_writer *writer, int64_t *bytes, uint64_t *hash)
{
    if (writer->written != writer->total)
        return ah__fail(AH_EINTERNAL, "%s: found %" PRId64 " bytes written, expected %" PRId64, writer->out.path,
                        writer->written, writer->total);
    AH_TRY(ah__output_close(&writer->out));
    if (bytes)
        *bytes = writer->total;
    if (hash)
        *hash = XXH3_64bits_digest(writer->hash);
    return AH_OK;
}

void ah__safetensors_writer_free(struct ah_safetensors_writer *writer)
{
    if (!writer)
        return;
    ah__output_drop(&writer->out);
    XXH3_freeState(writer->hash);
    ah__free(writer);
}
