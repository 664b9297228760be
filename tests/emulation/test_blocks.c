/* Thread blocks on the emulated GPU: barriers, warps, shared memory, and what is wrong with them. */
#include "rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "test_kernels.h"

static void fill(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        rig->pinned[i] = (float)(i % 97);
    assert_cuda(cudaMemcpyAsync(rig->device, rig->pinned, (size_t)count * 4, cudaMemcpyHostToDevice, rig->stream));
}

static void every_thread_of_every_block_runs_once(void **state)
{
    struct rig rig;
    dim3 grid = {3, 5, 2}, block = {7, 4, 3};
    rig_open(&rig);
    assert_cuda(test_where(rig.stream, (unsigned *)rig.device, grid, block));
    rig_read(&rig, rig.device, 30 * 84 * 4);
    const unsigned *out = (const unsigned *)rig.pinned;
    for (unsigned i = 0; i < 30 * 84; i++)
        assert_int_equal(out[i], 1 + i / 84 * 10000 + i % 84);
    rig_close(&rig);
}

static void barriers_hold_a_block_together(void **state)
{
    struct rig rig;
    enum { BLOCKS = 20 };
    rig_open(&rig);
    fill(&rig, 256 * BLOCKS);
    float expected[BLOCKS] = {0};
    for (int i = 0; i < 256 * BLOCKS; i++)
        expected[i / 256] += rig.pinned[i];
    assert_cuda(test_block_sum(rig.stream, rig.device2, rig.device, BLOCKS));
    rig_read(&rig, rig.device2, BLOCKS * 4);
    for (int i = 0; i < BLOCKS; i++)
        assert_true(rig.pinned[i] == expected[i]);
    rig_close(&rig);
}

/* Shared memory begins as NaN, and threads run far ahead of each other: sums without a barrier are wrong. */
static void a_missing_barrier_shows(void **state)
{
    struct rig rig;
    rig_open(&rig);
    fill(&rig, 256 * 8);
    assert_cuda(test_no_barrier(rig.stream, rig.device2, rig.device, 8));
    rig_read(&rig, rig.device2, 8 * 4);
    int wrong = 0;
    for (int i = 0; i < 8; i++)
        wrong += isnan(rig.pinned[i]) != 0;
    assert_true(wrong > 0);
    rig_close(&rig);
}

static void shared_memory_is_nan_in_every_block(void **state)
{
    struct rig rig;
    rig_open(&rig);
    assert_cuda(test_shared_unwritten(rig.stream, rig.device, 8));
    rig_read(&rig, rig.device, 16 * 4);
    for (int i = 0; i < 16; i++)
        assert_true(isnan(rig.pinned[i]));
    rig_close(&rig);
}

static void dynamic_shared_memory_has_its_limits(void **state)
{
    struct rig rig;
    rig_open(&rig);
    assert_cuda(test_shared_bytes(rig.stream, rig.device, 48 << 10, 0, 0));
    assert_int_equal(test_shared_bytes(rig.stream, rig.device, (48 << 10) + 16, 0, 0), cudaErrorInvalidValue);
    assert_cuda(test_shared_bytes(rig.stream, rig.device, 227 << 10, 1, 0));
    assert_int_equal(test_shared_bytes(rig.stream, rig.device, (227 << 10) + 1, 1, 0), cudaErrorInvalidValue);
    rig_read(&rig, rig.device, 4);
    assert_true(*rig.pinned == 3);
    assert_cuda(test_shared_bytes(rig.stream, rig.device, 64, 0, 1));
    assert_int_equal(cudaStreamSynchronize(rig.stream), cudaErrorIllegalAddress);
    assert_non_null(strstr(emulation_message(), "wrote behind its dynamic shared memory"));
    rig_close(&rig);
}

/* ---- warps */

/* What the programming guide says a lane gets. */
static unsigned shuffled(enum test_shuffle kind, const unsigned *in, int lane, int argument, int width)
{
    int segment = lane / width * width, at = lane - segment, from = at;
    if (kind == TEST_SHFL)
        from = argument & (width - 1);
    else if (kind == TEST_UP)
        from = at - argument < 0 ? at : at - argument;
    else if (kind == TEST_DOWN)
        from = at + argument >= width ? at : at + argument;
    else if (kind == TEST_XOR)
        from = (at ^ argument) >= width ? at : at ^ argument;
    return in[segment + from];
}

static void shuffles_move_values_within_a_warp(void **state)
{
    struct rig rig;
    rig_open(&rig);
    unsigned in[64], *out = (unsigned *)rig.pinned;
    for (unsigned i = 0; i < 64; i++)
        out[i] = in[i] = i * 7919 + 13;
    assert_cuda(cudaMemcpyAsync(rig.device, rig.pinned, sizeof in, cudaMemcpyHostToDevice, rig.stream));
    for (int kind = TEST_SHFL; kind <= TEST_XOR; kind++)
        for (int width = 1; width <= 32; width *= 2)
            for (int argument = 0; argument < 32; argument = argument * 2 + 1) {
                assert_cuda(test_shuffle(rig.stream, (unsigned *)rig.device2, (unsigned *)rig.device,
                                         (enum test_shuffle)kind, argument, width));
                rig_read(&rig, rig.device2, sizeof in);
                for (int i = 0; i < 64; i++) {
                    /* An xor beyond a narrow segment gives the lane's own value, one before it another segment's. */
                    if (kind == TEST_XOR && argument >= width)
                        continue;
                    const unsigned *warp = in + i / 32 * 32;
                    assert_int_equal(out[i], shuffled((enum test_shuffle)kind, warp, i % 32, argument, width));
                }
            }
    rig_close(&rig);
}

static void votes_count_a_warp(void **state)
{
    struct rig rig;
    rig_open(&rig);
    unsigned *out = (unsigned *)rig.pinned, votes[2] = {0, 0};
    for (unsigned i = 0; i < 64; i++) {
        out[i] = i * i / 3;
        votes[i / 32] |= (out[i] & 1) << i % 32;
    }
    assert_cuda(cudaMemcpyAsync(rig.device, rig.pinned, 256, cudaMemcpyHostToDevice, rig.stream));
    for (int kind = TEST_BALLOT; kind <= TEST_ALL; kind++) {
        assert_cuda(
            test_shuffle(rig.stream, (unsigned *)rig.device2, (unsigned *)rig.device, (enum test_shuffle)kind, 3, 32));
        rig_read(&rig, rig.device2, 256);
        for (int i = 0; i < 64; i++) /* 3 is among the first 32 values only */
            assert_int_equal(out[i], kind == TEST_BALLOT ? votes[i / 32] : (kind == TEST_ANY) == (i < 32));
    }
    rig_close(&rig);
}

static void lanes_outside_the_mask_give_nothing(void **state)
{
    struct rig rig;
    rig_open(&rig);
    assert_cuda(test_half_warp(rig.stream, (unsigned *)rig.device, 0xFFFF));
    rig_read(&rig, rig.device, 128);
    const unsigned *out = (const unsigned *)rig.pinned;
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 16 ? ~0U : (i ^ 1) + 100);
    rig_close(&rig);
}

/* ---- what is wrong with a kernel is said, and stays */

static void blocks_that_are_stuck_are_reported(void **state)
{
    static const struct {
        enum test_stuck kind;
        const char *words;
    } cases[] = {
        {TEST_EXITED, "a block is stuck: 40 threads wait, at the barrier in stuck, "},
        {TEST_TWO_PLACES, "a block is stuck: 64 threads wait, at the barrier in stuck, "},
        {TEST_WARP_ENDED, "threads wait, for lanes of a warp in stuck, "},
        {TEST_WARP_APART, "a warp diverged: "},
        {TEST_MASK, "a mask without the lane that calls in stuck, "},
        {TEST_TRAP, "__trap() in stuck, "},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++) {
        struct rig rig;
        rig_open(&rig);
        assert_cuda(test_stuck(rig.stream, cases[i].kind));
        assert_int_equal(cudaStreamSynchronize(rig.stream), cudaErrorLaunchFailure);
        if (!strstr(emulation_message(), cases[i].words))
            fail_msg("\"%s\" does not say \"%s\"", emulation_message(), cases[i].words);
        assert_int_equal(cudaMemsetAsync(rig.device, 0, 4, rig.stream), cudaErrorLaunchFailure);
        rig_close(&rig);
    }
}

/* The same stream runs the next launch as if nothing had been. */
static void a_stream_goes_on_after_a_reset(void **state)
{
    struct rig rig;
    rig_open(&rig);
    assert_cuda(test_stuck(rig.stream, TEST_EXITED));
    assert_int_equal(cudaStreamSynchronize(rig.stream), cudaErrorLaunchFailure);
    emulation_reset();
    fill(&rig, 256);
    assert_cuda(test_block_sum(rig.stream, rig.device2, rig.device, 1));
    rig_read(&rig, rig.device2, 4);
    float expected = 0;
    for (int i = 0; i < 256; i++)
        expected += (float)(i % 97);
    assert_true(*rig.pinned == expected);
    rig_close(&rig);
}

static void launches_that_cannot_be_are_refused(void **state)
{
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(test_geometry(rig.stream, 1025, 1), cudaErrorInvalidConfiguration);
    assert_int_equal(test_geometry(rig.stream, 0, 1), cudaErrorInvalidConfiguration);
    assert_int_equal(test_geometry(rig.stream, 32, 0), cudaErrorInvalidConfiguration);
    assert_int_equal(test_geometry(NULL, 32, 1), cudaErrorInvalidResourceHandle);
    assert_cuda(test_geometry(rig.stream, 1024, 1));
    rig_close(&rig);
}

/* ---- order and arithmetic */

static void order_of_blocks(unsigned *order, const char *seed)
{
    struct rig rig;
    if (seed)
        setenv("AUTOHETE_EMULATION_SEED", seed, 1);
    rig_open(&rig);
    assert_cuda(cudaMemsetAsync(rig.device, 0, 4, rig.stream));
    assert_cuda(test_order(rig.stream, (unsigned *)rig.device, (unsigned *)rig.device2, 100));
    rig_read(&rig, rig.device2, 400);
    memcpy(order, rig.pinned, 400);
    rig_close(&rig);
    unsetenv("AUTOHETE_EMULATION_SEED");
}

static void blocks_run_in_an_order_nobody_may_count_on(void **state)
{
    unsigned order[100], natural[100];
    bool seen[100] = {false};
    order_of_blocks(order, NULL);
    order_of_blocks(natural, "0");
    for (int i = 0; i < 100; i++) {
        assert_true(order[i] < 100 && !seen[order[i]]);
        seen[order[i]] = true;
        assert_int_equal(natural[i], i);
    }
    assert_memory_not_equal(order, natural, sizeof order);
}

static void kernels_round_as_on_a_gpu(void **state)
{
    struct rig rig;
    rig_open(&rig);
    assert_cuda(test_rounding(rig.stream, rig.device, 1e-20F));
    rig_read(&rig, rig.device, 12);
    assert_true(rig.pinned[0] == 0); /* 1e-40 is a denormal: flushed */
    assert_true(rig.pinned[1] == 1); /* a tie goes to even */
    assert_true(rig.pinned[2] == 1);
    rig_close(&rig);
}

AH_TEST_CASES("emulation/blocks", every_thread_of_every_block_runs_once, barriers_hold_a_block_together,
              a_missing_barrier_shows, shared_memory_is_nan_in_every_block, dynamic_shared_memory_has_its_limits,
              shuffles_move_values_within_a_warp, votes_count_a_warp, lanes_outside_the_mask_give_nothing,
              blocks_that_are_stuck_are_reported, a_stream_goes_on_after_a_reset, launches_that_cannot_be_are_refused,
              blocks_run_in_an_order_nobody_may_count_on, kernels_round_as_on_a_gpu)
