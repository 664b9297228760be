/* autohete devices: lists the devices that can train. */
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/out.h"

struct devices_args {
    bool json;
};

static const struct ah_arg options[] = {
    AH_ARG_CONFIG,
    {"json", AH_ARG_FLAG, offsetof(struct devices_args, json),
     .help = "print the devices as one JSON object in the last line; text goes to standard error"},
};

/* Returns the width of a column: the bytes of its longest text, at least 6. */
static int width_of(const struct ah_device *devices, int count, size_t at)
{
    size_t most = 6;
    for (int i = 0; i < count; i++) {
        size_t length = strlen((const char *)&devices[i] + at);
        most = length > most ? length : most;
    }
    return (int)most;
}

static void row_print(FILE *to, const struct ah_device *device, int name, int model, int link)
{
    char memory[32], free_now[32];
    fprintf(to, "%-*s  %-*s  %10s  %10s  %5d  %-*s", name, device->name, model, device->model[0] ? device->model : "-",
            ah_size_format(memory, sizeof memory, device->memory_bytes),
            ah_size_format(free_now, sizeof free_now, device->free_bytes), device->units, link,
            device->link[0] ? device->link : "-");
    if (device->h2d_bytes_per_s && device->d2h_bytes_per_s)
        fprintf(to, "  %8.1f  %8.1f", (double)device->h2d_bytes_per_s * 1e-9, (double)device->d2h_bytes_per_s * 1e-9);
    else
        fprintf(to, "  %8s  %8s", "-", "-");
    fputc('\n', to);
}

static void table_print(FILE *to, const struct ah_device *devices, int count)
{
    int name = width_of(devices, count, offsetof(struct ah_device, name));
    int model = width_of(devices, count, offsetof(struct ah_device, model));
    int link = width_of(devices, count, offsetof(struct ah_device, link));
    fprintf(to, "%-*s  %-*s  %10s  %10s  %5s  %-*s  %8s  %8s\n", name, "device", model, "model", "memory", "free",
            "units", link, "link", "to GB/s", "from GB/s");
    for (int i = 0; i < count; i++)
        if (devices[i].memory_bytes)
            row_print(to, &devices[i], name, model, link);
    for (int i = 0; i < count; i++)
        if (devices[i].why[0])
            fprintf(to, "%s: %s\n", devices[i].name, devices[i].why);
}

static void text_field(FILE *to, const char *key, const char *text)
{
    fprintf(to, ", \"%s\": ", key);
    ah__out_string(to, text);
}

static void json_print(FILE *to, const struct ah_device *devices, int count)
{
    fputs("{\"devices\": [", to);
    for (int i = 0; i < count; i++) {
        const struct ah_device *device = &devices[i];
        fprintf(to, "%s{\"device\": ", i ? ", " : "");
        ah__out_string(to, device->name);
        text_field(to, "model", device->model);
        text_field(to, "link", device->link);
        text_field(to, "why", device->why);
        fprintf(to,
                ", \"memory_bytes\": %lld, \"free_bytes\": %lld, \"units\": %d, \"h2d_bytes_per_s\": %lld, "
                "\"d2h_bytes_per_s\": %lld}",
                (long long)device->memory_bytes, (long long)device->free_bytes, device->units,
                (long long)device->h2d_bytes_per_s, (long long)device->d2h_bytes_per_s);
    }
    fputs("]}\n", to);
}

static int run(const void *given)
{
    const struct devices_args *args = given;
    struct ah_device *devices;
    int count, status = ah_devices(&devices, &count);
    if (status != AH_OK)
        return ah__out_fail(status);
    table_print(args->json ? stderr : stdout, devices, count);
    if (args->json)
        json_print(stdout, devices, count);
    free(devices);
    return 0;
}

static struct devices_args args;
const struct ah_command ah__command_devices = {
    .name = "devices",
    .usage = "[--json]",
    .summary = "List the devices, and why others cannot be used.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .args = &args,
    .run = run,
};
