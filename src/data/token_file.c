#include "data/token_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/output.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tokens are used as they lie in the file, little-endian"
#endif

enum { OURS = 0x31544841, CHECKED_BYTES = 56, NUMBERS = 5 };

static const struct variant {
    int32_t magic, version;
    int width;
} variants[] = {{20240520, 1, 2}, {20240801, 7, 4}};

/* The beginning of the header. */
struct head {
    int32_t magic, version, tokens, ours;
    uint64_t number[NUMBERS]; /* tokens, val_tokens, documents, tokenizer, hash */
    uint64_t check;
};
_Static_assert(offsetof(struct head, check) == CHECKED_BYTES, "the header's checksum is of all before it");

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static const struct variant *variant_find(const void *start, size_t length)
{
    int32_t magic;
    if (length < sizeof magic)
        return NULL;
    memcpy(&magic, start, sizeof magic);
    for (size_t i = 0; i < AH_LENGTH(variants); i++)
        if (variants[i].magic == magic)
            return &variants[i];
    return NULL;
}

bool ah__token_file_is(const void *start, size_t length)
{
    return variant_find(start, length) != NULL;
}

bool ah__nanogpt_is(const void *data, size_t length, const char *path, int64_t vocab_size)
{
    enum { LOOKED_AT = 1 << 20, LEAST = 64, VOCAB_MOST = 60000, BYTE_ORDER_MARK = 0xFEFF };
    size_t count = length / 2 < LOOKED_AT ? length / 2 : LOOKED_AT, named = strlen(path);
    if (named < 4 || strcmp(path + named - 4, ".bin") != 0 || length % 2 || count < LEAST || vocab_size > VOCAB_MOST)
        return false;
    for (size_t i = 0; i < count; i++) {
        uint16_t token;
        memcpy(&token, (const char *)data + 2 * i, sizeof token);
        if (token >= vocab_size || (i == 0 && token == BYTE_ORDER_MARK))
            return false;
    }
    return memchr(data, 0, 2 * count) != NULL;
}

static int ours_parse(struct ah_token_file *out, const struct head *head, const char *path)
{
    uint64_t check = ah__hash(head, CHECKED_BYTES, 0);
    if (check != head->check)
        return ah__fail(AH_ECORRUPT, "%s: found a header with checksum %016llx, expected %016llx", path,
                        (unsigned long long)check, (unsigned long long)head->check);
    out->ours = true;
    out->tokens = (int64_t)head->number[0];
    out->val_tokens = (int64_t)head->number[1];
    out->documents = (int64_t)head->number[2];
    out->tokenizer = head->number[3];
    out->hash = head->number[4];
    if (out->tokens < 0 || out->val_tokens < 0 || out->val_tokens > out->tokens || out->documents < 0)
        return ah__fail(AH_ECORRUPT,
                        "%s: found %lld tokens, %lld of them for validation, of %lld documents, expected "
                        "numbers that fit",
                        path, (long long)out->tokens, (long long)out->val_tokens, (long long)out->documents);
    return AH_OK;
}

int ah__token_file_parse(struct ah_token_file *out, const unsigned char *start, size_t length, const char *path)
{
    const struct variant *variant = variant_find(start, length);
    struct ah_token_file file = {0};
    struct head head;
    if (!variant || length < AH_TOKEN_FILE_HEADER)
        return ah__fail(AH_ECORRUPT, "%s: found %zu bytes, expected a token file's header of %d", path, length,
                        AH_TOKEN_FILE_HEADER);
    memcpy(&head, start, sizeof head);
    if (head.version != variant->version)
        return ah__fail(AH_EINPUT, "%s: found token file version %d, expected %d (%d-bit tokens)", path, head.version,
                        variant->version, 8 * variant->width);
    file.width = variant->width;
    file.tokens = head.tokens;
    if (head.ours == OURS)
        AH_TRY(ours_parse(&file, &head, path));
    size_t bytes = length - AH_TOKEN_FILE_HEADER;
    if (file.tokens < 0 || bytes / (size_t)file.width != (size_t)file.tokens || bytes % (size_t)file.width)
        return ah__fail(AH_ECORRUPT, "%s: found %zu bytes of tokens, expected %d for each of %lld tokens by the header",
                        path, bytes, file.width, (long long)file.tokens);
    *out = file;
    return AH_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

struct ah_token_writer {
    struct ah_output out;
    int width;
    int64_t tokens;
    XXH3_state_t *hash;
};

static int writer_begin(struct ah_token_writer *writer, const char *path)
{
    static const unsigned char nothing[AH_TOKEN_FILE_HEADER];
    if (!(writer->hash = XXH3_createState()))
        return ah__fail(AH_ENOMEM, "out of host memory: checksum of %s", path);
    XXH3_64bits_reset(writer->hash);
    AH_TRY(ah__output_open(&writer->out, path));
    return ah__file_put(writer->out.fd, nothing, sizeof nothing, path);
}

int ah__token_writer_open(struct ah_token_writer **out, const char *path, int width)
{
    struct ah_token_writer *writer;
    AH_TRY(ah__new(&writer, 1, sizeof *writer));
    writer->out.fd = -1;
    writer->width = width;
    int status = writer_begin(writer, path);
    if (status == AH_OK)
        *out = writer;
    else
        ah__token_writer_free(writer);
    return status;
}

int ah__token_writer_append(struct ah_token_writer *writer, const int32_t *ids, int64_t count)
{
    enum { PIECE = 4096 };
    unsigned char bytes[4 * PIECE];
    while (count > 0) {
        int64_t piece = count < PIECE ? count : PIECE;
        for (int64_t i = 0; i < piece; i++)
            memcpy(bytes + i * writer->width, &ids[i], (size_t)writer->width); /* little-endian: the low bytes */
        size_t length = (size_t)(piece * writer->width);
        AH_TRY(ah__file_put(writer->out.fd, bytes, length, writer->out.path));
        XXH3_64bits_update(writer->hash, bytes, length);
        writer->tokens += piece;
        ids += piece;
        count -= piece;
    }
    return AH_OK;
}

static const struct variant *variant_of(int width)
{
    return &variants[width == 2 ? 0 : 1];
}

int ah__token_writer_close(struct ah_token_writer *writer, struct ah_token_file *file)
{
    const struct variant *variant = variant_of(writer->width);
    file->ours = true;
    file->width = writer->width;
    file->tokens = writer->tokens;
    file->hash = XXH3_64bits_digest(writer->hash);
    struct head head = {
        .magic = variant->magic,
        .version = variant->version,
        .tokens = writer->tokens <= INT32_MAX ? (int32_t)writer->tokens : -1,
        .ours = OURS,
        .number = {(uint64_t)file->tokens, (uint64_t)file->val_tokens, (uint64_t)file->documents, file->tokenizer,
                   file->hash},
    };
    head.check = ah__hash(&head, CHECKED_BYTES, 0);
    if (lseek(writer->out.fd, 0, SEEK_SET) != 0)
        return ah__fail(AH_EIO, "%s: cannot write: %s", writer->out.path, strerror(errno));
    AH_TRY(ah__file_put(writer->out.fd, &head, sizeof head, writer->out.path));
    return ah__output_close(&writer->out);
}

void ah__token_writer_free(struct ah_token_writer *writer)
{
    if (!writer)
        return;
    ah__output_drop(&writer->out);
    XXH3_freeState(writer->hash);
    ah__free(writer);
}
