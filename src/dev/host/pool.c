#include "dev/host/pool.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "dev/host/clock.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { POOL_SPINS = 2000, POOL_LINE = 64 };

typedef void (*piece_function)(void *context, int index, int worker);

/* A job is published as (generation, pieces left) in `ticket`; the thread that lowers it by compare-and-swap owns the
 * piece with that index. A worker that wakes up late fails the swap, since a finished job's ticket has no pieces left
 * and a new job's generation differs. So the caller never waits for sleepers, only for pieces that were taken. */
struct ah_pool {
    int threads, core;
    pthread_t *thread; /* threads of workers 1.. */
    int started;
    struct pool_worker *worker;
    char *scratch_memory;
    pthread_mutex_t lock;
    pthread_cond_t more, done;
    _Atomic(piece_function) piece;
    _Atomic(void *) context;
    atomic_int count;
    atomic_bool stop;
    char apart[3][POOL_LINE]; /* members that workers write are on cache lines of their own */
    atomic_uint_fast64_t ticket;
    char apart_finished[POOL_LINE];
    atomic_int finished; /* pieces of the current job that are done */
    char apart_sleepers[POOL_LINE];
    atomic_int sleepers;
    double partial[AH_POOL_PARTIALS];
};

struct pool_worker {
    struct ah_pool *pool;
    int index;
};

void ah__host_denormals_off(void)
{
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040U); /* flush-to-zero and denormals-are-zero */
#endif
}

void ah__host_pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    /* A core that does not exist or is not ours is no error: the thread then runs on any core. */
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void enter(const struct ah_pool *pool, int worker)
{
    ah__host_denormals_off();
    omp_set_num_threads(1);
    if (pool->core >= 0)
        ah__host_pin(pool->core + worker);
}

void ah__pool_enter(struct ah_pool *pool)
{
    enter(pool, 0);
}

static int left(uint_fast64_t ticket)
{
    return (int)(ticket & 0xFFFFFFFFU);
}

static void finish_one(struct ah_pool *pool, int worker)
{
    int count = atomic_load(&pool->count);
    if (atomic_fetch_add(&pool->finished, 1) + 1 < count || worker == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->lock);
}

/* Runs pieces until none is left. Returns true if it got any. */
static bool work(struct ah_pool *pool, int worker)
{
    bool worked = false;
    uint_fast64_t ticket = atomic_load(&pool->ticket);
    while (left(ticket) > 0) {
        piece_function piece = atomic_load(&pool->piece);
        void *context = atomic_load(&pool->context);
        if (!atomic_compare_exchange_weak(&pool->ticket, &ticket, ticket - 1))
            continue;
        piece(context, left(ticket) - 1, worker);
        finish_one(pool, worker);
        worked = true;
        ticket = atomic_load(&pool->ticket);
    }
    return worked;
}

static void sleep_until_more(struct ah_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1);
    while (left(atomic_load(&pool->ticket)) == 0 && !atomic_load(&pool->stop))
        pthread_cond_wait(&pool->more, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
}

static void *worker_main(void *argument)
{
    struct pool_worker *self = argument;
    struct ah_pool *pool = self->pool;
    enter(pool, self->index);
    int spins = 0;
    while (!atomic_load(&pool->stop)) {
        if (work(pool, self->index)) {
            spins = 0;
        } else if (++spins < POOL_SPINS) {
            ah__host_pause();
        } else {
            sleep_until_more(pool);
            spins = 0;
        }
    }
    return NULL;
}

static void wake_sleepers(struct ah_pool *pool)
{
    if (atomic_load(&pool->sleepers) == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
}

static void wait_finished(struct ah_pool *pool, int count)
{
    for (int spins = 0; spins < POOL_SPINS; spins++) {
        if (atomic_load(&pool->finished) == count)
            return;
        ah__host_pause();
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load(&pool->finished) < count)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void ah__pool_run(struct ah_pool *pool, void (*piece)(void *context, int index, int worker), int count, void *context)
{
    if (count <= 1 || pool->threads == 1) {
        for (int i = count; i-- > 0;)
            piece(context, i, 0);
        return;
    }
    uint_fast64_t generation = (atomic_load(&pool->ticket) >> 32) + 1;
    atomic_store(&pool->finished, 0);
    atomic_store(&pool->count, count);
    atomic_store(&pool->piece, piece);
    atomic_store(&pool->context, context);
    atomic_store(&pool->ticket, generation << 32 | (uint_fast64_t)count);
    wake_sleepers(pool);
    work(pool, 0);
    wait_finished(pool, count);
}

int ah__pool_threads(const struct ah_pool *pool)
{
    return pool->threads;
}

float *ah__pool_scratch(struct ah_pool *pool, int worker)
{
    uintptr_t start = ((uintptr_t)pool->scratch_memory + POOL_LINE - 1) / POOL_LINE * POOL_LINE;
    return (float *)start + (size_t)worker * AH_POOL_SCRATCH;
}

double *ah__pool_partials(struct ah_pool *pool)
{
    return pool->partial;
}

static int allocate(struct ah_pool *pool)
{
    size_t workers = (size_t)pool->threads;
    AH_TRY(ah__new(&pool->thread, workers, sizeof *pool->thread));
    AH_TRY(ah__new(&pool->worker, workers, sizeof *pool->worker));
    return ah__new(&pool->scratch_memory, workers * AH_POOL_SCRATCH * sizeof(float) + POOL_LINE, 1);
}

/* libgomp ends the process if it finds no memory for its data of a thread, so this checks for it first. */
int ah__host_thread_room(void)
{
    enum { ROOM_BYTES = 65536 };
    return ah__room(ROOM_BYTES);
}

static int start(struct ah_pool *pool)
{
    AH_TRY(allocate(pool));
    for (pool->started = 1; pool->started < pool->threads; pool->started++) {
        AH_TRY(ah__host_thread_room());
        struct pool_worker *worker = &pool->worker[pool->started];
        *worker = (struct pool_worker){pool, pool->started};
        int error = pthread_create(&pool->thread[pool->started], NULL, worker_main, worker);
        if (error)
            return ah__fail(AH_EDEVICE, "cannot start worker thread %d of %d: %s", pool->started + 1, pool->threads,
                            strerror(error));
    }
    return AH_OK;
}

int ah__pool_new(struct ah_pool **out, int threads, int core)
{
    struct ah_pool *pool;
    if (threads < 1)
        return ah__fail(AH_EINTERNAL, "a pool of %d threads, expected at least 1", threads);
    AH_TRY(ah__new(&pool, 1, sizeof *pool));
    /* OpenMP reads the environment when it is first called: do it here, where the caller cannot change it meanwhile. */
    (void)omp_get_max_threads();
    pool->threads = threads;
    pool->core = core;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->more, NULL);
    pthread_cond_init(&pool->done, NULL);
    int status = start(pool);
    if (status != AH_OK) {
        ah__pool_free(pool);
        return status;
    }
    *out = pool;
    return AH_OK;
}

void ah__pool_free(struct ah_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->more);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 1; i < pool->started; i++)
        pthread_join(pool->thread[i], NULL);
    pthread_cond_destroy(&pool->more);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    ah__free(pool->scratch_memory);
    ah__free(pool->worker);
    ah__free(pool->thread);
    ah__free(pool);
}
