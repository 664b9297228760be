#include "dev/host/machine.h"

#include <sched.h>
#include <string.h>

/* "model name\t: Some Processor" */
char *ah__host_model(char *text, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    *text = 0;
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) != 0)
            continue;
        const char *name = line + strcspn(line, ":");
        name += strspn(name, ": \t");
        snprintf(text, size, "%.*s", (int)strcspn(name, "\n"), name);
        break;
    }
    if (file)
        fclose(file);
    return text;
}

int ah__host_cores(bool *in_order)
{
    cpu_set_t set;
    bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    int count = known ? CPU_COUNT(&set) : 1;
    for (int i = 0; i < count && known; i++)
        known = CPU_ISSET((size_t)i, &set);
    if (in_order)
        *in_order = known;
    return count;
}
