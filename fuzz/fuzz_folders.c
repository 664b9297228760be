/* One byte that says which, then any bytes as one file of a folder: run.json of a training's, the index of a model's
 * shards, of which one is there, state.json of a checkpoint whose checksums are right, or these checksums. Refused with
 * a line, or read. */
#include "base/file.h"
#include "base/hash.h"
#include "fuzz.h"
#include "io/shards.h"
#include "train/checkpoint.h"
#include "train/run_config.h"

#include <string.h>
#include <sys/stat.h>

#define STEP "step-00000001"

static char scratch[64];

static void folder_remove(void)
{
    char path[96];
    static const char *const names[] = {"run.json",
                                        AH_SHARDS_INDEX,
                                        "a.safetensors",
                                        STEP "/model.safetensors",
                                        STEP "/optimizer.safetensors",
                                        STEP "/config.json",
                                        STEP "/state.json",
                                        STEP "/checksums.json",
                                        STEP};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
        remove(path);
    }
    rmdir(scratch);
}

static void folder_make(void)
{
    static const char shard[] =
        "\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}          \0\0\0\0";
    char path[96];
    snprintf(scratch, sizeof scratch, "/dev/shm/ah-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(scratch) != NULL);
    snprintf(path, sizeof path, "%s/a.safetensors", scratch);
    FUZZ_CHECK(ah__file_write(path, shard, 8 + 0x40 + 4) == AH_OK);
    atexit(folder_remove);
}

static void put(const char *name, const char *text, size_t length)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FUZZ_CHECK(ah__file_write(path, text, length) == AH_OK);
}

static int run_config_open(const char *text, size_t length)
{
    struct ah_run_config run_config = {0};
    put("run.json", text, length);
    int status = ah__run_config_load(&run_config, scratch);
    ah__run_config_free(&run_config);
    return status;
}

static int index_open(const char *text, size_t length)
{
    char path[128];
    struct ah_shards *shards = NULL;
    put(AH_SHARDS_INDEX, text, length);
    snprintf(path, sizeof path, "%s/" AH_SHARDS_INDEX, scratch);
    int status = ah__shards_open(&shards, path);
    ah__shards_close(shards);
    return status;
}

static int checkpoint_open(void)
{
    char path[128];
    struct ah_checkpoint checkpoint = {0};
    snprintf(path, sizeof path, "%s/" STEP, scratch);
    int status = ah__checkpoint_open(&checkpoint, path, false);
    ah__checkpoint_close(&checkpoint);
    return status;
}

/* Three files of a byte each, and these. */
static void checkpoint_put(const char *state, size_t length)
{
    static const char *const names[] = {"model.safetensors", "optimizer.safetensors", "config.json"};
    char path[128], checksums[640];
    snprintf(path, sizeof path, "%s/" STEP, scratch);
    FUZZ_CHECK(ah__folder_make(path) == AH_OK);
    int end = snprintf(checksums, sizeof checksums,
                       "{\"version\": 1, \"files\": {\"state.json\": {\"bytes\": %zu, \"xxh3\": \"%016llx\"}", length,
                       (unsigned long long)ah__hash(state, length, 0));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, STEP "/%s", names[i]);
        put(path, "x", 1);
        end +=
            snprintf(checksums + end, sizeof checksums - (size_t)end, ", \"%s\": {\"bytes\": 1, \"xxh3\": \"%016llx\"}",
                     names[i], (unsigned long long)ah__hash("x", 1, 0));
    }
    end += snprintf(checksums + end, sizeof checksums - (size_t)end, "}}");
    put(STEP "/state.json", state, length);
    put(STEP "/checksums.json", checksums, (size_t)end);
}

static int state_open(const char *text, size_t length)
{
    checkpoint_put(text, length);
    return checkpoint_open();
}

static int checksums_open(const char *text, size_t length)
{
    checkpoint_put("{}", 2);
    put(STEP "/checksums.json", text, length);
    return checkpoint_open();
}

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *text, size_t length) = {run_config_open, index_open, state_open,
                                                                      checksums_open};
    if (size < 1)
        return 0;
    if (!scratch[0])
        folder_make();
    int status = readers[data[0] % 4]((const char *)data + 1, size - 1);
    FUZZ_CHECK(status == AH_OK || ah_status_is_input(status));
    return 0;
}
