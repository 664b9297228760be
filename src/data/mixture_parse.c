#include "data/mixture_parse.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/format.h"
#include "io/stream.h"

static bool is_there(const char *path)
{
    return strcmp(path, AH_STANDARD_INPUT) == 0 || ah__path_exists(path);
}

/* Returns the colon before a weight, which contains no comma, or null. */
static char *weight_colon(char *path)
{
    char *colon = strrchr(path, ':');
    return colon && colon != path && !strchr(colon, ',') ? colon : NULL;
}

static bool is_number(double *out, const char *text)
{
    char *end;
    *out = ah__strtod(text, &end);
    return end != text && !*end;
}

/* Takes the first `length` bytes as a name, alone or with a weight; *found: the name exists. */
static int piece_take(bool *found, struct ah_mixture_item *out, const char *text, size_t length)
{
    char *path, *colon;
    AH_TRY(ah__sprintf(&path, "%.*s", (int)length, text));
    *out = (struct ah_mixture_item){.path = path};
    *found = is_there(path);
    if (*found || !(colon = weight_colon(path)))
        return AH_OK;
    bool number = is_number(&out->weight, colon + 1);
    *colon = 0;
    *found = is_there(path);
    if (number && isfinite(out->weight) && out->weight > 0)
        return AH_OK;
    if (*found)
        return ah__fail(AH_EINPUT, "%s: weight: found '%.40s', expected a number above 0", path, colon + 1);
    *colon = ':'; /* the whole piece is the name of a missing file */
    out->weight = 0;
    return AH_OK;
}

/* Bounds the length of a piece that can name a file, so that few are tried, however many there are: no longer than a
 * path, up to the first slash that follows no existing folder, and after its last slash no longer than a name. */
static int piece_most(size_t *most, const char *text, size_t first)
{
    enum { WEIGHT_MOST = 40 };
    size_t last = 0;
    *most = strnlen(text, PATH_MAX + WEIGHT_MOST);
    for (size_t at = first; at < *most; at++) {
        if (text[at] != '/')
            continue;
        char *folder;
        AH_TRY(ah__sprintf(&folder, "%.*s", (int)at, text));
        bool found = is_there(folder);
        ah__free(folder);
        if (!found)
            *most = at;
        else
            last = at + 1;
    }
    while (last == 0 && first > 0 && text[first - 1] != '/')
        first--;
    last = last ? last : first;
    if (*most > last + NAME_MAX + WEIGHT_MOST)
        *most = last + NAME_MAX + WEIGHT_MOST;
    return AH_OK;
}

/* Takes the longest piece, up to a comma or the end, that names an existing file; else the first piece. */
static int item_take(struct ah_mixture_item *out, const char **text)
{
    size_t first = strcspn(*text, ","), length;
    bool found;
    AH_TRY(piece_most(&length, *text, first));
    while ((*text)[length] && (*text)[length] != ',' && length > first)
        length--;
    if (length < first)
        length = first;
    for (;;) {
        AH_TRY(piece_take(&found, out, *text, length));
        if (found || length == first)
            break;
        ah__free(out->path);
        out->path = NULL;
        while ((*text)[--length] != ',')
            continue;
    }
    *text += length;
    return AH_OK;
}

static int items_take(struct ah_mixture_items *items, const char *text)
{
    const char *at = text;
    for (;;) {
        at += strspn(at, " "); /* people write a space after a comma */
        if (*at == ',' || !*at)
            return ah__fail(AH_EINPUT, "data: found an empty name in '%.100s', expected FILE[:WEIGHT],FILE[:WEIGHT]",
                            text);
        AH_TRY(ah__grow(&items->item, &items->room, items->count + 1, sizeof *items->item));
        AH_TRY(item_take(&items->item[items->count++], &at));
        if (!*at)
            return AH_OK;
        at++;
    }
}

static int weights_check(const struct ah_mixture_items *items)
{
    const struct ah_mixture_item *with = NULL, *without = NULL;
    for (size_t i = 0; i < items->count; i++)
        *(items->item[i].weight > 0 ? &with : &without) = &items->item[i];
    if (!with || !without)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%s: weight: found none beside %g of %s, expected one for each file or for none",
                    without->path, with->weight, with->path);
}

int ah__mixture_parse(struct ah_mixture_items *out, const char *text)
{
    *out = (struct ah_mixture_items){0};
    if (is_there(text)) {
        AH_TRY(ah__grow(&out->item, &out->room, 1, sizeof *out->item));
        return ah__strdup(&out->item[out->count++].path, text);
    }
    AH_TRY(items_take(out, text));
    return weights_check(out);
}

void ah__mixture_items_free(struct ah_mixture_items *items)
{
    for (size_t i = 0; i < items->count; i++)
        ah__free(items->item[i].path);
    ah__free(items->item);
    *items = (struct ah_mixture_items){0};
}
