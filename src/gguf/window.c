/* Windows of attention in GGUF files. llama.cpp applies them in some architectures, where it knows which blocks have
 * full attention; in the others the keys are written for readers of this library, and llama.cpp computes without a
 * window. */
#include <string.h>

#include "base/alloc.h"
#include "gguf/arch_internal.h"
#include "gguf/by_name.h"

#define WINDOW "attention.sliding_window"
#define PATTERN "attention.sliding_window_pattern"
enum { MOST_LAYERS = 1 << 12 }; /* as every family has it */
static const char sliding[] = "sliding_attention", full[] = "full_attention";

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static int layers_check(const struct ah_gguf_config *config, int64_t layers)
{
    char room[AH_GGUF_KEY_SIZE];
    return layers <= MOST_LAYERS
               ? AH_OK
               : ah__fail(AH_EINPUT, "%s: key '%s': found %lld, expected 1 to %d", ah__gguf_path(config->file),
                          ah__gguf_key_of(room, config->arch, "block_count"), (long long)layers, MOST_LAYERS);
}

/* Adds layer_types. The key holds a bool for each block, or the number of blocks of which one has full attention (0:
 * none has it), by default `period`. */
int ah__gguf_add_types(const struct ah_gguf_config *config, int64_t period)
{
    char room[AH_GGUF_KEY_SIZE];
    struct ah_gguf_array slides = {.count = 0};
    const char *key = ah__gguf_key_of(room, config->arch, PATTERN);
    int64_t layers = (int64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(config->tree, "num_hidden_layers"));
    AH_TRY(layers_check(config, layers));
    if (ah__gguf_int(&period, config->file, key, 0, INT32_MAX) != AH_OK)
        AH_TRY(ah__gguf_bools(&slides, config->file, key));
    if (slides.count && slides.count != layers)
        return ah__fail(AH_EINPUT, "%s: key '%s': found %lld bools, expected one for each of %lld blocks",
                        ah__gguf_path(config->file), key, (long long)slides.count, (long long)layers);
    cJSON *types = cJSON_AddArrayToObject(config->tree, "layer_types");
    bool added = types;
    for (int64_t i = 0; i < layers && added; i++) {
        bool slide = slides.count ? ah__gguf_next_int(&slides) != 0 : !period || (i + 1) % period != 0;
        added = cJSON_AddItemToArray(types, cJSON_CreateString(slide ? sliding : full));
    }
    return added ? AH_OK : ah__fail(AH_ENOMEM, "out of host memory: model configuration");
}

int ah__gguf_add_window(int64_t *window, const struct ah_gguf_config *config)
{
    char room[AH_GGUF_KEY_SIZE];
    AH_TRY(ah__gguf_read_int(window, config, WINDOW));
    if (*window <= 0)
        return AH_OK;
    AH_TRY(ah__json_add_int(config->tree, "sliding_window", *window));
    return ah__gguf_has(config->file, ah__gguf_key_of(room, config->arch, PATTERN)) ? ah__gguf_add_types(config, 0)
                                                                                    : AH_OK;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Reads the window of a canonical configuration; 0 if no block has one. */
static int window_of(int64_t *window, const struct ah_json *json)
{
    *window = 0;
    return !ah__json_has(json, "sliding_window") ||
                   cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(json->node, "use_sliding_window"))
               ? AH_OK
               : ah__json_int(window, json, "sliding_window", 1, INT32_MAX);
}

static bool slides(const cJSON *type)
{
    return cJSON_IsString(type) && strcmp(type->valuestring, sliding) == 0;
}

bool ah__gguf_types_are(const struct ah_json *json, int64_t period)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(json->node, "layer_types"), *type;
    int64_t i = 0;
    cJSON_ArrayForEach(type, types)
    {
        if (slides(type) != (++i % period != 0))
            return false;
    }
    return true;
}

void ah__gguf_put_types(const struct ah_gguf_written *to)
{
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(to->json.node, "layer_types");
    char room[AH_GGUF_KEY_SIZE];
    const cJSON *type;
    ah__gguf_put_array(to->writer, ah__gguf_key_of(room, to->arch, PATTERN), AH_GGUF_ITEMS_BOOL,
                       (uint64_t)cJSON_GetArraySize(types));
    cJSON_ArrayForEach(type, types)
    {
        ah__gguf_item_bool(to->writer, slides(type));
    }
}

int ah__gguf_put_window(const struct ah_gguf_written *to)
{
    char room[AH_GGUF_KEY_SIZE];
    int64_t window;
    const cJSON *types = cJSON_GetObjectItemCaseSensitive(to->json.node, "layer_types");
    AH_TRY(window_of(&window, &to->json));
    if (window == 0)
        return AH_OK;
    ah__gguf_put_int(to->writer, ah__gguf_key_of(room, to->arch, WINDOW), (uint32_t)window);
    if (types && !to->arch->windows)
        ah__gguf_put_types(to);
    return AH_OK;
}

/* Texts that fit the window are computed alike with and without it. */
int ah__gguf_note_window(struct ah_buf *notes, const struct ah_json *json, const struct ah_gguf_arch *arch)
{
    int64_t window, positions;
    AH_TRY(window_of(&window, json));
    if (window == 0 || arch->windows)
        return AH_OK;
    AH_TRY(ah__json_int(&positions, json, "max_position_embeddings", 1, INT32_MAX));
    if (window >= positions)
        return AH_OK;
    ah__buf_printf(ah__gguf_clause(notes),
                   "attention has a window of %lld tokens ('sliding_window'), for which llama.cpp has nothing in "
                   "architecture '%s': beyond them it computes otherwise, so keep its context (--ctx-size) within %lld",
                   (long long)window, arch->name, (long long)window);
    return AH_OK;
}
