#include "profile/hardware.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/json.h"

const char ah__hardware_format[] = "autohete hardware 1";
const char *const ah__figure_group_names[AH_FIGURES_COUNT] = {"device", "link", "host", "latency", "interconnect"};
const struct ah_figure_row ah__figure_table[AH_FIGURE_COUNT] = {
#define FIGURE_ROW(id, group, key, dimension) {AH_FIGURES_##group, key, AH_DIMENSION_##dimension},
    AH_FIGURE_TABLE(FIGURE_ROW)
#undef FIGURE_ROW
};

bool ah__figure_is_optional(enum ah_figure figure)
{
    return figure == AH_FIGURE_MULTIPROCESSORS || figure == AH_FIGURE_TRAINING_MOST ||
           figure == AH_FIGURE_PYTORCH_TRAINING || figure == AH_FIGURE_PYTORCH_ADAM;
}

/* ---- a curve: figures keyed by size */

static int get_size(double *size, const struct ah_json *json, const char *key, double above)
{
    char *end;
    long value = key[0] >= '1' && key[0] <= '9' ? strtol(key, &end, 10) : 0;
    if (value < 1 || *end || value > 1 << 20 || (double)value <= above)
        return ah__fail(AH_EINPUT, "%s: key '%s.%.40s': found this size, expected an integer above %.0f", json->path,
                        json->where, key, above);
    *size = (double)value;
    return AH_OK;
}

static int get_curve(struct ah_curve *curve, struct ah_hardware *hardware, const struct ah_json *json, const char *key)
{
    struct ah_json object;
    AH_TRY(ah__json_object(&object, json, key));
    *curve = (struct ah_curve){0}; /* a base machine's curve is that of another device */
    double last = 0;
    for (const cJSON *point = object.node->child; point; point = point->next) {
        int i = curve->count;
        if (i == AH_CURVE_POINTS)
            return ah__fail(AH_EINPUT, "%s: key '%s': found more points, expected at most %d", json->path, object.where,
                            AH_CURVE_POINTS);
        AH_TRY(get_size(&curve->size[i], &object, point->string, last));
        AH_TRY(ah__figure_read(&curve->flops_per_s[i], &curve->origin[i], &hardware->arena, &object, point->string,
                               AH_DIMENSION_FLOPS_PER_S));
        last = curve->size[i];
        curve->count++;
    }
    if (!curve->count)
        return ah__fail(AH_EINPUT, "%s: key '%s': found no points, expected figures keyed by size", json->path,
                        object.where);
    return AH_OK;
}

/* ---- the file */

static int only_known(const struct ah_json *json, enum ah_figure_group group)
{
    const char *keys[AH_FIGURE_COUNT + 3] = {0};
    int count = 0;
    for (int i = 0; i < AH_FIGURE_COUNT; i++)
        if (ah__figure_table[i].group == group)
            keys[count++] = ah__figure_table[i].key;
    if (group == AH_FIGURES_DEVICE) {
        keys[count++] = "gemm";
        keys[count++] = "gemm_f32";
    }
    return ah__json_only(json, keys);
}

/* Returns true if the file must have the figure. A file with a base has only figures that differ from it. */
static bool is_needed(const struct ah_hardware *hardware, const struct ah_json *json, enum ah_figure figure)
{
    bool had = hardware->origin[figure].unit || ah__figure_is_optional(figure);
    return !had || ah__json_has(json, ah__figure_table[figure].key);
}

static int get_group(struct ah_hardware *hardware, const struct ah_json *json, enum ah_figure_group group)
{
    struct ah_json object;
    AH_TRY(ah__json_object(&object, json, ah__figure_group_names[group]));
    AH_TRY(only_known(&object, group));
    for (int i = 0; i < AH_FIGURE_COUNT; i++)
        if (ah__figure_table[i].group == group && is_needed(hardware, &object, (enum ah_figure)i))
            AH_TRY(ah__figure_read(&hardware->figure[i], &hardware->origin[i], &hardware->arena, &object,
                                   ah__figure_table[i].key, ah__figure_table[i].dimension));
    if (group != AH_FIGURES_DEVICE)
        return AH_OK;
    if (!hardware->gemm.count || ah__json_has(&object, "gemm"))
        AH_TRY(get_curve(&hardware->gemm, hardware, &object, "gemm"));
    return ah__json_has(&object, "gemm_f32") ? get_curve(&hardware->gemm_f32, hardware, &object, "gemm_f32") : AH_OK;
}

/* Refuses figures that contradict each other. */
static int check_figures(const struct ah_hardware *hardware, const char *path)
{
    static const struct {
        enum ah_figure small, large;
    } rules[] = {
        {AH_FIGURE_MEMORY_RESERVED, AH_FIGURE_MEMORY}, {AH_FIGURE_HOST_MEMORY_RESERVED, AH_FIGURE_HOST_MEMORY},
        {AH_FIGURE_H2D_BOTH, AH_FIGURE_H2D},           {AH_FIGURE_D2H_BOTH, AH_FIGURE_D2H},
        {AH_FIGURE_BUS, AH_FIGURE_LINK_PEAK},
    };
    for (size_t i = 0; i < AH_LENGTH(rules); i++) {
        const struct ah_figure_row *small = &ah__figure_table[rules[i].small],
                                   *large = &ah__figure_table[rules[i].large];
        if (hardware->figure[rules[i].small] > hardware->figure[rules[i].large])
            return ah__fail(AH_EINPUT, "%s: key '%s.%s': found %g %s, expected at most '%s.%s'", path,
                            ah__figure_group_names[small->group], small->key, hardware->origin[rules[i].small].written,
                            hardware->origin[rules[i].small].unit, ah__figure_group_names[large->group], large->key);
    }
    return AH_OK;
}

static int hardware_parse(struct ah_hardware *hardware, const struct ah_json *json, int depth);

/* Reads the base machine, from which this one differs; its file is beside this file or found by name. */
static int base_parse(struct ah_hardware *hardware, const struct ah_json *json, int depth)
{
    enum { BASES_MOST = 4 };
    const char *name, *slash = strrchr(json->path, '/');
    char *path;
    struct ah_json base;
    AH_TRY(ah__json_string(&name, json, "base"));
    if (depth == BASES_MOST)
        return ah__fail(AH_EINPUT, "%s: key 'base': found '%.40s', expected at most %d machines upon each other",
                        json->path, name, BASES_MOST);
    AH_TRY(ah__sprintf(&path, "%.*s%s.json", slash ? (int)(slash - json->path) + 1 : 0, json->path, name));
    if (strcmp(path, json->path) == 0 || !ah__path_exists(path)) { /* a base with the file's own name is another file */
        ah__free(path);
        int status = ah__hardware_find(&path, name);
        if (status != AH_OK)
            return ah__fail_prefix(status, "%s: key 'base'", json->path);
    }
    int status = ah__json_load(&base, path);
    if (status == AH_OK) {
        status = hardware_parse(hardware, &base, depth + 1);
        ah__json_free(&base);
    }
    ah__free(path); /* messages contain the path */
    return status;
}

static bool has_group(const struct ah_hardware *hardware, enum ah_figure_group group)
{
    bool found = false;
    for (int i = 0; i < AH_FIGURE_COUNT; i++)
        found = found || (ah__figure_table[i].group == group && hardware->origin[i].unit);
    return found;
}

static int hardware_parse(struct ah_hardware *hardware, const struct ah_json *json, int depth)
{
    static const char *const keys[] = {"format", "base", "name",    "description",  "device",
                                       "link",   "host", "latency", "interconnect", NULL};
    enum { NAME_MOST = 63 }; /* the name becomes a profile's device */
    const char *format;
    AH_TRY(ah__json_string(&format, json, "format"));
    if (strcmp(format, ah__hardware_format) != 0)
        return ah__fail(AH_EINPUT, "%s: key 'format': found '%.40s', expected '%s'", json->path, format,
                        ah__hardware_format);
    AH_TRY(ah__json_only(json, keys));
    if (ah__json_has(json, "base"))
        AH_TRY(base_parse(hardware, json, depth));
    AH_TRY(ah__figure_text(&hardware->name, &hardware->arena, json, "name"));
    if (strlen(hardware->name) > NAME_MOST)
        return ah__fail(AH_EINPUT, "%s: key 'name': found %zu bytes, expected at most %d", json->path,
                        strlen(hardware->name), NAME_MOST);
    AH_TRY(ah__figure_text(&hardware->description, &hardware->arena, json, "description"));
    for (int group = 0; group < AH_FIGURES_COUNT; group++) {
        bool alone = group == AH_FIGURES_INTERCONNECT && hardware->figure[AH_FIGURE_DEVICES] <= 1;
        bool needed = !alone && !has_group(hardware, (enum ah_figure_group)group);
        if (needed || ah__json_has(json, ah__figure_group_names[group]))
            AH_TRY(get_group(hardware, json, (enum ah_figure_group)group));
    }
    return check_figures(hardware, json->path);
}

static void hash_make(struct ah_hardware *hardware)
{
    hardware->hash = ah__hash(hardware->figure, sizeof hardware->figure, 1);
    hardware->hash = ah__hash(hardware->gemm.flops_per_s, sizeof hardware->gemm.flops_per_s, hardware->hash);
    hardware->hash = ah__hash(hardware->gemm_f32.flops_per_s, sizeof hardware->gemm_f32.flops_per_s, hardware->hash);
}

static int hardware_read(struct ah_hardware **out, const char *path)
{
    struct ah_hardware *hardware;
    struct ah_json json;
    AH_TRY(ah__json_load(&json, path));
    int status = ah__new(&hardware, 1, sizeof *hardware);
    if (status == AH_OK) {
        status = hardware_parse(hardware, &json, 0);
        hash_make(hardware);
        if (status == AH_OK)
            *out = hardware;
        else
            ah_hardware_free(hardware);
    }
    ah__json_free(&json);
    return status;
}

int ah_hardware_load(struct ah_hardware **out, const char *name_or_path)
{
    char *path;
    AH_TRY(ah__hardware_find(&path, name_or_path));
    int status = hardware_read(out, path);
    ah__free(path);
    return status;
}

void ah_hardware_free(struct ah_hardware *hardware)
{
    if (!hardware)
        return;
    ah__arena_free(&hardware->arena);
    ah__free(hardware);
}

void ah_hardware_get(struct ah_hardware_info *out, const struct ah_hardware *hardware)
{
    const double *figure = hardware->figure;
    *out = (struct ah_hardware_info){
        .name = hardware->name,
        .description = hardware->description,
        .devices = (int)figure[AH_FIGURE_DEVICES],
        .device_bytes = llround(figure[AH_FIGURE_MEMORY] - figure[AH_FIGURE_MEMORY_RESERVED]),
        .host_bytes = llround(figure[AH_FIGURE_HOST_MEMORY] - figure[AH_FIGURE_HOST_MEMORY_RESERVED]),
        .peak_flops_per_s = figure[AH_FIGURE_PEAK],
    };
}

/* ---- printing */

static void print_line(struct ah_buf *buf, const char *group, const char *key, const struct ah_figure_origin *origin)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", group, key);
    ah__buf_printf(buf, "%-26s %9g %-9s %s (%s)\n", name, origin->written,
                   strcmp(origin->unit, "1") == 0 ? "" : origin->unit, origin->source, origin->date);
}

static void print_curve(struct ah_buf *buf, const char *name, const struct ah_curve *curve)
{
    char size[16];
    for (int i = 0; i < curve->count; i++) {
        ah__snprintf(size, sizeof size, "%.0f", curve->size[i]);
        print_line(buf, name, size, &curve->origin[i]);
    }
}

int ah_hardware_print(const struct ah_hardware *hardware, FILE *to)
{
    struct ah_buf buf = {0};
    ah__buf_printf(&buf, "%s: %s\n\n", hardware->name, hardware->description);
    for (int i = 0; i < AH_FIGURE_COUNT; i++)
        if (hardware->origin[i].unit)
            print_line(&buf, ah__figure_group_names[ah__figure_table[i].group], ah__figure_table[i].key,
                       &hardware->origin[i]);
    print_curve(&buf, "device.gemm", &hardware->gemm);
    print_curve(&buf, "device.gemm_f32", &hardware->gemm_f32);
    int status = buf.status;
    if (status == AH_OK && fwrite(buf.text, 1, buf.length, to) != buf.length)
        status = ah__fail(AH_EIO, "hardware: writing the table failed");
    ah__buf_free(&buf);
    return status;
}
