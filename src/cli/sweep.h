/* --sweep NAME=FROM:TO:STEP: one quantity in equal steps. Takes text, gives values. Knows no machine. */
#ifndef AH_CLI_SWEEP_H
#define AH_CLI_SWEEP_H

#include "autohete.h"

/* What a row of the answer was made for. Bytes are the machine's: all ranks share host_bytes. 0: no limit. */
struct ah_point {
    int64_t batch, seq;
    int64_t device_bytes, host_bytes;
};

struct ah_sweep {
    const char *name; /* "device-memory", "host-memory", "batch" or "seq"; null: one point, as given */
    const char *key;  /* in JSON: "device_memory_bytes", ... */
    size_t at;        /* offset in struct ah_point */
    bool size;        /* values are bytes */
    int64_t from, step;
    int count;
};

/* Null text: one point. AH_EINPUT with one line, as ah__out_fault. */
int ah__sweep_parse(struct ah_sweep *out, const char *text);
/* The value of point `index`, and the point with it. */
int64_t ah__sweep_value(const struct ah_sweep *sweep, int index);
void ah__sweep_set(struct ah_point *point, const struct ah_sweep *sweep, int index);
/* "8.0 GiB" or "24"; returns text. */
char *ah__sweep_text(char *text, size_t size, const struct ah_sweep *sweep, int index);

#endif
