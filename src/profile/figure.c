#include "profile/figure.h"

#include <string.h>

#include "base/json.h"

/* Highest values of figures in their base units: far beyond any machine, and results computed from them still fit in 63
 * bits. */
static const double dimension_most[] = {
    [AH_DIMENSION_FRACTION] = 1,        [AH_DIMENSION_BYTES] = 1125899906842624.0, /* 1 PiB */
    [AH_DIMENSION_BYTES_PER_S] = 1e15,  [AH_DIMENSION_FLOPS_PER_S] = 1e18,
    [AH_DIMENSION_PARAMS_PER_S] = 1e15, [AH_DIMENSION_NS] = 1e12,
    [AH_DIMENSION_WRITTEN] = 1e17,
};

static const struct unit_row {
    enum ah_dimension dimension;
    const char *name;
    double scale;
} unit_table[] = {
    {AH_DIMENSION_COUNT, "1", 1},
    {AH_DIMENSION_FRACTION, "fraction", 1},
    {AH_DIMENSION_BYTES, "GiB", 1073741824.0},
    {AH_DIMENSION_BYTES, "GB", 1e9},
    {AH_DIMENSION_WRITTEN, "TB", 1e12},
    {AH_DIMENSION_BYTES_PER_S, "GB/s", 1e9},
    {AH_DIMENSION_BYTES_PER_S, "TB/s", 1e12},
    {AH_DIMENSION_FLOPS_PER_S, "TFLOP/s", 1e12},
    {AH_DIMENSION_PARAMS_PER_S, "Gparam/s", 1e9},
    {AH_DIMENSION_NS, "us", 1e3},
    {AH_DIMENSION_NS, "ns", 1},
};

const char *ah__figure_unit(double *scale, enum ah_dimension dimension)
{
    size_t i = 0;
    while (unit_table[i].dimension != dimension)
        i++;
    *scale = unit_table[i].scale;
    return unit_table[i].name;
}

static int unit_scale(double *scale, const struct ah_json *json, const char *unit, enum ah_dimension dimension)
{
    char expected[64] = "";
    for (size_t i = 0; i < AH_LENGTH(unit_table); i++) {
        if (unit_table[i].dimension != dimension)
            continue;
        *scale = unit_table[i].scale;
        if (strcmp(unit, unit_table[i].name) == 0)
            return AH_OK;
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s'%s'", used ? " or " : "", unit_table[i].name);
    }
    return ah__fail(AH_EINPUT, "%s: key '%s.unit': found '%.40s', expected %s", json->path, json->where, unit,
                    expected);
}

/* Returns true for "2020", "2020-05" or "2020-05-14". */
static bool is_date(const char *text)
{
    static const char shape[] = "dddd-dd-dd";
    size_t length = strlen(text);
    if (length != 4 && length != 7 && length != 10)
        return false;
    for (size_t i = 0; i < length; i++)
        if (shape[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

int ah__figure_text(const char **out, struct ah_arena *arena, const struct ah_json *json, const char *key)
{
    const char *text;
    AH_TRY(ah__json_string(&text, json, key));
    if (!text[0])
        return ah__fail(AH_EINPUT, "%s: key '%s%s%s': found '', expected a text", json->path, json->where,
                        json->where[0] ? "." : "", key);
    return ah__arena_strdup(arena, out, text);
}

static int get_value(double *value, const struct ah_json *json, enum ah_dimension dimension, double scale)
{
    int64_t count;
    if (dimension == AH_DIMENSION_COUNT) {
        AH_TRY(ah__json_int(&count, json, "value", 1, 1 << 20));
        *value = (double)count;
        return AH_OK;
    }
    /* Latencies may be 0; rates may not. */
    double least = dimension == AH_DIMENSION_NS ? 0 : dimension == AH_DIMENSION_FRACTION ? 0.01 : 1e-3;
    return ah__json_double(value, json, "value", least, dimension_most[dimension] / scale);
}

int ah__figure_read(double *value, struct ah_figure_origin *origin, struct ah_arena *arena, const struct ah_json *json,
                    const char *key, enum ah_dimension dimension)
{
    static const char *const keys[] = {"value", "unit", "source", "date", NULL};
    struct ah_json figure;
    double scale;
    AH_TRY(ah__json_object(&figure, json, key));
    AH_TRY(ah__json_only(&figure, keys));
    AH_TRY(ah__figure_text(&origin->unit, arena, &figure, "unit"));
    AH_TRY(unit_scale(&scale, &figure, origin->unit, dimension));
    AH_TRY(get_value(&origin->written, &figure, dimension, scale));
    AH_TRY(ah__figure_text(&origin->source, arena, &figure, "source"));
    AH_TRY(ah__figure_text(&origin->date, arena, &figure, "date"));
    if (!is_date(origin->date))
        return ah__fail(AH_EINPUT, "%s: key '%s.date': found '%.40s', expected YYYY, YYYY-MM or YYYY-MM-DD",
                        figure.path, figure.where, origin->date);
    *value = origin->written * scale;
    return AH_OK;
}
