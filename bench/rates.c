/* The rates a step cannot beat on this machine, for bench/step: of products in each dtype, and of scaling in place.
 *
 *     rates [--threads N]
 *
 * Prints one JSON object: the best rate of GPT-2 124M's products of 1024 tokens (FLOP/s), and bytes read and written
 * per second by threads that scale arrays in place. */
#include "bench.h"
#include "dev/cpu/cpu.h"
#include "dev/host/isa.h"
#include "dev/host/pages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKENS = 1024, CHANNELS = 768, ROUNDS = 9, MEMORY = 1 << 28 };

static void check(int status)
{
    if (status == AH_OK)
        return;
    fprintf(stderr, "rates: %s\n", ah_error());
    exit(1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

static struct ah_operand operand(int64_t *end, enum ah_dtype dtype, struct ah_shape shape)
{
    struct ah_operand out = {AH_SPACE_WORK, *end, {dtype, shape}};
    *end += (ah__meta_bytes(&out.meta) + 4095) / 4096 * 4096;
    return out;
}

/* y [TOKENS,out] = x [TOKENS,in] weight [in,out], as a program of one call. */
static double product_rate(struct ah_pool *pool, char *memory, enum ah_dtype dtype, int64_t in, int64_t out)
{
    double rate[ROUNDS];
    int64_t end = 0;
    struct ah_call call = {.op = AH_OP_LINEAR};
    call.in[0] = operand(&end, dtype, ah_shape2(TOKENS, in));
    call.in[1] = operand(&end, dtype, ah_shape2(in, out));
    call.out[0] = operand(&end, dtype, ah_shape2(TOKENS, out));
    const struct ah_program program = {.count = 1, .calls = &call};
    struct ah_cpu_program *ready;
    check(ah__cpu_program_new(&ready, &program, ah__pool_threads(pool)));
    char *base[AH_SPACE_COUNT] = {[AH_SPACE_WORK] = memory, [AH_SPACE_WORKSPACE] = memory + (end + 63) / 64 * 64};
    for (int round = -1; round < ROUNDS; round++) {
        double start = bench_seconds();
        check(ah__cpu_program_run(ready, pool, base));
        if (round >= 0)
            rate[round] = 2.0 * TOKENS * (double)in * (double)out / (bench_seconds() - start);
    }
    ah__cpu_program_free(ready);
    return median(rate);
}

static double best_rate(struct ah_pool *pool, char *memory, enum ah_dtype dtype)
{
    static const int shapes[][2] = {{1, 3}, {1, 4}, {4, 1}};
    double best = 0;
    for (size_t i = 0; i < AH_LENGTH(shapes); i++) {
        double rate = product_rate(pool, memory, dtype, shapes[i][0] * CHANNELS, shapes[i][1] * CHANNELS);
        best = rate > best ? rate : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    int threads = (int)sysconf(_SC_NPROCESSORS_ONLN);
    const struct bench_option options[] = {{"threads", BENCH_COUNT, &threads, "that compute"}};
    BENCH_OPTIONS(argc, argv, "The rates a step cannot beat on this machine, as JSON.", options);
    struct ah_pool *pool;
    struct ah_pages pages;
    check(ah__pool_new(&pool, threads, -1));
    ah__pool_enter(pool);
    check(ah__pages_new(&pages, MEMORY, "operands"));
    memset(pages.base, 0x3C, MEMORY); /* about 0.01 in both dtypes: zeros would let the clock rise */
    printf("{\"threads\": %d, \"isa\": \"%s\", ", threads, ah__host_isa_name());
    printf("\"fp32_flops\": %.4g, ", best_rate(pool, pages.base, AH_F32));
    printf("\"bf16_flops\": %.4g, ", best_rate(pool, pages.base, AH_BF16));
    printf("\"scale_bytes\": %.4g}\n",
           bench_scale_rate(pool, (float *)(void *)pages.base, MEMORY / (int)sizeof(float), ROUNDS));
    ah__pages_free(&pages);
    ah__pool_free(pool);
    return 0;
}
