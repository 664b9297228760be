/* Writes TensorBoard's event files: records of scalars by step, framed as TensorBoard's own writer does (length,
 * checksum, a protocol buffer message `Event`, checksum). Returns bytes; knows no files and no trainings.
 *
 * Framing: tensorflow/core/lib/io/record_writer.h; messages: tensorboard/compat/proto/{event,summary}.proto. */
#ifndef AH_REPORT_EVENTS_H
#define AH_REPORT_EVENTS_H

#include <stddef.h>
#include <stdint.h>

enum { AH_EVENT_BYTES = 64, AH_EVENT_TAG_BYTES = 32 }; /* bytes of a record without scalars; most bytes of a tag */

struct ah_event_scalar {
    const char *tag; /* shorter than AH_EVENT_TAG_BYTES */
    double value;    /* kept as float, as TensorBoard does */
};

/* Writes the first two records of a file: the version, and that steps from `step` on in other event files of the folder
 * are void. Returns the bytes written to out[size]; size: 2 * AH_EVENT_BYTES. */
size_t ah__events_start(unsigned char *out, size_t size, double wall_s, int64_t step);
/* Writes one record with the first 16 scalars. Returns the bytes written to out[size]; size: AH_EVENT_BYTES, and
 * AH_EVENT_TAG_BYTES + 16 for each scalar. */
size_t ah__events_scalars(unsigned char *out, size_t size, double wall_s, int64_t step,
                          const struct ah_event_scalar *scalars, size_t count);

#endif
