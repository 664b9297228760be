/* summary.md and appendix.md: what the paper reports beside what the simulator gives. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "paper/findings.h"
#include "paper/notes.h"
#include "paper/statements.h"

/* The range of AutoHete's speed over a system at the other batches; 0: not reported. */
static const double range[PAPER_POLICIES][2] = {
    [PAPER_ZERO] = {1.39, 3.1}, [PAPER_PATRICKSTAR] = {1.08, 1.91}, [PAPER_STRONGHOLD] = {1.04, 1.48}};

/* ---- ratios ------------------------------------------------------------------------------------------------------ */

static struct paper_spread spread_of_same_plan(const struct paper_cell *cells)
{
    struct paper_spread spread = {0};
    for (int model = 0; model < PAPER_MODELS; model++)
        paper_spread_add(&spread, cells[model].same_plan);
    return spread;
}

/* Batch 4 and 16, on one device and on four. */
static struct paper_spread spread_of_other_batches(const struct paper_results *results, int world,
                                                   enum paper_policy policy)
{
    struct paper_spread spread = {0};
    for (int machine = 0; machine < PAPER_MACHINES; machine++)
        for (int batch = 0; batch < PAPER_BATCHES; batch++)
            for (int model = 0; model < PAPER_MODELS && paper_batches[batch] != 8; model++)
                paper_spread_add(&spread, paper_ratio(&results->models[world][machine][batch][model], policy));
    return spread;
}

/* The line below a table's head. */
static void rule(struct ah_buf *buf, int columns)
{
    ah__buf_printf(buf, "\n|");
    for (int i = 0; i < columns; i++)
        ah__buf_printf(buf, "---|");
    ah__buf_printf(buf, "\n");
}

/* "| A | B | ... |" of the worlds' names, with their line. */
static void worlds_head(struct ah_buf *buf, const char *first, int columns)
{
    ah__buf_printf(buf, "%s", first);
    for (int world = 0; world < PAPER_WORLDS; world++)
        ah__buf_printf(buf, " %s |", paper_worlds[world].name);
    rule(buf, columns + PAPER_WORLDS);
}

static void spread_text(struct ah_buf *buf, struct paper_spread spread)
{
    if (spread.count)
        ah__buf_printf(buf, " %.2f, at most %.2f |", spread.mean, spread.most);
    else
        ah__buf_printf(buf, " |");
}

static void ratios(struct ah_buf *buf, const struct paper_results *results)
{
    static const char *const machines[PAPER_MACHINES] = {"one GPU", "four GPUs"};
    ah__buf_printf(buf, "\n## Speed of AutoHete over others\n\n"
                        "Mean and largest over the models that both can train.\n\n");
    worlds_head(buf, "| | AutoHete over | the paper |", 3);
    for (int machine = 0; machine < PAPER_MACHINES; machine++) {
        for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++) {
            struct paper_reported reported = paper_reported[machine][p];
            ah__buf_printf(buf, "| %s, batch 8 | %s |", machines[machine], paper_systems[p].over);
            ah__buf_printf(buf, reported.mean > 0 ? " %.2f, at most %.2f |" : " |", reported.mean, reported.most);
            for (int world = 0; world < PAPER_WORLDS; world++)
                spread_text(buf, paper_spread_of(results->models[world][machine][1], p));
            ah__buf_printf(buf, "\n");
        }
        ah__buf_printf(buf, "| %s, batch 8 | itself without priorities, same plan | |", machines[machine]);
        for (int world = 0; world < PAPER_WORLDS; world++)
            spread_text(buf, spread_of_same_plan(results->models[world][machine][1]));
        ah__buf_printf(buf, "\n");
    }
    for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++) {
        ah__buf_printf(buf, "| both, batch 4 and 16 | %s |", paper_systems[p].over);
        ah__buf_printf(buf, range[p][0] > 0 ? " %.2f to %.2f |" : " |", range[p][0], range[p][1]);
        for (int world = 0; world < PAPER_WORLDS; world++) {
            struct paper_spread spread = spread_of_other_batches(results, world, p);
            ah__buf_printf(buf, " %.2f to %.2f |", spread.least, spread.most);
        }
        ah__buf_printf(buf, "\n");
    }
}

/* ---- what fits --------------------------------------------------------------------------------------------------- */

static void largest_models(struct ah_buf *buf, const struct paper_cell *cells)
{
    ah__buf_printf(buf, " %dB, %dB, %dB |", paper_largest_model(cells, PAPER_PATRICKSTAR),
                   paper_largest_model(cells, PAPER_STRONGHOLD), paper_largest_model(cells, PAPER_AUTOHETE));
}

/* One row of numbers, "%g" of what `value` says of each world. */
static void row(struct ah_buf *buf, const char *what, const char *reported, const struct paper_results *results,
                double (*value)(const struct paper_results *results, int world), const char *format)
{
    ah__buf_printf(buf, "| %s | %s |", what, reported);
    for (int world = 0; world < PAPER_WORLDS; world++) {
        char text[32];
        snprintf(text, sizeof text, format, value(results, world));
        ah__buf_printf(buf, " %s |", text);
    }
    ah__buf_printf(buf, "\n");
}

static double zero_largest(const struct paper_results *results, int world)
{
    return paper_largest_model(results->models[world][0][1], PAPER_ZERO);
}

static double zero_host(const struct paper_results *results, int world)
{
    const struct paper_cell *cell = &results->models[world][1][1][PAPER_MODELS - 1];
    return 100 * (double)cell->of[PAPER_ZERO].plan.host_peak_bytes / (double)cell->host_bytes;
}

static double batch_6b(const struct paper_results *results, int world)
{
    return paper_last_that_fits(&results->batch[world][0], PAPER_ZERO);
}

static double batch_10b(const struct paper_results *results, int world)
{
    return paper_last_that_fits(&results->batch[world][1], PAPER_ZERO);
}

static double memory_4b(const struct paper_results *results, int world)
{
    return paper_first_that_fits(&results->memory[world][0], PAPER_ZERO);
}

static double memory_6b(const struct paper_results *results, int world)
{
    return paper_first_that_fits(&results->memory[world][1], PAPER_ZERO);
}

static double blocks_4b(const struct paper_results *results, int world)
{
    return results->models[world][0][1][1].of[PAPER_AUTOHETE].plan.switches.offload_optimizer;
}

static double small_4b(const struct paper_results *results, int world)
{
    return paper_small_over_large(&results->memory[world][0], PAPER_AUTOHETE);
}

static double small_6b(const struct paper_results *results, int world)
{
    return paper_small_over_large(&results->memory[world][1], PAPER_AUTOHETE);
}

static void feasibility(struct ah_buf *buf, const struct paper_results *results)
{
    ah__buf_printf(buf, "\n## What fits\n\n");
    worlds_head(buf, "| | the paper |", 2);
    row(buf, "largest model of ZeRO-Offload on one GPU", "12B", results, zero_largest, "%gB");
    ah__buf_printf(buf, "| largest model of PatrickStar, StrongHold, AutoHete on one GPU | 22B, the largest |");
    for (int world = 0; world < PAPER_WORLDS; world++)
        largest_models(buf, results->models[world][0][1]);
    ah__buf_printf(buf, "\n");
    row(buf, "host memory of ZeRO-Offload with 22B on four GPUs", "runs out", results, zero_host, "%.1f%% of it");
    row(buf, "largest batch of ZeRO-Offload with 6B", "24", results, batch_6b, "%g");
    row(buf, "largest batch of ZeRO-Offload with 10B", "12", results, batch_10b, "%g");
    row(buf, "least device memory of ZeRO-Offload with 4B, in steps of 4 GiB", "16", results, memory_4b, "%g");
    row(buf, "least device memory of ZeRO-Offload with 6B", "24", results, memory_6b, "%g");
    row(buf, "blocks of 4B (of 21) whose optimizer AutoHete puts on the host, 40 GB", "13", results, blocks_4b, "%g");
    row(buf, "AutoHete with 12 GB over the best published system with 40 GB, 4B", "above 1", results, small_4b, "%.2f");
    row(buf, "AutoHete with 12 GB over the best published system with 40 GB, 6B", "above 1", results, small_6b, "%.2f");
}

/* ---- all models -------------------------------------------------------------------------------------------------- */

static void cell_text(struct ah_buf *buf, const struct paper_cell *cell, enum paper_policy policy)
{
    const struct ah_evaluation *of = &cell->of[policy];
    double ratio = paper_ratio(cell, policy);
    if (!of->fits)
        ah__buf_printf(buf, " %s |", strncmp(of->reason, "host", 4) == 0 ? "host memory" : "device memory");
    else if (policy == PAPER_AUTOHETE || !isfinite(ratio))
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

static void model_row(struct ah_buf *buf, const struct paper_cell *cell)
{
    const struct ah_evaluation *ours = &cell->of[PAPER_AUTOHETE];
    const struct ah_switches *switches = &ours->plan.switches;
    ah__buf_printf(buf, "| %dB |", cell->point.billions);
    for (enum paper_policy p = 0; p < PAPER_POLICIES; p++)
        cell_text(buf, cell, p);
    if (ours->fits)
        ah__buf_printf(buf, " %d, %d, %d of %d | %.3f |\n", switches->checkpoint, switches->offload_params,
                       switches->offload_optimizer, switches->layers,
                       (double)ours->plan.step_ns / (double)ours->plan.bound_ns);
    else
        ah__buf_printf(buf, " | |\n");
}

static void models(struct ah_buf *buf, const struct paper_results *results)
{
    for (int world = 0; world < PAPER_WORLDS; world++)
        for (int machine = 0; machine < PAPER_MACHINES; machine++) {
            ah__buf_printf(buf, "\n### %s, %s\n\n| model |", machine ? "Four GPUs" : "One GPU",
                           paper_worlds[world].name);
            for (enum paper_policy p = 0; p < PAPER_POLICIES; p++)
                ah__buf_printf(buf, " %s |", paper_systems[p].name);
            ah__buf_printf(buf, " its c, p, o of L | step / bound |");
            rule(buf, 1 + PAPER_POLICIES + 2);
            for (int model = 0; model < PAPER_MODELS; model++)
                model_row(buf, &results->models[world][machine][1][model]);
        }
}

static void sensitivity(struct ah_buf *buf, const struct paper_results *results)
{
    for (int world = 0; world < PAPER_RATES; world++) {
        ah__buf_printf(buf, "\nWith %s:\n\n| rates |", paper_worlds[world].name);
        for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++)
            ah__buf_printf(buf, " %s |", paper_systems[p].over);
        rule(buf, 1 + PAPER_AUTOHETE);
        for (int v = 0; v < PAPER_VARIANTS; v++) {
            ah__buf_printf(buf, "| %s |", paper_variants[v].name);
            for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++)
                spread_text(buf, paper_spread_of(results->varied[world][v], p));
            ah__buf_printf(buf, "\n");
        }
    }
}

/* What the three sets of rates say of the host's Adam. */
static void adam_rates(struct ah_buf *buf, const struct paper_results *results)
{
    ah__buf_printf(buf, "\nHost Adam:");
    for (int world = 0; world < PAPER_RATES; world++)
        ah__buf_printf(buf, "%s %.1f Gparam/s (%s)", world ? "," : "",
                       results->models[world][0][1][0].adam_params_per_s / 1e9, paper_worlds[world].optimizer);
    ah__buf_printf(buf, "; the paper does not say how fast its own was.\n");
}

/* ---- the two pages ----------------------------------------------------------------------------------------------- */

static void headline_cell(struct ah_buf *buf, double mean, double most)
{
    if (mean > 0)
        ah__buf_printf(buf, " %.2f (%.2f) |", mean, most);
    else
        ah__buf_printf(buf, " |");
}

/* The table that summary.md opens with: our memory and rates. */
static void headline(struct ah_buf *buf, const struct paper_results *results)
{
    ah__buf_printf(buf,
                   "# The paper's evaluation, simulated\n\n"
                   "| AutoHete over | the paper, one GPU | here, one GPU | the paper, four GPUs | here, four GPUs |");
    rule(buf, 1 + 2 * PAPER_MACHINES);
    for (enum paper_policy p = 0; p < PAPER_AUTOHETE; p++) {
        ah__buf_printf(buf, "| %s |", paper_systems[p].over);
        for (int machine = 0; machine < PAPER_MACHINES; machine++) {
            struct paper_reported reported = paper_reported[machine][p];
            struct paper_spread spread = paper_spread_of(results->models[0][machine][1], p);
            headline_cell(buf, reported.mean, reported.most);
            headline_cell(buf, spread.mean, spread.most);
        }
        ah__buf_printf(buf, "\n");
    }
    ah__buf_printf(buf, "\n%s", paper_notes_summary);
}

static void appendix(struct ah_buf *buf, const struct paper_results *results)
{
    ah__buf_printf(buf, "%s", paper_notes_appendix);
    adam_rates(buf, results);
    ratios(buf, results);
    feasibility(buf, results);
    ah__buf_printf(buf, "\n## The paper's claims beside ours\n\n"
                        "Made from the results; two figures within a tenth of each other are called alike.\n");
    paper_statements(buf, results);
    ah__buf_printf(buf, "\n## Table 1\n\n");
    table_1(buf, results->models[0][0][1]);
    ah__buf_printf(buf, "\n## All models at batch 8\n\nModel TFLOPS per GPU; in brackets AutoHete's speed over it. "
                        "PS: priority scheduling; without it: first come, first served.\n");
    models(buf, results);
    ah__buf_printf(buf, "\n## How much depends on the figures chosen\n\nMean and largest ratio over the models, one "
                        "GPU, batch 8, when one rate changes and all plans are made anew.\n");
    sensitivity(buf, results);
}

static int page_save(const struct paper_results *results, const char *folder, const char *name,
                     void (*write)(struct ah_buf *buf, const struct paper_results *results))
{
    char path[512];
    struct ah_buf buf = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write(&buf, results);
    int status = buf.status == AH_OK ? ah__file_write(path, buf.text, buf.length) : buf.status;
    ah__buf_free(&buf);
    return status;
}

int paper_summary_save(const struct paper_results *results, const char *folder)
{
    int status = page_save(results, folder, "summary.md", headline);
    return status == AH_OK ? page_save(results, folder, "appendix.md", appendix) : status;
}
