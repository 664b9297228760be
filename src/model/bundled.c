/* Lists the models that come with AutoHete. */
#include "base/bundled.h"

#include <string.h>

#include "base/alloc.h"
#include "model/model.h"

static const char kind[] = "models";

static int fill(char **paths, const struct ah_bundled_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        AH_TRY(ah__bundled_find(&paths[i], kind, names->name[i]));
    return AH_OK;
}

void ah_bundled_models_free(char **paths, int count)
{
    for (int i = 0; paths && i < count; i++)
        ah__free(paths[i]);
    ah__free(paths);
}

static int paths_new(char ***out, const struct ah_bundled_names *names)
{
    char **paths;
    if (!names->count)
        return ah__fail(AH_EINPUT, "models: found no models/*.json here, beside the program or installed");
    AH_TRY(ah__new(&paths, names->count, sizeof *paths));
    int status = fill(paths, names);
    if (status == AH_OK)
        *out = paths;
    else
        ah_bundled_models_free(paths, (int)names->count);
    return status;
}

int ah_bundled_models(char ***out, int *count)
{
    struct ah_bundled_names names;
    AH_TRY(ah__bundled_list(&names, kind));
    int status = paths_new(out, &names);
    *count = status == AH_OK ? (int)names.count : 0;
    ah__bundled_names_free(&names);
    return status;
}
