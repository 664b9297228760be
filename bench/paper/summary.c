/* summary.md: what the paper reports beside what the simulator gives, and why the two differ where they do. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "paper/notes.h"
#include "paper/results.h"

static const char *const names[PAPER_POLICIES] = {"ZeRO-Offload", "PatrickStar", "StrongHold",
                                                  "itself without priorities", "AutoHete"};

/* ---- ratios ------------------------------------------------------------------------------------------------------ */

/* Over the models that both can train. */
struct spread {
    double mean, least, most;
    int count;
};

static void spread_add(struct spread *spread, double ratio)
{
    if (!isfinite(ratio))
        return;
    spread->least = spread->count ? fmin(spread->least, ratio) : ratio;
    spread->most = spread->count ? fmax(spread->most, ratio) : ratio;
    spread->mean = (spread->mean * spread->count + ratio) / (spread->count + 1);
    spread->count++;
}

static struct spread spread_of_same_plan(const struct paper_cell *cells)
{
    struct spread spread = {0};
    for (int model = 0; model < PAPER_MODELS; model++)
        spread_add(&spread, cells[model].same_plan);
    return spread;
}

static struct spread spread_of(const struct paper_cell *cells, enum paper_policy policy)
{
    struct spread spread = {0};
    for (int model = 0; model < PAPER_MODELS; model++)
        spread_add(&spread, paper_ratio(&cells[model], policy));
    return spread;
}

/* Batch 4 and 16, on one device and on four. */
static struct spread spread_of_other_batches(const struct paper_results *results, int optimizer,
                                             enum paper_policy policy)
{
    struct spread spread = {0};
    for (int machine = 0; machine < PAPER_MACHINES; machine++)
        for (int batch = 0; batch < PAPER_BATCHES; batch++)
            for (int model = 0; model < PAPER_MODELS && paper_batches[batch] != 8; model++)
                spread_add(&spread, paper_ratio(&results->models[optimizer][machine][batch][model], policy));
    return spread;
}

static void ratios(struct ah_buf *buf, const struct paper_results *results)
{
    static const struct {
        double mean, most;
    } reported[PAPER_MACHINES][PAPER_AUTOHETE] = {{{1.85, 2.08}, {1.63, 1.91}, {1.32, 1.41}, {1.16, 1.24}},
                                                  {{2.23, 2.67}, {1.65, 1.79}, {1.44, 1.52}, {1.21, 1.30}}};
    static const double range[][2] = {{1.39, 3.1}, {1.08, 1.91}, {1.04, 1.48}};
    ah__buf_printf(buf, "## Speed of AutoHete over others\n\nMean and largest over the models that both can train.\n\n"
                        "| | AutoHete over | the paper | ours, our host Adam | ours, DeepSpeed's host Adam |\n"
                        "|---|---|---|---|---|\n");
    for (int machine = 0; machine < PAPER_MACHINES; machine++)
        for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++) {
            struct spread ours = spread_of(results->models[0][machine][1], p);
            struct spread slow = spread_of(results->models[1][machine][1], p);
            ah__buf_printf(buf, "| %s, batch 8 | %s | %.2f, at most %.2f | %.2f, at most %.2f | %.2f, at most %.2f |\n",
                           machine ? "four GPUs" : "one GPU", names[p], reported[machine][p].mean,
                           reported[machine][p].most, ours.mean, ours.most, slow.mean, slow.most);
        }
    for (int machine = 0; machine < PAPER_MACHINES; machine++) {
        struct spread ours = spread_of_same_plan(results->models[0][machine][1]);
        struct spread slow = spread_of_same_plan(results->models[1][machine][1]);
        ah__buf_printf(
            buf, "| %s, batch 8 | itself without priorities, same plan | | %.2f, at most %.2f | %.2f, at most %.2f |\n",
            machine ? "four GPUs" : "one GPU", ours.mean, ours.most, slow.mean, slow.most);
    }
    for (enum paper_policy p = 0; p < AH_LENGTH(range); p++) {
        struct spread ours = spread_of_other_batches(results, 0, p), slow = spread_of_other_batches(results, 1, p);
        ah__buf_printf(buf, "| both, batch 4 and 16 | %s | %.2f to %.2f | %.2f to %.2f | %.2f to %.2f |\n", names[p],
                       range[p][0], range[p][1], ours.least, ours.most, slow.least, slow.most);
    }
}

/* ---- what fits --------------------------------------------------------------------------------------------------- */

static int largest_model(const struct paper_cell *cells, enum paper_policy policy)
{
    int largest = 0;
    for (int model = 0; model < PAPER_MODELS; model++)
        largest = cells[model].of[policy].fits ? cells[model].point.billions : largest;
    return largest;
}

static double last_that_fits(const struct paper_sweep *sweep, enum paper_policy policy)
{
    double last = 0;
    for (size_t i = 0; i < sweep->count; i++)
        last = sweep->cells[i].of[policy].fits ? sweep->x[i] : last;
    return last;
}

static double first_that_fits(const struct paper_sweep *sweep, enum paper_policy policy)
{
    for (size_t i = 0; i < sweep->count; i++)
        if (sweep->cells[i].of[policy].fits)
            return sweep->x[i];
    return NAN;
}

/* AutoHete with 12 GiB over the fastest of the baselines with 40. */
static double small_over_large(const struct paper_sweep *sweep)
{
    double best = 0;
    for (enum paper_policy p = 0; p < PAPER_FIFO; p++)
        best = fmax(best, sweep->cells[sweep->count - 1].of[p].tokens_per_s);
    return sweep->cells[1].of[PAPER_AUTOHETE].tokens_per_s / best;
}

static void statement(struct ah_buf *buf, const char *what, const char *reported, const char *format, ...)
    AH_PRINTF(4, 5);
static void statement(struct ah_buf *buf, const char *what, const char *reported, const char *format, ...)
{
    char ours[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ours, sizeof ours, format, arguments);
    va_end(arguments);
    ah__buf_printf(buf, "| %s | %s | %s |\n", what, reported, ours);
}

static void feasibility(struct ah_buf *buf, const struct paper_results *results)
{
    const struct paper_cell *one = results->models[0][0][1], *four = results->models[0][1][1];
    const struct ah_evaluation *zero22 = &four[PAPER_MODELS - 1].of[PAPER_ZERO];
    const struct paper_sweep *batch = results->batch[0], *memory = results->memory[0];
    ah__buf_printf(buf, "\n## What fits\n\n| | the paper | ours |\n|---|---|---|\n");
    statement(buf, "largest model of ZeRO-Offload on one GPU", "12B", "%dB", largest_model(one, PAPER_ZERO));
    statement(buf, "largest model of PatrickStar, StrongHold, AutoHete on one GPU", "22B, the largest", "%dB, %dB, %dB",
              largest_model(one, PAPER_PATRICKSTAR), largest_model(one, PAPER_STRONGHOLD),
              largest_model(one, PAPER_AUTOHETE));
    statement(buf, "ZeRO-Offload with 22B on four GPUs", "host memory runs out", "%s",
              zero22->fits ? "fits" : zero22->reason);
    statement(buf, "largest batch of ZeRO-Offload with 6B", "24", "%g", last_that_fits(&batch[0], PAPER_ZERO));
    statement(buf, "largest batch of ZeRO-Offload with 10B", "12", "%g", last_that_fits(&batch[1], PAPER_ZERO));
    statement(buf, "least device memory of ZeRO-Offload with 4B, in steps of 4 GiB", "16", "%g",
              first_that_fits(&memory[0], PAPER_ZERO));
    statement(buf, "least device memory of ZeRO-Offload with 6B", "24", "%g", first_that_fits(&memory[1], PAPER_ZERO));
    statement(buf, "blocks of 4B (of 21) whose optimizer AutoHete puts on the host, 40 GB", "13", "%d",
              one[1].of[PAPER_AUTOHETE].plan.switches.offload_optimizer);
    for (int s = 0; s < PAPER_SWEPT; s++) {
        char what[96];
        snprintf(what, sizeof what, "AutoHete with 12 GB over the best baseline with 40 GB, %dB", memory[s].billions);
        statement(buf, what, "above 1", "%.2f; with DeepSpeed's host Adam %.2f", small_over_large(&memory[s]),
                  small_over_large(&results->memory[1][s]));
    }
}

/* ---- all models -------------------------------------------------------------------------------------------------- */

static void cell_text(struct ah_buf *buf, const struct paper_cell *cell, enum paper_policy policy)
{
    const struct ah_evaluation *of = &cell->of[policy];
    double ratio = paper_ratio(cell, policy);
    if (!of->fits)
        ah__buf_printf(buf, " %s |", strncmp(of->reason, "host", 4) == 0 ? "host memory" : "device memory");
    else if (policy == PAPER_AUTOHETE)
        ah__buf_printf(buf, " %.0f |", of->tflops_model);
    else
        ah__buf_printf(buf, " %.0f (%.2fx) |", of->tflops_model, ratio);
}

static void table_1(struct ah_buf *buf, const struct paper_cell *cells)
{
    ah__buf_printf(buf, "| model | blocks | width | parameters |\n|---|---|---|---|\n");
    for (int model = 0; model < PAPER_MODELS; model++)
        ah__buf_printf(buf, "| %dB | %d | %lld | %.2f billion |\n", paper_billions[model], cells[model].layers,
                       (long long)cells[model].hidden, (double)cells[model].params / 1e9);
}

static void models(struct ah_buf *buf, const struct paper_results *results)
{
    for (int optimizer = 0; optimizer < PAPER_OPTIMIZERS; optimizer++)
        for (int machine = 0; machine < PAPER_MACHINES; machine++) {
            const struct paper_cell *cells = results->models[optimizer][machine][1];
            ah__buf_printf(
                buf,
                "\n### %s, %s host Adam\n\n| model | ZeRO-Offload | PatrickStar | StrongHold | AutoHete w/o PS | "
                "AutoHete | its c, p, o of L | step / bound |\n|---|---|---|---|---|---|---|---|\n",
                machine ? "Four GPUs" : "One GPU", optimizer ? "DeepSpeed's" : "our");
            for (int model = 0; model < PAPER_MODELS; model++) {
                const struct ah_plan *plan = &cells[model].of[PAPER_AUTOHETE].plan;
                ah__buf_printf(buf, "| %dB |", paper_billions[model]);
                for (enum paper_policy p = 0; p < PAPER_POLICIES; p++)
                    cell_text(buf, &cells[model], p);
                ah__buf_printf(buf, " %d, %d, %d of %d | %.3f |\n", plan->switches.checkpoint,
                               plan->switches.offload_params, plan->switches.offload_optimizer, plan->switches.layers,
                               (double)plan->step_ns / (double)plan->bound_ns);
            }
        }
}

static void sensitivity(struct ah_buf *buf, const struct paper_results *results)
{
    for (int optimizer = 0; optimizer < PAPER_OPTIMIZERS; optimizer++) {
        ah__buf_printf(buf, "\n%s host Adam:\n\n| rates | ZeRO-Offload | PatrickStar | StrongHold | AutoHete w/o PS |\n"
                            "|---|---|---|---|---|\n",
                       optimizer ? "DeepSpeed's" : "Our");
        for (int v = 0; v < PAPER_VARIANTS; v++) {
            ah__buf_printf(buf, "| %s |", paper_variants[v].name);
            for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++) {
                struct spread spread = spread_of(results->varied[optimizer][v], p);
                ah__buf_printf(buf, " %.2f, at most %.2f |", spread.mean, spread.most);
            }
            ah__buf_printf(buf, "\n");
        }
    }
}

int paper_summary_save(const struct paper_results *results, const char *path)
{
    struct ah_buf buf = {0};
    ah__buf_printf(&buf, "%s", paper_notes_opening);
    ratios(&buf, results);
    feasibility(&buf, results);
    ah__buf_printf(&buf, "\n## Where the two differ, and why\n\n%s", paper_notes_causes);
    ah__buf_printf(&buf, "\n## Table 1\n\n");
    table_1(&buf, results->models[0][0][1]);
    ah__buf_printf(&buf, "\n## All models at batch 8\n\nModel TFLOPS per GPU; in brackets AutoHete's speed over it. "
                         "PS: priority scheduling; without it: first come, first served.\n");
    models(&buf, results);
    ah__buf_printf(
        &buf,
        "\n## How much depends on the figures chosen\n\nMean and largest ratio over the models, one GPU, batch 8, "
        "when one rate changes and all plans are made anew.\n");
    sensitivity(&buf, results);
    int status = buf.status == AH_OK ? ah__file_write(path, buf.text, buf.length) : buf.status;
    ah__buf_free(&buf);
    return status;
}
