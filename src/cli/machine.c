#include "cli/machine.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/out.h"

int ah__machine_check(const struct ah_session_options *inputs)
{
    const struct {
        const char *name;
        bool given;
    } with[] = {{"ranks", inputs->hardware_ranks != 0}, {"optimizer", inputs->optimizer}},
      without[] = {{"profile", inputs->profile_path},
                   {"device", strcmp(inputs->device, "auto") != 0},
                   {"link", inputs->dev.link_bytes_per_s != 0},
                   {"threads", inputs->dev.threads != 0},
                   {"host-threads", inputs->dev.host_threads != 0}};
    for (size_t i = 0; i < sizeof with / sizeof with[0] && !inputs->hardware; i++)
        if (with[i].given)
            return ah__out_fault("--%s: found it without --hardware, expected both", with[i].name);
    for (size_t i = 0; i < sizeof without / sizeof without[0] && inputs->hardware; i++)
        if (without[i].given)
            return ah__out_fault("--%s: found it beside --hardware, expected one of them", without[i].name);
    return AH_OK;
}

int64_t ah__machine_memory(void)
{
    return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
}

/* Writes the name of a path's file without its ending: "box" for "machines/box.json". */
static void name_of(char *name, size_t size, const char *path)
{
    const char *slash = strrchr(path, '/');
    snprintf(name, size, "%.60s", slash ? slash + 1 : path);
    char *dot = strrchr(name, '.');
    if (dot && dot > name)
        *dot = 0;
}

static void today(char *date, size_t size)
{
    time_t now = time(NULL);
    struct tm day;
    strftime(date, size, "%Y-%m-%d", gmtime_r(&now, &day));
}

int ah__machine_save(const struct ah_session *session, const char *path)
{
    char name[64], date[16];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int64_t memory = ah__machine_memory(), device = ah_session_get(session)->budget.device_bytes;
    name_of(name, sizeof name, path);
    today(date, sizeof date);
    struct ah_hardware_facts facts = {name, date, device ? device : memory, memory, cores > 0 ? (int)cores : 1};
    return ah_profile_save_hardware(ah_session_profile(session), ah_session_partition(session), &facts, path);
}

int ah__machine_save_drive(const struct ah_session *session, const char *path)
{
    char date[16];
    today(date, sizeof date);
    const struct ah_hardware_facts facts = {.name = "this machine's drive", .date = date};
    return ah_profile_save_drive(ah_session_profile(session), &facts, path);
}
