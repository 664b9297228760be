#include "dev/host/normal.h"

#include <math.h>
#include <string.h>

#include "dev/host/isa.h"
#include "dev/host/job.h"
#include "dev/host/machine.h"

#if defined(__x86_64__)
#define TARGET(names) __attribute__((target(names)))
#else
#define TARGET(names)
#endif
/* Written for one number and compiled for many: loops over a block without branches, which compilers vectorise. It uses
 * only sums and products, in one order, never contracted, so every instruction set rounds alike. */
#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = 64, JOBS_MOST = 64, JOB_LEAST = 1 << 16 };

static const uint64_t golden = 0x9e3779b97f4a7c15U;

INLINE double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

INLINE uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* Returns 53 bits as a number in [0, 1), exactly: 52 of them after a leading one, the last separately. */
INLINE double unit(uint64_t bits)
{
    uint64_t last = -(bits >> 11 & 1);
    return double_of(bits >> 12 | 0x3ff0000000000000U) - 1.0 + double_of(last & 0x3ca0000000000000U);
}

/* Returns log x for x in [2^-53, 1]: x = 2^e m with m around 1, and log m = 2 artanh((m - 1) / (m + 1)). */
INLINE double logarithm(double x)
{
    const uint64_t half_root = 0x3fe6a09e667f3bcdU; /* sqrt(1/2), where the range of m begins */
    const double ln2 = 0.693147180559945309417;
    uint64_t moved = bits_of(x) + (0x3ff0000000000000U - half_root);
    double m = double_of((moved & 0xfffffffffffffU) + half_root);
    double e = double_of(0x4330000000000000U | moved >> 52) - (0x1p52 + 1023.0);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double sum = 1.0 / 17;
    sum = sum * z + 1.0 / 15;
    sum = sum * z + 1.0 / 13;
    sum = sum * z + 1.0 / 11;
    sum = sum * z + 1.0 / 9;
    sum = sum * z + 1.0 / 7;
    sum = sum * z + 1.0 / 5;
    sum = sum * z + 1.0 / 3;
    sum = sum * z + 1.0;
    return e * ln2 + 2.0 * s * sum;
}

/* Returns cos(2 pi u): removes the nearest quarter turn, then uses Taylor's series of sine and cosine within an
 * eighth. */
INLINE double cosine_of_turns(double u)
{
    const double two_pi = 6.283185307179586476925, round = 0x1.8p52;
    double nearest = 4.0 * u + round;
    uint64_t quarter = bits_of(nearest);
    double a = two_pi * (u - 0.25 * (nearest - round)), z = a * a;
    double c = 1.0 / 20922789888000.0, s = -1.0 / 1307674368000.0;
    c = c * z - 1.0 / 87178291200.0;
    c = c * z + 1.0 / 479001600.0;
    c = c * z - 1.0 / 3628800.0;
    c = c * z + 1.0 / 40320.0;
    c = c * z - 1.0 / 720.0;
    c = c * z + 1.0 / 24.0;
    c = c * z - 0.5;
    c = c * z + 1.0;
    s = s * z + 1.0 / 6227020800.0;
    s = s * z - 1.0 / 39916800.0;
    s = s * z + 1.0 / 362880.0;
    s = s * z - 1.0 / 5040.0;
    s = s * z + 1.0 / 120.0;
    s = s * z - 1.0 / 6.0;
    s = s * z * a + a;
    uint64_t odd = -(quarter & 1), value = (bits_of(s) & odd) | (bits_of(c) & ~odd);
    return double_of(value ^ ((quarter + 1) & 2) << 62);
}

/* Fills the array; `stream` is mixed already. */
INLINE void fill(float *to, int64_t count, uint64_t stream, uint64_t first, double std)
{
    for (int64_t at = 0; at < count; at += BLOCK) {
        float block[BLOCK];
        int64_t length = count - at < BLOCK ? count - at : BLOCK;
        uint64_t position = stream + (2 * (first + (uint64_t)at) + 1) * golden;
        for (uint64_t i = 0; i < BLOCK; i++) {
            double distance = 1.0 - unit(mix(position + 2 * i * golden));
            double turns = unit(mix(position + (2 * i + 1) * golden));
            block[i] = (float)(sqrt(-2.0 * logarithm(distance)) * cosine_of_turns(turns) * std);
        }
        memcpy(to + at, block, (size_t)length * sizeof *to);
    }
}

static TARGET("avx512f,avx512dq,avx512vl") void fill_avx512(float *to, int64_t count, uint64_t stream, uint64_t first,
                                                            double std)
{
    fill(to, count, stream, first, std);
}

static TARGET("avx2") void fill_avx2(float *to, int64_t count, uint64_t stream, uint64_t first, double std)
{
    fill(to, count, stream, first, std);
}

static void fill_plain(float *to, int64_t count, uint64_t stream, uint64_t first, double std)
{
    fill(to, count, stream, first, std);
}

struct part {
    struct ah_job job;
    float *to;
    int64_t count;
    uint64_t stream, first;
    double std;
};

static int part_fill(void *context)
{
    static void (*const fills[AH_ISA_COUNT])(float *to, int64_t count, uint64_t stream, uint64_t first, double std) = {
        [AH_ISA_AVX512] = fill_avx512, [AH_ISA_AVX2] = fill_avx2, [AH_ISA_PLAIN] = fill_plain};
    const struct part *part = context;
    fills[ah__host_isa()](part->to, part->count, part->stream, part->first, part->std);
    return AH_OK;
}

void ah__normal_fill(float *to, int64_t count, uint64_t stream, uint64_t first, double std)
{
    struct part parts[JOBS_MOST] = {0};
    int64_t jobs = count / JOB_LEAST, cores = ah__host_cores(NULL);
    jobs = jobs < 1 ? 1 : jobs < cores ? jobs : cores;
    jobs = jobs < JOBS_MOST ? jobs : JOBS_MOST;
    for (int64_t i = 0; i < jobs; i++) {
        int64_t begin = count * i / jobs, end = count * (i + 1) / jobs;
        struct part *part = &parts[i];
        part->to = to + begin;
        part->count = end - begin;
        part->stream = mix(stream + golden);
        part->first = first + (uint64_t)begin;
        part->std = std;
        if (i == jobs - 1 || !ah__job_start(&part->job, part_fill, part))
            part_fill(part);
    }
    for (int64_t i = 0; i < jobs; i++)
        ah__job_wait(&parts[i].job);
}
