/* Measuring a tiny model, and profiles as files. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "profile/profile.h"
#include "profile/workload.h"

static struct ah_partition *tuned_partition(const char *config, int64_t seq, const struct ah_tuning *tuning)
{
    char path[160];
    struct ah_model *model = NULL;
    struct ah_graph *graph = NULL;
    struct ah_partition *partition = NULL;
    snprintf(path, sizeof path, "%s/model.json", ah_test_folder());
    assert_ok(ah__file_write(path, config, strlen(config)));
    assert_ok(ah_model_load(&model, path));
    assert_ok(ah_model_record(
        &graph, model, &(struct ah_record_options){.batch = 2, .seq = seq, .compute = AH_F32, .tuning = *tuning}));
    assert_ok(ah_partition_new(&partition, graph, NULL));
    ah_graph_free(graph);
    ah_model_free(model);
    return partition;
}

static struct ah_partition *partition_of(const char *config, int64_t seq)
{
    return tuned_partition(config, seq, &(struct ah_tuning){0});
}

static const char tiny[] = "{\"model_type\": \"gpt2\", \"vocab_size\": 64, \"n_positions\": 16, \"n_embd\": 32,"
                           " \"n_layer\": 3, \"n_head\": 4}";

static struct ah_partition *tiny_partition(void)
{
    return partition_of(tiny, 16);
}

/* Every number different, so that one in another's place is seen. */
static void profile_fill(struct ah_profile *profile)
{
    int64_t next = 1000;
    *profile = (struct ah_profile){.device = "a machine \"by hand\"",
                                   .world_size = 4,
                                   .threads = 3,
                                   .host_threads = 2,
                                   .link_bytes_per_s = 4000000000};
    profile->costs.layers = 12;
    for (int i = 0; i < AH_ITEM_COUNT; i++)
        for (int j = 0; j < AH_CLASS_COUNT; j++)
            profile->costs.ns[i][j] = next++;
    for (int i = 0; i < AH_CLASS_COUNT; i++) {
        profile->costs.recompute_ns[i] = next++;
        profile->params[i] = next++;
        profile->forward_flops[i] = (double)next++ / 3.0;
        profile->backward_flops[i] = (double)next++ / 7.0;
        profile->recompute_flops[i] = (double)next++ * 1e9;
        profile->costs.selective_ns[i] = next++;
    }
    profile->costs.widen_ns = next++;
    profile->costs.class_count = AH_CLASS_COUNT + 2;
    for (int i = AH_CLASS_COUNT; i < profile->costs.class_count; i++) {
        profile->costs.ns[AH_ITEM_FORWARD][i] = next++;
        profile->costs.ns[AH_ITEM_BACKWARD][i] = next++;
        profile->costs.recompute_ns[i] = next++;
        profile->costs.selective_ns[i] = next++;
    }
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        profile->costs.lanes.launch_ns[i] = next++;
        for (int j = 0; j < AH_LANE_COUNT; j++)
            profile->costs.lanes.slowdown[i][j] = 1 + 1.0 / (double)next++;
    }
    profile->costs.lanes.notify_ns = next++;
    profile->costs.lanes.queue_depth = 7;
    profile->h2d_bytes_per_s = next++;
    profile->d2h_bytes_per_s = next++;
    profile->h2d_both_bytes_per_s = next++;
    profile->d2h_both_bytes_per_s = next++;
    profile->partition_signature = 0xfedcba9876543210;
    profile->device_signature = 0x0123456789abcdef;
}

static void profile_check_equal(const struct ah_profile *a, const struct ah_profile *b)
{
    assert_string_equal(a->device, b->device);
    assert_int_equal(a->world_size, b->world_size);
    assert_int_equal(a->threads, b->threads);
    assert_int_equal(a->host_threads, b->host_threads);
    assert_int_equal(a->link_bytes_per_s, b->link_bytes_per_s);
    assert_int_equal(a->costs.layers, b->costs.layers);
    assert_memory_equal(a->costs.ns, b->costs.ns, sizeof a->costs.ns);
    assert_int_equal(a->costs.class_count, b->costs.class_count);
    assert_memory_equal(a->costs.recompute_ns, b->costs.recompute_ns, sizeof a->costs.recompute_ns);
    assert_memory_equal(a->costs.selective_ns, b->costs.selective_ns, sizeof a->costs.selective_ns);
    assert_memory_equal(a->costs.lanes.launch_ns, b->costs.lanes.launch_ns, sizeof a->costs.lanes.launch_ns);
    assert_memory_equal(a->costs.lanes.slowdown, b->costs.lanes.slowdown, sizeof a->costs.lanes.slowdown);
    assert_int_equal(a->costs.widen_ns, b->costs.widen_ns);
    assert_int_equal(a->costs.lanes.notify_ns, b->costs.lanes.notify_ns);
    assert_int_equal(a->costs.lanes.queue_depth, b->costs.lanes.queue_depth);
    assert_memory_equal(&a->h2d_bytes_per_s, &b->h2d_bytes_per_s, 4 * sizeof a->h2d_bytes_per_s);
    assert_memory_equal(a->params, b->params, sizeof a->params);
    assert_memory_equal(a->forward_flops, b->forward_flops, 3 * sizeof a->forward_flops);
    assert_true(a->partition_signature == b->partition_signature && a->device_signature == b->device_signature);
}

static void a_file_brings_everything_back(void **state)
{
    struct ah_profile profile, *loaded = NULL;
    char path[160];
    profile_fill(&profile);
    snprintf(path, sizeof path, "%s/profile.json", ah_test_folder());
    assert_ok(ah_profile_save(&profile, path));
    assert_ok(ah_profile_load(&loaded, path));
    profile_check_equal(&profile, loaded);
    ah_profile_free(loaded);
}

/* The saved text with `from` replaced by `to` (both nonempty; `from` must be there). */
static void edit(const char *path, const char *from, const char *to)
{
    char *text, *edited;
    size_t length;
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    char *at = strstr(text, from);
    assert_non_null(at);
    assert_ok(ah__sprintf(&edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)));
    assert_ok(ah__file_write(path, edited, strlen(edited)));
    ah__free(edited);
    ah__free(text);
}

static void loading_is_strict(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } wrong[] = {
        {"profile 1", "profile 9", "key 'format': found \"autohete profile 9\""},
        {"\"layers\"", "\"lairs\"", "lairs"},
        {"1000", "\"fast\"", "key 'ns.input.embedding': found 'fast'"},
        {"1000", "10.5", "key 'ns.input.embedding': found 10.5"},
        {"1000", "-4", "key 'ns.input.embedding': found -4"},
        {"1000", "9007199254740992", "input of embedding: found 9007199254740992 ns, expected at most"},
        {"\"forward\"", "\"forwards\"", "forwards"},
        {"\"threads\"", "\"thread\"", "'thread'"},
        {"0123456789abcdef", "0123456789abcdeg", "key 'device_signature'"},
        {"\"notify_ns\"", "\"slowdown\"", "slowdown"},
    };
    struct ah_profile profile, *loaded = NULL;
    char path[160];
    profile_fill(&profile);
    snprintf(path, sizeof path, "%s/profile.json", ah_test_folder());
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_ok(ah_profile_save(&profile, path));
        edit(path, wrong[i].from, wrong[i].to);
        assert_fails(ah_profile_load(&loaded, path), AH_EINPUT, wrong[i].words);
        assert_non_null(strstr(ah_error(), "profile.json"));
    }
    assert_null(loaded);
}

static void slowdown_below_one_is_refused(void **state)
{
    struct ah_profile profile, *loaded = NULL;
    char path[160];
    profile_fill(&profile);
    profile.costs.lanes.slowdown[AH_LANE_H2D][AH_LANE_HOST] = 0.5;
    snprintf(path, sizeof path, "%s/profile.json", ah_test_folder());
    assert_ok(ah_profile_save(&profile, path));
    assert_fails(ah_profile_load(&loaded, path), AH_EINPUT, "key 'slowdown.h2d.host': found 0.5");
}

/* What a file written by hand may leave out: signatures, pairs that do not disturb each other, the work behind the
 * times. */
static void a_hand_written_file_may_be_short(void **state)
{
    struct ah_profile *loaded = NULL;
    char path[160];
    snprintf(path, sizeof path, "%s/profile/hand.json", ah_test_source());
    assert_ok(ah_profile_load(&loaded, path));
    assert_string_equal(loaded->device, "a card out of a catalogue");
    assert_int_equal(loaded->world_size, 1);
    assert_int_equal(loaded->costs.ns[AH_ITEM_GATHER][AH_CLASS_BLOCK], 0);
    assert_int_equal(loaded->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK], 30000000);
    assert_int_equal(loaded->costs.selective_ns[AH_CLASS_BLOCK], 15000000); /* not there: as long as all of it */
    assert_true(loaded->costs.lanes.slowdown[AH_LANE_H2D][AH_LANE_D2H] == 1.4);
    assert_true(loaded->costs.lanes.slowdown[AH_LANE_D2H][AH_LANE_HOST] == 1);
    assert_true(loaded->costs.lanes.slowdown[AH_LANE_COMPUTE][AH_LANE_COMPUTE] == 1);
    assert_true(loaded->device_signature == 0 && loaded->partition_signature == 0);
    assert_true(loaded->forward_flops[AH_CLASS_BLOCK] == 0);
    ah_profile_free(loaded);
}

static void loading_survives_every_failed_allocation(void **state)
{
    char path[160];
    snprintf(path, sizeof path, "%s/profile/hand.json", ah_test_source());
    for (uint64_t n = 1;; n++) {
        struct ah_profile *loaded = NULL;
        ah__alloc_fail_at(n);
        int status = ah_profile_load(&loaded, path);
        ah__alloc_fail_at(0);
        if (status == AH_OK) {
            ah_profile_free(loaded);
            assert_true(n > 2);
            return;
        }
        assert_int_equal(status, AH_ENOMEM);
        assert_null(loaded);
    }
}

static void costs_check(const struct ah_costs *costs)
{
    for (int i = 0; i < AH_ITEM_COUNT; i++)
        for (int j = 0; j < AH_CLASS_COUNT; j++)
            if (i == AH_ITEM_CAST || ah__item_profiled[i] == AH_PROFILED_NEVER || i == AH_ITEM_GATHER ||
                i == AH_ITEM_REDUCE || (j != AH_CLASS_BLOCK && (i == AH_ITEM_STATES_IN || i == AH_ITEM_UPDATE_STAGED)))
                assert_int_equal(costs->ns[i][j], 0);
            else
                assert_true(costs->ns[i][j] > 0 && costs->ns[i][j] < 60000000000);
    assert_true(costs->recompute_ns[AH_CLASS_BLOCK] > 0);
    assert_int_equal(costs->recompute_ns[AH_CLASS_HEAD], 0);
    assert_true(costs->selective_ns[AH_CLASS_BLOCK] > 0);
    assert_int_equal(costs->selective_ns[AH_CLASS_HEAD], 0);
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        assert_true(costs->lanes.launch_ns[i] >= 0);
        assert_true(costs->lanes.slowdown[i][i] == 1);
        for (int j = 0; j < AH_LANE_COUNT; j++)
            assert_true(costs->lanes.slowdown[i][j] >= 1 && isfinite(costs->lanes.slowdown[i][j]));
    }
    assert_true(costs->lanes.notify_ns > 0);
}

static void measures_a_tiny_model(void **state)
{
    struct ah_dev_options options = {.threads = 2, .link_bytes_per_s = 50000000};
    struct ah_partition *partition = tiny_partition();
    struct ah_profile *profile = NULL;
    struct ah_dev_info info;
    struct ah_dev *dev = NULL;
    assert_ok(ah_dev_open(&dev, "cpu", &options));
    assert_ok(ah_profile_measure(&profile, NULL, partition, dev, NULL));
    costs_check(&profile->costs);
    dev->ops->info(dev, &info);
    assert_string_equal(profile->device, "cpu");
    assert_int_equal(profile->threads, 2);
    assert_int_equal(profile->host_threads, 1);
    assert_int_equal(profile->costs.layers, 3);
    assert_true(profile->device_signature == info.signature && profile->partition_signature == partition->signature);
    assert_int_equal(profile->params[AH_CLASS_BLOCK], partition->groups[2].count);
    assert_true(profile->backward_flops[AH_CLASS_HEAD] > 0);
    /* The link is what it was opened with: a copy cannot be faster. */
    int64_t bytes = partition->groups[1].count * 4;
    assert_true(profile->costs.ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK] >= bytes * 1000000000 / options.link_bytes_per_s);
    assert_true(profile->h2d_bytes_per_s <= options.link_bytes_per_s && profile->h2d_bytes_per_s > 0);
    assert_true(profile->d2h_both_bytes_per_s <= options.link_bytes_per_s && profile->d2h_both_bytes_per_s > 0);
    /* All memory was given back, and what was used was less than what it asked for. */
    assert_int_equal(info.host_bytes, 0);
    char *base;
    assert_ok(dev->ops->device_memory(dev, 4096, &base));
    ah_profile_free(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

/* What codes of a block take to become weights, of which forward is more. */
static void widening_is_timed_by_itself(void **state)
{
    struct ah_partition *partition = tuned_partition(tiny, 16, &(struct ah_tuning){.lora_rank = 2, .frozen = "nf4"});
    struct ah_profile *profile = NULL;
    struct ah_dev *dev = NULL;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1}));
    assert_ok(ah_profile_measure(&profile, NULL, partition, dev, NULL));
    assert_true(profile->costs.widen_ns > 0);
    assert_true(profile->costs.widen_ns < profile->costs.ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK]);
    ah_profile_free(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

/* Blocks without backward may be most of a model: nothing of them is in a profile's memory. */
static void frozen_blocks_take_no_room(void **state)
{
    struct ah_partition *partition = tuned_partition(
        "{\"model_type\": \"gpt2\", \"n_layer\": 16, \"n_embd\": 128, \"n_head\": 2, \"vocab_size\": 64,"
        " \"n_positions\": 16}",
        16, &(struct ah_tuning){.freeze = "embedding, blocks:1-15"});
    struct ah_workload workload = {0};
    struct ah_dev_info info;
    struct ah_dev *dev = NULL;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1}));
    assert_ok(ah__workload_init(&workload, partition, dev));
    dev->ops->info(dev, &info);
    int64_t trained = partition->groups[16].count * (int64_t)sizeof(float);
    assert_int_equal(partition->groups[1].trained, 0);
    assert_int_equal(partition->groups[1].count, partition->groups[16].count);
    assert_in_range(info.device_high_water_bytes, trained, 8 * trained);
    assert_in_range(info.host_bytes, trained, 12 * trained);
    ah__workload_fini(&workload);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

/* Of blocks with a short window and without, each is timed as itself. */
static void blocks_of_two_kinds_are_timed_apart(void **state)
{
    struct ah_partition *partition =
        partition_of("{\"model_type\": \"qwen2\", \"vocab_size\": 64, \"hidden_size\": 16, \"intermediate_size\": 16,"
                     " \"num_hidden_layers\": 3, \"num_attention_heads\": 4, \"max_position_embeddings\": 1024,"
                     " \"use_sliding_window\": true, \"sliding_window\": 2, \"max_window_layers\": 1}",
                     512);
    struct ah_profile *profile = NULL;
    struct ah_dev *dev = NULL;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1}));
    assert_ok(ah_profile_measure(&profile, NULL, partition, dev, NULL));
    costs_check(&profile->costs);
    const struct ah_costs *costs = &profile->costs;
    const int64_t *forward = costs->ns[AH_ITEM_FORWARD], *backward = costs->ns[AH_ITEM_BACKWARD];
    assert_int_equal(costs->class_count, AH_CLASS_COUNT + 1);
    assert_true(forward[AH_CLASS_COUNT] > 0 && forward[AH_CLASS_COUNT] < forward[AH_CLASS_BLOCK]);
    assert_true(backward[AH_CLASS_COUNT] > 0 && backward[AH_CLASS_COUNT] < backward[AH_CLASS_BLOCK]);
    assert_true(costs->recompute_ns[AH_CLASS_COUNT] > 0 && costs->selective_ns[AH_CLASS_COUNT] > 0);
    assert_null(costs->class_of);
    ah_profile_free(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

/* Beside a profile of the device with other host threads: what they do is measured, and nothing else. */
static void other_host_threads_alone_are_timed(void **state)
{
    static const int64_t hour_ns = 3600000000000;
    static const double beyond = 77; /* no lane slows another by so much */
    struct ah_partition *partition = tiny_partition();
    struct ah_profile like, *profile;
    struct ah_dev *dev;
    profile_fill(&like);
    like.world_size = 1;
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        like.costs.ns[AH_ITEM_UPDATE_HOST][class] = like.costs.ns[AH_ITEM_UPDATE_SPECULATIVE][class] = hour_ns;
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        like.costs.lanes.slowdown[lane][AH_LANE_HOST] = like.costs.lanes.slowdown[AH_LANE_HOST][lane] = beyond;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1, .host_threads = 2}));
    assert_ok(ah__profile_measure_like(&profile, partition, dev, &like, NULL));
    assert_int_equal(profile->host_threads, 2);
    assert_true(profile->device_signature != like.device_signature);
    for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
        for (int class = 0; class < AH_CLASS_COUNT; class ++)
            if (kind == AH_ITEM_UPDATE_HOST || kind == AH_ITEM_UPDATE_SPECULATIVE)
                assert_in_range(profile->costs.ns[kind][class], 1, hour_ns - 1);
            else
                assert_int_equal(profile->costs.ns[kind][class], like.costs.ns[kind][class]);
    assert_memory_equal(profile->costs.recompute_ns, like.costs.recompute_ns, sizeof like.costs.recompute_ns);
    for (int a = 0; a < AH_LANE_COMM; a++)
        for (int b = 0; b < AH_LANE_COMM; b++)
            if (a != b && (a == AH_LANE_HOST || b == AH_LANE_HOST))
                assert_true(profile->costs.lanes.slowdown[a][b] < beyond);
            else
                assert_true(profile->costs.lanes.slowdown[a][b] == like.costs.lanes.slowdown[a][b]);
    assert_int_equal(profile->h2d_bytes_per_s, like.h2d_bytes_per_s);
    assert_int_equal(profile->costs.lanes.notify_ns, like.costs.lanes.notify_ns);
    ah_profile_free(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

static void prints_a_table(void **state)
{
    struct ah_profile profile;
    char *text = NULL;
    size_t length = 0;
    profile_fill(&profile);
    profile.costs.ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK] = 12500000;
    profile.forward_flops[AH_CLASS_BLOCK] = 2.5e9;
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    assert_ok(ah_profile_print(&profile, to));
    fclose(to);
    assert_non_null(strstr(text, "12.5000  200.00 GFLOP/s"));
    assert_non_null(strstr(text, "link 4.00 GB/s, 12 layers"));
    assert_non_null(strstr(text, "one of 4 ranks"));
    assert_non_null(strstr(text, "reduce-scatter"));
    free(text);
}

/* A device whose memory somebody else holds is left as it was. */
static void needs_the_device_for_itself(void **state)
{
    struct ah_partition *partition = tiny_partition();
    struct ah_profile *profile = NULL;
    struct ah_dev *dev = NULL;
    char *base = NULL;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1}));
    assert_ok(dev->ops->device_memory(dev, 4096, &base));
    assert_fails(ah_profile_measure(&profile, NULL, partition, dev, NULL), AH_EINTERNAL, "already handed out");
    base[4095] = 1;
    assert_null(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

static void a_failed_measurement_leaves_nothing_behind(void **state)
{
    struct ah_partition *partition = tiny_partition();
    struct ah_dev *dev = NULL;
    struct ah_dev_info info;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1}));
    struct ah_call *call =
        (struct ah_call *)(uintptr_t)&partition->code[AH_CLASS_BLOCK].program[AH_PROGRAM_BACKWARD].calls[0];
    int64_t offset = call->in[0].offset;
    call->in[0].offset = (int64_t)1 << 40;
    struct ah_profile *profile = NULL;
    assert_fails(ah_profile_measure(&profile, NULL, partition, dev, NULL), AH_EINTERNAL, "backward");
    assert_null(profile);
    dev->ops->info(dev, &info);
    assert_int_equal(info.host_bytes, 0);
    call->in[0].offset = offset;
    assert_ok(ah_profile_measure(&profile, NULL, partition, dev, NULL)); /* the device is as good as new */
    ah_profile_free(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

/* 96 blocks of width 65536: some 60 TB of parameters and moments. */
static void a_model_beyond_the_machine_is_not_timed(void **state)
{
    static const char config[] =
        "{\"model_type\": \"gpt2\", \"vocab_size\": 64, \"n_positions\": 16, \"n_embd\": 65536,"
        " \"n_layer\": 96, \"n_head\": 64}";
    struct ah_partition *partition = partition_of(config, 16);
    struct ah_profile *profile = NULL;
    struct ah_dev *dev = NULL;
    assert_ok(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = 1}));
    assert_fails(ah_profile_measure(&profile, NULL, partition, dev, NULL), AH_ENOMEM,
                 "of parameters and optimizer, expected at most the ");
    assert_null(profile);
    ah_dev_close(dev);
    ah_partition_free(partition);
}

AH_TEST_CASES("profile/profile", a_file_brings_everything_back, loading_is_strict, slowdown_below_one_is_refused,
              a_hand_written_file_may_be_short, loading_survives_every_failed_allocation, measures_a_tiny_model,
              frozen_blocks_take_no_room, widening_is_timed_by_itself, blocks_of_two_kinds_are_timed_apart,
              prints_a_table, other_host_threads_alone_are_timed, needs_the_device_for_itself,
              a_failed_measurement_leaves_nothing_behind, a_model_beyond_the_machine_is_not_timed)
