/* Finds the file of a machine or of a drive by path or by name. */
#include <string.h>

#include "base/buf.h"
#include "base/bundled.h"
#include "profile/hardware.h"

static int fail_unknown(const char *option, const char *kind, const char *name)
{
    struct ah_buf list = {0};
    struct ah_bundled_names names;
    AH_TRY(ah__bundled_list(&names, kind));
    for (size_t i = 0; i < names.count; i++)
        ah__buf_printf(&list, "%s%s", i ? ", " : "", names.name[i]);
    int status = list.status;
    if (status == AH_OK && list.text)
        status = ah__fail(AH_EINPUT, "%s: found '%.80s', expected a file or one of: %s", option, name, list.text);
    else if (status == AH_OK)
        status =
            ah__fail(AH_EINPUT,
                     "%s: found '%.80s', expected a file or one of: (none found in %s/ here, beside the program or "
                     "installed)",
                     option, name, kind);
    ah__buf_free(&list);
    ah__bundled_names_free(&names);
    return status;
}

static int find(char **out, const char *option, const char *kind, const char *name_or_path)
{
    size_t length = strlen(name_or_path);
    if (strchr(name_or_path, '/') || (length > 5 && strcmp(name_or_path + length - 5, ".json") == 0))
        return ah__strdup(out, name_or_path);
    AH_TRY(ah__bundled_find(out, kind, name_or_path));
    return *out ? AH_OK : fail_unknown(option, kind, name_or_path);
}

int ah__hardware_find(char **out, const char *name_or_path)
{
    return find(out, "hardware", "hardware", name_or_path);
}

int ah__drive_find(char **out, const char *name_or_path)
{
    return find(out, "disk", "hardware/drives", name_or_path);
}
