/* Machines as files, and profiles estimated from them against numbers worked out by hand. */
#include "test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bundled.h"
#include "base/file.h"
#include "op/gpu_head.h"
#include "profile/estimated.h"
#include "profile/roofline.h"

static const char *const machines[] = {
    "a100-40g",       "a100-40g-x4",  "a100-80g",       "a100-80g-x8",       "h100-80g",          "h100-80g-x8",
    "h200",           "l40s-48g",     "rtx3060-32g",    "rtx3060-64g",       "rtx3080-32g",       "rtx3080-64g",
    "rtx3090-32g-x2", "rtx3090-64g",  "rtx3090-64g-x2", "rtx4060laptop-32g", "rtx4060laptop-64g", "rtx4060ti-32g",
    "rtx4060ti-64g",  "rtx4070-32g",  "rtx4070-64g",    "rtx4070tis-32g",    "rtx4070tis-64g",    "rtx4080-32g",
    "rtx4080-64g",    "rtx4090-128g", "rtx4090-64g",    "rtx4090-x4",        "rtx5060ti-64g",     "rtx5070ti-32g",
    "rtx5070ti-64g",  "rtx5080-32g",  "rtx5080-64g",    "rtx5090-128g",      "rtxpro6000-96g",    "v100-32g"};

/* ---- files */

static void every_machine_loads_and_names_its_sources(void **state)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        struct ah_hardware *hardware = machine(machines[i]);
        struct ah_hardware_info info;
        char *text = NULL;
        size_t length = 0;
        ah_hardware_get(&info, hardware);
        assert_string_equal(info.name, machines[i]);
        assert_true(info.description[0]);
        const char *several = strstr(info.name, "-x");
        assert_int_equal(info.devices, several ? several[2] - '0' : 1);
        assert_true(info.device_bytes > (int64_t)7 << 30 && info.host_bytes >= (int64_t)28 << 30);
        assert_true(info.peak_flops_per_s > 2e13 && info.peak_flops_per_s < 1e15);
        FILE *to = open_memstream(&text, &length);
        assert_non_null(to);
        assert_ok(ah_hardware_print(hardware, to));
        fclose(to);
        for (const char *line = strchr(strchr(text, '\n') + 1, '\n') + 1; *line; line = strchr(line, '\n') + 1)
            assert_true(strstr(line, " (20") < strchr(line, '\n')); /* ends with a date */
        free(text);
        ah_hardware_free(hardware);
    }
}

static void every_file_is_checked(void **state)
{
    struct ah_bundled_names names;
    assert_ok(ah__bundled_list(&names, "hardware"));
    for (size_t i = 0; i < names.count; i++) {
        size_t at = 0;
        while (at < sizeof machines / sizeof machines[0] && strcmp(machines[at], names.name[i]) != 0)
            at++;
        if (at == sizeof machines / sizeof machines[0])
            fail_msg("hardware/%s.json is in no list above", names.name[i]);
    }
    assert_true(names.count >= sizeof machines / sizeof machines[0]);
    ah__bundled_names_free(&names);
}

/* A card with half the lanes, and one whose link is faster than the memory of its host. */
static void cards_differ_as_their_sheets_say(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_profile *small = estimate("rtx5060ti-64g", partition, 1, NULL),
                      *large = estimate("rtx5090-128g", partition, 1, NULL);
    assert_near(block_ms(small, AH_ITEM_PREFETCH), 906.13 / 28.1, 0.001);
    assert_near(block_ms(large, AH_ITEM_PREFETCH), 906.13 / (57.6 * 0.8), 0.001); /* the host is slower than the link */
    assert_near(block_ms(small, AH_ITEM_UPDATE_DEVICE), 453.065 * 26 / (448 * 0.914), 0.001);
    double ratio = block_ms(small, AH_ITEM_FORWARD) / block_ms(large, AH_ITEM_FORWARD);
    assert_true(ratio > 178.0 / 48.2 && ratio < 234.66 / 46.7); /* of products, less where memory is the limit: 4.0 */
    ah_profile_free(large);
    ah_profile_free(small);
    ah_partition_free(partition);
}

static void an_a100_is_what_its_file_says(void **state)
{
    struct ah_hardware *hardware = machine("a100-40g");
    struct ah_hardware_info info;
    char *text = NULL;
    size_t length = 0;
    ah_hardware_get(&info, hardware);
    assert_near((double)info.device_bytes, (39.59 - 0.6) * 1073741824, 1e-9);
    assert_int_equal(info.host_bytes, 432000000000);
    assert_true(info.peak_flops_per_s == 312e12);
    FILE *to = open_memstream(&text, &length);
    assert_non_null(to);
    assert_ok(ah_hardware_print(hardware, to));
    fclose(to);
    assert_non_null(strstr(text, "device.gemm.8192               271.2 TFLOP/s   the most"));
    free(text);
    ah_hardware_free(hardware);
}

/* The file with `from` replaced by `to`, loaded. */
static int load_edited(const char *from, const char *to)
{
    char *text, *edited, source[512], path[160];
    size_t length;
    struct ah_hardware *hardware = NULL;
    snprintf(source, sizeof source, "%s/../hardware/a100-40g-x4.json", ah_test_source());
    snprintf(path, sizeof path, "%s/machine.json", ah_test_folder());
    assert_ok(ah__file_read(&text, &length, source, 1 << 20));
    char *at = strstr(text, from);
    assert_non_null(at);
    assert_ok(ah__sprintf(&edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)));
    assert_ok(ah__file_write(path, edited, strlen(edited)));
    ah__free(edited);
    ah__free(text);
    int status = ah_hardware_load(&hardware, path);
    if (status != AH_OK)
        assert_null(hardware);
    ah_hardware_free(hardware);
    return status;
}

static void loading_is_strict(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } wrong[] = {
        {"hardware 1", "hardware 2", "key 'format': found 'autohete hardware 2'"},
        {"\"a100-40g-x4\"", "\"\"", "key 'name': found ''"},
        {"\"link\"", "\"links\"", "key 'links': found an unknown key"},
        {"\"h2d\"", "\"h2D\"", "key 'link.h2D': found an unknown key"},
        {"\"peak\"", "\"gemm_f16\"", "key 'device.gemm_f16': found an unknown key"},
        {"\"unit\": \"GB/s\"", "\"unit\": \"GB\"",
         "key 'device.memory_bandwidth.unit': found 'GB', expected 'GB/s' or 'TB/s'"},
        {"\"unit\": \"GB/s\"", "\"units\": \"GB/s\"", "key 'device.memory_bandwidth.units': found an unknown key"},
        {"\"value\": 1555", "\"value\": \"1555\"", "key 'device.memory_bandwidth.value': found '1555'"},
        {"\"value\": 1555", "\"value\": 0", "key 'device.memory_bandwidth.value': found 0"},
        {"\"value\": 0.6", "\"value\": 1e12", "key 'device.memory_reserved.value': found 1000000000000, expected"},
        {"\"value\": 1555", "\"value\": 1e9", "key 'device.memory_bandwidth.value': found 1000000000, expected"},
        {"\"value\": 4", "\"value\": 1.5", "key 'device.count.value': found 1.5"},
        {"\"value\": 0.89", "\"value\": 89",
         "key 'device.memory_efficiency.value': found 89, expected a number from 0.01 to 1"},
        {"\"source\": \"the configuration\"", "\"source\": \"\"", "key 'device.count.source': found ''"},
        {"\"source\": \"the configuration\", ", "", "key 'device.count.source': found nothing"},
        {"\"date\": \"2020\"", "\"date\": \"20\"", "key 'device.multiprocessors.date': found '20', expected YYYY"},
        {"\"date\": \"2020\"", "\"date\": \"2020/05\"", "key 'device.multiprocessors.date': found '2020/05'"},
        {"\"2048\"", "\"1000\"", "key 'device.gemm.1000': found this size, expected an integer above 1024"},
        {"\"2048\"", "\"2k\"", "key 'device.gemm.2k'"},
        {"\"value\": 18.6", "\"value\": 27", "key 'link.h2d_both': found 27 GB/s, expected at most 'link.h2d'"},
        {"\"value\": 0.6", "\"value\": 40",
         "key 'device.memory_reserved': found 40 GiB, expected at most 'device.memory'"},
        {"\"interconnect\"", "\"interconnects\"", "interconnects"},
        {"\"bus\"", "\"but\"", "key 'interconnect.but'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_fails(load_edited(wrong[i].from, wrong[i].to), AH_EINPUT, wrong[i].words);
        assert_non_null(strstr(ah_error(), "machine.json"));
    }
    assert_ok(load_edited("\"value\": 1555, \"unit\": \"GB/s\"", "\"value\": 1.555, \"unit\": \"TB/s\""));
}

/* FOLDER/FILE.json. */
static int load_file_upon(struct ah_hardware **out, const char *folder, const char *file, const char *base,
                          const char *rest)
{
    char path[512];
    char *text;
    snprintf(path, sizeof path, "%s/%s.json", folder, file);
    assert_ok(ah__sprintf(&text,
                          "{\"format\": \"autohete hardware 1\", \"base\": \"%s\", \"name\": \"mine\", "
                          "\"description\": \"a machine\"%s}",
                          base, rest));
    assert_ok(ah__file_write(path, text, strlen(text)));
    ah__free(text);
    return ah_hardware_load(out, path);
}

static int load_upon(struct ah_hardware **out, const char *base, const char *rest)
{
    return load_file_upon(out, ah_test_folder(), "mine", base, rest);
}

/* What a file does not say is its base's, by name or beside it; estimates of both tell them apart. */
static void a_machine_names_what_differs(void **state)
{
    const char *memory = ", \"host\": {\"memory\": {\"value\": 96, \"unit\": \"GiB\", \"source\": \"mine\", "
                         "\"date\": \"2026\"}}";
    struct ah_hardware *mine, *base = machine("rtx4090-64g");
    assert_ok(load_upon(&mine, "rtx4090-64g", memory));
    for (int i = 0; i < AH_FIGURE_COUNT; i++)
        assert_true(mine->figure[i] == (i == AH_FIGURE_HOST_MEMORY ? 96 * 1073741824.0 : base->figure[i]));
    assert_memory_equal(mine->gemm.flops_per_s, base->gemm.flops_per_s, sizeof base->gemm.flops_per_s);
    assert_string_equal(mine->name, "mine");
    assert_true(mine->hash != base->hash);
    ah_hardware_free(mine);
    assert_ok(
        load_file_upon(&mine, ah_test_folder(), "rtx4090-64g", "rtx4090-64g", memory)); /* a copy that was changed */
    assert_true(mine->figure[AH_FIGURE_HOST_MEMORY] == 96 * 1073741824.0);
    ah_hardware_free(mine);
    ah_hardware_free(base);
    mine = machine("rtx4070-32g");
    base = machine("rtx4070-64g");
    assert_true(mine->figure[AH_FIGURE_HOST_MEMORY] == base->figure[AH_FIGURE_HOST_MEMORY] / 2);
    assert_int_equal(mine->gemm.count, base->gemm.count);
    ah_hardware_free(mine);
    ah_hardware_free(base);
    assert_fails(load_upon(&mine, "rtx4091", ""), AH_EINPUT, "mine.json: key 'base': hardware: found 'rtx4091'");
    assert_fails(load_upon(&mine, "mine", ""), AH_EINPUT, "mine.json: key 'base': hardware: found 'mine'");
    const char *folder = ah_test_folder();
    assert_fails(load_file_upon(&mine, folder, "mine", "yours", ""), AH_EINPUT, "hardware: found 'yours'");
    assert_fails(load_file_upon(&mine, folder, "yours", "mine", ""), AH_EINPUT, "at most 4 machines upon each other");
    assert_fails(load_upon(&mine, "rtx4090-64g",
                           ", \"host\": {\"memory\": {\"value\": 2, \"unit\": \"GiB\", \"source\": "
                           "\"mine\", \"date\": \"2026\"}}"),
                 AH_EINPUT, "mine.json: key 'host.memory_reserved': found 4 GiB, expected at most 'host.memory'");
}

static void several_devices_need_an_interconnect(void **state)
{
    char path[512];
    struct ah_hardware *hardware = NULL;
    char *text, *edited;
    size_t length;
    snprintf(path, sizeof path, "%s/../hardware/a100-40g.json", ah_test_source());
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    char *at = strstr(text, "\"value\": 1,");
    assert_non_null(at);
    at[9] = '2';
    assert_ok(ah__sprintf(&edited, "%s", text));
    snprintf(path, sizeof path, "%s/two.json", ah_test_folder());
    assert_ok(ah__file_write(path, edited, strlen(edited)));
    assert_fails(ah_hardware_load(&hardware, path), AH_EINPUT, "key 'interconnect': found nothing, expected an object");
    ah__free(edited);
    ah__free(text);
}

static void names_are_found_or_listed(void **state)
{
    char before[512], root[512];
    struct ah_hardware *hardware = NULL;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir("/"), 0);
    assert_ok(ah_hardware_load(&hardware, "v100-32g")); /* beside the program */
    ah_hardware_free(hardware);
    snprintf(root, sizeof root, "%s/..", ah_test_source());
    assert_int_equal(chdir(root), 0);
    assert_fails(ah_hardware_load(&hardware, "a100"), AH_EINPUT, "hardware: found 'a100', expected a file or one of: ");
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        assert_non_null(strstr(ah_error(), machines[i]));
    assert_ok(ah_hardware_load(&hardware, "v100-32g"));
    ah_hardware_free(hardware);
    hardware = NULL;
    assert_fails(ah_hardware_load(&hardware, "hardware/nothing.json"), AH_EINPUT, "hardware/nothing.json");
    assert_fails(ah_hardware_load(&hardware, "nothing.json"), AH_EINPUT, "nothing.json");
    assert_null(hardware);
    assert_int_equal(chdir(before), 0);
}

static void loading_survives_every_failed_allocation(void **state)
{
    char path[512];
    snprintf(path, sizeof path, "%s/../hardware/a100-40g.json", ah_test_source());
    for (uint64_t n = 1;; n++) {
        struct ah_hardware *hardware = NULL;
        ah__alloc_fail_at(n);
        int status = ah_hardware_load(&hardware, path);
        ah__alloc_fail_at(0);
        if (status == AH_OK) {
            ah_hardware_free(hardware);
            assert_true(n > 100);
            return;
        }
        assert_int_equal(status, AH_ENOMEM);
        assert_null(hardware);
    }
}

/* ---- one device */

/* 3 / (1/m + 1/n + 1/k); linear in the logarithm of the size. */
static void gemm_rates_follow_the_curve(void **state)
{
    struct ah_hardware *hardware = machine("a100-40g");
    const struct ah_curve *curve = &hardware->gemm;
    assert_near(ah__curve_rate(curve, 4096, 4096, 4096), 258e12, 1e-9);
    assert_near(ah__curve_rate(curve, 20000, 20000, 20000), 271.2e12, 1e-9);
    assert_near(ah__curve_rate(curve, 512, 512, 512), 44e12, 1e-9);
    assert_near(ah__curve_rate(curve, 2896.31, 2896.31, 2896.31), 195e12 + 40e12 * 0.346574 / 0.405465, 1e-5);
    assert_near(ah__curve_rate(curve, 4096, 6144, 6144), 266.18e12, 1e-4); /* the cube of 5266 */
    assert_near(ah__curve_rate(curve, 6144, 4096, 6144), 266.18e12, 1e-4);
    ah_hardware_free(hardware);
}

/* A block of 12 C^2 + 13 C = 453,064,704 parameters at 8 x 1024 tokens, C = 6144. Milliseconds:
 * forward  qkv 1855.4 GFLOP, projection 618.5, two of 2473.9, all at 271.2 TFLOP/s: 6.841 + 2.281 + 2 * 9.122;
 *          attention 103.1 GFLOP at 0.575 * 271.2: 0.661; memory at 1384 GB/s: two norms 0.291, gelu 0.582, two sums
 * 0.436; ten kernels, 0.003 each backward twice the GEMMs and projection: 54.73 (norms, gelu, biases and attention from
 * their bytes and flops) */
static void a_block_takes_what_its_flops_and_bytes_take(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_hardware *hardware = machine("a100-40g");
    struct ah_profile *profile = NULL;
    hardware->figure[AH_FIGURE_TRAINING_MOST] = 0; /* each call for itself */
    assert_ok(ah_profile_estimate(&profile, partition, hardware, NULL));
    ah_hardware_free(hardware);
    assert_int_equal(profile->params[AH_CLASS_BLOCK], 453064704);
    assert_near(block_ms(profile, AH_ITEM_FORWARD), 6.841 + 2.281 + 2 * 9.122 + 0.661 + 0.291 + 0.582 + 0.436 + 0.030,
                0.001);
    double gemm_ms = 2 * (6.841 + 2.281 + 2 * 9.122), attention_ms = 2.5 * 103.08 / (0.443 * 271.2);
    /* in 100.7 MB: gelu 3 * 4; norms 2 * 3; biases 3 + 1 + 4 + 1; sums of the two paths 3 or copies 2 each: 4 to 6 */
    double rounding_ms = 453.065 * 6 / (1555 * 0.89); /* sums of gradients to bf16 */
    double least = gemm_ms + attention_ms + (12 + 6 + 9 + 4) * 100.66 / 1384 + rounding_ms;
    assert_true(block_ms(profile, AH_ITEM_BACKWARD) > least);
    assert_true(block_ms(profile, AH_ITEM_BACKWARD) < least + 1.5); /* the gradient's norm is 0.65 */
    /* Recomputation needs all but the last GEMM, and no sums into the block's output. */
    assert_near((double)profile->costs.recompute_ns[AH_CLASS_BLOCK] * 1e-6,
                block_ms(profile, AH_ITEM_FORWARD) - 9.122 - 0.218 - 0.006, 0.001);
    /* Selectively two norms and the activation function: 2 * 2 and 8 times 100.7 MB. */
    assert_near((double)profile->costs.selective_ns[AH_CLASS_BLOCK] * 1e-6, 12 * 100.66 / 1384, 0.03);
    assert_near(profile->forward_flops[AH_CLASS_BLOCK], 7.53e12, 0.01);
    assert_near(profile->backward_flops[AH_CLASS_BLOCK], 2 * 7.42e12 + 0.258e12, 0.01);
    /* The embedding reads only the rows it needs: 100.7 MB in, as much out, then the positions are added. */
    assert_near((double)profile->costs.ns[AH_ITEM_FORWARD][AH_CLASS_EMBEDDING], 306e3, 0.01);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

static void copies_and_updates_take_their_bytes(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_profile *profile = estimate("a100-40g", partition, 1, "autohete");
    assert_near(block_ms(profile, AH_ITEM_PREFETCH), 906.13 / 26, 0.001);
    assert_near(block_ms(profile, AH_ITEM_REFETCH), 906.13 / 26, 0.001);
    assert_near(block_ms(profile, AH_ITEM_OFFLOAD), 906.13 / 26, 0.001);
    assert_near(block_ms(profile, AH_ITEM_UPDATE_HOST), 453.065 * 26 / (204.8 * 0.82), 0.001);
    assert_near(block_ms(profile, AH_ITEM_UPDATE_DEVICE), 453.065 * 26 / (1555 * 0.89), 0.001);
    assert_int_equal(profile->costs.ns[AH_ITEM_CAST][AH_CLASS_BLOCK], 0);
    assert_near(block_ms(profile, AH_ITEM_STATES_IN), 453.065 * 14 / 26, 0.001);
    assert_near(block_ms(profile, AH_ITEM_UPDATE_STAGED), 453.065 * (12.0 / 26 + 26 / (1555 * 0.89)), 0.001);
    assert_near(block_ms(profile, AH_ITEM_RESULT), 0.010, 0.001);
    assert_near(block_ms(profile, AH_ITEM_INPUT), 0.010 + 0.065536 / 26, 0.001);
    assert_int_equal(profile->costs.ns[AH_ITEM_GATHER][AH_CLASS_BLOCK], 0);
    assert_int_equal(profile->costs.ns[AH_ITEM_REDUCE][AH_CLASS_BLOCK], 0);
    assert_string_equal(profile->device, "a100-40g");
    assert_int_equal(profile->costs.layers, 25);
    assert_int_equal(profile->host_threads, 64);
    assert_true(profile->partition_signature == partition->signature);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

static void published_host_rates_can_be_taken(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_profile *ours = estimate("a100-40g", partition, 1, NULL);
    struct ah_profile *theirs = estimate("a100-40g", partition, 1, "deepspeed");
    assert_near(block_ms(theirs, AH_ITEM_UPDATE_HOST), 453.065 / 1.6, 0.001);
    assert_near(theirs->costs.lanes.slowdown[AH_LANE_HOST][AH_LANE_H2D], 1, 0); /* 44.8 + 26 GB/s fit in 168 */
    assert_true(ours->device_signature != theirs->device_signature);
    ah_profile_free(theirs);
    ah_profile_free(ours);
    ah_partition_free(partition);
}

/* No training on an A100 has shown more than 225 TFLOP/s, so an estimate does not either; those of PyTorch systems
 * reach 0.436 of the peak, and their host Adam 64 cores times 28.5 Mparam/s. */
static void an_estimate_is_not_faster_than_trainings_were(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_profile *ours = estimate("a100-40g", partition, 1, NULL);
    struct ah_profile *pytorch = estimate("a100-40g", partition, 1, "pytorch");
    const struct ah_profile *both[] = {ours, pytorch};
    const double most[] = {0.72 * 312e12, 0.436 * 312e12};
    for (int i = 0; i < 2; i++) {
        const struct ah_costs *costs = &both[i]->costs;
        assert_near(both[i]->forward_flops[AH_CLASS_BLOCK] / 1e6 / block_ms(both[i], AH_ITEM_FORWARD), most[i] / 1e9,
                    1e-6);
        assert_near(both[i]->backward_flops[AH_CLASS_BLOCK] / 1e6 / block_ms(both[i], AH_ITEM_BACKWARD), most[i] / 1e9,
                    1e-6);
        assert_near(both[i]->forward_flops[AH_CLASS_HEAD] / (double)costs->ns[AH_ITEM_FORWARD][AH_CLASS_HEAD],
                    most[i] / 1e9, 1e-6);
        assert_near(block_ms(both[i], AH_ITEM_PREFETCH), 906.13 / 26, 0.001);
    }
    assert_near(block_ms(pytorch, AH_ITEM_UPDATE_HOST), 453.065 / 1.82, 0.001);
    /* PyTorch's checkpoints run all of forward again, ours what backward needs. */
    assert_int_equal(pytorch->costs.recompute_ns[AH_CLASS_BLOCK], pytorch->costs.ns[AH_ITEM_FORWARD][AH_CLASS_BLOCK]);
    assert_near(ours->recompute_flops[AH_CLASS_BLOCK] / (double)ours->costs.recompute_ns[AH_CLASS_BLOCK], most[0] / 1e9,
                1e-6);
    ah_profile_free(pytorch);
    ah_profile_free(ours);
    struct ah_hardware *v100 = machine("v100-32g"); /* nobody has published what its training reaches */
    struct ah_profile *profile = NULL;
    assert_fails(ah_profile_estimate(&profile, partition, v100, &(struct ah_estimate_options){1, "pytorch", NULL}),
                 AH_EINPUT, "v100-32g lacks 'device.pytorch_training' or 'host.pytorch_adam'");
    ah_hardware_free(v100);
    ah_partition_free(partition);
}

/* What a profile says, through a file, of the machine it was measured on: the same copies and updates within a
 * thousandth; forward and backward of a block together within a thousandth, each within a tenth; and the same step,
 * everything on the device or all states on the host, within a twentieth. */
static void a_profile_becomes_a_machine(void **state)
{
    static const enum ah_dtype dtypes[] = {AH_BF16, AH_F32};
    static const enum ah_item_kind exact[] = {AH_ITEM_PREFETCH, AH_ITEM_REFETCH, AH_ITEM_OFFLOAD, AH_ITEM_UPDATE_HOST,
                                              AH_ITEM_UPDATE_DEVICE};
    const struct ah_hardware_facts facts = {"mine", "2026-11-22", (int64_t)200 << 30, (int64_t)400 << 30, 64};
    for (size_t d = 0; d < 2; d++) {
        struct ah_partition *partition = gpt_10b(8, dtypes[d], NULL);
        struct ah_profile *measured = estimate("a100-40g", partition, 1, NULL), *again = NULL;
        struct ah_hardware *mine = NULL;
        struct ah_hardware_info info;
        char path[160];
        snprintf(path, sizeof path, "%s/mine.json", ah_test_folder());
        assert_ok(ah_profile_save_hardware(measured, partition, &facts, path));
        assert_ok(ah_hardware_load(&mine, path));
        ah_hardware_get(&info, mine);
        assert_string_equal(info.name, "mine");
        assert_near((double)info.device_bytes, (double)facts.device_bytes, 1e-6);
        assert_near((double)info.host_bytes, (double)facts.host_bytes, 1e-6);
        assert_ok(ah_profile_estimate(&again, partition, mine, NULL));
        for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
            assert_near(block_ms(again, exact[i]), block_ms(measured, exact[i]), 0.001);
        double forward = block_ms(measured, AH_ITEM_FORWARD), backward = block_ms(measured, AH_ITEM_BACKWARD);
        assert_near(block_ms(again, AH_ITEM_FORWARD) + block_ms(again, AH_ITEM_BACKWARD), forward + backward, 0.001);
        assert_near(block_ms(again, AH_ITEM_FORWARD), forward, 0.1);
        assert_near(block_ms(again, AH_ITEM_BACKWARD), backward, 0.1);
        static const char *const policies[] = {"resident", "zero-offload"};
        for (size_t i = 0; i < 2; i++) {
            struct ah_budget none = {0};
            struct ah_plan before, after;
            assert_ok(ah_plan_search(&before, partition, measured, &none, policies[i], NULL));
            assert_ok(ah_plan_search(&after, partition, again, &none, policies[i], NULL));
            assert_near((double)after.step_ns, (double)before.step_ns, 0.05);
        }
        measured->world_size = 4;
        assert_fails(ah_profile_save_hardware(measured, partition, &facts, path), AH_EINPUT, "found one of 4 ranks");
        measured->world_size = 1;
        measured->partition_signature++;
        assert_fails(ah_profile_save_hardware(measured, partition, &facts, path), AH_EINPUT, "of another model");
        ah_profile_free(again);
        ah_profile_free(measured);
        ah_hardware_free(mine);
        ah_partition_free(partition);
    }
}

static void lanes_share_what_they_share(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_profile *profile = estimate("a100-40g", partition, 1, NULL);
    const double(*slow)[AH_LANE_COUNT] = (const double(*)[AH_LANE_COUNT])profile->costs.lanes.slowdown;
    assert_near(slow[AH_LANE_H2D][AH_LANE_D2H], 26.0 / 18.6, 0.001);
    assert_near(slow[AH_LANE_D2H][AH_LANE_H2D], 26.0 / 18.6, 0.001);
    assert_near(slow[AH_LANE_HOST][AH_LANE_H2D], 167.936 / (167.936 - 26), 0.001);
    assert_near(slow[AH_LANE_H2D][AH_LANE_HOST], 1, 0);
    assert_near(slow[AH_LANE_HOST][AH_LANE_COMPUTE], 1, 0);
    assert_true(slow[AH_LANE_COMPUTE][AH_LANE_H2D] > 1 && slow[AH_LANE_COMPUTE][AH_LANE_H2D] < 1.02);
    for (int lane = 0; lane < AH_LANE_COUNT; lane++)
        assert_near(slow[lane][lane], 1, 0);
    ah_profile_free(profile);
    /* 46.1 GB/s for Adam and a link of 25.5: neither gets more than half while the other wants it. */
    profile = estimate("rtx4090-128g", partition, 1, NULL);
    slow = (const double(*)[AH_LANE_COUNT])profile->costs.lanes.slowdown;
    assert_near(slow[AH_LANE_HOST][AH_LANE_H2D], 2, 0.001);
    assert_near(slow[AH_LANE_H2D][AH_LANE_HOST], 25.5 / 23.04, 0.001);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

static void single_precision_has_rates_of_its_own(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_F32, NULL);
    struct ah_hardware *hardware = machine("a100-40g");
    struct ah_profile *profile = NULL;
    assert_ok(ah_profile_estimate(&profile, partition, hardware, NULL));
    assert_near(block_ms(profile, AH_ITEM_FORWARD), 7.53e12 / 18e12 * 1e3, 0.03);
    assert_near(block_ms(profile, AH_ITEM_PREFETCH), 2 * 906.13 / 26, 0.001);
    assert_near(block_ms(profile, AH_ITEM_UPDATE_HOST), 453.065 * 28 / (204.8 * 0.82), 0.001);
    assert_int_equal(profile->costs.ns[AH_ITEM_CAST][AH_CLASS_BLOCK], 0);
    ah_profile_free(profile);
    profile = NULL;
    hardware->gemm_f32.count = 0;
    assert_fails(ah_profile_estimate(&profile, partition, hardware, NULL), AH_EINPUT, "gemm_f32");
    assert_null(profile);
    ah_hardware_free(hardware);
    ah_partition_free(partition);
}

static void wrong_options_are_refused(void **state)
{
    struct ah_partition *partition = gpt_10b(2, AH_BF16, NULL);
    struct ah_hardware *hardware = machine("a100-40g-x4");
    static const struct {
        struct ah_estimate_options options;
        const char *words;
    } wrong[] = {
        {{0, NULL, NULL}, "ranks: found 0, expected 1 to 4, the devices of a100-40g-x4"},
        {{5, NULL, NULL}, "ranks: found 5"},
        {{1, "sgd", NULL}, "optimizer: found 'sgd', expected autohete, deepspeed or pytorch"},
    };
    struct ah_profile *profile = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_fails(ah_profile_estimate(&profile, partition, hardware, &wrong[i].options), AH_EINPUT, wrong[i].words);
    assert_null(profile);
    ah_hardware_free(hardware);
    ah_partition_free(partition);
}

static void an_estimate_is_a_profile_like_any_other(void **state)
{
    struct ah_partition *partition = gpt_10b(2, AH_BF16, NULL);
    struct ah_profile *profile = estimate("a100-40g-x4", partition, 4, "deepspeed"), *loaded = NULL;
    char path[160];
    snprintf(path, sizeof path, "%s/profile.json", ah_test_folder());
    assert_ok(ah_profile_save(profile, path));
    assert_ok(ah_profile_load(&loaded, path));
    assert_memory_equal(loaded->costs.ns, profile->costs.ns, sizeof profile->costs.ns);
    assert_memory_equal(loaded->costs.lanes.slowdown, profile->costs.lanes.slowdown,
                        sizeof profile->costs.lanes.slowdown);
    assert_int_equal(loaded->world_size, 4);
    assert_true(loaded->partition_signature == profile->partition_signature);
    ah_profile_free(loaded);
    ah_profile_free(profile);
    ah_partition_free(partition);
}

/* A frozen embedding has no gradient to round, nor one to take the norm of. */
static void frozen_parameters_have_no_gradient_to_round(void **state)
{
    struct ah_partition *whole = gpt_10b(8, AH_BF16, NULL), *frozen = gpt_10b(8, AH_BF16, "embedding");
    struct ah_profile *all = estimate("a100-40g", whole, 1, NULL), *some = estimate("a100-40g", frozen, 1, NULL);
    assert_true(all->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_EMBEDDING] > 100000);
    assert_int_equal(some->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_EMBEDDING], 1);
    assert_int_equal(some->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK], all->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK]);
    ah_profile_free(all);
    ah_profile_free(some);
    ah_partition_free(whole);
    ah_partition_free(frozen);
}

/* A head of 896 channels and 151,936 ids on an RTX 4090 (128 multiprocessors, 23.64 GiB): two tiles for each of 128
 * would be 37 x 128 tokens, but their logits are to stay below a 64th of the memory, which is 1,305 tokens. So 4,096
 * tokens are four chunks of 1,024. Without multiprocessors the chunks are the operator's: 288 tokens, by 896 / 3. */
static void a_gpus_head_takes_more_tokens(void **state)
{
    const int64_t memory = (int64_t)(23.64 * 1024 * 1024 * 1024);
    struct ah_gpu_head head = {.rows = 4096,
                               .channels = 896,
                               .vocab = 151936,
                               .dtype_bytes = 2,
                               .operator_chunk = 288,
                               .multiprocessors = 128,
                               .memory_bytes = memory};
    struct ah_gpu_chunk chunk = ah__gpu_chunk(&head);
    assert_true(chunk.own_logits);
    assert_int_equal(chunk.rows, 1024);
    assert_int_equal(chunk.stride, 151936);
    head.vocab = 50257, head.memory_bytes = memory * 64; /* rows begin at 16 bytes; the tiles decide */
    chunk = ah__gpu_chunk(&head);
    assert_int_equal(chunk.rows, 4096);
    assert_int_equal(chunk.stride, 50264);
    head.rows = 256; /* they fit the operator's scratch as it is, but for the padding */
    chunk = ah__gpu_chunk(&head);
    assert_false(chunk.own_logits);
    assert_int_equal(chunk.rows, 256);
}

/* The estimate's head is as fast as its larger chunks, and its memory has their workspace. */
static void an_estimate_has_the_gpus_head(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_hardware *known = machine("a100-40g"), *unknown = machine("a100-40g");
    const struct ah_estimate_options options = {1, NULL, NULL};
    struct ah_profile *gpu = NULL, *other = NULL;
    unknown->figure[AH_FIGURE_MULTIPROCESSORS] = 0;
    assert_ok(ah_profile_estimate(&gpu, partition, known, &options));
    assert_ok(ah_profile_estimate(&other, partition, unknown, &options));
    assert_int_equal(other->workspace_bytes, 0);
    assert_int_equal(gpu->workspace_bytes, (int64_t)2048 * 50264 * 2);
    assert_true(gpu->costs.ns[AH_ITEM_FORWARD][AH_CLASS_HEAD] <= other->costs.ns[AH_ITEM_FORWARD][AH_CLASS_HEAD]);
    ah_profile_free(gpu);
    ah_profile_free(other);
    ah_hardware_free(known);
    ah_hardware_free(unknown);
    ah_partition_free(partition);
}

AH_TEST_CASES("profile/hardware", a_gpus_head_takes_more_tokens, an_estimate_has_the_gpus_head,
              every_machine_loads_and_names_its_sources, every_file_is_checked, cards_differ_as_their_sheets_say,
              an_a100_is_what_its_file_says, loading_is_strict, a_machine_names_what_differs,
              several_devices_need_an_interconnect, names_are_found_or_listed, loading_survives_every_failed_allocation,
              gemm_rates_follow_the_curve, a_block_takes_what_its_flops_and_bytes_take,
              copies_and_updates_take_their_bytes, frozen_parameters_have_no_gradient_to_round,
              published_host_rates_can_be_taken, an_estimate_is_not_faster_than_trainings_were,
              a_profile_becomes_a_machine, lanes_share_what_they_share, single_precision_has_rates_of_its_own,
              wrong_options_are_refused, an_estimate_is_a_profile_like_any_other)
