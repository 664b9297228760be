/* Hazards: takes accesses to shared and global memory, stops the launch at two that no barrier orders.
 *
 * Each granule (bytes of the smallest access of an entry) knows its last writer and its last readers. Time counts in
 * epochs, of which every barrier of a block and every block begins one; within an epoch lanes of a warp are ordered by
 * bar.warp.sync alone. Blocks of a launch are not ordered at all. */
#include "inside.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_SHIFT = 12, PAGES = 1 << 16 };

/* ---- the trace of global memory: pages by number, which stay for the next launch */

static struct page {
    uint64_t number;
    struct ptx_trace *trace;
} pages[PAGES];

struct ptx_trace *ptx_trace_at(uint64_t address, unsigned granule)
{
    static size_t at;                                        /* most accesses are to the page of the last one */
    uint64_t number = (address >> PAGE_SHIFT) * 8 + granule; /* pages of other granules are others */
    if (pages[at].number != number)
        at = (size_t)(number * 0x9E3779B97F4A7C15ULL >> 48) % PAGES;
    while (pages[at].trace && pages[at].number != number)
        at = (at + 1) % PAGES;
    if (!pages[at].trace) {
        pages[at].number = number;
        pages[at].trace = calloc((1U << PAGE_SHIFT) >> granule, sizeof(struct ptx_trace));
        if (!pages[at].trace)
            abort();
    }
    return &pages[at].trace[(address & ((1U << PAGE_SHIFT) - 1)) >> granule];
}

/* ---- order */

/* All lanes learn what the others have done until now. */
void ptx_trace_sync(struct ptx_warp *warp, uint32_t lanes)
{
    uint32_t joined[WARP] = {0};
    warp->syncs++;
    for (int i = 0; i < WARP; i++)
        for (int j = 0; lanes >> i & 1 && j < WARP; j++)
            joined[j] = warp->seen[i][j] > joined[j] ? warp->seen[i][j] : joined[j];
    for (int j = 0; j < WARP; j++)
        joined[j] = lanes >> j & 1 ? warp->syncs : joined[j];
    for (int i = 0; i < WARP; i++)
        if (lanes >> i & 1)
            memcpy(warp->seen[i], joined, sizeof joined);
}

/* Whether what `other` of the block did, at `sync` of its warp, comes before what a lane does now. */
static bool lane_knows(const struct ptx_warp *warp, unsigned lane, unsigned other, uint32_t sync)
{
    if (other / WARP != warp->index)
        return false;
    return other % WARP == lane || warp->seen[lane][other % WARP] > sync;
}

static bool write_is_before(const struct ptx_warp *warp, const struct ptx_trace *t, unsigned lane)
{
    const struct ptx_run *run = warp->run;
    if (t->write_epoch < run->epoch_launch || (t->write_epoch >= run->epoch_block && t->write_epoch < run->epoch))
        return true;
    return t->write_epoch == run->epoch && lane_knows(warp, lane, t->write_thread, t->write_sync);
}

static bool reads_are_before(const struct ptx_warp *warp, const struct ptx_trace *t, unsigned lane)
{
    const struct ptx_run *run = warp->run;
    if (t->read_epoch < run->epoch_launch)
        return true;
    if (t->read_first < run->epoch_block)
        return false;
    if (t->read_epoch < run->epoch)
        return true;
    if (t->read_warps & ~(1U << warp->index))
        return false;
    for (unsigned other = 0; other < WARP; other++)
        if (t->read_lanes >> other & 1 && !lane_knows(warp, lane, warp->index * WARP + other, t->read_sync))
            return false;
    return true;
}

static _Noreturn void race(const struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane, const char *does,
                           const char *did, unsigned other, int at, uint32_t epoch)
{
    char text[256];
    bool here = epoch >= warp->run->epoch_block;
    ptx_stop(warp->run, in, "a race on %s memory: thread %u %s what thread %u%s %s at %s",
             in->space == SHARED ? "shared" : "global", warp->index * WARP + lane, does, other,
             here ? "" : " of another block", did, ptx_where(text, &warp->run->entry->instr[at]));
}

void ptx_trace_read(struct ptx_warp *warp, const struct ptx_instr *in, struct ptx_trace *t, unsigned lane, bool shared)
{
    const struct ptx_run *run = warp->run;
    if (shared && t->write_epoch < run->epoch_block)
        ptx_stop(warp->run, in, "thread %u reads shared memory that nobody has written", warp->index * WARP + lane);
    if (!write_is_before(warp, t, lane))
        race(warp, in, lane, "reads", "has written", t->write_thread, t->write_at, t->write_epoch);
    if (in->modifiers & M_NC && t->write_epoch >= run->epoch_launch)
        ptx_stop(warp->run, in, "thread %u reads as constant what this launch has written", warp->index * WARP + lane);
    if (t->read_epoch < run->epoch_launch || (shared && t->read_epoch < run->epoch_block))
        t->read_first = run->epoch;
    if (t->read_epoch != run->epoch)
        t->read_warps = t->read_lanes = 0;
    if (t->read_thread / WARP != warp->index)
        t->read_lanes = 0;
    t->read_epoch = run->epoch;
    t->read_sync = warp->syncs;
    t->read_warps |= 1U << warp->index;
    t->read_lanes |= 1U << lane;
    t->read_thread = (uint16_t)(warp->index * WARP + lane);
    t->read_at = (int)(in - run->entry->instr);
}

void ptx_trace_write(struct ptx_warp *warp, const struct ptx_instr *in, struct ptx_trace *t, unsigned lane, bool shared,
                     bool same)
{
    const struct ptx_run *run = warp->run;
    uint32_t since = shared ? run->epoch_block : run->epoch_launch;
    if (t->write_epoch >= since && !same && !write_is_before(warp, t, lane))
        race(warp, in, lane, "overwrites", "has written", t->write_thread, t->write_at, t->write_epoch);
    if (t->read_epoch >= since && !reads_are_before(warp, t, lane))
        race(warp, in, lane, "overwrites", "has read", t->read_thread, t->read_at,
             t->read_first < run->epoch_block ? t->read_first : t->read_epoch);
    t->write_epoch = run->epoch;
    t->write_sync = warp->syncs;
    t->write_thread = (uint16_t)(warp->index * WARP + lane);
    t->write_at = (int)(in - run->entry->instr);
}
