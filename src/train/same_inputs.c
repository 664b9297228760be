/* Several ranks were started by one command line on machines of their own: whether all of them found the same. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "train/training.h"

enum { WHAT_COUNT = 5 };
static const char *const what[WHAT_COUNT] = {"version", "model", "data", "options", "arithmetic"};

static int settings_hash(uint64_t *hash, const struct ah_settings *settings)
{
    cJSON *tree = cJSON_CreateObject();
    int status = ah__settings_save(tree, settings);
    char *text = status == AH_OK ? cJSON_PrintUnformatted(tree) : NULL;
    cJSON_Delete(tree);
    if (!text)
        return status != AH_OK ? status : ah__fail(AH_ENOMEM, "settings: no memory for their text");
    *hash = ah__hash_text(text, *hash);
    free(text);
    return AH_OK;
}

static uint64_t text_hash(const char *text, uint64_t seed)
{
    return ah__hash_text(text ? text : "", seed);
}

static int hashes_fill(uint64_t hash[WHAT_COUNT], const struct ah_training *training, const struct ah_dev_info *device)
{
    const struct ah_train_options *options = training->options;
    const struct ah_tokens_info *data = ah__training_data(training);
    hash[0] = ah__hash_text(ah_version(), sizeof(struct ah_plan));
    hash[1] = text_hash(ah_model_get(training->model)->config, 1);
    hash[2] = ah__hash_int((uint64_t)data->tokens, data->signature);
    hash[3] = text_hash(options->plan, text_hash(options->policy, 3));
    hash[3] = ah__hash_int((uint64_t)training->resumed.step, hash[3]);
    hash[3] = ah__hash_int((uint64_t)options->passes, hash[3]);
    hash[3] = ah__hash_int((uint64_t)options->budget.device_bytes, hash[3]);
    hash[3] = ah__hash_int((uint64_t)options->budget.host_bytes, hash[3]);
    /* Ranks sum what each has multiplied: of two kinds of processor the bits would be nobody's. */
    hash[4] = text_hash(device->arithmetic, 4);
    return settings_hash(&hash[3], &training->settings);
}

int ah__training_same_inputs(const struct ah_training *training)
{
    struct ah_comm *comm = training->comm;
    uint64_t mine[WHAT_COUNT], first[WHAT_COUNT];
    struct ah_dev_info device;
    if (comm->world_size == 1)
        return AH_OK;
    training->session->dev->ops->info(training->session->dev, &device);
    int status = hashes_fill(mine, training, &device);
    memcpy(first, mine, sizeof first);
    AH_TRY(comm->ops->move(comm, first, sizeof first, 0, AH_ALL_RANKS));
    for (int i = 0; status == AH_OK && i < WHAT_COUNT; i++)
        if (mine[i] != first[i])
            status = ah__fail(AH_EINPUT, "%s: found a difference to rank 0%s%s, expected the same on all ranks",
                              what[i], i == WHAT_COUNT - 1 ? ", this rank multiplies by " : "",
                              i == WHAT_COUNT - 1 ? device.arithmetic : "");
    return status;
}
