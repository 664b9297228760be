/* One byte that says which, then any bytes as a file that the program itself writes and a user may edit: hardware, a
 * profile, a plan, a timeline. Refused with a line, or what is written of it reads back as the same. */
#include "base/file.h"
#include "fuzz.h"
#include "plan/plan_internal.h"
#include "timeline/timeline.h"

#include <string.h>

static int hardware(const char *path)
{
    struct ah_hardware *read = NULL;
    int status = ah_hardware_load(&read, path);
    ah_hardware_free(read);
    return status;
}

static int profile(const char *path)
{
    struct ah_profile *read = NULL, *again = NULL;
    char back[64];
    int status = ah_profile_load(&read, path);
    if (status != AH_OK)
        return status;
    snprintf(back, sizeof back, "/dev/shm/ah-fuzz-%ld.json", (long)getpid());
    FUZZ_CHECK(ah_profile_save(read, back) == AH_OK);
    FUZZ_CHECK(ah_profile_load(&again, back) == AH_OK);
    unlink(back);
    ah_profile_free(again);
    ah_profile_free(read);
    return AH_OK;
}

static int plan(const char *path)
{
    struct ah_plan read, again;
    struct ah_json json;
    char *text, *twice, back[64];
    AH_TRY(ah__json_load(&json, path));
    int status = ah__plan_from_tree(&read, &json);
    ah__json_free(&json);
    if (status != AH_OK)
        return status;
    FUZZ_CHECK(ah_plan_json(&text, &read) == AH_OK);
    int fd = fuzz_file(back, sizeof back, (const uint8_t *)text, strlen(text));
    FUZZ_CHECK(ah__plan_read(&again, back) == AH_OK && ah_plan_json(&twice, &again) == AH_OK);
    FUZZ_CHECK(strcmp(text, twice) == 0);
    free(text);
    free(twice);
    close(fd);
    return AH_OK;
}

static int timeline(const char *path)
{
    struct ah_timeline *predicted = NULL, *measured = NULL;
    int status = ah__timeline_load(&predicted, &measured, path);
    ah_timeline_free(predicted);
    ah_timeline_free(measured);
    return status;
}

int FUZZ_TARGET(const uint8_t *data, size_t size)
{
    static int (*const readers[])(const char *path) = {hardware, profile, plan, timeline};
    char path[64];
    if (size < 1)
        return 0;
    int fd = fuzz_file(path, sizeof path, data + 1, size - 1);
    int status = readers[data[0] % 4](path);
    FUZZ_CHECK(status == AH_OK || ah_status_is_input(status));
    close(fd);
    return 0;
}
