/* What a switch of the plan gains: the best plan with it against the best plan without it, everything else alike.
 * Simulated for the paper's models (which tie their embeddings; for embedding_head for those of models/ that do not) or
 * another one of models/ on a machine of public figures within several budgets of device memory:
 *     switches [--without KEY] [--hardware NAME] [--ranks N] [--batch N] [--seq N] [--budgets 12G,16G,24G,40G]
 *              [--model 8b|gpt2-124m]
 * or trained for real on the CPU device with a throttled link, where memory binds:
 *     switches --trained [--without KEY] [--rounds N] [--steps N]
 * which takes both plans in turn; the last losses must be the same bits and the peaks as predicted. "fastest": the gain
 * by each plan's fastest step, which a busy machine changes least. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#include "plan/search.h"

enum { MOST_ROUNDS = 16, MOST_STEPS = 400, WITH_ALL = -1 };

struct settings {
    const char *hardware, *budgets, *model, *key;
    int without; /* enum ah_switch of the key */
    int world_size, batch, seq, rounds, steps;
    bool trained;
};

/* The planner as it is (WITH_ALL), or without a switch. False: nothing fits. */
static bool search(struct ah_plan *out, const struct ah_partition *partition, const struct ah_profile *profile,
                   const struct ah_budget *budget, int without)
{
    struct ah_policy policy = ah__policy_autohete;
    struct ah_search_report report;
    struct ah_predictor predictor;
    BENCH(ah__predictor_init(&predictor, partition, profile, policy.name));
    if (without != WITH_ALL)
        policy.without = 1U << without;
    predictor.policy = &policy;
    int status = ah__plan_search(out, &report, &predictor, budget);
    if (status != AH_EBUDGET)
        bench_check(status, "planning");
    ah__predictor_fini(&predictor);
    return status == AH_OK;
}

/* Short, with the buffers. */
static const char *switches_text(char text[AH_SWITCHES_TEXT], const struct ah_switches *s)
{
    char buffers[24];
    ah__switches_text(text, s, ' ', false);
    snprintf(buffers, sizeof buffers, " buffers=%d", s->buffers);
    strncat(text, buffers, AH_SWITCHES_TEXT - strlen(text) - 1);
    return text;
}

/* ---- simulated --------------------------------------------------------------------------------------------------- */

struct gains {
    double percent[512];
    size_t count;
};

static void budget_row(struct gains *gains, const char *name, const struct ah_partition *partition,
                       const struct ah_profile *profile, const struct ah_budget *budget, int switched)
{
    struct ah_plan without, with;
    char text[2][AH_SWITCHES_TEXT], memory[32];
    ah_size_format(memory, sizeof memory, budget->device_bytes);
    if (!search(&without, partition, profile, budget, switched)) {
        bool fits = search(&with, partition, profile, budget, WITH_ALL);
        printf("%-4s %9s   does not fit%s\n", name, memory, fits ? " but with it" : "");
        return;
    }
    search(&with, partition, profile, budget, WITH_ALL);
    double percent = 100 * ((double)without.step_ns / (double)with.step_ns - 1);
    gains->percent[gains->count++ % AH_LENGTH(gains->percent)] = percent;
    printf("%-4s %9s  %9.1f ms %-17s %9.1f ms %-17s %+6.2f%%\n", name, memory, (double)without.step_ns / 1e6,
           switches_text(text[0], &without.switches), (double)with.step_ns / 1e6,
           switches_text(text[1], &with.switches), percent);
    fflush(stdout);
}

/* What the gain comes from. */
static void note(const struct ah_partition *partition, const struct ah_profile *profile, int without)
{
    const struct ah_code *block = &partition->code[AH_CLASS_BLOCK];
    const int64_t(*ns)[AH_CLASSES_MOST] = profile->costs.ns;
    int64_t both = ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK] + ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK];
    struct ah_predictor predictor;
    BENCH(ah__predictor_init(&predictor, partition, profile, "autohete"));
    if (without == AH_SWITCH_selective)
        printf("     of a block's saved bytes %.1f%% are made again, in %.2f%% of its forward and backward\n",
               100 * (double)(block->saved_bytes - block->kept_bytes) / (double)block->saved_bytes,
               100 * (double)profile->costs.selective_ns[AH_CLASS_BLOCK] / (double)both);
    else if (without == AH_SWITCH_offload_activations)
        printf("     a block: forward and backward %.1f ms, recomputation %.1f, activations out %.1f, in %.1f\n",
               (double)both / 1e6, (double)profile->costs.recompute_ns[AH_CLASS_BLOCK] / 1e6,
               (double)predictor.costs.out_ns[AH_KEEPS_ALL] / 1e6, (double)predictor.costs.in_ns[AH_KEEPS_ALL] / 1e6);
    else if (without == AH_SWITCH_share_embedding_head)
        printf("     parameters of the embedding %.0f M, of a block %.0f M, of the head %.0f M\n",
               (double)partition->groups[0].elements / 1e6, (double)partition->groups[1].elements / 1e6,
               (double)partition->groups[partition->layers + 1].elements / 1e6);
    else if (without == AH_SWITCH_staged)
        printf("     a block: forward and backward %.1f ms, host update %.1f, states in %.1f, updated and out %.1f\n",
               (double)both / 1e6, (double)ns[AH_ITEM_UPDATE_HOST][AH_CLASS_BLOCK] / 1e6,
               (double)ns[AH_ITEM_STATES_IN][AH_CLASS_BLOCK] / 1e6,
               (double)ns[AH_ITEM_UPDATE_STAGED][AH_CLASS_BLOCK] / 1e6);
    ah__predictor_fini(&predictor);
}

static void model_rows(struct gains *gains, const char *name, const struct settings *s,
                       const struct ah_hardware *hardware, const char *optimizer)
{
    char path[64], word[32];
    struct ah_hardware_info info;
    struct ah_step_options step = {.clips = true, .world_size = s->world_size};
    struct ah_estimate_options options = {.world_size = s->world_size, .optimizer = optimizer};
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_profile *profile;
    snprintf(path, sizeof path, strchr(name, '-') ? "models/%s.json" : "models/gpt-%s.json", name);
    ah_hardware_get(&info, hardware);
    BENCH(ah_model_load(&model, path));
    BENCH(ah_model_record(&graph, model,
                          &(struct ah_record_options){.batch = s->batch, .seq = s->seq, .compute = AH_BF16}));
    BENCH(ah_partition_new(&partition, graph, &step));
    BENCH(ah_profile_estimate(&profile, partition, hardware, &options));
    const char *budgets = s->budgets;
    while (bench_word(word, sizeof word, &budgets)) {
        struct ah_budget budget = {.device_bytes = bench_bytes(word), .host_bytes = info.host_bytes};
        budget.device_bytes = budget.device_bytes < info.device_bytes ? budget.device_bytes : info.device_bytes;
        budget_row(gains, name, partition, profile, &budget, s->without);
    }
    note(partition, profile, s->without);
    ah_profile_free(profile);
    ah_partition_free(partition);
    ah_graph_free(graph);
    ah_model_free(model);
}

static int simulated(const struct settings *s)
{
    static const char *const tied[] = {"2b", "4b", "6b", "8b", "10b", "12b", "14b", "16b", "18b", "20b", "22b", NULL};
    static const char *const untied[] = {"tinyllama-1.1b", "pythia-1.4b", "mistral-7b", "qwen2.5-7b",
                                         "llama-3.1-8b",   "qwen3-8b",    NULL};
    const char *const one[] = {s->model, NULL};
    const char *const *models = s->model ? one : s->without == AH_SWITCH_share_embedding_head ? untied : tied;
    static const char *const optimizers[] = {"autohete", "deepspeed", "pytorch"};
    struct ah_hardware *hardware;
    BENCH(ah_hardware_load(&hardware, s->hardware));
    for (size_t i = 0; i < AH_LENGTH(optimizers); i++) {
        struct gains gains = {.count = 0};
        printf("%s, bf16, batch %d of %d tokens, clipping, rates: %s; without %s and with\n", s->hardware, s->batch,
               s->seq, optimizers[i], s->key);
        printf("%-4s %9s  %12s %17s %12s %17s %7s\n", "", "memory", "without", "", "with", "", "gain");
        for (size_t m = 0; models[m]; m++)
            model_rows(&gains, models[m], s, hardware, optimizers[i]);
        size_t count = gains.count < AH_LENGTH(gains.percent) ? gains.count : AH_LENGTH(gains.percent);
        if (count)
            printf("of %zu: least %+.2f%%, median %+.2f%%, most %+.2f%%\n\n", count,
                   bench_quantile(gains.percent, count, 0), bench_quantile(gains.percent, count, 0.5),
                   bench_quantile(gains.percent, count, 1));
    }
    ah_hardware_free(hardware);
    return 0;
}

/* ---- trained ----------------------------------------------------------------------------------------------------- */

struct side {
    struct ah_plan plan;
    struct bench_steps steps;
    int64_t median_ns[MOST_ROUNDS], least_ns; /* of all rounds */
};

static bool peaks_right(const struct side *side)
{
    return side->steps.device_used_bytes == side->plan.device_peak_bytes &&
           side->steps.host_used_bytes == side->plan.host_peak_bytes;
}

/* Both plans in turn; 1 when a promise is broken. */
static int trained_row(const struct bench *bench, const struct settings *s, int64_t device_bytes)
{
    static struct side sides[2]; /* without, with */
    struct ah_budget budget = {.device_bytes = device_bytes};
    char text[2][AH_SWITCHES_TEXT];
    for (int i = 0; i < 2; i++)
        if (!search(&sides[i].plan, bench->partition, bench->profile, &budget, i == 1 ? WITH_ALL : s->without))
            return 0;
    for (int r = 0; r < s->rounds; r++)
        for (int i = 0; i < 2; i++) {
            struct side *side = &sides[(r + i) % 2];
            bench_run(&side->steps, bench, &side->plan, s->steps, true);
            side->median_ns[r] = side->steps.median_ns;
            if (r == 0 || side->steps.least_ns < side->least_ns)
                side->least_ns = side->steps.least_ns;
        }
    int64_t without = bench_median(sides[0].median_ns, (size_t)s->rounds);
    int64_t with = bench_median(sides[1].median_ns, (size_t)s->rounds);
    bool same = sides[0].steps.loss == sides[1].steps.loss, right = peaks_right(&sides[0]) && peaks_right(&sides[1]);
    double tokens = (double)ah__step_tokens(bench->partition) * 1e9;
    printf("%7.1f MiB  %-16s %8.2f %8.2f %8.0f  %-16s %8.2f %8.2f %8.0f  %+6.2f%% %+6.2f%% %+6.2f%%  %s\n",
           (double)device_bytes / (1 << 20), switches_text(text[0], &sides[0].plan.switches),
           (double)sides[0].plan.step_ns / 1e6, (double)without / 1e6, tokens / (double)without,
           switches_text(text[1], &sides[1].plan.switches), (double)sides[1].plan.step_ns / 1e6, (double)with / 1e6,
           tokens / (double)with, 100 * ((double)sides[0].plan.step_ns / (double)sides[1].plan.step_ns - 1),
           100 * ((double)without / (double)with - 1),
           100 * ((double)sides[0].least_ns / (double)sides[1].least_ns - 1),
           !right ? "PEAK WRONG"
           : same ? "same bits"
                  : "DIFFERENT");
    fflush(stdout);
    return !same || !right;
}

/* Where some blocks, but not all, recompute. */
static int trained(const struct settings *s)
{
    static const double shares[] = {0.08, 0.18, 0.28};
    struct bench bench = {
        .device = "cpu", .layers = 12, .width = 256, .heads = 4, .vocab = 256, .batch = 4, .seq = 128};
    int64_t least, most, host;
    int wrong = 0;
    bench.dev = (struct ah_dev_options){.threads = 1, .host_threads = 1, .link_bytes_per_s = 2000000000};
    bench_open(&bench);
    struct ah_switches small = {.layers = bench.layers,
                                .checkpoint = bench.layers,
                                .offload_params = bench.layers - 1,
                                .offload_optimizer = bench.layers,
                                .embedding_on_host = true,
                                .head_on_host = true,
                                .buffers = 2};
    struct ah_switches large = {.layers = bench.layers, .buffers = 1};
    ah__layout_bytes(&least, &host, bench.partition, &small, bench.profile->workspace_bytes);
    ah__layout_bytes(&most, &host, bench.partition, &large, bench.profile->workspace_bytes);
    const int64_t *forward = bench.profile->costs.ns[AH_ITEM_FORWARD];
    bench_machine(stdout);
    printf("cpu: %d blocks of width %d, %lld x %lld tokens in fp32, 1 compute and 1 host thread, link %.1f GB/s each "
           "way; %d rounds of %d steps in turn, medians\n",
           bench.layers, bench.width, (long long)bench.batch, (long long)bench.seq,
           (double)bench.dev.link_bytes_per_s / 1e9, s->rounds, s->steps);
    printf("a block: forward %.3f ms, backward %.3f, recompute %.3f, selective %.3f\n",
           (double)forward[AH_CLASS_BLOCK] / 1e6,
           (double)bench.profile->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK] / 1e6,
           (double)bench.profile->costs.recompute_ns[AH_CLASS_BLOCK] / 1e6,
           (double)bench.profile->costs.selective_ns[AH_CLASS_BLOCK] / 1e6);
    printf("%11s  %-16s %8s %8s %8s  %-16s %8s %8s %8s  %7s %7s %7s\n", "memory", "without", "planned", "ms",
           "tokens/s", "with", "planned", "ms", "tokens/s", "planned", "gain", "fastest");
    for (size_t i = 0; i < AH_LENGTH(shares); i++)
        wrong |= trained_row(&bench, s, least + (int64_t)((double)(most - least) * shares[i]));
    bench_close(&bench);
    return wrong;
}

int main(int argc, char **argv)
{
    struct settings s = {.hardware = "a100-40g",
                         .budgets = "12G,16G,24G,32G,40G",
                         .key = "selective",
                         .world_size = 1,
                         .batch = 8,
                         .seq = 1024,
                         .rounds = 5,
                         .steps = 16};
    const struct bench_option options[] = {
        {"hardware", BENCH_TEXT, &s.hardware, "the machine that is simulated"},
        {"budgets", BENCH_TEXT, &s.budgets, "of device memory, separated by commas"},
        {"model", BENCH_TEXT, &s.model, "only this one of models/, like 4b or gpt2-124m"},
        {"without", BENCH_TEXT, &s.key, "the switch, as --plan calls it"},
        {"ranks", BENCH_COUNT, &s.world_size, "devices that train together"},
        {"batch", BENCH_COUNT, &s.batch, "sequences"},
        {"seq", BENCH_COUNT, &s.seq, "tokens in each"},
        {"trained", BENCH_FLAG, &s.trained, "trains for real on the CPU device instead"},
        {"rounds", BENCH_COUNT, &s.rounds, "trainings under each plan, 16 at most"},
        {"steps", BENCH_COUNT, &s.steps, "of a training, of which the first three do not count"},
    };
    BENCH_OPTIONS(argc, argv, "What a switch of the plan gains: the best plan with it and without it.", options);
    s.without = ah__switch_find(s.key, strlen(s.key), false);
    if (s.without < 0) {
        fprintf(stderr, "--without: found \"%s\", expected a switch like selective or staged\n", s.key);
        return 2;
    }
    s.rounds = bench_least(s.rounds, MOST_ROUNDS);
    s.steps = bench_least(s.steps, MOST_STEPS);
    return s.trained ? trained(&s) : simulated(&s);
}
