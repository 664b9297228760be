#include "io/reader.h"

#include <string.h>

#include "base/alloc.h"

enum { READ_LEAST = 1 << 14 };

int ah__reader_open(struct ah_reader *reader, const char *path)
{
    reader->used = reader->length = 0;
    reader->ended = false;
    return ah__stream_open(&reader->stream, path);
}

void ah__reader_close(struct ah_reader *reader)
{
    ah__stream_close(reader->stream);
    reader->stream = NULL;
}

void ah__reader_free(struct ah_reader *reader)
{
    ah__reader_close(reader);
    ah__free(reader->text);
    *reader = (struct ah_reader){0};
}

int ah__reader_want(struct ah_reader *reader, size_t wanted)
{
    if (reader->ended || reader->length - reader->used >= wanted)
        return AH_OK;
    if (reader->used) {
        memmove(reader->text, reader->text + reader->used, reader->length - reader->used);
        reader->length -= reader->used;
        reader->used = 0;
    }
    while (reader->length < wanted && !reader->ended) {
        size_t got, doubled = 2 * reader->length, next = doubled < READ_LEAST ? READ_LEAST : doubled;
        next = next < wanted ? next : wanted; /* grows step by step, so that a short file takes little memory */
        AH_TRY(ah__grow(&reader->text, &reader->room, next, 1));
        AH_TRY(ah__stream_read(&got, reader->stream, reader->text + reader->length, next - reader->length));
        reader->length += got;
        reader->ended = got == 0;
    }
    return AH_OK;
}
