/* Thread blocks. Threads run one after the other on one fibre; one that has to wait for others keeps the fibre it runs
 * on and the rest go on with another. So kernels without barriers are a loop over their threads. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fibre.h"
#include "inside.h"
#include "shared.h"

enum { THREADS_MOST = 1024, WARP = 32, WARPS_MOST = THREADS_MOST / WARP, PAGE = 4096, BALLOT = 255 };

__thread uint3 threadIdx __attribute__((tls_model("initial-exec")));
__thread uint3 blockIdx __attribute__((tls_model("initial-exec")));
__thread dim3 blockDim __attribute__((tls_model("initial-exec")));
__thread dim3 gridDim __attribute__((tls_model("initial-exec")));

enum thread_state { NOT_STARTED, READY, AT_BARRIER, AT_WARP, ENDED };

struct worker {
    struct fibre fibre;
    char *stack; /* or null: not made yet */
    bool idle;
};

struct thread {
    enum thread_state state;
    struct worker *worker;
    struct emulation_site site; /* where it waits */
};

/* What the lanes that wait gave. */
struct warp {
    unsigned arrived, mask[WARP];
    unsigned long long value[WARP], result[WARP];
    unsigned char from[WARP];
};

struct emulation_blocks {
    const struct emulation_launch *launch;
    struct fibre scheduler;
    struct worker worker[THREADS_MOST];
    struct thread thread[THREADS_MOST];
    struct warp warp[WARPS_MOST];
    unsigned threads, started, ended, at_barrier;
    unsigned current; /* the running thread */
    struct worker *running;
    unsigned first, stride; /* order in which threads start */
    int failed;
    char *stacks;
    struct shared shared;
};

static __thread struct emulation_blocks *here __attribute__((tls_model("initial-exec")));

/* ---- names */

static const char *kernel_name(const void *kernel)
{
    static __thread char name[256];
    Dl_info info;
    if (!dladdr(kernel, &info) || !info.dli_fname)
        snprintf(name, sizeof name, "the kernel at %p", kernel);
    else if (info.dli_sname)
        snprintf(name, sizeof name, "%s", info.dli_sname);
    else
        snprintf(name, sizeof name, "the kernel at %s+0x%zx", info.dli_fname,
                 (size_t)((const char *)kernel - (const char *)info.dli_fbase));
    return name;
}

static void block_fail(int error, const char *text)
{
    here->failed =
        emulation_object(error, "%s (%s, block %u,%u,%u of %u threads)", text, kernel_name(here->launch->kernel),
                         blockIdx.x, blockIdx.y, blockIdx.z, here->threads);
}

/* ---- fibres and threads */

static void thread_enter(unsigned thread)
{
    dim3 block = here->launch->block;
    here->current = thread;
    threadIdx.x = thread % block.x;
    threadIdx.y = thread / block.x % block.y;
    threadIdx.z = thread / block.x / block.y;
}

/* A worker: starts threads while there are any, then waits for more. */
static void worker_main(void)
{
    for (;;) {
        while (here->started < here->threads && !here->failed) {
            unsigned thread = (here->first + here->started++ * here->stride) % here->threads;
            thread_enter(thread);
            here->launch->run(here->launch->bound);
            here->thread[here->current].state = ENDED;
            here->ended++;
        }
        here->running->idle = true;
        fibre_switch(&here->running->fibre, &here->scheduler);
    }
}

static void worker_run(struct worker *worker)
{
    worker->idle = false;
    here->running = worker;
    fibre_switch(&here->scheduler, &worker->fibre);
}

static void worker_make(struct worker *worker)
{
    size_t index = (size_t)(worker - here->worker);
    worker->stack = here->stacks + index * FIBRE_STACK_BYTES;
    mprotect(worker->stack, PAGE, PROT_NONE);
    fibre_init(&worker->fibre, worker->stack, worker_main);
    worker->idle = true;
}

static struct worker *worker_idle(void)
{
    for (unsigned i = 0;; i++) {
        if (!here->worker[i].stack)
            worker_make(&here->worker[i]);
        if (here->worker[i].idle)
            return &here->worker[i];
    }
}

/* The running thread waits; returns when another has made it READY. */
static void park(enum thread_state state)
{
    unsigned thread = here->current;
    struct worker *worker = here->running;
    here->thread[thread].state = state;
    here->thread[thread].worker = worker;
    fibre_switch(&worker->fibre, &here->scheduler);
    thread_enter(thread);
}

/* After a failure no thread of the block goes on. */
static void stop(int error, const char *text)
{
    if (!here->failed)
        block_fail(error, text);
    park(AT_BARRIER);
}

static void workers_forget(void)
{
    for (unsigned i = 0; i < THREADS_MOST && here->worker[i].stack; i++) {
        fibre_init(&here->worker[i].fibre, here->worker[i].stack, worker_main);
        here->worker[i].idle = true;
    }
}

/* ---- what threads call */

void *emulation_shared(void)
{
    return here->shared.dynamic;
}

static bool same_site(const struct emulation_site *a, const struct emulation_site *b)
{
    return a->line == b->line && (a->file == b->file || strcmp(a->file, b->file) == 0);
}

void emulation_barrier(const struct emulation_site *site)
{
    here->thread[here->current].site = *site;
    here->at_barrier++;
    park(AT_BARRIER);
}

void emulation_trap(const struct emulation_site *site, const char *why)
{
    char text[256];
    snprintf(text, sizeof text, "%s in %s, %s:%d, thread %u", why, site->function, site->file, site->line,
             here->current);
    stop(cudaErrorLaunchFailure, text);
}

unsigned emulation_lane(void)
{
    return here->current % WARP;
}

/* What each lane of the mask gets. */
static void warp_exchange(struct warp *warp, unsigned mask)
{
    unsigned long long votes = 0;
    for (unsigned lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1 && warp->from[lane] == BALLOT)
            votes |= warp->value[lane] << lane;
    for (unsigned lane = 0; lane < WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        unsigned from = warp->from[lane];
        if (from == BALLOT)
            warp->result[lane] = votes;
        else
            warp->result[lane] = mask >> from & 1 ? warp->value[from] : ~0ULL;
    }
    warp->arrived &= ~mask;
}

/* Whether the lanes of the mask wait in the same place with the same mask; else the block fails. */
static bool warp_agrees(const struct warp *warp, unsigned mask, const struct emulation_site *site)
{
    unsigned base = here->current / WARP * WARP;
    char text[512];
    for (unsigned lane = 0; lane < WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        const struct emulation_site *other = &here->thread[base + lane].site;
        if (warp->mask[lane] == mask && same_site(site, other))
            continue;
        snprintf(text, sizeof text,
                 "a warp diverged: thread %u in %s, %s:%d, with mask %08x; thread %u in %s, %s:%d, "
                 "with mask %08x",
                 here->current, site->function, site->file, site->line, mask, base + lane, other->function, other->file,
                 other->line, warp->mask[lane]);
        stop(cudaErrorLaunchFailure, text);
        return false;
    }
    return true;
}

static unsigned long long warp_wait(const struct emulation_site *site, unsigned mask, unsigned long long value,
                                    unsigned from)
{
    unsigned lane = here->current % WARP, base = here->current - lane;
    struct warp *warp = &here->warp[here->current / WARP];
    if (!(mask >> lane & 1))
        emulation_trap(site, "a mask without the lane that calls");
    warp->arrived |= 1U << lane;
    warp->mask[lane] = mask;
    warp->value[lane] = value;
    warp->from[lane] = (unsigned char)from;
    here->thread[here->current].site = *site;
    if ((warp->arrived & mask) != mask) {
        park(AT_WARP);
        return warp->result[lane];
    }
    if (!warp_agrees(warp, mask, site))
        return 0;
    warp_exchange(warp, mask);
    for (unsigned other = 0; other < WARP; other++)
        if (mask >> other & 1 && other != lane)
            here->thread[base + other].state = READY;
    return warp->result[lane];
}

unsigned long long emulation_shuffle(const struct emulation_site *site, unsigned mask, unsigned long long value,
                                     unsigned from_lane)
{
    return warp_wait(site, mask, value, from_lane % WARP);
}

unsigned emulation_ballot(const struct emulation_site *site, unsigned mask, int predicate)
{
    return (unsigned)warp_wait(site, mask, predicate != 0, BALLOT);
}

/* ---- one block */

static void barrier_release(void)
{
    for (unsigned i = 0; i < here->threads; i++)
        here->thread[i].state = READY;
    here->at_barrier = 0;
}

static void deadlock(void)
{
    const struct thread *first = NULL, *other = NULL;
    char text[768];
    unsigned waiting = 0;
    for (unsigned i = 0; i < here->threads; i++) {
        const struct thread *thread = &here->thread[i];
        if (thread->state == ENDED)
            continue;
        waiting++;
        if (!first)
            first = thread;
        else if (!other && !same_site(&first->site, &thread->site))
            other = thread;
    }
    int length = snprintf(text, sizeof text, "a block is stuck: %u threads wait, %s in %s, %s:%d", waiting,
                          first->state == AT_BARRIER ? "at the barrier" : "for lanes of a warp", first->site.function,
                          first->site.file, first->site.line);
    if (other)
        length += snprintf(text + length, sizeof text - (size_t)length, ", others %s in %s, %s:%d",
                           other->state == AT_BARRIER ? "at the barrier" : "for lanes of a warp", other->site.function,
                           other->site.file, other->site.line);
    if (here->ended)
        snprintf(text + length, sizeof text - (size_t)length, "; %u have ended", here->ended);
    block_fail(cudaErrorLaunchFailure, text);
}

static bool same_barrier(void)
{
    if (here->at_barrier != here->threads)
        return false;
    for (unsigned i = 1; i < here->threads; i++)
        if (!same_site(&here->thread[0].site, &here->thread[i].site))
            return false;
    return true;
}

static bool ready_run(void)
{
    bool any = false;
    for (unsigned i = 0; i < here->threads && !here->failed; i++)
        if (here->thread[i].state == READY) {
            any = true;
            worker_run(here->thread[i].worker);
        }
    return any;
}

static void threads_run(void)
{
    while (!here->failed) {
        if (here->started < here->threads)
            worker_run(worker_idle());
        else if (here->ended == here->threads)
            return;
        else if (ready_run())
            continue;
        else if (same_barrier())
            barrier_release();
        else
            deadlock();
    }
    workers_forget();
}

static void block_run(unsigned x, unsigned y, unsigned z, uint64_t seed)
{
    blockIdx.x = x;
    blockIdx.y = y;
    blockIdx.z = z;
    here->started = here->ended = here->at_barrier = 0;
    here->first = (unsigned)(seed % here->threads);
    here->stride = seed >> 32 & 1 ? here->threads - 1 : 1; /* downwards or upwards */
    for (unsigned i = 0; i < here->threads; i++)
        here->thread[i].state = NOT_STARTED;
    for (unsigned i = 0; i < WARPS_MOST; i++)
        here->warp[i].arrived = 0;
    shared_block_begin(&here->shared, here->launch->shared_bytes);
    threads_run();
    if (!shared_block_end(&here->shared) && !here->failed)
        block_fail(cudaErrorIllegalAddress, "a block wrote behind its dynamic shared memory");
}

/* ---- a launch */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int emulation_blocks_run(struct emulation_blocks *blocks, const struct emulation_launch *launch, uint64_t seed)
{
    dim3 grid = launch->grid;
    uint64_t count = (uint64_t)grid.x * grid.y * grid.z;
    uint64_t first = seed ? emulation_random(seed, 0) % count : 0;
    uint64_t stride = seed ? emulation_random(seed, 1) % count : 1;
    while (common_divisor(stride ? stride : count, count) != 1)
        stride++;
    here = blocks;
    blocks->launch = launch;
    blocks->threads = launch->block.x * launch->block.y * launch->block.z;
    blocks->failed = 0;
    blockDim = launch->block;
    gridDim = grid;
    shared_kernel_begin(&blocks->shared, launch->kernel);
    for (uint64_t i = 0, at = first; i < count && !blocks->failed; i++, at = (at + stride) % count)
        block_run((unsigned)(at % grid.x), (unsigned)(at / grid.x % grid.y), (unsigned)(at / grid.x / grid.y),
                  seed ? emulation_random(seed, i + 2) : 0);
    return blocks->failed;
}

struct emulation_blocks *emulation_blocks_new(void)
{
    struct emulation_blocks *blocks = calloc(1, sizeof *blocks);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    if (!blocks)
        abort();
    blocks->stacks = mmap(NULL, (size_t)THREADS_MOST * FIBRE_STACK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (blocks->stacks == MAP_FAILED)
        abort();
    shared_init(&blocks->shared);
    return blocks;
}

void emulation_blocks_free(struct emulation_blocks *blocks)
{
    munmap(blocks->stacks, (size_t)THREADS_MOST * FIBRE_STACK_BYTES);
    shared_fini(&blocks->shared);
    free(blocks);
}
