/* One byte that says which, then any bytes as run.json of a training's folder or as the index of a model's shards, of
 * which one is there: refused with a line, or read. */
#include "base/file.h"
#include "fuzz.h"
#include "io/shards.h"
#include "train/run_config.h"

#include <string.h>
#include <sys/stat.h>

static char scratch[64];

static void folder_remove(void)
{
    char path[96];
    static const char *const names[] = {"run.json", AH_SHARDS_INDEX, "a.safetensors"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", scratch, names[i]);
        unlink(path);
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

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    char path[96];
    int status;
    if (size < 1)
        return 0;
    if (!scratch[0])
        folder_make();
    snprintf(path, sizeof path, "%s/%s", scratch, data[0] % 2 ? AH_SHARDS_INDEX : "run.json");
    FUZZ_CHECK(ah__file_write(path, (const char *)data + 1, size - 1) == AH_OK);
    if (data[0] % 2) {
        struct ah_shards *shards = NULL;
        status = ah__shards_open(&shards, path);
        ah__shards_close(shards);
    } else {
        struct ah_run_config run_config = {0};
        status = ah__run_config_load(&run_config, scratch);
        ah__run_config_free(&run_config);
    }
    FUZZ_CHECK(status == AH_OK || ah_status_is_input(status));
    return 0;
}
