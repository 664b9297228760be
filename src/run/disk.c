/* Blocks on disk between two segments of a run: their states are loaded and stored through the host buffers that chunks
 * pass while iterations run. */
#include "dev/host/disk.h"

#include <stdlib.h>

#include "run/internal.h"

int ah__run_disk_open(struct ah_run *run)
{
    const char *folders = run->dev->disk, *temporary = getenv("TMPDIR");
    if (!folders)
        folders = temporary && *temporary ? temporary : "/tmp";
    return ah__disk_open(&run->memory.disk, folders, run->layout->disk_bytes, 0);
}

/* The place of a part of a chunk in host memory and on disk, and its size. */
struct span {
    char *memory;
    int64_t offset, bytes;
};

static struct span span_of(const struct ah_run *run, int group, int chunk, int part)
{
    const struct ah_layout *layout = run->layout;
    const struct ah_disk_chunk *sizes = ah__disk_chunk_of(layout, group);
    const int64_t bytes[AH_RUN_PARTS] = {sizes->state, sizes->moment, sizes->moment, sizes->rest, sizes->frozen};
    char *slots = run->memory.host + layout->slots_offset;
    int64_t before = 0;
    if (part == AH_RUN_FROZEN_PART)
        return (struct span){slots + layout->slot_bytes, ah__disk_frozen_at(layout, group, chunk), bytes[part]};
    for (int i = 0; i < part; i++)
        before += bytes[i];
    int place = ah__sched_set(run->sched, group);
    return (struct span){slots + before, ah__disk_states_at(layout, group, chunk, place) + before, bytes[part]};
}

static int piece_write(struct ah_run *run, int part)
{
    struct ah_run_piece *piece = &run->piece[part];
    if (!piece->valid || !piece->changed)
        return AH_OK;
    struct span span = span_of(run, piece->group, piece->chunk, part);
    piece->changed = false;
    return ah__disk_write(run->memory.disk, span.offset, span.memory, span.bytes);
}

/* Returns how many elements a chunk of the part has. */
static int64_t chunk_count(const struct ah_run *run, int group, int part)
{
    const struct ah_group *g = &run->partition->groups[group];
    int64_t all = part == AH_RUN_FROZEN_PART ? ah__frozen_count(g) : g->trained;
    return ah__chunk_count(ah__part_count(all, run->comm->world_size), run->plan.switches.chunks);
}

int ah__run_disk_at(char **at, int64_t *count, struct ah_run *run, int group, int part, int64_t first, bool changes)
{
    struct ah_run_piece *piece = &run->piece[part];
    int64_t each = chunk_count(run, group, part), within = first % each;
    int chunk = (int)(first / each);
    struct span span = span_of(run, group, chunk, part);
    if (!piece->valid || piece->group != group || piece->chunk != chunk) {
        AH_TRY(piece_write(run, part));
        piece->valid = false;
        AH_TRY(ah__disk_read(run->memory.disk, span.memory, span.offset, span.bytes));
        *piece = (struct ah_run_piece){.group = group, .chunk = chunk, .valid = true};
    }
    piece->changed |= changes;
    *count = each - within < *count ? each - within : *count;
    *at = span.memory + (part == AH_RUN_FROZEN_PART ? within * ah__dtype_bytes(run->partition->compute)
                                                    : ah__state_size(run->partition, part, within));
    return AH_OK;
}

int ah__run_disk_settle(struct ah_run *run)
{
    for (int part = 0; part < AH_RUN_PARTS; part++) {
        AH_TRY(piece_write(run, part));
        run->piece[part].valid = false;
    }
    return AH_OK;
}
