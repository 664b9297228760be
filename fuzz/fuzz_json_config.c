/* Any bytes as a model's config.json: refused, or a model whose own config text reads back as the same. */
#include "fuzz.h"

#include <string.h>

#include "model/model.h"

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    struct ah_model *model = NULL, *back = NULL;
    int status = ah__model_parse(&model, (const char *)data, size, "config.json");
    FUZZ_CHECK(status == AH_OK || status == AH_EINPUT);
    if (status != AH_OK)
        return 0;
    const char *config = ah_model_get(model)->config;
    FUZZ_CHECK(ah__model_parse(&back, config, strlen(config), "config.json") == AH_OK);
    FUZZ_CHECK(strcmp(ah_model_get(back)->config, config) == 0);
    ah_model_free(back);
    ah_model_free(model);
    return 0;
}
