/* A figure with its source, as files of machines and drives have it: {"value": 26.0, "unit": "GB/s", "source": "...",
 * "date": "2026-11-20"}.
 *
 * Takes JSON, gives numbers in bytes, bytes/s, flops/s and nanoseconds. Must not know what a figure is for. */
#ifndef AH_PROFILE_FIGURE_H
#define AH_PROFILE_FIGURE_H

#include "base/alloc.h"
#include "base/json.h"

enum ah_dimension {
    AH_DIMENSION_COUNT,
    AH_DIMENSION_FRACTION,
    AH_DIMENSION_BYTES,
    AH_DIMENSION_WRITTEN, /* bytes in all that may be written */
    AH_DIMENSION_BYTES_PER_S,
    AH_DIMENSION_FLOPS_PER_S,
    AH_DIMENSION_PARAMS_PER_S,
    AH_DIMENSION_NS
};

/* The origin of a figure. Strings belong to an arena; null for a figure that is not given. */
struct ah_figure_origin {
    double written; /* value in `unit` */
    const char *unit, *source, *date;
};

/* Returns a unit for figures of a dimension; *scale: its value in the base unit. */
const char *ah__figure_unit(double *scale, enum ah_dimension dimension);
/* Reads the figure of a key; *value is in the base unit. AH_EINPUT names file and key. */
int ah__figure_read(double *value, struct ah_figure_origin *origin, struct ah_arena *arena, const struct ah_json *json,
                    const char *key, enum ah_dimension dimension);
/* Reads a text that is not empty. AH_EINPUT. */
int ah__figure_text(const char **out, struct ah_arena *arena, const struct ah_json *json, const char *key);

#endif
