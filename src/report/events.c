#include "report/events.h"

#include <string.h>

/* A message under construction; put() writes nothing beyond `size`. */
struct message {
    unsigned char *bytes;
    size_t size, used;
};

static void put(struct message *to, const void *bytes, size_t count)
{
    if (count > to->size - to->used)
        count = to->size - to->used;
    memcpy(to->bytes + to->used, bytes, count);
    to->used += count;
}

static void put_little(struct message *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        put(to, &(unsigned char){(unsigned char)(value >> 8 * i & 255)}, 1);
}

/* ---- protocol buffers -------------------------------------------------------------------------------------------- */

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static void put_varint(struct message *to, uint64_t value)
{
    for (; value > 127; value >>= 7)
        put(to, &(unsigned char){(unsigned char)(value & 127) | 128}, 1);
    put(to, &(unsigned char){(unsigned char)value}, 1);
}

static void put_key(struct message *to, unsigned field, enum wire wire)
{
    put_varint(to, field << 3 | (unsigned)wire);
}

static void put_bytes(struct message *to, unsigned field, const void *bytes, size_t count)
{
    put_key(to, field, BYTES);
    put_varint(to, count);
    put(to, bytes, count);
}

static void put_double(struct message *to, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(to, field, FIXED64);
    put_little(to, bits, 8);
}

static void put_float(struct message *to, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(to, field, FIXED32);
    put_little(to, bits, 4);
}

/* Field numbers of Event, Summary, Summary.Value and SessionLog, and the session's status START. */
enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_FILE_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_SIMPLE = 2, SESSION_LOG_STATUS = 1, SESSION_START = 1 };

static void put_head(struct message *to, double wall_s, int64_t step)
{
    put_double(to, EVENT_WALL_TIME, wall_s);
    put_key(to, EVENT_STEP, VARINT);
    put_varint(to, (uint64_t)step);
}

static void put_scalar(struct message *to, const struct ah_event_scalar *scalar)
{
    unsigned char bytes[AH_EVENT_TAG_BYTES + 16];
    struct message value = {bytes, sizeof bytes, 0};
    put_bytes(&value, VALUE_TAG, scalar->tag, strlen(scalar->tag));
    put_float(&value, VALUE_SIMPLE, (float)scalar->value);
    put_bytes(to, SUMMARY_VALUE, bytes, value.used);
}

/* ---- framing ----------------------------------------------------------------------------------------------------- */

/* Returns the CRC-32C (Castagnoli, reflected 0x82F63B78) in the masked form that records use. */
static uint32_t masked_crc(const unsigned char *bytes, size_t count)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put_record(struct message *to, const struct message *event)
{
    size_t start = to->used;
    put_little(to, event->used, 8);
    put_little(to, masked_crc(to->bytes + start, 8), 4);
    put(to, event->bytes, event->used);
    put_little(to, masked_crc(event->bytes, event->used), 4);
}

size_t ah__events_start(unsigned char *out, size_t size, double wall_s, int64_t step)
{
    static const char version[] = "brain.Event:2";
    unsigned char bytes[AH_EVENT_BYTES], status[] = {SESSION_LOG_STATUS << 3 | VARINT, SESSION_START};
    struct message file = {out, size, 0}, event = {bytes, sizeof bytes, 0};
    put_double(&event, EVENT_WALL_TIME, wall_s);
    put_bytes(&event, EVENT_FILE_VERSION, version, sizeof version - 1);
    put_record(&file, &event);
    event.used = 0;
    put_head(&event, wall_s, step);
    put_bytes(&event, EVENT_SESSION_LOG, status, sizeof status);
    put_record(&file, &event);
    return file.used;
}

size_t ah__events_scalars(unsigned char *out, size_t size, double wall_s, int64_t step,
                          const struct ah_event_scalar *scalars, size_t count)
{
    enum { MOST = 16 };
    unsigned char values[MOST * (AH_EVENT_TAG_BYTES + 16)], bytes[sizeof values + AH_EVENT_BYTES];
    struct message file = {out, size, 0}, summary = {values, sizeof values, 0}, event = {bytes, sizeof bytes, 0};
    for (size_t i = 0; i < count && i < MOST; i++)
        put_scalar(&summary, &scalars[i]);
    put_head(&event, wall_s, step);
    put_bytes(&event, EVENT_SUMMARY, values, summary.used);
    put_record(&file, &event);
    return file.used;
}
