/* The worker pool: every piece once, failures of setup, the floating-point mode of workers, and oneDNN without threads.
 */
#include "dev/cpu/cases.h"

#include <dirent.h>
#include <stdatomic.h>

struct marks {
    atomic_int seen[500];
    atomic_int wrong_worker;
    int threads;
};

static void mark(void *context, int index, int worker)
{
    struct marks *marks = context;
    atomic_fetch_add(&marks->seen[index], 1);
    if (worker < 0 || worker >= marks->threads)
        atomic_store(&marks->wrong_worker, 1);
}

static void every_piece_runs_once(void **state)
{
    static struct marks marks;
    for (int threads = 1; threads <= 4; threads++) {
        struct test_pool p = pool_begin(threads);
        assert_int_equal(ah__pool_threads(p.pool), threads);
        marks.threads = threads;
        for (int round = 0; round < 300; round++) {
            int count = round % 2 ? 500 : round % 7;
            memset(marks.seen, 0, sizeof marks.seen);
            ah__pool_run(p.pool, mark, count, &marks);
            for (int i = 0; i < 500; i++)
                assert_int_equal(atomic_load(&marks.seen[i]), i < count);
        }
        pool_end(&p);
    }
    assert_int_equal(atomic_load(&marks.wrong_worker), 0);
}

/* Each worker meets the others here, so that all of them have run a piece. */
struct meeting {
    int threads;
    atomic_int arrived, kept_denormal, misplaced;
    struct ah_pool *pool;
};

static void meet(void *context, int index, int worker)
{
    struct meeting *meeting = context;
    volatile float tiny = 1e-40F, half_normal = 1.2e-38F;
    volatile float product = tiny * 1e10F, halved = half_normal * 0.5F;
    if (product != 0 || halved != 0)
        atomic_store(&meeting->kept_denormal, 1);
    float *scratch = ah__pool_scratch(meeting->pool, worker);
    if ((uintptr_t)scratch % 64 != 0)
        atomic_store(&meeting->misplaced, 1);
    memset(scratch, worker, AH_POOL_SCRATCH * sizeof *scratch);
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < meeting->threads)
        ;
    if (((char *)scratch)[0] != (char)worker || ((char *)(scratch + AH_POOL_SCRATCH))[-1] != (char)worker)
        atomic_store(&meeting->misplaced, 1);
}

static void workers_flush_denormals_and_own_scratch(void **state)
{
    struct test_pool p = pool_begin(3);
    struct meeting meeting = {.threads = 3, .pool = p.pool};
    ah__pool_run(p.pool, meet, 3, &meeting);
#if defined(__x86_64__)
    assert_int_equal(atomic_load(&meeting.kept_denormal), 0);
#endif
    assert_int_equal(atomic_load(&meeting.misplaced), 0);
    pool_end(&p);
}

static int threads_of_process(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = 0;
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 2;
}

static void products_start_no_threads_and_allocate_nothing_of_ours(void **state)
{
    enum { N = 700 };
    float *memory = calloc(3 * N * N, sizeof *memory);
    assert_non_null(memory);
    struct test_pool p = pool_begin(2);
    int before = threads_of_process();
    uint64_t allocations = ah__alloc_count();
    struct ah_gemm gemm = {.m = N,
                           .n = N,
                           .k = N,
                           .a = memory,
                           .b = memory + N * N,
                           .c = memory + 2 * N * N,
                           .lda = N,
                           .ldb = N,
                           .ldc = N,
                           .grid = ah__cpu_gemm_grid(N, N)};
    assert_ok(ah__cpu_gemm(p.pool, &gemm));
    assert_int_equal(threads_of_process(), before);
    assert_true(ah__alloc_count() == allocations);
    pool_end(&p);
    free(memory);
}

static void failed_allocation_leaves_nothing(void **state)
{
    for (uint64_t n = 1; n <= 4; n++) {
        struct ah_pool *pool = NULL;
        ah__alloc_fail_at(n);
        assert_fails(ah__pool_new(&pool, 2, -1), AH_ENOMEM, "out of host memory");
        ah__alloc_fail_at(0);
        assert_null(pool);
    }
    struct ah_pool *pool = NULL;
    assert_fails(ah__pool_new(&pool, 0, -1), AH_EINTERNAL, "expected at least 1");
    ah__pool_free(NULL);
}

AH_TEST_CASES("dev/host/pool", every_piece_runs_once, workers_flush_denormals_and_own_scratch,
              products_start_no_threads_and_allocate_nothing_of_ours, failed_allocation_leaves_nothing)
