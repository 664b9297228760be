#include "dev/plugin.h"

#include <string.h>

const char *const ah__lane_names[AH_LANE_COUNT] = {
    [AH_LANE_COMPUTE] = "compute", [AH_LANE_H2D] = "h2d",   [AH_LANE_D2H] = "d2h",
    [AH_LANE_HOST] = "host",       [AH_LANE_COMM] = "comm",
};

const char *ah_lane_name(enum ah_lane lane)
{
    return (unsigned)lane < AH_LANE_COUNT ? ah__lane_names[lane] : "unknown lane";
}

/* The devices that are part of every build; others are loaded. */
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
        return ah__fail(AH_EINPUT, "host threads: found %d, expected 0 (one) to %d", options->host_threads,
                        MOST_THREADS);
    if (options->link_bytes_per_s < 0)
        return ah__fail(AH_EINPUT, "link speed: found %lld bytes/s, expected 0 (not throttled) or more",
                        (long long)options->link_bytes_per_s);
    return AH_OK;
}

int ah_dev_open(struct ah_dev **out, const char *name, const struct ah_dev_options *options)
{
    static const struct ah_dev_options defaults;
    if (!options)
        options = &defaults;
    AH_TRY(options_check(options));
    for (size_t i = 0; i < AH_LENGTH(device_table); i++)
        if (strcmp(device_table[i].name, name) == 0)
            return device_table[i].open(out, options);
    return ah__plugin_open(out, name, options);
}

void ah_dev_close(struct ah_dev *dev)
{
    if (!dev)
        return;
    void *library = dev->library; /* the device is in it: first the one, then the other */
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
