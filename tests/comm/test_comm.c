/* Collectives over ranks that are threads: what arrives where, and sums to the bit as ranks are added up in order. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "comm/threads.h"
#include "op/bf16.h"
#include "test.h"

/* Values whose sum depends on the order in which they are added. */
static float value_of(int rank, int64_t index)
{
    double u = ah__random_uniform(7, (uint64_t)index * THREADS_MOST + (uint64_t)rank);
    return (float)((u - 0.5) * exp2((double)(ah__random_bits(8, (uint64_t)(index + rank)) % 20)));
}

struct sizes {
    int world_size;
    int64_t part; /* elements */
};

static void gather_one(int rank, void *context)
{
    const struct sizes *sizes = context;
    struct ah_comm *comm = ah__comm();
    float *buffer;
    assert_int_equal(comm->rank, rank);
    assert_int_equal(comm->world_size, sizes->world_size);
    assert_ok(ah__new(&buffer, (size_t)(sizes->world_size * sizes->part), sizeof *buffer));
    for (int64_t i = 0; i < sizes->part; i++)
        buffer[rank * sizes->part + i] = value_of(rank, i);
    assert_ok(comm->ops->collective(comm, AH_ALL_GATHER, buffer, sizes->part, AH_F32));
    for (int from = 0; from < sizes->world_size; from++)
        for (int64_t i = 0; i < sizes->part; i++)
            assert_true(buffer[from * sizes->part + i] == value_of(from, i));
    ah__free(buffer);
}

static float sum_of(int ranks, int64_t index, bool narrow)
{
    float sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
        float value = value_of(rank, index);
        sum += narrow ? ah__bf16_value(ah__bf16_of(value)) : value;
    }
    return sum;
}

static void reduce_one(int rank, void *context)
{
    const struct sizes *sizes = context;
    struct ah_comm *comm = ah__comm();
    int64_t count = sizes->world_size * sizes->part;
    float *wide;
    uint16_t *narrow;
    assert_ok(ah__new(&wide, (size_t)count, sizeof *wide));
    assert_ok(ah__new(&narrow, (size_t)count, sizeof *narrow));
    for (int64_t i = 0; i < count; i++) {
        wide[i] = value_of(rank, i);
        narrow[i] = ah__bf16_of(value_of(rank, i));
    }
    assert_ok(comm->ops->collective(comm, AH_REDUCE_SCATTER, wide, sizes->part, AH_F32));
    assert_ok(comm->ops->collective(comm, AH_REDUCE_SCATTER, narrow, sizes->part, AH_BF16));
    for (int64_t i = rank * sizes->part; i < (rank + 1) * sizes->part; i++) {
        assert_true(wide[i] == sum_of(sizes->world_size, i, false));
        assert_int_equal(narrow[i], ah__bf16_of(sum_of(sizes->world_size, i, true)));
    }
    ah__free(wide);
    ah__free(narrow);
}

static void sum_one(int rank, void *context)
{
    const struct sizes *sizes = context;
    struct ah_comm *comm = ah__comm();
    double doubles[3] = {rank + 0.1, 1e300 * (rank % 2 ? -1 : 1), rank == 1 ? NAN : 0}, expected = 0;
    float *floats;
    for (int i = 0; i < sizes->world_size; i++)
        expected += i + 0.1;
    assert_ok(ah__new(&floats, (size_t)sizes->part, sizeof *floats));
    for (int64_t i = 0; i < sizes->part; i++)
        floats[i] = value_of(rank, i);
    assert_ok(ah__comm_sum(comm, doubles, 3));
    assert_true(doubles[0] == expected);
    assert_true(isnan(doubles[2]) == (sizes->world_size > 1));
    assert_ok(comm->ops->collective(comm, AH_SUM_FLOATS, floats, sizes->part, AH_F32));
    for (int64_t i = 0; i < sizes->part; i++)
        assert_true(floats[i] == sum_of(sizes->world_size, i, false));
    ah__free(floats);
}

/* Parts of one element, of less than a piece and of several pieces. */
static void for_sizes(void (*work)(int rank, void *context))
{
    static const int64_t parts[] = {1, 1000, 131072, 300001};
    for (int ranks = 1; ranks <= 5; ranks++)
        for (size_t i = 0; i < AH_LENGTH(parts); i++)
            threads_run(ranks, work, &(struct sizes){ranks, parts[i]});
}

static void parts_are_gathered(void **state)
{
    for_sizes(gather_one);
}

static void gradients_are_summed_in_order_of_ranks(void **state)
{
    for_sizes(reduce_one);
}

static void small_values_are_summed_alike_on_all(void **state)
{
    for_sizes(sum_one);
}

static void agree_one(int rank, void *context)
{
    int ranks = *(int *)context;
    struct ah_comm *comm = ah__comm();
    assert_ok(ah__comm_agree(comm, AH_OK));
    if (ranks < 3)
        return;
    int status = rank == 2 ? ah__fail(AH_EINPUT, "the file is gone") : AH_OK;
    assert_int_equal(ah__comm_agree(comm, status), AH_EINPUT);
    assert_string_equal(ah_error(), "rank 2: the file is gone");
    assert_int_equal(ah__comm_agree(comm, ah__fail(AH_ENOMEM, "%d", rank)), AH_ENOMEM); /* the lowest counts */
    assert_string_equal(ah_error(), "0");
    assert_ok(ah__comm_agree(comm, AH_OK));
}

static void text_one(int rank, void *context)
{
    struct ah_comm *comm = ah__comm();
    char first[] = "what rank 0 knows", *text = rank == 0 ? first : NULL;
    assert_ok(ah__comm_text(&text, comm));
    assert_string_equal(text, first);
    if (rank > 0)
        ah__free(text);
    text = NULL;
    assert_ok(ah__comm_text(&text, comm));
    assert_null(text);
}

static void end_one(int rank, void *context)
{
    const int failing = *(int *)context;
    struct ah_comm *comm = ah__comm();
    bool together = false;
    int status = rank == failing ? ah__fail(AH_EDEVICE, "the disk is full") : AH_OK;
    status = comm->ops->end(comm, status, &together);
    assert_true(together);
    assert_int_equal(status, failing < comm->world_size ? AH_EDEVICE : AH_OK);
    if (failing < comm->world_size)
        assert_string_equal(ah_error(), rank == failing ? "the disk is full" : "rank 1: the disk is full");
}

static void one_failure_is_everybodys(void **state)
{
    for (int ranks = 1; ranks <= 4; ranks++) {
        threads_run(ranks, agree_one, &ranks);
        threads_run(ranks, text_one, NULL);
        threads_run(ranks, end_one, &(int){1});
        threads_run(ranks, end_one, &(int){THREADS_MOST});
    }
}

/* What one rank's transport refuses ends the others, too, which would wait for it; its reason is told, not theirs. */
static void refuse_one(int rank, void *context)
{
    enum { REFUSED = 2 };
    struct ah_comm *comm = ah__comm();
    double value = rank;
    bool together = false;
    if (rank == REFUSED)
        threads_refuse("out of descriptors");
    int status = ah__comm_sum(comm, &value, 1);
    assert_int_equal(status, AH_EDEVICE);
    assert_int_equal(comm->ops->end(comm, status, &together), AH_EDEVICE);
    assert_true(together);
    assert_string_equal(ah_error(), rank == REFUSED ? "out of descriptors" : "rank 2: out of descriptors");
}

static void a_refusal_is_everybodys(void **state)
{
    threads_run(3, refuse_one, NULL);
    threads_run(4, refuse_one, NULL);
}

/* The others never say that they end: this rank does not wait for ever. */
static void leave_one(int rank, void *context)
{
    bool together = true;
    if (rank > 0)
        return;
    assert_int_equal(ah__comm()->ops->end(ah__comm(), ah__fail(AH_ENOMEM, "no memory"), &together), AH_ENOMEM);
    assert_false(together);
    assert_string_equal(ah_error(), "no memory");
}

static void a_rank_alone_ends_by_itself(void **state)
{
    threads_run(2, leave_one, NULL);
}

static void moves_one(int rank, void *context)
{
    struct ah_comm *comm = ah__comm();
    int value = rank;
    assert_ok(comm->ops->move(comm, &value, sizeof value, 2, 0));
    assert_int_equal(value, rank == 0 ? 2 : rank);
    assert_ok(comm->ops->move(comm, &value, sizeof value, 1, AH_ALL_RANKS));
    assert_int_equal(value, 1);
}

static void bytes_move_between_ranks(void **state)
{
    threads_run(3, moves_one, NULL);
}

AH_TEST_CASES("comm/comm", parts_are_gathered, gradients_are_summed_in_order_of_ranks,
              small_values_are_summed_alike_on_all, one_failure_is_everybodys, a_refusal_is_everybodys,
              a_rank_alone_ends_by_itself, bytes_move_between_ranks)
