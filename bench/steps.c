/* Training steps of GPT-2s with all of them on the device (plan `resident`): time, TFLOP/s, and the share of the
 * machine's own matrix rate (MFU), which is measured in the same run.
 *
 *     steps [--device NAME] [--models 124M,355M,774M,1.5B] [--dtype bf16|fp32] [--batch N] [--seq N]
 *           [--micro-batches N] [--steps N] [--matrix N] [--seconds N]
 *
 * The model's FLOPs are those of its products forward and, twice, backward, with attention over the causal half; what
 * is computed again counts nothing. A model that does not fit, or for which no time is left, is named. The last line
 * sums up. */
#include "bench.h"
#include "on_device.h"

#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

struct rates {
    double matrix_flops, copy_bytes;
};

/* On a device of its own, which is closed again. */
static struct rates rates_measure(const struct bench *bench, int64_t matrix, int rounds)
{
    struct on_device d;
    struct rates rates;
    int64_t workspace = 0;
    on_device_open(&d, bench->device, &bench->dev, rounds);
    for (int64_t size = matrix; size >= 1 && size >= matrix / 2; size /= 2) {
        const struct ah_call call = on_device_matrix_call(bench->dtype, size);
        const struct ah_program program = {.count = 1, .calls = &call};
        int64_t bytes = on_device_workspace(&d, &program);
        workspace = bytes > workspace ? bytes : workspace;
    }
    on_device_memory(&d, on_device_matrix_bytes(bench->dtype, matrix), workspace,
                     on_device_matrix_bytes(bench->dtype, matrix), 0);
    rates.matrix_flops = on_device_matrix_rate(&d, bench->dtype, matrix);
    rates.copy_bytes = on_device_copy_rate(&d);
    printf("%s, %s: products of %lld x %lld %s %.2f TFLOP/s, copies %.1f GB/s (read and written)\n", d.info.name,
           d.info.model, (long long)matrix, (long long)matrix, ah__dtype_name(bench->dtype), rates.matrix_flops * 1e-12,
           rates.copy_bytes * 1e-9);
    on_device_close(&d);
    return rates;
}

/* MFU; 0 when it does not fit. */
static double model_print(struct bench *bench, const char *name, const struct rates *rates, int steps)
{
    struct ah_budget budget = {0};
    struct ah_plan plan;
    struct bench_steps measured;
    struct ah_dev *dev;
    double mfu = 0;
    bench_open(bench);
    BENCH(ah_dev_open(&dev, bench->device, &bench->dev));
    budget.device_bytes = ah__dev_region_bytes(dev);
    ah_dev_close(dev);
    if (ah_plan_parse(&plan, "resident", bench->partition, bench->profile, &budget, "resident") != AH_OK) {
        printf("%-6s does not fit: %s\n", name, ah_error());
    } else {
        bench_run(&measured, bench, &plan, steps, true);
        double seconds = 1e-9 * (double)measured.median_ns, rate = bench_flops(bench) / seconds;
        mfu = rate / rates->matrix_flops;
        printf("%-6s %6.2fG %3lldx%-5lld %9.2f %9.2f %+6.1f%% %9.0f %9.2f %6.1f%% %6.1f%% %9.1f  %s\n", name,
               bench_params(bench) * 1e-9, (long long)bench->batch, (long long)bench->seq, (double)plan.step_ns * 1e-6,
               seconds * 1e3, 100 * ((double)plan.step_ns * 1e-9 / seconds - 1),
               (double)ah__step_tokens(bench->partition) / seconds, rate * 1e-12, 100 * mfu,
               100 * (double)plan.bound_ns * 1e-9 / seconds, (double)measured.device_used_bytes / (1 << 20),
               measured.device_used_bytes == plan.device_peak_bytes ? "exact" : "WRONG");
    }
    fflush(stdout);
    bench_close(bench);
    return mfu;
}

int main(int argc, char **argv)
{
    const char *device = "auto", *models = "124M,355M,774M,1.5B", *dtype = "bf16";
    int batch = 8, seq = 1024, micro_batches = 1, steps = 13, matrix = 8192, seconds = 100;
    const struct bench_option options[] = {
        {"device", BENCH_TEXT, &device, "as autohete has it"},
        {"models", BENCH_TEXT, &models, "by name, separated by commas"},
        {"dtype", BENCH_TEXT, &dtype, "bf16 or fp32"},
        {"batch", BENCH_COUNT, &batch, "sequences of a micro-batch"},
        {"seq", BENCH_COUNT, &seq, "tokens in each"},
        {"micro-batches", BENCH_COUNT, &micro_batches, "in a step"},
        {"steps", BENCH_COUNT, &steps, "of which the first three do not count"},
        {"matrix", BENCH_COUNT, &matrix, "rows of the square matrices whose product is the limit"},
        {"seconds", BENCH_COUNT, &seconds, "after which no model is begun"},
    };
    BENCH_OPTIONS(argc, argv, "Steps of GPT-2s that are wholly on the device: time, TFLOP/s, MFU.", options);
    double begun = bench_seconds(), best = 0;
    struct bench bench = {.device = device,
                          .dtype = bench_dtype(dtype),
                          .batch = batch,
                          .seq = seq,
                          .micro_batches = micro_batches,
                          .clip = 1};
    char name[16], best_name[16] = "none";
    for (const char *list = models; bench_word(name, sizeof name, &list);)
        bench_model(&bench, name); /* a name that is none ends it here */
    bench_machine(stdout);
    struct rates rates = rates_measure(&bench, matrix, 15);
    printf("%-6s %7s %9s %9s %9s %7s %9s %9s %7s %7s %9s  peak\n", "model", "params", "tokens", "predicted", "measured",
           "error", "tokens/s", "TFLOP/s", "MFU", "bound", "MiB used");
    while (bench_word(name, sizeof name, &models)) {
        bench_model(&bench, name);
        if (bench_seconds() - begun > seconds) {
            printf("%-6s not begun: %d seconds are over\n", name, seconds);
            continue;
        }
        double mfu = model_print(&bench, name, &rates, bench_least(steps, 400));
        if (mfu > best) {
            best = mfu;
            snprintf(best_name, sizeof best_name, "%s", name);
        }
    }
    printf("best MFU %.1f%% (%s) of %.2f TFLOP/s\n", 100 * best, best_name, rates.matrix_flops * 1e-12);
    return best == 0;
}
