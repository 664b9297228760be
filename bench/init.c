/* How long the random parameters of a model take, beside filling memory of that size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "dev/host/machine.h"
#include "dev/host/normal.h"

int main(int argc, char **argv)
{
    int millions = 100;
    const struct bench_option options[] = {{"millions", BENCH_COUNT, &millions, "parameters, in millions"}};
    BENCH_OPTIONS(argc, argv, "Draws normal random numbers for so many parameters, beside filling their memory.\n",
                  options);
    enum { PIECE = 1 << 20 };
    int64_t count = (int64_t)millions * 1000000;
    float *values = malloc((size_t)count * sizeof *values);
    if (!values)
        return 1;
    memset(values, 1, (size_t)count * sizeof *values); /* have the pages */
    double begin = bench_seconds();
    memset(values, 0, (size_t)count * sizeof *values);
    double filled = bench_seconds() - begin;
    begin = bench_seconds();
    clock_t before = clock();
    for (int64_t at = 0; at < count; at += PIECE)
        ah__normal_fill(values + at, PIECE < count - at ? PIECE : count - at, 1, (uint64_t)at, 0.02);
    double drawn = bench_seconds() - begin, worked = (double)(clock() - before) / CLOCKS_PER_SEC;
    printf("%d million parameters on %d cores: %.3f s, %.3f s of processor time (%.2f ns each); filling the memory: "
           "%.3f s; ratio %.1f\n",
           millions, ah__host_cores(NULL), drawn, worked, worked * 1e9 / (double)count, filled, drawn / filled);
    free(values);
    return 0;
}
