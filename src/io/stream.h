/* Streams the bytes of a file from its start to its end and unpacks gzip and zstd. Takes a path, gives pieces; needs a
 * few hundred KiB for a file of any length. Knows nothing of the bytes' meaning. */
#ifndef AH_IO_STREAM_H
#define AH_IO_STREAM_H

#include "base/status.h"

struct ah_stream;

/* The path that stands for the standard input. */
#define AH_STANDARD_INPUT "-"
/* Returns true for the standard input or a named pipe, which can be read only once and not mapped. */
bool ah__stream_is_pipe(const char *path);

/* Opens a file. AH_EINPUT: missing, neither file nor pipe, or packed in a format that is not supported (which is
 * named); AH_EIO; AH_ENOMEM. */
int ah__stream_open(struct ah_stream **out, const char *path);
/* Null is fine. */
void ah__stream_close(struct ah_stream *stream);
/* Reads the next bytes, *got <= room of them; 0 only at the end. AH_ECORRUPT: packed data that are damaged or end too
 * early; AH_EIO. */
int ah__stream_read(size_t *got, struct ah_stream *stream, void *to, size_t room);
/* Returns the hash of the file's own, packed bytes, their number first; known when a read has returned the end. */
uint64_t ah__stream_hash(const struct ah_stream *stream, uint64_t seed);
/* Returns the number of the file's own, packed bytes that were read. */
int64_t ah__stream_bytes(const struct ah_stream *stream);

/* Returns the format of a file that starts with these bytes: also "xz", "bzip2" and "zip", which are not supported;
 * null: no known format. */
const char *ah__packer_of(const void *start, size_t length);

#endif
