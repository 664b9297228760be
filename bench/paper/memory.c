/* The appendix's example: device memory of five blocks at each moment of a step, with one technique on and off. Sizes
 * are the layout's; what is there at a moment is what the scheduler has there in a simulated step. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "bench.h"
#include "layout/layout.h"
#include "paper/results.h"
#include "plot.h"
#include "sched/switches.h"
#include "timeline/timeline.h"

enum { BLOCKS = 5, MOMENTS = 2 * BLOCKS, TREATED = 2, BATCH = 8, ITERATIONS = 6, STEADY = 3 };

/* A plan of the five blocks with what is known of it. */
struct example {
    struct ah_switches switches;
    struct ah_layout *layout;
    struct ah_timeline *timeline;
};

/* Block 1.. that runs at a moment, and whether forward. */
static int block_at(int moment, bool *forward)
{
    *forward = moment < BLOCKS;
    return *forward ? moment + 1 : MOMENTS - moment;
}

/* The last of the block's items of a kind that began by `by_ns`; null: none. */
static const struct ah_span *last(const struct example *example, enum ah_item_kind kind, int block, int64_t by_ns)
{
    const struct ah_span *found = NULL;
    for (size_t i = 0; i < example->timeline->span_count; i++) {
        const struct ah_span *span = &example->timeline->spans[i];
        if (span->item.kind == kind && span->item.partition == block && span->start_ns <= by_ns &&
            (!found || span->start_ns > found->start_ns))
            found = span;
    }
    return found;
}

/* The end of what runs at a moment of the steady step. */
static int64_t time_of(const struct example *example, int moment)
{
    bool forward;
    int block = block_at(moment, &forward);
    for (size_t i = 0; i < example->timeline->span_count; i++) {
        const struct ah_span *span = &example->timeline->spans[i];
        if (span->item.kind == (forward ? AH_ITEM_FORWARD : AH_ITEM_BACKWARD) && span->item.partition == block &&
            span->item.iteration == STEADY)
            return span->end_ns;
    }
    return 0;
}

static int64_t start_of(const struct ah_span *span)
{
    return span ? span->start_ns : -1;
}

static int64_t end_of(const struct ah_span *span)
{
    return span ? span->end_ns : -1;
}

/* Whether a block's parameters are in a buffer: they came (fetched or cast) after they were last given back. */
static bool has_params(const struct example *example, int block, int64_t at_ns)
{
    bool whole = !ah__on_host(&example->switches, block) || ah__refetches(&example->switches, block);
    int64_t came = start_of(last(example, AH_ITEM_PREFETCH, block, at_ns));
    int64_t again = start_of(last(example, AH_ITEM_REFETCH, block, at_ns));
    int64_t cast = start_of(last(example, AH_ITEM_CAST, block, at_ns));
    int64_t left = end_of(last(example, AH_ITEM_BACKWARD, block, at_ns));
    int64_t forward = end_of(last(example, AH_ITEM_FORWARD, block, at_ns));
    came = came > again ? came : again;
    came = came > cast ? came : cast;
    left = whole && forward > left ? forward : left;
    return came >= 0 && (left < came || left >= at_ns);
}

/* From the backward that writes it until it has left, or has been used. */
static bool has_gradient(const struct example *example, int block, int64_t at_ns)
{
    enum ah_item_kind user = ah__on_host(&example->switches, block) ? AH_ITEM_OFFLOAD : AH_ITEM_UPDATE_DEVICE;
    const struct ah_span *made = last(example, AH_ITEM_BACKWARD, block, at_ns);
    const struct ah_span *used = last(example, user, block, at_ns);
    return made && (!used || used->start_ns < made->end_ns || used->end_ns > at_ns);
}

/* Inputs of the blocks reached, and the sets of those that have saved theirs. */
static double activations(const struct example *example, int moment)
{
    bool forward;
    int now = block_at(moment, &forward), held = 0;
    for (int block = 1; block <= now; block++)
        held += !ah__recomputes(&example->switches, block) || (block == now && !forward);
    return (double)(now * example->layout->input_bytes + held * example->layout->saved_bytes);
}

static double parameters(const struct example *example, int moment)
{
    int held = 0;
    for (int block = 1; block <= BLOCKS; block++)
        held += has_params(example, block, time_of(example, moment));
    return (double)(held * example->layout->buffer_bytes);
}

static double model_data(const struct example *example, int moment)
{
    double bytes = parameters(example, moment);
    for (int block = 1; block <= BLOCKS; block++) {
        bytes += has_gradient(example, block, time_of(example, moment)) ? (double)example->layout->buffer_bytes : 0;
        if (!ah__on_host(&example->switches, block))
            bytes += 3 * (double)example->layout->groups[block].state_bytes;
    }
    return bytes;
}

/* As few buffers as there can be, so that nothing lies there before it is needed. */
static void example_init(struct example *example, const struct bench *bench, const char *spec)
{
    struct ah_budget unlimited = {0};
    struct ah_plan plan;
    BENCH(ah_plan_parse(&plan, spec, bench->partition, bench->profile, &unlimited, "autohete-paper"));
    *example = (struct example){.switches = plan.switches};
    BENCH(ah__layout_new(&example->layout, bench->partition, &plan.switches, plan.workspace_bytes));
    BENCH(ah_plan_simulate(&example->timeline, &plan, bench->partition, bench->profile, ITERATIONS));
}

static void example_fini(struct example *example)
{
    ah_timeline_free(example->timeline);
    ah__layout_free(example->layout);
}

static const struct figure {
    const char *name, *title, *treated, *without, *with;
    double (*bytes)(const struct example *, int moment);
} figures[] = {
    {"memory-activations", "Activations, blocks 1 and 2 checkpointed", "blocks 1 and 2 recompute",
     "c=0,p=0,o=5,prefetch_distance=1", "c=2,p=0,o=5,prefetch_distance=1", activations},
    {"memory-parameters", "Parameters, those of blocks 1 and 2 offloaded", "blocks 1 and 2 give theirs back",
     "c=0,p=0,o=5,buffers=6,prefetch_distance=1", "c=0,p=2,o=5,buffers=4,prefetch_distance=1", parameters},
    {"memory-states", "Parameters, gradients and states, optimizers of blocks 4 and 5 offloaded",
     "blocks 4 and 5 on the host", "c=0,p=0,o=0", "c=0,p=0,o=2,buffers=3,prefetch_distance=1", model_data},
};

static void draw(const char *folder, const struct figure *figure, const struct bench *bench)
{
    static const char *const moments[MOMENTS] = {"F1", "F2", "F3", "F4", "F5", "B5", "B4", "B3", "B2", "B1"};
    double y[2][MOMENTS];
    char path[512];
    for (int with = 0; with < 2; with++) {
        struct example example;
        example_init(&example, bench, with ? figure->with : figure->without);
        for (int m = 0; m < MOMENTS; m++)
            y[with][m] = figure->bytes(&example, m) / (double)(1 << 30);
        example_fini(&example);
    }
    struct plot plot = {.title = figure->title,
                        .subtitle = "five blocks as the 4B model's on an A100, batch 8, 1024 tokens, bf16; simulated",
                        .x_label = "what runs: forward and backward of blocks 1 to 5",
                        .y_label = "device memory, GiB",
                        .x_names = moments,
                        .points = MOMENTS,
                        .series_count = 2,
                        .all_fit = true,
                        .series = {{"nothing done", "#9aa5b1", y[0]}, {figure->treated, "#0f7a55", y[1]}}};
    snprintf(path, sizeof path, "%s/%s.svg", folder, figure->name);
    BENCH(plot_save(&plot, path));
}

/* The 4B model with five blocks. */
static void load(struct bench *bench, const char *folder)
{
    static const char layers[] = "\"n_layer\": 21";
    char path[512], *text, *edited;
    size_t length;
    BENCH(ah__file_read(&text, &length, "models/gpt-4b.json", 1 << 16));
    const char *at = strstr(text, layers);
    if (!at)
        BENCH(ah__fail(AH_EINPUT, "models/gpt-4b.json: key 'n_layer': expected 21"));
    BENCH(ah__sprintf(&edited, "%.*s\"n_layer\": %d%s", (int)(at - text), text, BLOCKS, at + strlen(layers)));
    snprintf(path, sizeof path, "%s/five-blocks.json", folder);
    BENCH(ah__file_write(path, edited, strlen(edited)));
    BENCH(ah_model_load(&bench->model, path));
    remove(path);
    ah__free(edited);
    ah__free(text);
}

void paper_memory_save(const char *folder)
{
    struct bench bench = {0};
    struct ah_hardware *hardware;
    load(&bench, folder);
    BENCH(ah_hardware_load(&hardware, "hardware/a100-40g.json"));
    BENCH(ah_model_record(&bench.graph, bench.model,
                          &(struct ah_record_options){.batch = BATCH, .seq = PAPER_SEQ, .compute = AH_BF16}));
    BENCH(ah_partition_new(&bench.partition, bench.graph, NULL));
    BENCH(ah_profile_estimate(&bench.profile, bench.partition, hardware, NULL));
    for (size_t i = 0; i < AH_LENGTH(figures); i++)
        draw(folder, &figures[i], &bench);
    ah_hardware_free(hardware);
    bench_close(&bench);
}
