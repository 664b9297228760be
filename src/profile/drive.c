#include "profile/drive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "profile/hardware.h"

enum { STRIPES_MOST = 64 };
static const char format[] = "autohete drive 1";
static const double most = 9007199254740992.0; /* what a plan's JSON holds, 9 PB: none wears out below it */

static const struct drive_row {
    const char *key;
    enum ah_dimension dimension;
    size_t at;
    bool adds;     /* several drives have as many times as much */
    bool optional; /* 0: not known */
} drive_table[] = {
    {"read", AH_DIMENSION_BYTES_PER_S, offsetof(struct ah_profile_drive, read_bytes_per_s), true, false},
    {"write", AH_DIMENSION_BYTES_PER_S, offsetof(struct ah_profile_drive, write_bytes_per_s), true, false},
    {"latency", AH_DIMENSION_NS, offsetof(struct ah_profile_drive, latency_ns), false, false},
    {"capacity", AH_DIMENSION_BYTES, offsetof(struct ah_profile_drive, free_bytes), true, false},
    {"endurance", AH_DIMENSION_WRITTEN, offsetof(struct ah_profile_drive, endurance_bytes), true, true},
};

static int drive_parse(struct ah_profile_drive *out, struct ah_arena *arena, const struct ah_json *json, double times)
{
    const char *keys[AH_LENGTH(drive_table) + 4] = {"format", "name", "description"}, *text;
    struct ah_figure_origin origin;
    AH_TRY(ah__json_string(&text, json, "format"));
    if (strcmp(text, format) != 0)
        return ah__fail(AH_EINPUT, "%s: key 'format': found '%.40s', expected '%s'", json->path, text, format);
    for (size_t i = 0; i < AH_LENGTH(drive_table); i++)
        keys[3 + i] = drive_table[i].key;
    AH_TRY(ah__json_only(json, keys));
    AH_TRY(ah__figure_text(&text, arena, json, "name"));
    AH_TRY(ah__figure_text(&text, arena, json, "description"));
    for (size_t i = 0; i < AH_LENGTH(drive_table); i++) {
        const struct drive_row *row = &drive_table[i];
        double value = 0;
        if (!row->optional || ah__json_has(json, row->key))
            AH_TRY(ah__figure_read(&value, &origin, arena, json, row->key, row->dimension));
        int64_t *to = (int64_t *)(void *)((char *)out + row->at);
        *to = llround(fmin(value * (row->adds ? times : 1), most));
    }
    return AH_OK;
}

/* Splits "2xnvme-pcie4"; a text without a number is one drive. */
static int stripes_parse(int64_t *stripes, const char **name, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    *stripes = 1;
    *name = text;
    if (digits == 0 || text[digits] != 'x')
        return AH_OK;
    *stripes = strtol(text, NULL, 10);
    *name = text + digits + 1;
    if (*stripes < 1 || *stripes > STRIPES_MOST || digits > 2)
        return ah__fail(AH_EINPUT, "disk: found '%.80s', expected 1 to %d drives", text, STRIPES_MOST);
    return AH_OK;
}

int ah__drive_load(struct ah_profile_drive *out, const char *text, int ranks)
{
    const char *name;
    char *path;
    int64_t stripes;
    struct ah_json json;
    struct ah_arena arena = {0};
    AH_TRY(stripes_parse(&stripes, &name, text));
    AH_TRY(ah__drive_find(&path, name));
    int status = ah__json_load(&json, path);
    if (status == AH_OK) {
        status = drive_parse(out, &arena, &json, (double)stripes / ranks);
        ah__json_free(&json);
    }
    ah__arena_free(&arena);
    ah__free(path); /* messages contain the path */
    return status;
}

/* ---- a measured drive as a file ---- */

static int add_figure(cJSON *tree, const struct drive_row *row, const struct ah_profile_drive *drive, const char *date)
{
    double scale;
    const char *unit = ah__figure_unit(&scale, row->dimension);
    int64_t value = *(const int64_t *)(const void *)((const char *)drive + row->at);
    cJSON *figure = cJSON_AddObjectToObject(tree, row->key);
    if (!figure)
        return ah__fail(AH_ENOMEM, "drive: no memory for key '%s'", row->key);
    AH_TRY(ah__json_add_double(figure, "value", (double)value / scale));
    AH_TRY(ah__json_add_string(figure, "unit", unit));
    AH_TRY(ah__json_add_string(figure, "source", "measured by us"));
    return ah__json_add_string(figure, "date", date);
}

static int write_tree(cJSON *tree, const struct ah_profile_drive *drive, const struct ah_hardware_facts *facts)
{
    AH_TRY(ah__json_add_string(tree, "format", format));
    AH_TRY(ah__json_add_string(tree, "name", facts->name));
    AH_TRY(ah__json_add_string(tree, "description", "folders of this machine, as measured"));
    for (size_t i = 0; i < AH_LENGTH(drive_table); i++)
        if (!drive_table[i].optional)
            AH_TRY(add_figure(tree, &drive_table[i], drive, facts->date));
    return AH_OK;
}

int ah_profile_save_drive(const struct ah_profile *profile, const struct ah_hardware_facts *facts, const char *path)
{
    if (!profile->drive.read_bytes_per_s)
        return ah__fail(AH_EINPUT, "profile: key 'drive': found nothing, expected a profile made with --disk");
    cJSON *tree = cJSON_CreateObject();
    int status = tree ? write_tree(tree, &profile->drive, facts) : ah__fail(AH_ENOMEM, "drive: no memory for %s", path);
    if (status == AH_OK)
        status = ah__json_save(tree, path);
    cJSON_Delete(tree);
    return status;
}
