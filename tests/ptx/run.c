/* Runs a grid: takes a launch, runs blocks and their warps in orders that a seed gives, and says what went wrong. */
#include "inside.h"

#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t epochs; /* of all launches until now */

const char *ptx_where(char text[256], const struct ptx_instr *in)
{
    const struct ptx_module *m = in->module;
    const char *file = in->file < m->files && m->file[in->file] ? m->file[in->file] : "";
    if (in->file_line)
        snprintf(text, 256, "%s:%d (PTX line %d)", file, in->file_line, in->line);
    else
        snprintf(text, 256, "PTX line %d", in->line);
    return text;
}

void ptx_stop(struct ptx_run *run, const struct ptx_instr *in, const char *format, ...)
{
    char text[256], said[640];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    snprintf(run->error, PTX_ERROR_BYTES, "%s: %s (%s, block %u,%u,%u of %u threads)", ptx_where(text, in), said,
             run->entry->name, run->block[0], run->block[1], run->block[2], run->threads);
    longjmp(run->stop, 1);
}

/* ---- a block */

static void specials_set(struct ptx_warp *warp)
{
    const struct ptx_run *run = warp->run;
    const unsigned *block = run->launch->block, *grid = run->launch->grid;
    for (unsigned l = 0; l < WARP; l++) {
        unsigned thread = warp->index * WARP + l;
        const unsigned value[SPECIALS] = {thread % block[0],
                                          thread / block[0] % block[1],
                                          thread / block[0] / block[1],
                                          block[0],
                                          block[1],
                                          block[2],
                                          run->block[0],
                                          run->block[1],
                                          run->block[2],
                                          grid[0],
                                          grid[1],
                                          grid[2],
                                          l,
                                          warp->index};
        for (int i = 0; i < SPECIALS; i++)
            warp->reg[(unsigned)i * WARP + l] = value[i];
    }
}

static void warp_begin(struct ptx_warp *warp, unsigned threads)
{
    int registers = warp->run->entry->registers;
    unsigned lanes = threads - warp->index * WARP;
    warp->live = lanes >= WARP ? (uint32_t)FULL : (1U << lanes) - 1;
    warp->group[0] = (struct ptx_group){warp->live, 0, RUNS};
    warp->groups = 1;
    warp->syncs = 0;
    memset(warp->seen, 0, sizeof warp->seen);
    memset(warp->defined, 0, (size_t)registers * sizeof *warp->defined);
    memset(warp->defined, 0xFF, SPECIALS * sizeof *warp->defined);
    specials_set(warp);
}

/* A permutation of [0, count) that the seed gives: i -> (first + i * stride) % count. */
struct order {
    uint64_t first, stride, count;
};

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9E3779B97F4A7C15ULL;
    return (x ^ x >> 29) * 0xBF58476D1CE4E5B9ULL >> 16;
}

static struct order order_of(uint64_t count, uint64_t seed)
{
    struct order o = {seed ? mixed(seed) % count : 0, seed ? mixed(seed + 1) % count : 1, count};
    for (;; o.stride++) {
        uint64_t a = o.stride, b = count;
        while (b) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1)
            return o;
    }
}

static uint64_t order_at(const struct order *o, uint64_t i)
{
    return (o->first + i * o->stride) % o->count; /* counts are below 2^32 */
}

/* All warps wait at the same barrier, or all have ended; anything else stops the launch. False: the block has ended. */
static bool barrier_pass(struct ptx_run *run)
{
    const struct ptx_warp *waits = NULL;
    unsigned waiting = 0;
    char text[256];
    for (unsigned i = 0; i < run->warps; i++)
        if (run->warp[i].live) {
            waits = &run->warp[i];
            waiting += (unsigned)__builtin_popcount(waits->live);
        }
    if (!waits)
        return false;
    const struct ptx_instr *at = &run->entry->instr[waits->group[0].pc];
    if (waiting != run->threads)
        ptx_stop(run, at, "%u threads wait at the barrier, %u have ended", waiting, run->threads - waiting);
    for (unsigned i = 0; i < run->warps; i++) {
        struct ptx_group *group = &run->warp[i].group[0];
        if (group->pc != waits->group[0].pc)
            ptx_stop(run, at, "warps wait at this barrier and at %s", ptx_where(text, &run->entry->instr[group->pc]));
    }
    for (unsigned i = 0; i < run->warps; i++) {
        run->warp[i].group[0].pc++;
        run->warp[i].group[0].state = RUNS;
    }
    run->epoch = ++epochs;
    return true;
}

static void block_run(struct ptx_run *run, uint64_t seed)
{
    run->epoch = run->epoch_block = ++epochs;
    memset(run->shared, 0xFF, run->shared_bytes);
    if (run->local_written)
        memset(run->local_written, 0, run->warps * WARP * run->entry->local_bytes);
    for (unsigned i = 0; i < run->warps; i++)
        warp_begin(&run->warp[i], run->threads);
    for (uint64_t round = 0;; round += 2) {
        struct order order = order_of(run->warps, seed ? seed + round : 0);
        for (unsigned i = 0; i < run->warps; i++)
            ptx_warp_run(&run->warp[order_at(&order, i)]);
        if (!barrier_pass(run))
            return;
    }
}

/* ---- a launch */

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (!memory)
        abort();
    return memory;
}

static void run_init(struct ptx_run *run)
{
    const struct ptx_launch *launch = run->launch;
    const struct ptx_entry *e = run->entry;
    run->threads = launch->block[0] * launch->block[1] * launch->block[2];
    run->warps = (run->threads + WARP - 1) / WARP;
    run->shared_bytes = (e->shared_bytes + 15) / 16 * 16 + launch->shared_bytes;
    run->shared = zeroed(run->shared_bytes + 16, 1);
    run->shared_trace = zeroed((run->shared_bytes >> e->granule[1]) + 1, sizeof *run->shared_trace);
    run->param = zeroed(e->param_bytes, 1);
    run->constant = zeroed((size_t)e->constants * WARP, sizeof *run->constant);
    memcpy(run->param, launch->params, e->param_bytes);
    for (int i = 0; i < e->constants * WARP; i++)
        run->constant[i] = e->constant[i / WARP];
    if (e->local_bytes) {
        run->local = zeroed(run->warps * WARP, e->local_bytes);
        run->local_written = zeroed(run->warps * WARP, e->local_bytes);
    }
    for (unsigned i = 0; i < run->warps; i++) {
        struct ptx_warp *warp = &run->warp[i];
        warp->run = run;
        warp->index = i;
        warp->reg = zeroed((size_t)e->registers * WARP, sizeof *warp->reg);
        warp->defined = zeroed((size_t)e->registers, sizeof *warp->defined);
    }
}

static void run_fini(struct ptx_run *run)
{
    for (unsigned i = 0; i < run->warps; i++) {
        free(run->warp[i].reg);
        free(run->warp[i].defined);
    }
    free(run->shared);
    free(run->shared_trace);
    free(run->param);
    free(run->constant);
    free(run->local);
    free(run->local_written);
    free(run);
}

static void blocks_run(struct ptx_run *run)
{
    const unsigned *grid = run->launch->grid;
    uint64_t count = (uint64_t)grid[0] * grid[1] * grid[2], seed = run->launch->seed;
    struct order order = order_of(count, seed);
    run->epoch_launch = epochs + 1;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = order_at(&order, i);
        run->block[0] = (unsigned)(at % grid[0]);
        run->block[1] = (unsigned)(at / grid[0] % grid[1]);
        run->block[2] = (unsigned)(at / grid[0] / grid[1]);
        block_run(run, seed ? mixed(seed + i + 2) | 1 : 0);
    }
}

int ptx_run(const struct ptx_launch *launch, char error[PTX_ERROR_BYTES])
{
    struct ptx_run *run = zeroed(1, sizeof *run);
    struct ptx_entry *entry = (struct ptx_entry *)(uintptr_t)launch->entry;
    fenv_t before;
    run->launch = launch;
    run->entry = entry;
    run->error = error;
    entry->module->approximate = launch->approximate;
    entry->launches++;
    if (launch->block[0] * launch->block[1] * launch->block[2] > entry->threads_most) {
        snprintf(error, PTX_ERROR_BYTES, "%s: blocks of more than %u threads", entry->name, entry->threads_most);
        free(run);
        return -1;
    }
    run_init(run);
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    int stopped = setjmp(run->stop);
    if (!stopped)
        blocks_run(run);
    fesetenv(&before);
    run_fini(run);
    return stopped ? -1 : 0;
}
