/* Lists all devices of this machine, as `autohete devices` shows them. */
#include <string.h>

#include "base/alloc.h"
#include "dev/plugin.h"

enum { LINK_BYTES = 64 << 20, LINK_TIMES = 3, MOST_NAMES = 16 };

struct list {
    struct ah_device *rows;
    size_t capacity, count;
};

static int row_add(struct list *list, const struct ah_device *row)
{
    AH_TRY(ah__grow(&list->rows, &list->capacity, list->count + 1, sizeof *list->rows));
    list->rows[list->count++] = *row;
    return AH_OK;
}

/* Measures the fastest of several copies, in bytes per second. */
static int link_time(int64_t *bytes_per_s, struct ah_dev *dev, enum ah_lane lane, void *to, const void *from)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .label = {.what = "copy"}};
    struct ah_done done;
    int64_t best_ns = INT64_MAX;
    work.task[0].type = AH_TASK_COPY;
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = LINK_BYTES;
    for (int i = 0; i < LINK_TIMES; i++) {
        AH_TRY(ah__dev_run(dev, &work, &done));
        int64_t ns = done.end_ns - done.start_ns;
        best_ns = ns > 0 && ns < best_ns ? ns : best_ns;
    }
    *bytes_per_s = (int64_t)((double)LINK_BYTES * 1e9 / (double)best_ns);
    return AH_OK;
}

static int link_measure(struct ah_device *row, struct ah_dev *dev)
{
    char *device, *host;
    AH_TRY(dev->ops->device_memory(dev, LINK_BYTES, &device));
    AH_TRY(dev->ops->host_memory(dev, LINK_BYTES, &host));
    AH_TRY(link_time(&row->h2d_bytes_per_s, dev, AH_LANE_H2D, device, host));
    return link_time(&row->d2h_bytes_per_s, dev, AH_LANE_D2H, host, device);
}

/* Returns true for the host's device. Other devices that lack memory are listed with that message; without host memory
 * no list can be made. */
static bool is_host(const char *name)
{
    return strcmp(name, "cpu") == 0;
}

/* Adds a row for the device called `name`, or the reason why it cannot be opened. *kinds becomes the number of devices
 * of its kind. */
static int device_add(struct list *list, int *kinds, const char *name)
{
    struct ah_device row = {.units = 0};
    struct ah_dev_info info;
    struct ah_dev *dev;
    int status = ah_dev_open(&dev, name, NULL);
    if (status == AH_ENOMEM && is_host(name))
        return status;
    if (status != AH_OK) {
        snprintf(row.name, sizeof row.name, "%s", name);
        snprintf(row.why, sizeof row.why, "%s", ah_error());
        return row_add(list, &row);
    }
    ah_dev_get(&row, dev);
    dev->ops->info(dev, &info);
    *kinds = info.count;
    status = link_measure(&row, dev);
    if (status != AH_OK)
        snprintf(row.why, sizeof row.why, "%s", ah_error());
    ah_dev_close(dev);
    return status == AH_ENOMEM && is_host(name) ? status : row_add(list, &row);
}

static int kind_add(struct list *list, const char *kind)
{
    char name[AH_PLUGIN_NAME_BYTES + 16];
    int kinds = 1;
    AH_TRY(device_add(list, &kinds, kind));
    for (int i = 1; i < kinds; i++) {
        snprintf(name, sizeof name, "%s:%d", kind, i);
        int ignored;
        AH_TRY(device_add(list, &ignored, name));
    }
    return AH_OK;
}

static int devices_list(struct list *list)
{
    char names[MOST_NAMES][AH_PLUGIN_NAME_BYTES] = {"cuda"};
    int count = ah__plugin_names(names, 1, MOST_NAMES);
    AH_TRY(kind_add(list, "cpu"));
    for (int i = 0; i < count; i++)
        AH_TRY(kind_add(list, names[i]));
    return AH_OK;
}

int ah_devices(struct ah_device **out, int *count)
{
    struct list list = {0};
    int status = devices_list(&list);
    if (status != AH_OK) {
        ah__free(list.rows);
        return status;
    }
    *out = list.rows;
    *count = (int)list.count;
    return AH_OK;
}
