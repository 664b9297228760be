/* A file that is looked at from its start on, as far ahead as is asked for. Takes a path, gives text in memory: of a
 * file packed by gzip or zstd its content, of "-" the standard input. Knows not what is in it. */
#ifndef AH_IO_READER_H
#define AH_IO_READER_H

#include "io/stream.h"

struct ah_reader {
    struct ah_stream *stream;  /* null: closed */
    char *text;                /* [room] what was read of it; not terminated */
    size_t room, used, length; /* [used, length) is not given yet */
    bool ended;                /* the stream has given all */
};

/* Zero-initialised, or closed, before; its memory is used again. Fails as ah__stream_open. */
int ah__reader_open(struct ah_reader *reader, const char *path);
/* Closes the file, but keeps the memory for the next one. */
void ah__reader_close(struct ah_reader *reader);
void ah__reader_free(struct ah_reader *reader);
/* Reads on until `wanted` bytes that are not given yet are there, or the file ends. What was given may go. */
int ah__reader_want(struct ah_reader *reader, size_t wanted);

#endif
