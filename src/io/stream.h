/* The bytes of a file from its start to its end, unpacked on the way where gzip or zstd packed it. Takes a path, gives
 * pieces; holds a few hundred KiB whatever the file's length is. Knows not what the bytes mean. */
#ifndef AH_IO_STREAM_H
#define AH_IO_STREAM_H

#include "base/status.h"

struct ah_stream;

/* Stands for the standard input where a path may. */
#define AH_STANDARD_INPUT "-"
/* The standard input, or a named pipe: what can be read once, and not mapped. */
bool ah__stream_is_pipe(const char *path);

/* AH_EINPUT: missing, neither file nor pipe, or packed by a program whose format is not read (named); AH_EIO;
 * AH_ENOMEM. */
int ah__stream_open(struct ah_stream **out, const char *path);
/* Null is fine. */
void ah__stream_close(struct ah_stream *stream);
/* The next bytes, *got <= room of them; 0 at the end alone. AH_ECORRUPT: packed data that are damaged or end too early;
 * AH_EIO. */
int ah__stream_read(size_t *got, struct ah_stream *stream, void *to, size_t room);
/* Of the file's bytes as they lie, their number first: known when a read has given the end. */
uint64_t ah__stream_hash(const struct ah_stream *stream, uint64_t seed);
/* Bytes of the file, as it lies. */
int64_t ah__stream_bytes(const struct ah_stream *stream);
/* "gzip", "zstd"; null: the file is not packed. */
const char *ah__stream_packer(const struct ah_stream *stream);

/* What packed a file that starts so: also "xz", "bzip2", "zip", which are not read; null: nothing known. */
const char *ah__packer_of(const void *start, size_t length);

#endif
