/* Rates of the drives below scratch space, as ah__disk_measure gives them. */
#include <stdlib.h>

#include "base/hash.h"
#include "dev/host/clock.h"
#include "dev/host/disk.h"
#include "dev/host/pages.h"

enum { ROUNDS = 15, PHASES = 3, READS = 65, NS_PER_S = 1000000000 };

/* Times in ns: for writing the scratch first, since drives are slower where nothing was written before; for reads of a
 * page; for each phase of a round; for all. */
static const int64_t fill_ns = 500000000, page_ns = 100000000, phase_ns = 50000000, all_ns = 2000000000;
static const int64_t most_bytes = (int64_t)1 << 30;

struct probe {
    struct ah_disk *disk;
    char *memory; /* of a piece */
    int64_t piece, pieces, next;
    int64_t start_ns;
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

/* Reads or writes the next piece, from the first one on again behind the last. */
static int piece_move(struct probe *probe, bool writes)
{
    int64_t offset = probe->next++ % probe->pieces * probe->piece;
    return writes ? ah__disk_write(probe->disk, offset, probe->memory, probe->piece)
                  : ah__disk_read(probe->disk, probe->memory, offset, probe->piece);
}

/* Writes as much of the scratch as the time allows, which is what all else then uses. */
static int fill(struct probe *probe)
{
    int64_t done = 0;
    do
        AH_TRY(piece_move(probe, true));
    while (++done < probe->pieces && ah__host_now_ns() - probe->start_ns < fill_ns);
    probe->pieces = done;
    return AH_OK;
}

/* Gives bytes per second of `calls` calls; phase 0 reads, 1 writes, 2 does both in turn. */
static int phase_run(int64_t *rate, struct probe *probe, int phase, int64_t calls)
{
    int64_t start = ah__host_now_ns();
    for (int64_t i = 0; i < calls; i++)
        AH_TRY(piece_move(probe, phase == 1 || (phase == 2 && i % 2)));
    int64_t ns = ah__host_now_ns() - start;
    *rate = (int64_t)((double)calls * (double)probe->piece * NS_PER_S / (double)(ns > 0 ? ns : 1));
    return AH_OK;
}

static int latency_find(int64_t *out, struct probe *probe)
{
    int64_t ns[READS], pages = probe->pieces * probe->piece / AH_DISK_ALIGN, begun = ah__host_now_ns();
    int count = 0;
    do {
        int64_t page = (int64_t)(ah__random_bits(1, (uint64_t)count) % (uint64_t)pages), start = ah__host_now_ns();
        AH_TRY(ah__disk_read(probe->disk, probe->memory, page * AH_DISK_ALIGN, AH_DISK_ALIGN));
        ns[count++] = ah__host_now_ns() - start;
    } while (count < READS && ah__host_now_ns() - begun < page_ns);
    *out = median(ns, count);
    return AH_OK;
}

/* Runs the phases in turn until the time is over, each in so many calls as take `phase_ns` by the rate of the first. */
static int rounds_run(struct ah_disk_rates *out, struct probe *probe)
{
    int64_t rate[PHASES][ROUNDS], calls = 2;
    int rounds = 0;
    do {
        for (int phase = 0; phase < PHASES; phase++)
            AH_TRY(phase_run(&rate[phase][rounds], probe, phase, calls));
        int64_t in_phase = (int64_t)((double)rate[1][0] / NS_PER_S * (double)phase_ns / (double)probe->piece);
        calls = in_phase > 2 ? in_phase / 2 * 2 : 2;
    } while (++rounds < ROUNDS && ah__host_now_ns() - probe->start_ns < all_ns);
    out->read_bytes_per_s = median(rate[0], rounds);
    out->write_bytes_per_s = median(rate[1], rounds);
    out->both_bytes_per_s = median(rate[2], rounds);
    return AH_OK;
}

static int probe_run(struct ah_disk_rates *out, struct probe *probe)
{
    uint64_t *words = (uint64_t *)(void *)probe->memory; /* that no drive can make smaller */
    for (int64_t i = 0; i < probe->piece / (int64_t)sizeof *words; i++)
        words[i] = ah__random_bits(2, (uint64_t)i);
    probe->start_ns = ah__host_now_ns();
    AH_TRY(fill(probe));
    AH_TRY(latency_find(&out->latency_ns, probe));
    return rounds_run(out, probe);
}

int ah__disk_measure(struct ah_disk_rates *out, const char *folders, int64_t piece)
{
    struct probe probe = {.disk = NULL};
    struct ah_pages pages;
    struct ah_disk_rates rates = {0};
    if (piece < AH_DISK_ALIGN || piece % AH_DISK_ALIGN)
        return ah__fail(AH_EINTERNAL, "pieces of %lld bytes, expected a multiple of %d", (long long)piece,
                        AH_DISK_ALIGN);
    AH_TRY(ah__disk_free_bytes(&rates.free_bytes, folders));
    int64_t most = rates.free_bytes / 8 < most_bytes ? rates.free_bytes / 8 : most_bytes;
    probe.piece = piece < most ? piece : most / AH_DISK_ALIGN * AH_DISK_ALIGN;
    if (!probe.piece)
        return ah__fail(AH_EIO, "%s: found %lld bytes free, expected more to measure the drive", folders,
                        (long long)rates.free_bytes);
    probe.pieces = most / probe.piece;
    AH_TRY(ah__disk_open(&probe.disk, folders, probe.pieces * probe.piece, 0));
    int status = ah__pages_new(&pages, probe.piece, "measuring the drive");
    if (status == AH_OK) {
        probe.memory = pages.base;
        status = probe_run(&rates, &probe);
        ah__pages_free(&pages);
    }
    ah__disk_close(probe.disk);
    if (status == AH_OK)
        *out = rates;
    return status;
}
