/* TensorBoard's event files: records of scalars by step, as its own writer frames them (length, checksum, a protocol
 * buffer message `Event`, checksum). Gives bytes; knows no files and no trainings.
 *
 * Framing: tensorflow/core/lib/io/record_writer.h; messages: tensorboard/compat/proto/{event,summary}.proto. */
#ifndef AH_REPORT_EVENTS_H
#define AH_REPORT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum { AH_EVENT_BYTES = 64, AH_EVENT_TAG_BYTES = 32 }; /* of a record with nothing in it; of a tag at most */

struct ah_event_scalar {
    const char *tag; /* shorter than AH_EVENT_TAG_BYTES */
    double value;    /* kept as float, as TensorBoard does */
};

/* The first two records of a file: its version, and that steps from `step` on which other files of the folder hold are
 * void. Returns the bytes written to out[size]; size: 2 * AH_EVENT_BYTES. */
size_t ah__events_start(unsigned char *out, size_t size, double wall_s, int64_t step);
/* One record; size: AH_EVENT_BYTES and AH_EVENT_TAG_BYTES + 16 for each scalar. */
size_t ah__events_scalars(unsigned char *out, size_t size, double wall_s, int64_t step,
                          const struct ah_event_scalar *scalars, size_t count);

#endif
