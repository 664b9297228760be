/* Drives as files, and what an estimate makes of one. */
#include "test.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bundled.h"
#include "base/file.h"
#include "profile/drive.h"
#include "profile/estimated.h"

static const char *const drives[] = {"nvme-pcie3", "nvme-pcie4", "nvme-pcie5", "sata"};

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/../hardware/drives/%s.json", ah_test_source(), name);
    return path;
}

static void every_drive_loads_and_none_is_unknown(void **state)
{
    struct ah_bundled_names names;
    assert_ok(ah__bundled_list(&names, "hardware/drives"));
    assert_true(names.count >= AH_LENGTH(drives));
    for (size_t i = 0; i < names.count; i++)
        assert_string_equal(names.name[i], drives[i]);
    ah__bundled_names_free(&names);
    for (size_t i = 0; i < AH_LENGTH(drives); i++) {
        struct ah_profile_drive drive;
        assert_ok(ah__drive_load(&drive, path_of(drives[i]), 1));
        assert_true(drive.read_bytes_per_s >= drive.write_bytes_per_s && drive.write_bytes_per_s >= 500000000);
        assert_true(drive.latency_ns >= 10000 && drive.latency_ns <= 1000000);
        assert_true(drive.free_bytes == 2000000000000 && drive.endurance_bytes == 1200000000000000);
    }
}

static void several_are_as_many_times_as_much(void **state)
{
    struct ah_profile_drive one, two, most;
    assert_ok(ah__drive_load(&one, "nvme-pcie4", 1));
    assert_ok(ah__drive_load(&two, "2xnvme-pcie4", 1));
    assert_int_equal(two.read_bytes_per_s, 2 * one.read_bytes_per_s);
    assert_int_equal(two.write_bytes_per_s, 2 * one.write_bytes_per_s);
    assert_int_equal(two.free_bytes, 2 * one.free_bytes);
    assert_int_equal(two.endurance_bytes, 2 * one.endurance_bytes);
    assert_int_equal(two.latency_ns, one.latency_ns);
    assert_ok(ah__drive_load(&most, "64xnvme-pcie4", 1));
    assert_int_equal(most.endurance_bytes, INT64_C(1) << 53); /* what JSON holds */
    assert_fails(ah__drive_load(&two, "0xnvme-pcie4", 1), AH_EINPUT,
                 "disk: found '0xnvme-pcie4', expected 1 to 64 drives");
    assert_fails(ah__drive_load(&two, "65xsata", 1), AH_EINPUT, "expected 1 to 64 drives");
    assert_fails(ah__drive_load(&two, "nvme", 1), AH_EINPUT,
                 "disk: found 'nvme', expected a file or one of: nvme-pcie3, nvme-pcie4, nvme-pcie5, sata");
}

/* A measured drive through a file: the same figures but endurance, which no measurement finds. */
static void a_measured_drive_becomes_a_file(void **state)
{
    const struct ah_hardware_facts facts = {.name = "mine", .date = "2026-11-29"};
    struct ah_profile profile = {.drive = {.read_bytes_per_s = 1234567891,
                                           .write_bytes_per_s = 987654321,
                                           .latency_ns = 81234,
                                           .free_bytes = 412345678901,
                                           .endurance_bytes = 5}};
    struct ah_profile_drive drive;
    char path[160];
    snprintf(path, sizeof path, "%s/mine.json", ah_test_folder());
    assert_ok(ah_profile_save_drive(&profile, &facts, path));
    assert_ok(ah__drive_load(&drive, path, 1));
    assert_int_equal(drive.read_bytes_per_s, profile.drive.read_bytes_per_s);
    assert_int_equal(drive.write_bytes_per_s, profile.drive.write_bytes_per_s);
    assert_int_equal(drive.latency_ns, profile.drive.latency_ns);
    assert_int_equal(drive.free_bytes, profile.drive.free_bytes);
    assert_int_equal(drive.endurance_bytes, 0);
    profile.drive = (struct ah_profile_drive){0};
    assert_fails(ah_profile_save_drive(&profile, &facts, path), AH_EINPUT,
                 "profile: key 'drive': found nothing, expected a profile made with --disk");
}

/* The file with `from` replaced by `to`, loaded. */
static int load_edited(const char *from, const char *to)
{
    char *text, *edited, path[160];
    size_t length;
    struct ah_profile_drive drive;
    snprintf(path, sizeof path, "%s/drive.json", ah_test_folder());
    assert_ok(ah__file_read(&text, &length, path_of("sata"), 1 << 20));
    char *at = strstr(text, from);
    assert_non_null(at);
    assert_ok(ah__sprintf(&edited, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)));
    assert_ok(ah__file_write(path, edited, strlen(edited)));
    ah__free(edited);
    ah__free(text);
    return ah__drive_load(&drive, path, 1);
}

static void loading_is_strict(void **state)
{
    static const struct {
        const char *from, *to, *words;
    } wrong[] = {
        {"drive 1", "drive 2", "key 'format': found 'autohete drive 2', expected 'autohete drive 1'"},
        {"\"sata\"", "\"\"", "key 'name': found ''"},
        {"\"read\"", "\"reads\"", "key 'reads': found an unknown key"},
        {"\"TB\"", "\"GB\"", "key 'endurance.unit': found 'GB', expected 'TB'"},
        {"0.53", "0", "key 'write.value': found 0"},
        {"\"value\": 1200", "\"value\": 1e6", "key 'endurance.value': found 1000000, expected"},
    };
    for (size_t i = 0; i < AH_LENGTH(wrong); i++)
        assert_fails(load_edited(wrong[i].from, wrong[i].to), AH_EINPUT, wrong[i].words);
    assert_ok(load_edited("0.53", "0.52"));
}

static struct ah_profile *with_disk(const char *name, const struct ah_partition *partition, int ranks, const char *disk)
{
    struct ah_hardware *hardware = machine(name);
    struct ah_profile *profile = NULL;
    assert_ok(ah_profile_estimate(&profile, partition, hardware, &(struct ah_estimate_options){ranks, NULL, disk}));
    ah_hardware_free(hardware);
    return profile;
}

/* Ranks share a drive, which shares the host's memory with Adam: 66.56 GB/s, of which it takes 7. */
static void an_estimate_has_the_drive(void **state)
{
    struct ah_partition *partition = gpt_10b(8, AH_BF16, NULL);
    struct ah_profile *none = with_disk("rtx4090-64g", partition, 1, NULL),
                      *one = with_disk("rtx4090-64g", partition, 1, "nvme-pcie4"),
                      *shared = with_disk("rtx4090-x4", partition, 4, "nvme-pcie4");
    assert_int_equal(none->drive.read_bytes_per_s, 0);
    assert_near(none->costs.lanes.slowdown[AH_LANE_HOST][AH_LANE_DISK], 1, 0);
    assert_int_equal(one->drive.read_bytes_per_s, 7000000000);
    assert_int_equal(one->drive.write_bytes_per_s, 1750000000);
    assert_near(one->costs.lanes.slowdown[AH_LANE_HOST][AH_LANE_DISK], 66.56 / (66.56 - 7), 0.001);
    assert_near(one->costs.lanes.slowdown[AH_LANE_DISK][AH_LANE_HOST], 1, 0);
    assert_int_equal(shared->drive.read_bytes_per_s, one->drive.read_bytes_per_s / 4);
    assert_int_equal(shared->drive.endurance_bytes, one->drive.endurance_bytes / 4);
    assert_true(one->device_signature == none->device_signature);
    struct ah_hardware *hardware = machine("rtx4090-64g");
    struct ah_profile *profile = NULL;
    assert_fails(ah_profile_estimate(&profile, partition, hardware, &(struct ah_estimate_options){1, NULL, "nvme"}),
                 AH_EINPUT, "disk: found 'nvme', expected a file or one of");
    assert_null(profile);
    ah_hardware_free(hardware);
    ah_profile_free(shared);
    ah_profile_free(one);
    ah_profile_free(none);
    ah_partition_free(partition);
}

AH_TEST_CASES("profile/drives", every_drive_loads_and_none_is_unknown, several_are_as_many_times_as_much,
              a_measured_drive_becomes_a_file, loading_is_strict, an_estimate_has_the_drive)
