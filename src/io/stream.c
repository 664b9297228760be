#include "io/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"

enum { PIECE = 1 << 17 };

/* Formats of packed files: the bytes at their start and, for supported ones, three functions. `fill` unpacks as much as
 * it can of stream->piece [at, end) and notes in stream->within whether a packed part of the file has just ended. */
struct packer {
    const char *name, *start;
    int (*open)(struct ah_stream *stream);
    int (*fill)(struct ah_stream *stream, void *to, size_t room, size_t *got);
    void (*close)(struct ah_stream *stream);
};

struct ah_stream {
    char *path;
    int fd;
    const struct packer *packer; /* null: the file is not packed */
    unsigned char *piece;        /* [PIECE] bytes of the file */
    size_t at, end;              /* the part of `piece` that is not used yet */
    bool file_ended;
    bool within; /* a packed part has begun and not ended */
    int64_t bytes;
    XXH3_state_t *hash;
    z_stream gzip;
    ZSTD_DCtx *zstd;
};

static int fail_damaged(const struct ah_stream *stream, const char *what)
{
    return ah__fail(AH_ECORRUPT, "%s: found %s, expected data as %s packs them", stream->path, what,
                    stream->packer->name);
}

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

static voidpf gzip_new(voidpf unused, uInt count, uInt size)
{
    void *memory;
    (void)unused;
    return ah__new(&memory, count, size) == AH_OK ? memory : NULL;
}

static void gzip_free(voidpf unused, voidpf memory)
{
    (void)unused;
    ah__free(memory);
}

static int gzip_open(struct ah_stream *stream)
{
    enum { GZIP_HEADER = 16 };
    stream->gzip = (z_stream){.zalloc = gzip_new, .zfree = gzip_free};
    return inflateInit2(&stream->gzip, MAX_WBITS + GZIP_HEADER) == Z_OK
               ? AH_OK
               : ah__fail(AH_ENOMEM, "out of host memory: unpacking %s", stream->path);
}

static int gzip_fill(struct ah_stream *stream, void *to, size_t room, size_t *got)
{
    z_stream *gzip = &stream->gzip;
    size_t least = room < PIECE ? room : PIECE;
    gzip->next_in = stream->piece + stream->at;
    gzip->avail_in = (uInt)(stream->end - stream->at);
    gzip->next_out = to;
    gzip->avail_out = (uInt)least;
    int result = inflate(gzip, Z_NO_FLUSH);
    stream->at = stream->end - gzip->avail_in;
    *got = least - gzip->avail_out;
    if (result == Z_MEM_ERROR)
        return ah__fail(AH_ENOMEM, "out of host memory: unpacking %s", stream->path);
    if (result == Z_STREAM_END)
        inflateReset(gzip); /* another packed part may follow */
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail_damaged(stream, "damaged data");
    stream->within = result != Z_STREAM_END;
    return AH_OK;
}

static void gzip_close(struct ah_stream *stream)
{
    inflateEnd(&stream->gzip);
}

/* ---- zstd -------------------------------------------------------------------------------------------------------- */

static int zstd_open(struct ah_stream *stream)
{
    enum { TAKES = 1 << 18 };
    AH_TRY(ah__room(TAKES));
    stream->zstd = ZSTD_createDCtx();
    return stream->zstd ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: unpacking %s", stream->path);
}

static int zstd_fill(struct ah_stream *stream, void *to, size_t room, size_t *got)
{
    ZSTD_inBuffer in = {stream->piece, stream->end, stream->at};
    ZSTD_outBuffer out = {to, room, 0};
    size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
    stream->at = in.pos;
    *got = out.pos;
    if (ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation)
        return ah__fail(AH_ENOMEM, "out of host memory: unpacking %s", stream->path);
    if (ZSTD_isError(result))
        return fail_damaged(stream, ZSTD_getErrorName(result));
    stream->within = result != 0;
    return AH_OK;
}

static void zstd_close(struct ah_stream *stream)
{
    ZSTD_freeDCtx(stream->zstd);
}

static const struct packer packers[] = {
    {"gzip", "\x1f\x8b", gzip_open, gzip_fill, gzip_close},
    {"zstd", "\x28\xb5\x2f\xfd", zstd_open, zstd_fill, zstd_close},
    {"xz", "\xfd\x37zXZ", NULL, NULL, NULL},
    {"bzip2", "BZh", NULL, NULL, NULL},
    {"zip", "PK\x03\x04", NULL, NULL, NULL},
};

static const struct packer *packer_find(const void *start, size_t length)
{
    for (size_t i = 0; i < AH_LENGTH(packers); i++)
        if (length >= strlen(packers[i].start) && memcmp(start, packers[i].start, strlen(packers[i].start)) == 0)
            return &packers[i];
    return NULL;
}

const char *ah__packer_of(const void *start, size_t length)
{
    const struct packer *packer = packer_find(start, length);
    return packer ? packer->name : NULL;
}

/* ---- the file ---------------------------------------------------------------------------------------------------- */

/* Reads a whole piece; a pipe may need several reads. */
static int piece_read(struct ah_stream *stream)
{
    size_t done = 0;
    for (ssize_t got = 1; got != 0 && done < PIECE; done += (size_t)got) {
        do
            got = read(stream->fd, stream->piece + done, PIECE - done);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return ah__fail(AH_EIO, "%s: cannot read: %s", stream->path, strerror(errno));
    }
    stream->at = 0;
    stream->end = done;
    stream->file_ended = done == 0;
    stream->bytes += (int64_t)done;
    XXH3_64bits_update(stream->hash, stream->piece, done);
    return AH_OK;
}

bool ah__stream_is_pipe(const char *path)
{
    struct stat info;
    return strcmp(path, AH_STANDARD_INPUT) == 0 || (stat(path, &info) == 0 && S_ISFIFO(info.st_mode));
}

static int file_open(int *fd, const char *path)
{
    if (!ah__stream_is_pipe(path))
        return ah__file_open(fd, NULL, path);
    *fd = strcmp(path, AH_STANDARD_INPUT) == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                               : open(path, O_RDONLY | O_CLOEXEC);
    return *fd >= 0 ? AH_OK : ah__fail(AH_EINPUT, "%s: cannot open: %s", path, strerror(errno));
}

static int stream_start(struct ah_stream *stream, const char *path)
{
    AH_TRY(ah__strdup(&stream->path, path));
    AH_TRY(file_open(&stream->fd, path));
    AH_TRY(ah__new(&stream->piece, PIECE, 1));
    if (!(stream->hash = XXH3_createState()))
        return ah__fail(AH_ENOMEM, "out of host memory: checksum of %s", path);
    XXH3_64bits_reset(stream->hash);
    AH_TRY(piece_read(stream));
    const struct packer *packer = packer_find(stream->piece, stream->end);
    if (!packer)
        return AH_OK;
    if (!packer->open)
        return ah__fail(AH_EINPUT, "%s: found data packed by %s, expected them unpacked or packed by gzip or zstd",
                        path, packer->name);
    stream->within = true;
    AH_TRY(packer->open(stream));
    stream->packer = packer;
    return AH_OK;
}

int ah__stream_open(struct ah_stream **out, const char *path)
{
    struct ah_stream *stream;
    AH_TRY(ah__new(&stream, 1, sizeof *stream));
    stream->fd = -1;
    int status = stream_start(stream, path);
    if (status == AH_OK)
        *out = stream;
    else
        ah__stream_close(stream);
    return status;
}

void ah__stream_close(struct ah_stream *stream)
{
    if (!stream)
        return;
    if (stream->packer)
        stream->packer->close(stream);
    if (stream->fd >= 0)
        close(stream->fd);
    XXH3_freeState(stream->hash);
    ah__free(stream->piece);
    ah__free(stream->path);
    ah__free(stream);
}

static void copy(struct ah_stream *stream, void *to, size_t room, size_t *got)
{
    size_t left = stream->end - stream->at;
    *got = left < room ? left : room;
    memcpy(to, stream->piece + stream->at, *got);
    stream->at += *got;
}

int ah__stream_read(size_t *got, struct ah_stream *stream, void *to, size_t room)
{
    *got = 0;
    while (room > 0) {
        bool used_up = stream->at == stream->end;
        if (used_up && !stream->file_ended)
            AH_TRY(piece_read(stream));
        if (stream->file_ended && !(stream->packer && stream->within))
            return AH_OK;
        if (stream->packer)
            AH_TRY(stream->packer->fill(stream, to, room, got));
        else
            copy(stream, to, room, got);
        if (*got)
            return AH_OK;
        if (stream->file_ended && stream->within)
            return fail_damaged(stream, "the end of the file");
    }
    return AH_OK;
}

uint64_t ah__stream_hash(const struct ah_stream *stream, uint64_t seed)
{
    return ah__hash_int(XXH3_64bits_digest(stream->hash), ah__hash_int((uint64_t)stream->bytes, seed));
}

int64_t ah__stream_bytes(const struct ah_stream *stream)
{
    return stream->bytes;
}
