/* What the drive below a folder gives, several ways in turn with the same sizes: the library's scratch space
 * (src/dev/host/disk.h) as ah__disk_measure finds it; threads of this program that read and write without ever waiting
 * for each other, from huge pages, as the library's memory has them, and from pages of 4 KiB; and fio, where it is
 * installed, with threads and with io_uring.
 *
 *     disk_probe [--folders A,B] [--piece MIB] [--span MIB] [--threads N] [--rounds N] [--json]
 *
 * Medians of the rounds. "both" counts bytes read and written together: pieces in turn, in fio at random. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "dev/host/disk.h"

enum { REQUEST = 4 << 20, KINDS = 3, MOST_FILES = 16, MOST_ROUNDS = 32, MOST_THREADS = 64 };
enum way { LIBRARY, HUGE_PAGES, SMALL_PAGES, FIO_THREADS, FIO_URING, WAYS };
static const char *const way_names[WAYS] = {"ah__disk_measure", "plain threads", "plain, 4 KiB pages", "fio psync",
                                            "fio io_uring"};
static const char *const kind_names[KINDS] = {"read", "write", "both"};

struct probe {
    const char *folders;
    int piece_mib, span_mib, threads, rounds;
    int files, fd[MOST_FILES];
    char name[MOST_FILES][512];
    char *memory[2]; /* a request of each thread, in huge pages and in small ones */
    double rate[WAYS][KINDS][MOST_ROUNDS], latency_us[MOST_ROUNDS];
    bool with_fio; /* it is there, and the span is large enough */
};

static struct probe probe; /* one of the process: its files are removed when that exits */

static void die(const char *what)
{
    fprintf(stderr, "disk_probe: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- files with names, which fio needs --------------------------------------------------------------------------- */

static void files_remove(void)
{
    for (int i = 0; i < probe.files; i++)
        unlink(probe.name[i]);
}

static void files_open(struct probe *p)
{
    const char *list = p->folders;
    char folder[400];
    atexit(files_remove);
    while (p->files < MOST_FILES && bench_word(folder, sizeof folder, &list)) {
        char *name = p->name[p->files];
        snprintf(name, sizeof p->name[0], "%s/autohete-probe-XXXXXX", folder);
        int fd = mkostemp(name, O_CLOEXEC);
        if (fd < 0)
            die(name);
        p->fd[p->files++] = fd;
        if (fcntl(fd, F_SETFL, O_RDWR | O_DIRECT) != 0)
            fprintf(stderr, "disk_probe: %s: no direct I/O: %s\n", folder, strerror(errno));
    }
}

/* ---- plain threads ----------------------------------------------------------------------------------------------- */

struct stream {
    const struct probe *probe;
    int kind;
    int64_t count; /* requests */
    atomic_int_fast64_t next;
};

struct worker {
    struct stream *stream;
    char *memory;
    pthread_t thread;
};

static void *worker_main(void *argument)
{
    const struct worker *worker = argument;
    struct stream *stream = worker->stream;
    const struct probe *p = stream->probe;
    for (int64_t i; (i = atomic_fetch_add(&stream->next, 1)) < stream->count;) {
        int64_t piece = i * REQUEST / ((int64_t)p->piece_mib << 20);
        bool writes = stream->kind == 1 || (stream->kind == 2 && piece % 2);
        off_t at = (off_t)(i / p->files * REQUEST);
        int fd = p->fd[i % p->files];
        ssize_t got = writes ? pwrite(fd, worker->memory, REQUEST, at) : pread(fd, worker->memory, REQUEST, at);
        if (got != REQUEST)
            die(writes ? "write" : "read");
    }
    return NULL;
}

/* Bytes per second of a pass over the span. */
static double plain_run(const struct probe *p, enum way way, int kind)
{
    struct worker worker[MOST_THREADS];
    struct stream stream = {.probe = p, .kind = kind, .count = (int64_t)p->span_mib / 4};
    double start = bench_seconds();
    for (int i = 0; i < p->threads; i++) {
        worker[i] = (struct worker){.stream = &stream, .memory = p->memory[way == SMALL_PAGES] + (int64_t)i * REQUEST};
        if (pthread_create(&worker[i].thread, NULL, worker_main, &worker[i]) != 0)
            die("thread");
    }
    for (int i = 0; i < p->threads; i++)
        pthread_join(worker[i].thread, NULL);
    return (double)stream.count * REQUEST / (bench_seconds() - start);
}

/* ---- fio --------------------------------------------------------------------------------------------------------- */

/* Sums the rates that fio's terse output has in KiB/s in its 7th field (read) and 48th (written); 0: none. */
static double terse_rate(char *line)
{
    double sum = 0;
    int field = 1;
    for (char *word = strtok(line, ";"); word; word = strtok(NULL, ";"), field++)
        if (field == 7 || field == 48)
            sum += 1024 * strtod(word, NULL);
    return field > 48 ? sum : 0;
}

/* Over the first file alone. The variable has fio's memory in huge pages as far as it can be. */
static double fio_run(const struct probe *p, enum way way, int kind)
{
    static const char *const patterns[KINDS] = {"read", "write", "rw"};
    char command[1024], jobs[128], line[4096] = "";
    int each = p->span_mib / p->threads / 4 * 4;
    if (way == FIO_URING)
        snprintf(jobs, sizeof jobs, "--ioengine=io_uring --fixedbufs=1 --iodepth=%d --size=%dm", p->threads,
                 each * p->threads);
    else
        snprintf(jobs, sizeof jobs, "--ioengine=psync --thread --numjobs=%d --size=%dm --offset_increment=%dm",
                 p->threads, each, each);
    snprintf(command, sizeof command,
             "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 fio --name=probe --filename='%s' --rw=%s --bs=4m --direct=1 %s "
             "--fallocate=none --group_reporting --output-format=terse --terse-version=3 2>/dev/null",
             p->name[0], patterns[kind], jobs);
    FILE *from = popen(command, "r");
    if (!from)
        return 0;
    double rate = fgets(line, sizeof line, from) ? terse_rate(line) : 0;
    pclose(from);
    return rate;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void round_run(struct probe *p, int round)
{
    struct ah_disk_rates rates;
    BENCH(ah__disk_measure(&rates, p->folders, (int64_t)p->piece_mib << 20));
    p->rate[LIBRARY][0][round] = (double)rates.read_bytes_per_s;
    p->rate[LIBRARY][1][round] = (double)rates.write_bytes_per_s;
    p->rate[LIBRARY][2][round] = (double)rates.both_bytes_per_s;
    p->latency_us[round] = 1e-3 * (double)rates.latency_ns;
    for (int kind = 0; kind < KINDS; kind++) {
        for (enum way way = HUGE_PAGES; way <= SMALL_PAGES; way++)
            p->rate[way][kind][round] = plain_run(p, way, kind);
        for (enum way way = FIO_THREADS; way <= FIO_URING && p->with_fio; way++)
            p->rate[way][kind][round] = fio_run(p, way, kind);
    }
}

static void json_print(const struct probe *p, double rate[WAYS][KINDS], int ways, double latency_us)
{
    printf("{\"piece_mib\": %d, \"span_mib\": %d, \"threads\": %d, \"rounds\": %d, \"latency_us\": %.1f", p->piece_mib,
           p->span_mib, p->threads, p->rounds, latency_us);
    for (int way = 0; way < ways; way++)
        for (int kind = 0; kind < KINDS; kind++)
            printf(", \"%s %s\": %.4g", way_names[way], kind_names[kind], rate[way][kind]);
    printf("}\n");
}

static void table_print(const struct probe *p, double rate[WAYS][KINDS], int ways, double latency_us)
{
    printf("pieces of %d MiB in requests of 4 MiB, %d MiB, %d threads, medians of %d rounds, GiB/s\n", p->piece_mib,
           p->span_mib, p->threads, p->rounds);
    printf("%-18s %8s %8s %8s\n", "", kind_names[0], kind_names[1], kind_names[2]);
    for (int way = 0; way < ways; way++)
        printf("%-18s %8.3f %8.3f %8.3f\n", way_names[way], rate[way][0] / (1 << 30), rate[way][1] / (1 << 30),
               rate[way][2] / (1 << 30));
    printf("%-18s", "of plain threads");
    for (int kind = 0; kind < KINDS; kind++)
        printf(" %7.1f%%", 100 * rate[LIBRARY][kind] / rate[HUGE_PAGES][kind]);
    printf("\na read of 4096 bytes takes %.1f us\n", latency_us);
}

static void result_print(struct probe *p, bool json)
{
    double rate[WAYS][KINDS];
    int ways = p->with_fio ? WAYS : FIO_THREADS;
    for (int way = 0; way < ways; way++)
        for (int kind = 0; kind < KINDS; kind++)
            rate[way][kind] = bench_quantile(p->rate[way][kind], (size_t)p->rounds, 0.5);
    double latency = bench_quantile(p->latency_us, (size_t)p->rounds, 0.5);
    (json ? json_print : table_print)(p, rate, ways, latency);
}

/* Memory for a request of each thread, full of random bits; `advice` asks for huge pages or none. */
static char *memory_make(const struct probe *p, int advice)
{
    size_t bytes = (size_t)p->threads * REQUEST;
    void *memory;
    if (posix_memalign(&memory, REQUEST, bytes) != 0 || madvise(memory, bytes, advice) != 0)
        die("memory");
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        ((uint64_t *)memory)[i] = ah__random_bits(1, i);
    return memory;
}

int main(int argc, char **argv)
{
    struct probe *p = &probe;
    bool json = false;
    *p = (struct probe){.folders = "/tmp", .piece_mib = 32, .span_mib = 1024, .threads = 8, .rounds = 5};
    const struct bench_option options[] = {{"folders", BENCH_TEXT, &p->folders, "on the drives, separated by commas"},
                                           {"piece", BENCH_COUNT, &p->piece_mib, "MiB of a call"},
                                           {"span", BENCH_COUNT, &p->span_mib, "MiB that plain threads and fio move"},
                                           {"threads", BENCH_COUNT, &p->threads, "plain ones, and fio's"},
                                           {"rounds", BENCH_COUNT, &p->rounds, "of each way in turn"},
                                           {"json", BENCH_FLAG, &json, "one JSON object, in bytes per second"}};
    BENCH_OPTIONS(argc, argv, "The drive's rates: the library's scratch space beside plain threads and fio.", options);
    p->rounds = bench_least(p->rounds, MOST_ROUNDS);
    p->threads = bench_least(p->threads, MOST_THREADS);
    p->memory[0] = memory_make(p, MADV_HUGEPAGE);
    p->memory[1] = memory_make(p, MADV_NOHUGEPAGE);
    files_open(p);
    (void)plain_run(p, HUGE_PAGES, 1); /* where nothing was written before, drives are slower */
    p->with_fio = p->files == 1 && p->span_mib >= 4 * p->threads && fio_run(p, FIO_THREADS, 0) > 0;
    for (int round = 0; round < p->rounds; round++)
        round_run(p, round);
    result_print(p, json);
    free(p->memory[0]);
    free(p->memory[1]);
    return 0;
}
