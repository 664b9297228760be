#include "cli/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/out.h"

enum { POINTS_MOST = 256 };

static const struct {
    const char *name, *key;
    size_t at;
    bool size;
} quantities[] = {
    {"device-memory", "device_memory_bytes", offsetof(struct ah_point, device_bytes), true},
    {"host-memory", "host_memory_bytes", offsetof(struct ah_point, host_bytes), true},
    {"batch", "batch", offsetof(struct ah_point, batch), false},
    {"seq", "seq", offsetof(struct ah_point, seq), false},
};
enum { QUANTITIES = sizeof quantities / sizeof quantities[0] };

static bool parse_value(int64_t *out, const char *text, bool size)
{
    if (size)
        return ah_size_parse(out, text) == AH_OK && *out > 0;
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return !errno && *text >= '0' && *text <= '9' && !*end && *out > 0;
}

/* Parses FROM:TO:STEP. The text is cut at its colons. False: it is malformed. */
static bool parse_values(int64_t value[3], char *text, bool size)
{
    for (int i = 0; i < 3; i++) {
        char *colon = strchr(text, ':');
        if (!colon != (i == 2))
            return false;
        if (colon)
            *colon = 0;
        if (!parse_value(&value[i], text, size))
            return false;
        text = colon ? colon + 1 : text;
    }
    return true;
}

static int find(const char *name, size_t length)
{
    for (int i = 0; i < QUANTITIES; i++)
        if (strlen(quantities[i].name) == length && strncmp(quantities[i].name, name, length) == 0)
            return i;
    return -1;
}

int ah__sweep_parse(struct ah_sweep *out, const char *text)
{
    if (!text) {
        *out = (struct ah_sweep){.count = 1};
        return AH_OK;
    }
    char values[96];
    int64_t value[3];
    const char *equals = strchr(text, '=');
    int index = equals ? find(text, (size_t)(equals - text)) : -1;
    if (index < 0)
        return ah__out_fault("--sweep: found '%.80s', expected device-memory, host-memory, batch or seq "
                             "and =FROM:TO:STEP",
                             text);
    snprintf(values, sizeof values, "%s", equals + 1);
    if (strlen(equals + 1) >= sizeof values || !parse_values(value, values, quantities[index].size))
        return ah__out_fault("--sweep: found '%.80s', expected %s=%s", text, quantities[index].name,
                             quantities[index].size ? "FROM:TO:STEP like 8GiB:40GiB:4GiB" : "FROM:TO:STEP like 4:32:4");
    if (value[1] < value[0])
        return ah__out_fault("--sweep: found '%.80s', expected its end not below its start", text);
    int64_t count = (value[1] - value[0]) / value[2] + 1;
    if (count > POINTS_MOST)
        return ah__out_fault("--sweep: found %lld points, expected at most %d", (long long)count, POINTS_MOST);
    *out = (struct ah_sweep){
        .name = quantities[index].name,
        .key = quantities[index].key,
        .at = quantities[index].at,
        .size = quantities[index].size,
        .from = value[0],
        .step = value[2],
        .count = (int)count,
    };
    return AH_OK;
}

int64_t ah__sweep_value(const struct ah_sweep *sweep, int index)
{
    return sweep->from + index * sweep->step;
}

void ah__sweep_set(struct ah_point *point, const struct ah_sweep *sweep, int index)
{
    int64_t value = ah__sweep_value(sweep, index);
    if (sweep->name)
        memcpy((char *)point + sweep->at, &value, sizeof value);
}

char *ah__sweep_text(char *text, size_t size, const struct ah_sweep *sweep, int index)
{
    int64_t value = ah__sweep_value(sweep, index);
    if (sweep->size)
        return ah_size_format(text, size, value);
    snprintf(text, size, "%lld", (long long)value);
    return text;
}
