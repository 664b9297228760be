/* How the cores are shared: which splits are tried, that the fastest is taken, and what is refused. */
#include "plan/threads.h"

#include <dirent.h>
#include <sched.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "plan/search.h"
#include "profile/profile.h"
#include "run/joint.h"

/* ---- which are tried --------------------------------------------------------------------------------------------- */

/* A machine whose steps are as long as its host threads are from the best number (0: nothing fits), and longer where a
 * core computes less. */
struct machine {
    int cores, given, best;
    int fails_at; /* the attempt that fails; 0: none */
    const char *expected;
    char tried[128];
    int count, fastest;
};

static int machine_attempt(bool *faster, int threads, int host_threads, void *context)
{
    struct machine *machine = context;
    size_t used = strlen(machine->tried);
    int time = abs(host_threads - machine->best) + (threads < machine->cores);
    snprintf(machine->tried + used, sizeof machine->tried - used, "%s%d+%d", used ? " " : "", threads, host_threads);
    *faster = machine->best && (machine->fastest < 0 || time < machine->fastest);
    if (*faster)
        machine->fastest = time;
    return ++machine->count == machine->fails_at ? AH_EIO : AH_OK;
}

static void few_splits_are_tried(void **state)
{
    (void)state;
    struct machine machines[] = {
        {1, 0, 1, 0, "1+1", "", 0, 0},
        {2, 0, 1, 0, "2+1 2+2 1+1", "", 0, 0},
        {2, 0, 2, 0, "2+1 2+2 1+1", "", 0, 0},
        {8, 0, 1, 0, "8+1 8+2 7+1", "", 0, 0},
        {8, 0, 2, 0, "8+1 8+2 8+4 6+2", "", 0, 0},
        {8, 0, 4, 0, "8+1 8+2 8+4 8+8 4+4", "", 0, 0},
        {8, 0, 8, 0, "8+1 8+2 8+4 8+8 4+4", "", 0, 0},
        {6, 0, 6, 0, "6+1 6+2 6+4 2+4", "", 0, 0},
        {8, 3, 3, 0, "8+3 5+3", "", 0, 0},
        {8, 8, 8, 0, "8+8", "", 0, 0},
        {8, 9, 9, 0, "8+9", "", 0, 0},
        {8, 0, 0, 0, "8+1 7+1", "", 0, 0}, /* fewer threads may need less memory */
        {8, 3, 0, 0, "8+3 5+3", "", 0, 0},
        {8, 0, 8, 1, "8+1", "", 0, 0},
        {8, 0, 8, 3, "8+1 8+2 8+4", "", 0, 0},
        {8, 0, 1, 3, "8+1 8+2 7+1", "", 0, 0},
    };
    for (size_t i = 0; i < AH_LENGTH(machines); i++) {
        struct machine *machine = &machines[i];
        machine->fastest = -1;
        int status = ah__threads_attempts(machine->cores, machine->given, machine_attempt, machine);
        assert_int_equal(status, machine->fails_at ? AH_EIO : AH_OK);
        assert_string_equal(machine->tried, machine->expected);
    }
}

/* ---- which is taken ---------------------------------------------------------------------------------------------- */

/* The calling thread, and those it starts, on the first `count` cores it may use; false: there are not so many. */
static bool cores_take(cpu_set_t *before, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    assert_int_equal(sched_getaffinity(0, sizeof *before, before), 0);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&set) < count; i++)
        if (CPU_ISSET(i, before))
            CPU_SET(i, &set);
    return CPU_COUNT(&set) == count && sched_setaffinity(0, sizeof set, &set) == 0;
}

static void cores_give_back(const cpu_set_t *before)
{
    assert_int_equal(sched_setaffinity(0, sizeof *before, before), 0);
}

/* Under a policy of few candidates: in so small a model no bound shadows autohete's search anything. */
static struct ah_threads_options options_of(const struct ah_partition *partition, const char *cache)
{
    return (struct ah_threads_options){.partition = partition,
                                       .device = "cpu",
                                       .plan = "auto",
                                       .policy = "autohete-paper",
                                       .profile = {.cache = cache}};
}

static void threads_free(struct ah_threads *threads)
{
    ah_dev_close(threads->dev);
    ah_profile_free(threads->profile);
}

/* A kept profile, and one written in its place. */
static void entry_read(struct ah_profile **profile, const char *path)
{
    enum { HEAD = 17 }; /* checksum and line break */
    char *text;
    size_t length;
    assert_ok(ah__file_read(&text, &length, path, 1 << 20));
    assert_ok(ah__profile_parse(profile, text + HEAD, length - HEAD, path));
    ah__free(text);
}

static void entry_write(const char *path, const struct ah_profile *profile)
{
    char *text, *entry;
    assert_ok(ah__profile_text(&text, profile));
    assert_ok(ah__sprintf(&entry, "%016llx\n%s", (unsigned long long)ah__hash(text, strlen(text), 0), text));
    assert_ok(ah__file_write(path, entry, strlen(entry)));
    ah__free(entry);
    free(text);
}

enum { ENTRIES_MOST = 4 };

/* The kept profiles of a folder; how many. */
static int entries_find(char paths[ENTRIES_MOST][512], const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *each; (each = readdir(dir));)
        if (strncmp(each->d_name, "profile-", 8) == 0) {
            assert_in_range(count, 0, ENTRIES_MOST - 1);
            snprintf(paths[count++], sizeof paths[0], "%s/%s", folder, each->d_name);
        }
    closedir(dir);
    return count;
}

/* All profiles of the folder have the first one's times, but those of one split are halved. How many there are. */
static int profiles_forge(const char *folder, int threads, int host_threads)
{
    static char paths[ENTRIES_MOST][512];
    static struct ah_costs costs;
    static bool known;
    int count = entries_find(paths, folder);
    for (int i = 0; i < count; i++) {
        struct ah_profile *profile;
        entry_read(&profile, paths[i]);
        costs = known ? costs : profile->costs;
        known = true;
        profile->costs = costs;
        bool favoured = profile->threads == threads && profile->host_threads == host_threads;
        for (int kind = 0; favoured && kind < AH_ITEM_COUNT; kind++)
            for (int class = 0; class < AH_CLASS_COUNT; class ++)
                profile->costs.ns[kind][class] /= 2;
        entry_write(paths[i], profile);
        ah_profile_free(profile);
    }
    return count;
}

/* Splits of as many compute threads have the same times but for what the host does. */
static void expect_alike(const char *folder)
{
    static char paths[ENTRIES_MOST][512];
    int64_t ns = 0;
    int count = entries_find(paths, folder), alike = 0;
    for (int i = 0; i < count; i++) {
        struct ah_profile *profile;
        entry_read(&profile, paths[i]);
        if (profile->threads == 2)
            alike += ns && ns == profile->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK];
        if (profile->threads == 2)
            ns = profile->costs.ns[AH_ITEM_BACKWARD][AH_CLASS_BLOCK];
        ah_profile_free(profile);
    }
    assert_int_equal(alike, 1);
}

static void expect_chosen(const struct ah_threads_options *options, int threads, int host_threads, int tried)
{
    struct ah_threads chosen;
    struct ah_device device;
    struct ah_plan plan;
    assert_ok(ah_threads_choose(&chosen, options));
    assert_int_equal(chosen.threads, threads);
    assert_int_equal(chosen.host_threads, host_threads);
    assert_int_equal(chosen.tried, tried);
    assert_true(chosen.profile_kept_s >= 0);
    ah_dev_get(&device, chosen.dev);
    assert_int_equal(device.units, threads);
    assert_int_equal(device.host_threads, host_threads);
    assert_int_equal(chosen.profile->threads, threads);
    assert_int_equal(chosen.profile->host_threads, host_threads);
    assert_ok(ah_plan_search(&plan, options->partition, chosen.profile, &options->budget, options->policy));
    assert_memory_equal(&plan, &chosen.plan, sizeof plan);
    assert_true(!options->budget.device_bytes || plan.device_peak_bytes <= options->budget.device_bytes);
    threads_free(&chosen);
}

/* With and without a budget, whichever split's profile has the shortest times; the first where none is faster. */
static void the_fastest_is_taken(void **state)
{
    (void)state;
    static const struct {
        int threads, host_threads;
    } splits[] = {{2, 1}, {2, 2}, {1, 1}};
    struct tiny tiny;
    struct ah_threads first;
    cpu_set_t before;
    if (!cores_take(&before, 2))
        skip();
    const char *folder = ah_test_folder();
    tiny_init(&tiny, tiny_tied, 1);
    struct ah_threads_options options = options_of(tiny.partition, folder);
    assert_ok(ah_threads_choose(&first, &options));
    assert_int_equal(first.profile_kept_s, -1);
    expect_alike(folder);
    int64_t peak = first.plan.device_peak_bytes;
    threads_free(&first);
    assert_int_equal(profiles_forge(folder, 0, 0), 3);
    expect_chosen(&options, 2, 1, 3);
    for (int limited = 0; limited < 2; limited++)
        for (size_t i = 0; i < AH_LENGTH(splits); i++) {
            options.budget.device_bytes = limited ? peak - 1 : 0;
            profiles_forge(folder, splits[i].threads, splits[i].host_threads);
            expect_chosen(&options, splits[i].threads, splits[i].host_threads, 3);
        }
    options.dev.host_threads = 2; /* no core would be left */
    expect_chosen(&options, 2, 2, 1);
    options.dev.host_threads = 1;
    expect_chosen(&options, 1, 1, 2);
    tiny_fini(&tiny);
    cores_give_back(&before);
}

static void a_given_plan_is_kept(void **state)
{
    (void)state;
    struct tiny tiny;
    struct ah_threads chosen;
    tiny_init(&tiny, tiny_tied, 1);
    struct ah_threads_options options = options_of(tiny.partition, NULL);
    options.plan = "c=1,p=2,o=3";
    options.dev.host_threads = 1;
    assert_ok(ah_threads_choose(&chosen, &options));
    assert_int_equal(chosen.plan.switches.checkpoint, 1);
    assert_int_equal(chosen.plan.switches.offload_optimizer, 3);
    assert_int_equal(chosen.host_threads, 1);
    threads_free(&chosen);
    tiny_fini(&tiny);
}

static void what_does_not_work_is_refused(void **state)
{
    (void)state;
    const volatile int stop = 1;
    struct tiny tiny;
    struct ah_threads chosen;
    struct ah_dev *dev;
    tiny_init(&tiny, tiny_tied, 1);
    struct ah_threads_options options = options_of(tiny.partition, NULL);
    options.budget.device_bytes = 1000;
    assert_fails(ah_threads_choose(&chosen, &options), AH_EBUDGET, "device memory: found 1000 B, expected at least ");
    assert_true(chosen.threads >= 1 && chosen.host_threads == 1 && !chosen.dev && !chosen.profile);
    options.profile.stop = &stop;
    assert_fails(ah_threads_choose(&chosen, &options), AH_ESTOP, "");
    options.device = "cpu:1";
    assert_fails(ah_threads_choose(&chosen, &options), AH_EINPUT, "threads: auto: device \"cpu:1\": there is one");
    options.device = "cpu";
    options.dev.host_threads = -1;
    assert_fails(ah_threads_choose(&chosen, &options), AH_EINPUT, "host threads: found -1, expected 0");
    assert_fails(ah_dev_open(&dev, "cpu", &(struct ah_dev_options){.threads = AH_THREADS_AUTO}), AH_EINPUT,
                 "device threads: found auto, expected 0 (one per core) to 1024");
    tiny_fini(&tiny);
}

/* ---- ranks ------------------------------------------------------------------------------------------------------- */

enum { RANKS = 2 };

struct team {
    struct joint joint;
    bool fails; /* the device of rank 1 does */
    struct ah_threads chosen[RANKS];
};

static void rank_choose(int rank, void *context)
{
    struct team *team = context;
    struct rank_run self = {.joint = &team->joint};
    joint_partition(&self);
    struct ah_threads_options options = options_of(self.tiny.partition, NULL);
    ah__comm()->shares = 1; /* as on machines of their own, so that there is something to choose from */
    ah__comm()->share = 0;
    options.dev.host_threads = rank; /* rank 0's counts: none is given */
    options.device = team->fails && rank == 1 ? "cpu:1" : "cpu";
    if (team->fails) {
        assert_fails(ah_threads_choose(&team->chosen[rank], &options), AH_EINPUT, "there is one cpu device");
    } else {
        assert_ok(ah_threads_choose(&team->chosen[rank], &options));
        threads_free(&team->chosen[rank]);
    }
    tiny_fini(&self.tiny);
}

static void ranks_choose_together(void **state)
{
    (void)state;
    static struct team team = {.joint = {.config = tiny_tied, .world_size = RANKS, .micro_batches = 1, .batch = 1}};
    cpu_set_t before;
    if (!cores_take(&before, 2))
        skip();
    joint_config(tiny_tied);
    threads_run(RANKS, rank_choose, &team);
    const struct ah_threads *first = &team.chosen[0], *second = &team.chosen[1];
    assert_int_equal(first->tried, 3);
    assert_int_equal(second->tried, 3);
    assert_int_equal(first->threads, second->threads);
    assert_int_equal(first->host_threads, second->host_threads);
    assert_memory_equal(&first->plan, &second->plan, sizeof first->plan);
    team.fails = true;
    threads_run(RANKS, rank_choose, &team);
    cores_give_back(&before);
}

AH_TEST_SUITE("plan/threads", cmocka_unit_test(few_splits_are_tried), cmocka_unit_test(the_fastest_is_taken),
              cmocka_unit_test(a_given_plan_is_kept), cmocka_unit_test(what_does_not_work_is_refused),
              cmocka_unit_test(ranks_choose_together))
