/* --sweep NAME=FROM:TO:STEP: one quantity in equal steps. Takes text, returns values. Knows no machine. */
#ifndef AH_CLI_SWEEP_H
#define AH_CLI_SWEEP_H

#include "autohete.h"

/* Values that a row of the answer was made for. Bytes are the machine's: all ranks share host_bytes. 0: no limit. */
struct ah_point {
    int64_t batch, seq;
    int64_t device_bytes, host_bytes;
};

struct ah_sweep {
    const char *name; /* "device-memory", "host-memory", "batch" or "seq"; null: one point, as given */
    const char *key;  /* the name's key in JSON: "device_memory_bytes", ... */
    size_t at;        /* offset in struct ah_point */
    bool size;        /* values are bytes */
    int64_t from, step;
    int count;
};

/* Parses --sweep; null text: one point. Returns AH_OK, or AH_EINPUT as ah__out_fault. */
int ah__sweep_parse(struct ah_sweep *out, const char *text);
/* Returns the value of point `index`; set puts it into the point. */
int64_t ah__sweep_value(const struct ah_sweep *sweep, int index);
void ah__sweep_set(struct ah_point *point, const struct ah_sweep *sweep, int index);
/* Formats the value of point `index`: "8.0 GiB" or "24". Returns text. */
char *ah__sweep_text(char *text, size_t size, const struct ah_sweep *sweep, int index);

#endif
