/* Profiles of several ranks, estimated from machines, against numbers worked out by hand. */
#include "profile/estimated.h"

static void ranks_split_model_data_and_share_the_host(void **state)
{
    struct ah_partition *partition = gpt_10b(2, AH_BF16, NULL);
    struct ah_profile *one = estimate("a100-40g-x4", partition, 1, NULL),
                      *four = estimate("a100-40g-x4", partition, 4, NULL);
    static const enum ah_item_kind shards[] = {AH_ITEM_PREFETCH, AH_ITEM_REFETCH, AH_ITEM_OFFLOAD,
                                               AH_ITEM_UPDATE_DEVICE};
    for (size_t i = 0; i < sizeof shards / sizeof shards[0]; i++)
        assert_near(block_ms(four, shards[i]), block_ms(one, shards[i]) / 4, 0.005);
    assert_near(block_ms(four, AH_ITEM_UPDATE_HOST), block_ms(one, AH_ITEM_UPDATE_HOST), 1e-6);
    assert_int_equal(one->costs.ns[AH_ITEM_CAST][AH_CLASS_BLOCK], 0);
    assert_near(block_ms(four, AH_ITEM_CAST), 453.065 * 4 / 4 / (1555 * 0.89), 0.01); /* a copy */
    assert_near(block_ms(four, AH_ITEM_FORWARD), block_ms(one, AH_ITEM_FORWARD), 0);
    assert_near(block_ms(four, AH_ITEM_GATHER), 0.75 * 906.13 / 200 + 0.025, 0.001);
    assert_near(block_ms(four, AH_ITEM_REDUCE), 0.75 * 906.13 / 200 + 0.025, 0.001);
    assert_int_equal(one->costs.ns[AH_ITEM_GATHER][AH_CLASS_BLOCK], 0);
    assert_int_equal(one->world_size, 1);
    assert_int_equal(four->world_size, 4);
    /* Four links of 26 GB/s and Adam want 168 GB/s each way of asking: half each. */
    assert_near(four->costs.lanes.slowdown[AH_LANE_H2D][AH_LANE_HOST], 104 / 83.968, 0.001);
    assert_near(four->costs.lanes.slowdown[AH_LANE_HOST][AH_LANE_H2D], 2, 0.001);
    assert_near(four->costs.lanes.slowdown[AH_LANE_H2D][AH_LANE_D2H], 26.0 / 18.6, 0.001); /* 149 GB/s still fit */
    /* A collective holds 22% of the multiprocessors. */
    assert_near(four->costs.lanes.slowdown[AH_LANE_COMPUTE][AH_LANE_COMM], 1 / 0.78, 0.02);
    assert_near(one->costs.lanes.slowdown[AH_LANE_COMPUTE][AH_LANE_COMM], 1, 0);
    ah_profile_free(four);
    ah_profile_free(one);
    ah_partition_free(partition);
}

/* What is frozen is gathered beside what is trained, in a collective of its own, cast and fetched with it; its gradient
 * is neither reduced nor offloaded, and it is not updated. */
static void ranks_gather_what_is_frozen_and_reduce_what_is_trained(void **state)
{
    struct ah_partition *whole = gpt_10b(2, AH_BF16, NULL), *tuned = gpt_10b(2, AH_BF16, "*.mlp.*"),
                        *frozen = gpt_10b(2, AH_BF16, "transformer.h.*");
    struct ah_profile *all = estimate("a100-40g-x4", whole, 4, NULL), *some = estimate("a100-40g-x4", tuned, 4, NULL),
                      *none = estimate("a100-40g-x4", frozen, 4, NULL);
    double trained = 906.13 / 3; /* of a block two thirds of the parameters are the feed-forward's */
    static const enum ah_item_kind same[] = {AH_ITEM_CAST, AH_ITEM_PREFETCH, AH_ITEM_REFETCH};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_near(block_ms(some, same[i]), block_ms(all, same[i]), 0.001);
        assert_near(block_ms(none, same[i]), block_ms(all, same[i]), 0.001);
    }
    assert_near(block_ms(some, AH_ITEM_GATHER), 0.75 * 906.13 / 200 + 2 * 0.025, 0.001);
    assert_near(block_ms(none, AH_ITEM_GATHER), 0.75 * 906.13 / 200 + 0.025, 0.001);
    assert_near(block_ms(some, AH_ITEM_REDUCE), 0.75 * trained / 200 + 0.025, 0.001);
    assert_near(block_ms(none, AH_ITEM_REDUCE), 0.025, 0.001);
    assert_near(block_ms(some, AH_ITEM_OFFLOAD), block_ms(all, AH_ITEM_OFFLOAD) / 3, 0.001);
    assert_near(block_ms(some, AH_ITEM_UPDATE_HOST), block_ms(all, AH_ITEM_UPDATE_HOST) / 3, 0.001);
    ah_profile_free(all);
    ah_profile_free(some);
    ah_profile_free(none);
    ah_partition_free(whole);
    ah_partition_free(tuned);
    ah_partition_free(frozen);
}

static void links_beyond_the_hosts_memory_are_slower(void **state)
{
    struct ah_partition *partition = gpt_10b(2, AH_BF16, NULL);
    struct ah_hardware *hardware = machine("a100-40g-x4");
    struct ah_profile *profile = NULL;
    hardware->figure[AH_FIGURE_DRAM] = 80e9; /* of which 65.6 for four links */
    assert_ok(ah_profile_estimate(&profile, partition, hardware, &(struct ah_estimate_options){4, NULL, NULL}));
    assert_near(block_ms(profile, AH_ITEM_PREFETCH), 906.13 / 4 / 16.4, 0.001);
    assert_near(profile->costs.lanes.slowdown[AH_LANE_H2D][AH_LANE_D2H], 2, 0.001);
    assert_int_equal(profile->h2d_bytes_per_s, 16400000000);
    assert_int_equal(profile->h2d_both_bytes_per_s, 8200000000);
    ah_profile_free(profile);
    ah_hardware_free(hardware);
    ah_partition_free(partition);
}

AH_TEST_CASES("profile/estimated_ranks", ranks_split_model_data_and_share_the_host,
              ranks_gather_what_is_frozen_and_reduce_what_is_trained, links_beyond_the_hosts_memory_are_slower)
