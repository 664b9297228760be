/* A file that is read from its start, as far ahead as the caller asks. Takes a path, gives text in memory: the content
 * of a file packed by gzip or zstd, the standard input for "-". Knows nothing of its meaning. */
#ifndef AH_IO_READER_H
#define AH_IO_READER_H

#include "io/stream.h"

struct ah_reader {
    struct ah_stream *stream;  /* null: closed */
    char *text;                /* [room] text read so far; not terminated */
    size_t room, used, length; /* [used, length) is not used yet; the caller advances `used` */
    bool ended;                /* the stream is at its end */
};

/* Opens a file. The reader must be zero-initialised or closed; its memory is used again. Fails as ah__stream_open. */
int ah__reader_open(struct ah_reader *reader, const char *path);
/* Closes the file but keeps the memory for the next one. */
void ah__reader_close(struct ah_reader *reader);
void ah__reader_free(struct ah_reader *reader);
/* Reads on until `wanted` unused bytes are there, or the file ends. May drop the bytes before `used`. */
int ah__reader_want(struct ah_reader *reader, size_t wanted);

#endif
