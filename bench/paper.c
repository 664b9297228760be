/* The paper's evaluation under the simulator. Writes summary.md with its figure, and appendix.md: the paper's figures
 * beside ours. Run in the repository's root; deterministic.
 *     paper [--out DIR] [--figures DIR]   default of --out: bench/results/paper
 * --figures writes throughput over models, batch sizes and memory budgets, each as CSV and SVG. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "bench.h"
#include "paper/results.h"
#include "plot.h"

const int paper_ranks[PAPER_MACHINES] = {1, 4};
const int64_t paper_batches[PAPER_BATCHES] = {4, 8, 16};
const struct paper_variant paper_variants[PAPER_VARIANTS] = {
    {"as the machine's file", 1, 1, 1},
    {"device arithmetic -20%", 0.8, 1, 1},
    {"device arithmetic +20%", 1.2, 1, 1},
    {"link -20%", 1, 0.8, 1},
    {"link +20%", 1, 1.2, 1},
    {"host Adam -20%", 1, 1, 0.8},
    {"host Adam +20%", 1, 1, 1.2},
};

static const char *const colours[PAPER_POLICIES] = {
    [PAPER_ZERO] = "#9aa5b1", [PAPER_PATRICKSTAR] = "#e3a857", [PAPER_STRONGHOLD] = "#5b8fd0", [PAPER_BEST] = "#a9c4e6",
    [PAPER_FIFO] = "#8fcdb0", [PAPER_PLAIN] = "#4aa883",       [PAPER_AUTOHETE] = "#0f7a55",
};
static const int swept[PAPER_SWEPT][2] = {{6, 10}, {4, 6}}; /* models over batch, over memory */
static struct paper_results results;

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void run_models(int world)
{
    for (int machine = 0; machine < PAPER_MACHINES; machine++)
        for (int batch = 0; batch < PAPER_BATCHES; batch++)
            for (int model = 0; model < PAPER_MODELS; model++) {
                struct paper_point point = paper_point(paper_billions[model], paper_ranks[machine],
                                                       paper_batches[batch], &paper_worlds[world]);
                paper_evaluate(&results.models[world][machine][batch][model], &point);
            }
}

static void run_sweeps(int world)
{
    for (int s = 0; s < PAPER_SWEPT; s++) {
        struct paper_sweep *batch = &results.batch[world][s], *memory = &results.memory[world][s];
        batch->billions = swept[0][s];
        memory->billions = swept[1][s];
        for (int64_t b = 4; b <= 48; b += 4) {
            struct paper_point point = paper_point(batch->billions, 1, b, &paper_worlds[world]);
            batch->x[batch->count] = (double)b;
            paper_evaluate(&batch->cells[batch->count++], &point);
        }
        for (int64_t gib = 8; gib <= 40; gib += 4) {
            struct paper_point point = paper_point(memory->billions, 1, 8, &paper_worlds[world]);
            point.device_bytes = gib << 30;
            memory->x[memory->count] = (double)gib;
            paper_evaluate(&memory->cells[memory->count++], &point);
        }
    }
}

static void run_variants(int world)
{
    for (int v = 0; v < PAPER_VARIANTS; v++)
        for (int model = 0; model < PAPER_MODELS; model++) {
            struct paper_point point = paper_point(paper_billions[model], 1, 8, &paper_worlds[world]);
            point.compute = paper_variants[v].compute;
            point.link = paper_variants[v].link;
            point.host = paper_variants[v].host;
            paper_evaluate(&results.varied[world][v][model], &point);
        }
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static void csv_row(struct ah_buf *buf, const struct paper_cell *cell, int policy)
{
    const struct ah_evaluation *of = &cell->of[policy];
    const struct ah_plan *plan = &of->plan;
    ah__buf_printf(buf, "%dB,%d,%lld,%lld,%d,%lld,%lld,%s,%s,%s,%s,\"%s\",%d,%d,%d,%d,", cell->point.billions,
                   cell->layers, (long long)cell->hidden, (long long)cell->params, cell->point.world_size,
                   (long long)cell->point.batch, (long long)cell->point.device_bytes,
                   cell->point.world->published ? "published" : "ours", cell->point.world->optimizer, of->policy,
                   of->fits ? "yes" : "no", of->reason, plan->switches.checkpoint, plan->switches.offload_params,
                   plan->switches.offload_optimizer, plan->switches.buffers);
    if (of->fits)
        ah__buf_printf(buf, "%.3f,%.3f,%.2f,%.2f,%.1f,", (double)plan->step_ns / 1e6, (double)plan->bound_ns / 1e6,
                       of->tflops_model, of->tflops_hardware, of->tokens_per_s);
    else
        ah__buf_printf(buf, ",,,,,");
    ah__buf_printf(buf, "%lld,%lld", (long long)plan->device_peak_bytes, (long long)plan->host_peak_bytes);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        ah__buf_printf(buf, of->fits ? ",%.3f" : ",", of->lane_busy[lane]);
    ah__buf_printf(buf, "\n");
}

static void save_csv(const char *path, const struct paper_cell *cells, size_t count)
{
    struct ah_buf buf = {0};
    ah__buf_printf(&buf,
                   "model,layers,hidden,parameters,ranks,batch,device_memory_bytes,memory_rule,rates,policy,fits,"
                   "reason,c,p,o,buffers,step_ms,bound_ms,tflops_model,tflops_hardware,tokens_per_s,device_peak_bytes,"
                   "host_peak_bytes,"
                   "busy_compute,busy_h2d,busy_d2h,busy_host,busy_comm\n");
    for (size_t i = 0; i < count; i++)
        for (int policy = 0; policy < PAPER_POLICIES; policy++)
            csv_row(&buf, &cells[i], policy);
    BENCH(buf.status);
    BENCH(ah__file_write(path, buf.text, buf.length));
    ah__buf_free(&buf);
}

/* NAME.csv and NAME.svg of some cells; bars over x_names, or lines over x. */
static void save_figure(const char *folder, const char *name, const struct paper_cell *cells, struct plot *plot)
{
    char path[512];
    static double y[PAPER_POLICIES][PAPER_STEPS];
    for (int policy = 0; policy < PAPER_POLICIES; policy++) {
        for (size_t i = 0; i < plot->points; i++)
            y[policy][i] = cells[i].of[policy].fits ? cells[i].of[policy].tflops_model : NAN;
        plot->series[policy] = (struct plot_series){paper_systems[policy].name, colours[policy], y[policy]};
    }
    plot->series_count = PAPER_POLICIES;
    snprintf(path, sizeof path, "%s/%s.csv", folder, name);
    save_csv(path, cells, plot->points);
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    BENCH(plot_save(plot, path));
}

static void save_models(const char *folder, int world, int machine, int batch)
{
    static const char *const names[PAPER_MODELS] = {"2B",  "4B",  "6B",  "8B",  "10B", "12B",
                                                    "14B", "16B", "18B", "20B", "22B"};
    char name[64], title[96], subtitle[224];
    int ranks = paper_ranks[machine];
    long long sequences = (long long)paper_batches[batch];
    snprintf(name, sizeof name, "models-%dgpu-batch%lld-%s", ranks, sequences, paper_worlds[world].tag);
    snprintf(title, sizeof title, "Throughput over models, %s, global batch %lld", ranks == 1 ? "one GPU" : "four GPUs",
             sequences);
    snprintf(subtitle, sizeof subtitle,
             "simulated %sA100-40GB, PCIe 4.0, EPYC 7713, 440 GB; sequences of 1024 tokens; %s; "
             "PS: priority scheduling",
             ranks == 1 ? "" : "4x ", paper_worlds[world].name);
    struct plot plot = {.title = title,
                        .subtitle = subtitle,
                        .x_label = "parameters",
                        .y_label = "model TFLOPS per GPU",
                        .x_names = names,
                        .points = PAPER_MODELS};
    save_figure(folder, name, results.models[world][machine][batch], &plot);
}

static void save_sweep(const char *folder, int world, const struct paper_sweep *sweep, bool memory)
{
    char name[64], title[96], subtitle[224];
    snprintf(name, sizeof name, "%s-%db-%s", memory ? "memory" : "batch", sweep->billions, paper_worlds[world].tag);
    snprintf(title, sizeof title, "Throughput over %s, %dB model, one GPU", memory ? "device memory" : "batch size",
             sweep->billions);
    snprintf(subtitle, sizeof subtitle,
             "simulated A100-40GB, PCIe 4.0, EPYC 7713, 440 GB; %s; %s; "
             "PS: priority scheduling",
             memory ? "batch 8" : "sequences of 1024 tokens", paper_worlds[world].name);
    struct plot plot = {.title = title,
                        .subtitle = subtitle,
                        .x_label = memory ? "device memory, GiB" : "sequences in a batch",
                        .y_label = "model TFLOPS",
                        .x = sweep->x,
                        .points = sweep->count};
    save_figure(folder, name, sweep->cells, &plot);
}

static void save_variants(const char *folder)
{
    char path[512];
    struct ah_buf buf = {0};
    ah__buf_printf(&buf, "rates,changed,model,policy,ratio\n");
    for (int world = 0; world < PAPER_RATES; world++)
        for (int v = 0; v < PAPER_VARIANTS; v++)
            for (int model = 0; model < PAPER_MODELS; model++)
                for (int policy = 0; policy < PAPER_AUTOHETE; policy++) {
                    double ratio = paper_ratio(&results.varied[world][v][model], (enum paper_policy)policy);
                    ah__buf_printf(&buf, "%s,%s,%dB,%s,", paper_worlds[world].optimizer, paper_variants[v].name,
                                   paper_billions[model], paper_systems[policy].policy);
                    ah__buf_printf(&buf, isfinite(ratio) ? "%.4f\n" : "\n", ratio);
                }
    snprintf(path, sizeof path, "%s/sensitivity.csv", folder);
    BENCH(buf.status);
    BENCH(ah__file_write(path, buf.text, buf.length));
    ah__buf_free(&buf);
}

/* Every figure and its table: throughput over models, batch sizes, memory; sensitivity; the example of the appendix. */
static void save_figures(const char *folder)
{
    BENCH(ah__folder_make(folder));
    for (int world = 0; world < PAPER_WORLDS; world++) {
        for (int machine = 0; machine < PAPER_MACHINES; machine++)
            for (int batch = 0; batch < PAPER_BATCHES; batch++)
                save_models(folder, world, machine, batch);
        for (int s = 0; s < PAPER_SWEPT; s++) {
            save_sweep(folder, world, &results.batch[world][s], false);
            save_sweep(folder, world, &results.memory[world][s], true);
        }
    }
    save_variants(folder);
    paper_memory_save(folder);
}

int main(int argc, char **argv)
{
    const char *folder = "bench/results/paper", *figures = NULL;
    const struct bench_option options[] = {
        {"out", BENCH_TEXT, &folder, "the folder of summary.md and appendix.md"},
        {"figures", BENCH_TEXT, &figures, "a folder for every figure and its table (default: only the summary's)"}};
    BENCH_OPTIONS(argc, argv, "The paper's evaluation under the simulator; run it in the repository's root.", options);
    BENCH(ah__folder_make(folder));
    for (int world = 0; world < PAPER_WORLDS; world++) {
        run_models(world);
        run_sweeps(world);
        if (world < PAPER_RATES)
            run_variants(world);
    }
    save_models(folder, 0, 0, 1); /* the summary's figure: our memory and rates, one GPU, batch 8 */
    if (figures)
        save_figures(figures);
    BENCH(paper_summary_save(&results, folder));
    printf("%s/summary.md\n", folder);
    return 0;
}
