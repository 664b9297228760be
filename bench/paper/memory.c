/* The appendix's example: device memory of five blocks at each moment of a step, with one technique on and off. */
#include "bench.h"
#include "paper/results.h"
#include "plot.h"

enum { BLOCKS = 5, MOMENTS = 2 * BLOCKS, TREATED = 2, BATCH = 8 };

/* Bytes of one block: all that forward saves, its input, parameters in half precision, fp32 states. */
struct block {
    double saved, input, half, states;
};

/* At F_k (forward true) or B_k: blocks below k still hold what they keep, block k all it needs. */
static double activations(const struct block *block, int k, bool forward, int checkpointed)
{
    double bytes = block->saved + block->input;
    (void)forward;
    for (int i = 1; i < k; i++)
        bytes += i <= checkpointed ? block->input : block->saved + block->input;
    return bytes;
}

/* A block's parameters come before F_i and go after B_i; those offloaded are away between F_i and B_i. */
static double parameters(const struct block *block, int k, bool forward, int offloaded)
{
    (void)forward;
    double bytes = block->half;
    for (int i = 1; i < k; i++)
        bytes += i <= offloaded ? 0 : block->half;
    return bytes;
}

/* Of the last `on_host` blocks, parameters from F_i to B_i, and the gradient until it has left, beside the next B; of
 * the others, the states, and a copy and a gradient around F_i and B_i. */
static double model_data(const struct block *block, int k, bool forward, int on_host)
{
    int first = BLOCKS - on_host + 1;
    double bytes = (BLOCKS - on_host) * block->states;
    for (int i = first; i <= k; i++)
        bytes += block->half;
    if (k < first)
        bytes += block->half;
    if (!forward)
        bytes += block->half;
    if (!forward && k < BLOCKS && k + 1 >= first)
        bytes += block->half;
    return bytes;
}

static void draw(const char *folder, const char *name, const char *title, const char *treated,
                 const struct block *block, double (*bytes)(const struct block *, int, bool, int))
{
    static const char *const moments[MOMENTS] = {"F1", "F2", "F3", "F4", "F5", "B5", "B4", "B3", "B2", "B1"};
    double y[2][MOMENTS];
    char path[512];
    for (int with = 0; with < 2; with++)
        for (int m = 0; m < MOMENTS; m++) {
            bool forward = m < BLOCKS;
            y[with][m] = bytes(block, forward ? m + 1 : MOMENTS - m, forward, with ? TREATED : 0) / (double)(1 << 30);
        }
    struct plot plot = {.title = title,
                        .subtitle = "five blocks of the 4B model, batch 8, sequences of 1024 tokens, bf16",
                        .x_label = "what runs: forward and backward of blocks 1 to 5",
                        .y_label = "device memory, GiB",
                        .x_names = moments,
                        .points = MOMENTS,
                        .series_count = 2,
                        .all_fit = true,
                        .series = {{"nothing done", "#9aa5b1", y[0]}, {treated, "#0f7a55", y[1]}}};
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    BENCH(plot_save(&plot, path));
}

void paper_memory_save(const char *folder)
{
    struct bench bench = {0};
    BENCH(ah_model_load(&bench.model, "models/gpt-4b.json"));
    BENCH(ah_model_record(&bench.graph, bench.model, BATCH, PAPER_SEQ, AH_BF16));
    BENCH(ah_partition_new(&bench.partition, bench.graph));
    const struct ah_code *code = &bench.partition->code[AH_CLASS_BLOCK];
    double params = (double)bench.partition->groups[1].count;
    struct block block = {(double)code->saved_bytes, (double)code->input_bytes, 2 * params, 12 * params};
    draw(folder, "memory-activations", "Activations, blocks 1 and 2 checkpointed", "blocks 1 and 2 recompute", &block,
         activations);
    draw(folder, "memory-parameters", "Parameters, those of blocks 1 and 2 offloaded",
         "blocks 1 and 2 give theirs back", &block, parameters);
    draw(folder, "memory-states", "Parameters, gradients and states, optimizers of blocks 4 and 5 offloaded",
         "blocks 4 and 5 on the host", &block, model_data);
    bench_close(&bench);
}
