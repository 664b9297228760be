#include "dev/host/clock.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/hash.h"

enum { NS_PER_S = 1000000000 };

int64_t ah__host_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t ah__host_jitter_ns(uint64_t seed, int lane, uint64_t draw)
{
    enum { MOST_NS = 200000 };
    uint64_t bits = ah__random_bits(ah__hash_int((uint64_t)lane, seed), draw);
    return bits >> 62 ? 0 : (int64_t)(bits % (MOST_NS + 1));
}

void ah__host_sleep_until(int64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = deadline_ns / NS_PER_S, .tv_nsec = deadline_ns % NS_PER_S};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
        ;
}

void ah__host_pause(void)
{
#if defined(__x86_64__)
    _mm_pause();
#endif
}

void ah__host_transfer(void *to, const void *from, int64_t bytes, int64_t bytes_per_s)
{
    if (bytes_per_s == 0) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    /* A piece takes about 200 us, so that neither the sleeps nor the bursts between them disturb the other lanes. */
    enum { LEAST_PIECE = 64 << 10, PIECES_PER_S = 5000 };
    int64_t piece = bytes_per_s / PIECES_PER_S;
    piece = piece < LEAST_PIECE ? LEAST_PIECE : piece;
    int64_t start = ah__host_now_ns();
    for (int64_t at = 0; at < bytes;) {
        int64_t now = bytes - at < piece ? bytes - at : piece;
        memcpy((char *)to + at, (const char *)from + at, (size_t)now);
        at += now;
        double due_ns = (double)at / (double)bytes_per_s * 1e9;
        ah__host_sleep_until(start + (int64_t)due_ns + 1);
    }
}
