/* Checks that several ranks, which one command line started on machines of their own, all found the same inputs. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "source/folder_internal.h"
#include "train/training.h"
#include "train/weights.h"

enum { VERSION, MODEL, TOKENIZER, WEIGHTS, DATA, OPTIONS, ARITHMETIC, WHAT_COUNT };
static const char *const what[WHAT_COUNT] = {"version", "model",   "tokenizer", "weights",
                                             "data",    "options", "arithmetic"};

enum { CHECKSUMS_MOST = 16 << 20 }; /* bytes */

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

/* Adds a checkpoint to a hash, by its file of checksums: all files were compared with it when it was opened. */
static int checkpoint_hash(uint64_t *hash, const char *folder)
{
    char *path, *text;
    size_t length;
    AH_TRY(ah__sprintf(&path, "%s/" AH_CHECKSUMS, folder));
    int status = ah__file_read(&text, &length, path, CHECKSUMS_MOST);
    ah__free(path);
    AH_TRY(status);
    *hash = ah__hash(text, length, *hash);
    ah__free(text);
    return AH_OK;
}

/* Computes a hash of the weights that are loaded later, from a small part of them; same_weights compares all of them
 * once they were read. */
static int weights_hash(uint64_t *hash, const struct ah_training *training)
{
    *hash = WEIGHTS;
    if (training->resumed.folder)
        AH_TRY(checkpoint_hash(hash, training->resumed.folder));
    if (training->weights) {
        uint64_t signature;
        AH_TRY(ah__weights_signature(&signature, training->weights));
        *hash = ah__hash_int(signature, *hash);
    }
    return AH_OK;
}

static int hashes_fill(uint64_t hash[WHAT_COUNT], const struct ah_training *training, const struct ah_dev_info *device)
{
    const struct ah_train_options *options = training->options;
    const struct ah_tokens_info *data = ah__training_data(training);
    hash[VERSION] = ah__hash_text(ah_version(), sizeof(struct ah_plan));
    hash[MODEL] = text_hash(ah_model_get(training->model)->config, 1);
    hash[TOKENIZER] = training->tokenizer ? training->tokenizer->signature : 0;
    hash[DATA] = ah__hash_int((uint64_t)data->tokens, data->signature);
    hash[OPTIONS] = text_hash(options->plan, text_hash(options->policy, 3));
    hash[OPTIONS] = ah__hash_int((uint64_t)training->resumed.step, hash[OPTIONS]);
    hash[OPTIONS] = ah__hash_int((uint64_t)options->budget.device_bytes, hash[OPTIONS]);
    hash[OPTIONS] = ah__hash_int((uint64_t)options->budget.host_bytes, hash[OPTIONS]);
    /* Ranks sum each other's products: with two kinds of processors no single one could reproduce the bits. */
    hash[ARITHMETIC] = text_hash(device->arithmetic, 4);
    AH_TRY(weights_hash(&hash[WEIGHTS], training));
    return settings_hash(&hash[OPTIONS], &training->settings);
}

/* Gets rank 0's values; rank 0 gets its own. */
static int of_first(uint64_t *first, const uint64_t *mine, size_t count, struct ah_comm *comm)
{
    memcpy(first, mine, count * sizeof *first);
    return comm->ops->move(comm, first, (int64_t)(count * sizeof *first), 0, AH_ALL_RANKS);
}

int ah__training_same_inputs(const struct ah_training *training)
{
    struct ah_comm *comm = training->comm;
    uint64_t mine[WHAT_COUNT] = {0}, first[WHAT_COUNT];
    struct ah_dev_info device;
    if (comm->world_size == 1)
        return AH_OK;
    training->session->dev->ops->info(training->session->dev, &device);
    int status = hashes_fill(mine, training, &device);
    AH_TRY(of_first(first, mine, WHAT_COUNT, comm));
    for (int i = 0; status == AH_OK && i < WHAT_COUNT; i++)
        if (mine[i] != first[i])
            status =
                ah__fail(AH_EINPUT, "%s: found a difference to rank 0%s%s, expected the same on all ranks", what[i],
                         i == ARITHMETIC ? ", this rank multiplies by " : "", i == ARITHMETIC ? device.arithmetic : "");
    return status;
}

int ah__training_same_weights(const struct ah_training *training)
{
    uint64_t first;
    if (training->comm->world_size == 1)
        return AH_OK;
    AH_TRY(of_first(&first, &training->loaded, 1, training->comm));
    return training->loaded == first ? AH_OK
                                     : ah__fail(AH_EINPUT,
                                                "%s: found a difference to rank 0, expected the same on all "
                                                "ranks",
                                                what[WEIGHTS]);
}
