#include "dev/plugin.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

enum { NAME_BYTES = 65 };

/* Devices of every build; others are loaded as plugins. */
static const struct device_row {
    const char *name;
    int (*open)(struct ah_dev **out, const struct ah_dev_options *options);
} device_table[] = {
    {"cpu", ah__dev_cpu_open},
};

static int options_check(const struct ah_dev_options *options)
{
    enum { MOST_THREADS = 1024 };
    if (options->threads < 0 || options->threads > MOST_THREADS)
        return ah__fail(AH_EINPUT, "device threads: found %d, expected 0 (one per core) to %d", options->threads,
                        MOST_THREADS);
    if (options->host_threads < 0 || options->host_threads > MOST_THREADS)
        return ah__fail(AH_EINPUT, "host threads: found %d, expected 0 (as many as suit the device) to %d",
                        options->host_threads, MOST_THREADS);
    if (options->ordinal < 0)
        return ah__fail(AH_EINPUT, "device number: found %d, expected 0 or more", options->ordinal);
    if (options->link_bytes_per_s < 0)
        return ah__fail(AH_EINPUT, "link speed: found %lld bytes/s, expected 0 (not throttled) or more",
                        (long long)options->link_bytes_per_s);
    return AH_OK;
}

/* Splits "cuda:1" into "cuda" and 1. A name without a number does not change *ordinal. */
static int name_parse(char kind[NAME_BYTES], int *ordinal, const char *name)
{
    size_t length = strcspn(name, ":");
    const char *number = name + length + 1;
    if (length >= NAME_BYTES)
        return ah__fail(AH_EINPUT, "device \"%.40s...\": unknown, expected a shorter name", name);
    snprintf(kind, NAME_BYTES, "%.*s", (int)length, name);
    if (!name[length])
        return AH_OK;
    size_t digits = strspn(number, "0123456789");
    if (digits == 0 || digits > 4 || number[digits] || strcmp(kind, "auto") == 0)
        return ah__fail(AH_EINPUT, "device \"%.40s\": unknown, expected NAME, or NAME:1 for the second of its kind",
                        name);
    *ordinal = atoi(number);
    return AH_OK;
}

/* Opens a plugin's device if all ranks can. *joins: all ranks have opened theirs, and a failure is one of joining
 * them. */
static int open_plugin(struct ah_dev **out, bool *joins, const char *kind, const struct ah_dev_options *options)
{
    struct ah_dev *dev;
    int opened = ah__plugin_open(&dev, kind, options), status = ah__comm_agree(ah__comm(), opened);
    *joins = status == AH_OK && ah__comm()->world_size > 1;
    if (*joins) {
        status = dev->ops->join(dev);
        if (status != AH_OK)
            ah__fail_prefix(status, "device \"%s\"", kind);
    }
    if (status == AH_OK)
        *out = dev;
    else if (opened == AH_OK)
        ah_dev_close(dev);
    return status;
}

static int open_kind(struct ah_dev **out, const char *kind, const struct ah_dev_options *options)
{
    bool joins;
    for (size_t i = 0; i < AH_LENGTH(device_table); i++)
        if (strcmp(device_table[i].name, kind) == 0)
            return device_table[i].open(out, options);
    return open_plugin(out, &joins, kind, options);
}

/* Opens an accelerator if there is one, with several ranks one for each; else the CPU device. Options that only the CPU
 * device has choose the CPU device. A machine without a plugin or a GPU (AH_EINPUT) is no fault. */
static int open_auto(struct ah_dev **out, const struct ah_dev_options *options)
{
    char why[sizeof(*out)->passed_over] = "";
    if (!options->threads && !options->link_bytes_per_s) {
        bool joins;
        int status = open_plugin(out, &joins, "cuda", options);
        if (status == AH_OK || (joins && status != AH_EINPUT)) /* a failure of this rank alone */
            return status;
        if (joins || status != AH_EINPUT)
            snprintf(why, sizeof why, "%s", ah_error());
    }
    AH_TRY(ah__dev_cpu_open(out, options));
    memcpy((*out)->passed_over, why, sizeof why);
    return AH_OK;
}

int ah_dev_open(struct ah_dev **out, const char *name, const struct ah_dev_options *options)
{
    struct ah_dev_options own = {0};
    char kind[NAME_BYTES];
    if (options)
        own = *options;
    AH_TRY(name_parse(kind, &own.ordinal, name));
    AH_TRY(options_check(&own));
    struct ah_dev *dev;
    AH_TRY(strcmp(kind, "auto") == 0 ? open_auto(&dev, &own) : open_kind(&dev, kind, &own));
    int status = own.disk ? ah__paths_real(&dev->disk, own.disk) : AH_OK;
    if (status != AH_OK) {
        ah_dev_close(dev);
        return status;
    }
    *out = dev;
    return AH_OK;
}

void ah_dev_close(struct ah_dev *dev)
{
    if (!dev)
        return;
    void *library = dev->library; /* the device's code is in the library: close the device first */
    ah__free(dev->disk);
    dev->ops->close(dev);
    ah__plugin_unload(library);
}

int ah__dev_run(struct ah_dev *dev, const struct ah_work *work, struct ah_done *done)
{
    struct ah_event event;
    struct ah_done own;
    if (!done)
        done = &own;
    AH_TRY(dev->ops->submit(dev, work, &event));
    AH_TRY(dev->ops->wait_any(dev, done));
    return done->status;
}

int64_t ah__dev_region_bytes(struct ah_dev *dev)
{
    struct ah_dev_info info;
    dev->ops->info(dev, &info);
    return info.device_bytes;
}

/* ---- what there is ----------------------------------------------------------------------------------------------- */

void ah_dev_get(struct ah_device *out, struct ah_dev *dev)
{
    struct ah_dev_info info;
    dev->ops->info(dev, &info);
    *out = (struct ah_device){
        .units = info.threads,
        .host_threads = info.host_threads,
        .memory_bytes = info.memory_bytes,
        .free_bytes = info.device_bytes ? info.device_bytes : info.machine_bytes,
    };
    snprintf(out->name, sizeof out->name, "%s", info.name);
    snprintf(out->model, sizeof out->model, "%s", info.model ? info.model : "");
    snprintf(out->link, sizeof out->link, "%s", info.link_kind ? info.link_kind : "");
    snprintf(out->why, sizeof out->why, "%s", dev->passed_over);
}
