/* Finds a machine's file by path or by name. */
#include <string.h>

#include "base/buf.h"
#include "base/bundled.h"
#include "profile/hardware.h"

static const char kind[] = "hardware";

static int fail_unknown(const char *name)
{
    struct ah_buf list = {0};
    struct ah_bundled_names names;
    AH_TRY(ah__bundled_list(&names, kind));
    for (size_t i = 0; i < names.count; i++)
        ah__buf_printf(&list, "%s%s", i ? ", " : "", names.name[i]);
    int status = list.status;
    if (status == AH_OK)
        status = ah__fail(AH_EINPUT, "hardware: found '%.80s', expected a file or one of: %s", name,
                          list.text ? list.text : "(none found in hardware/ here, beside the program or installed)");
    ah__buf_free(&list);
    ah__bundled_names_free(&names);
    return status;
}

int ah__hardware_find(char **out, const char *name_or_path)
{
    size_t length = strlen(name_or_path);
    if (strchr(name_or_path, '/') || (length > 5 && strcmp(name_or_path + length - 5, ".json") == 0))
        return ah__strdup(out, name_or_path);
    AH_TRY(ah__bundled_find(out, kind, name_or_path));
    return *out ? AH_OK : fail_unknown(name_or_path);
}
