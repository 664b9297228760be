/* Callers that do something else between steps: the step time of a training whose caller is away for so many
 * milliseconds behind each result, beside one that hurries. Rounds interleaved, medians.
 *
 *     callers [--plan SWITCHES] [--pauses 0,5,20,50] [--steps N] [--rounds N] */
#include "bench.h"

#include <stdlib.h>

enum { MOST_PAUSES = 8, MOST_ROUNDS = 16 };

static size_t pauses_read(int64_t pauses_ns[MOST_PAUSES], const char *list)
{
    char word[16];
    size_t count = 0;
    while (count < MOST_PAUSES && bench_word(word, sizeof word, &list))
        pauses_ns[count++] = strtoll(word, NULL, 10) * 1000000;
    return count;
}

int main(int argc, char **argv)
{
    const char *text = "c=6,p=3,o=6", *pauses = "0,5,20,50";
    int steps = 20, rounds = 3;
    const struct bench_option options[] = {
        {"plan", BENCH_TEXT, &text, "how to train"},
        {"pauses", BENCH_TEXT, &pauses, "milliseconds, with commas between them"},
        {"steps", BENCH_COUNT, &steps, "in each training"},
        {"rounds", BENCH_COUNT, &rounds, "medians of so many trainings"},
    };
    BENCH_OPTIONS(argc, argv, "Step time of callers that are away between steps.", options);
    struct bench bench = {.layers = 8,
                          .width = 256,
                          .heads = 4,
                          .vocab = 256,
                          .batch = 4,
                          .seq = 128,
                          .dev = {.threads = 1, .host_threads = 1, .link_bytes_per_s = 2000000000}};
    int64_t pauses_ns[MOST_PAUSES], median[MOST_PAUSES][MOST_ROUNDS];
    size_t count = pauses_read(pauses_ns, pauses);
    struct ah_budget budget = {0};
    struct ah_plan plan;
    struct bench_steps measured;
    rounds = bench_least(rounds, MOST_ROUNDS);
    bench_open(&bench);
    BENCH(ah_plan_parse(&plan, text, bench.partition, bench.profile, &budget, "autohete"));
    for (int r = 0; r < rounds; r++)
        for (size_t i = 0; i < count; i++) {
            bench.pause_ns = pauses_ns[i];
            bench_run(&measured, &bench, &plan, steps, false);
            median[i][r] = measured.median_ns;
        }
    bench_machine(stdout);
    printf("%d blocks of width %d, %lld x %lld tokens, %s: %.2f ms predicted\n", bench.layers, bench.width,
           (long long)bench.batch, (long long)bench.seq, text, (double)plan.step_ns / 1e6);
    printf("%-10s %10s %8s\n", "pause", "step", "slower");
    double first = 0;
    for (size_t i = 0; i < count; i++) {
        double ns = (double)bench_median(median[i], (size_t)rounds);
        first = i ? first : ns;
        printf("%7.0f ms %7.2f ms %7.1f%%\n", (double)pauses_ns[i] / 1e6, ns / 1e6, 100 * (ns / first - 1));
    }
    bench_close(&bench);
    return 0;
}
