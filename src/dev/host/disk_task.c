#include "dev/host/disk.h"
#include "dev/host/task.h"

int ah__host_disk(const struct ah_task *task)
{
    struct ah_disk *disk = task->as.disk.disk;
    if (task->as.disk.writes)
        return ah__disk_write(disk, task->as.disk.offset, task->as.disk.memory, task->as.disk.bytes);
    return ah__disk_read(disk, task->as.disk.memory, task->as.disk.offset, task->as.disk.bytes);
}
