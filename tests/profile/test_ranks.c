/* Ranks, as threads, that are profiled together: in step, and as one. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "profile/profile.h"
#include "run/joint.h"

enum { RANKS = 3 };

struct profiled {
    const struct joint *joint;
    struct ah_profile profile[RANKS];
};

static void profile_one(int rank, void *context)
{
    struct profiled *all = context;
    struct rank_run self = {.joint = all->joint};
    struct ah_profile *profile;
    struct ah_dev *dev;
    joint_partition(&self);
    assert_ok(ah_dev_open(&dev, "cpu", &all->joint->options));
    assert_ok(ah_profile_measure(&profile, NULL, self.tiny.partition, dev, NULL));
    all->profile[rank] = *profile;
    ah_profile_free(profile);
    ah_dev_close(dev);
    tiny_fini(&self.tiny);
}

/* Collectives have times and lanes disturb each other by figures that are those of all ranks: the same bits on each. */
static void ranks_measure_together(void **state)
{
    static struct profiled all;
    int disturbed = 0; /* pairs with the comm lane: a measured figure is hardly ever exactly that of no disturbance */
    for (int dtype = 0; dtype < 2; dtype++) {
        struct joint joint = {.config = tiny_tied,
                              .dtype = dtype ? AH_BF16 : AH_F32,
                              .world_size = RANKS,
                              .micro_batches = 1,
                              .batch = 1,
                              .options = {.threads = 1, .link_bytes_per_s = 50000000}};
        all.joint = &joint;
        joint_config(tiny_tied);
        threads_run(RANKS, profile_one, &all);
        for (int rank = 0; rank < RANKS; rank++) {
            const struct ah_profile *profile = &all.profile[rank];
            assert_int_equal(profile->world_size, RANKS);
            for (int class = 0; class < AH_CLASS_COUNT; class ++) {
                assert_true(profile->costs.ns[AH_ITEM_GATHER][class] > 0);
                assert_true(profile->costs.ns[AH_ITEM_REDUCE][class] > 0);
            }
            for (int a = 0; a < AH_LANE_COUNT; a++)
                for (int b = 0; b < AH_LANE_COUNT; b++)
                    assert_true(profile->costs.lanes.slowdown[a][b] >= 1 &&
                                isfinite(profile->costs.lanes.slowdown[a][b]));
            assert_memory_equal(profile->costs.lanes.slowdown, all.profile[0].costs.lanes.slowdown,
                                sizeof profile->costs.lanes.slowdown);
            for (int lane = 0; lane < AH_LANE_COMM; lane++)
                disturbed += (profile->costs.lanes.slowdown[AH_LANE_COMM][lane] > 1) +
                             (profile->costs.lanes.slowdown[lane][AH_LANE_COMM] > 1);
            /* A rank's copies are of its part, over a link that is no faster than it was opened with. */
            assert_true(profile->h2d_bytes_per_s <= joint.options.link_bytes_per_s);
            assert_true(profile->d2h_bytes_per_s <= joint.options.link_bytes_per_s);
        }
    }
    assert_true(disturbed > 0);
}

/* A rank's group, whose collectives take far longer from when streams are measured than they took in rounds, as they do
 * where several ranks and other programs share cores. */
struct crowded {
    struct ah_comm comm;
    struct ah_comm *group;
    bool slow;
    int collectives; /* slow ones */
};

struct crowd {
    const struct joint *joint;
    struct crowded rank[RANKS];
};

static int crowded_collective(struct ah_comm *comm, enum ah_collective kind, void *buffer, int64_t part_count,
                              enum ah_dtype dtype)
{
    static const struct timespec turn = {.tv_nsec = 10000000};
    struct crowded *crowded = (struct crowded *)comm;
    bool of_lane = kind == AH_ALL_GATHER || kind == AH_REDUCE_SCATTER;
    if (crowded->slow && of_lane && ++crowded->collectives)
        nanosleep(&turn, NULL);
    return crowded->group->ops->collective(crowded->group, kind, buffer, part_count, dtype);
}

static int crowded_move(struct ah_comm *comm, void *buffer, int64_t bytes, int from, int to)
{
    struct crowded *crowded = (struct crowded *)comm;
    crowded->slow |= bytes == (int64_t)sizeof(struct ah_costs); /* with which the measuring of streams begins */
    return crowded->group->ops->move(crowded->group, buffer, bytes, from, to);
}

static void profile_crowded(int rank, void *context)
{
    static const struct ah_comm_ops ops = {.collective = crowded_collective, .move = crowded_move};
    struct crowd *crowd = context;
    struct crowded *own = &crowd->rank[rank];
    struct profiled alone = {.joint = crowd->joint};
    *own = (struct crowded){.comm = *ah__comm(), .group = ah__comm()};
    own->comm.ops = &ops;
    ah__comm_of_thread(&own->comm);
    profile_one(rank, &alone);
    ah__comm_of_thread(own->group);
}

/* Else a training that begins on a busy machine would begin minutes later. */
static void slow_collectives_are_few(void **state)
{
    struct joint joint = {.config = tiny_tied,
                          .dtype = AH_F32,
                          .world_size = RANKS,
                          .micro_batches = 1,
                          .batch = 1,
                          .options = {.threads = 1}};
    struct crowd crowd = {.joint = &joint};
    joint_config(tiny_tied);
    threads_run(RANKS, profile_crowded, &crowd);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_true(crowd.rank[rank].slow);
        assert_in_range(crowd.rank[rank].collectives, 1, 1000); /* of thousands, were they as many as fast ones */
        assert_int_equal(crowd.rank[rank].collectives, crowd.rank[0].collectives);
    }
}

/* Rank 1's device is in use, or one of its programs is not what it should be. */
struct failing {
    struct joint joint;
    bool in_use;
};

static void fail_one(int rank, void *context)
{
    const struct failing *failing = context;
    struct rank_run self = {.joint = &failing->joint};
    struct ah_profile *profile = NULL;
    struct ah_dev_info info;
    struct ah_dev *dev;
    char *base;
    joint_partition(&self);
    assert_ok(ah_dev_open(&dev, "cpu", &failing->joint.options));
    if (rank == 1 && failing->in_use)
        assert_ok(dev->ops->device_memory(dev, 4096, &base));
    if (rank == 1 && !failing->in_use) {
        const struct ah_program *program = &self.tiny.partition->code[AH_CLASS_BLOCK].program[AH_PROGRAM_BACKWARD];
        ((struct ah_call *)(uintptr_t)&program->calls[0])->in[0].offset = (int64_t)1 << 40;
    }
    assert_fails(ah_profile_measure(&profile, NULL, self.tiny.partition, dev, NULL), AH_EINTERNAL,
                 failing->in_use ? "already handed out" : "backward");
    if (rank != 1)
        assert_non_null(strstr(ah_error(), "rank 1: "));
    dev->ops->info(dev, &info);
    assert_int_equal(info.host_bytes, 0);
    ah_dev_close(dev);
    tiny_fini(&self.tiny);
}

static void one_ranks_failure_ends_all(void **state)
{
    for (int in_use = 0; in_use < 2; in_use++) {
        struct failing failing = {
            .in_use = in_use,
            .joint = {
                .config = tiny_tied, .world_size = RANKS, .micro_batches = 1, .batch = 1, .options = {.threads = 1}}};
        joint_config(tiny_tied);
        threads_run(RANKS, fail_one, &failing);
    }
}

AH_TEST_CASES("profile/ranks", ranks_measure_together, slow_collectives_are_few, one_ranks_failure_ends_all)
