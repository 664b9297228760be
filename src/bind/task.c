/* Tasks and chunks of an item. */
#include <string.h>

#include "bind/internal.h"

enum { CHUNK_ALIGN = 1024 }; /* elements: whole pages of floats, so that lanes share no cache line */

struct ah_task *ah__bind_task(const struct bind *bind, enum ah_task_type type)
{
    struct ah_task *task = &bind->work->task[bind->work->tasks++];
    memset(task, 0, sizeof *task);
    task->type = type;
    return task;
}

void ah__bind_copy(const struct bind *bind, void *to, const void *from, int64_t bytes)
{
    struct ah_task *task = ah__bind_task(bind, AH_TASK_COPY);
    task->as.copy.to = to;
    task->as.copy.from = from;
    task->as.copy.bytes = bytes;
}

int64_t ah__chunk_count(int64_t count, int chunks)
{
    int64_t pieces = chunks > 1 ? chunks : 1, each = (count + pieces - 1) / pieces;
    each = (each + CHUNK_ALIGN - 1) / CHUNK_ALIGN * CHUNK_ALIGN;
    return each < count ? each : count;
}

int64_t ah__bind_chunk_of(int64_t *first, const struct bind *bind, int64_t count)
{
    int64_t each = ah__chunk_count(count, bind->item->chunks);
    *first = bind->item->chunk * each < count ? bind->item->chunk * each : count;
    return count - *first < each ? count - *first : each;
}
