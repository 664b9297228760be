/* Collectives over a transport. Every rank sends each other rank the data it needs and adds up what it receives, in
 * order of ranks. Data pass through scratch of a fixed size in pieces, so that nothing is allocated while steps run. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/format.h"
#include "comm/comm.h"
#include "op/bf16.h"

enum { PIECE_BYTES = 512 << 10, SUM_FLOATS = 512, LAST_WORDS = 512, RANK_NAME = 24 };

/* A rank's message when it ends. */
struct last_word {
    int status;
    bool lost; /* it failed only because another rank did not answer */
    char message[LAST_WORDS];
};

struct group {
    struct ah_comm comm;
    const struct ah_transport *transport;
    struct ah_transfer *transfers; /* two for each other rank */
    char *scratch;                 /* PIECE_BYTES from each rank */
    struct last_word *last;        /* [world_size], by rank */
    bool lost;                     /* the transport failed, because another rank has */
};

static struct group *group_of(struct ah_comm *comm)
{
    return (struct group *)comm;
}

static int lose(struct group *group, const char *why)
{
    group->lost = true;
    return ah__fail(AH_EDEVICE, "rank %d of %d: %s", group->comm.rank, group->comm.world_size, why);
}

static int exchange(struct group *group, int count)
{
    char why[AH_TRANSPORT_WHY] = "", other[AH_TRANSPORT_WHY] = "";
    const struct ah_transport *transport = group->transport;
    if (transport->exchange(transport->context, AH_CHANNEL_WORK, group->transfers, count, 0, why))
        return AH_OK;
    if (transport->look(transport->context, other)) /* no other rank is to blame */
        return ah__fail(AH_EDEVICE, "%s", why);
    return lose(group, why);
}

/* Exchanges `bytes` with every other rank: a peer's data begin at `send` or `receive` plus the peer's rank times the
 * step. */
static int exchange_all(struct group *group, char *send, int64_t send_step, char *receive, int64_t receive_step,
                        int64_t bytes)
{
    int count = 0;
    for (int peer = 0; peer < group->comm.world_size; peer++) {
        if (peer == group->comm.rank)
            continue;
        group->transfers[count++] = (struct ah_transfer){peer, true, false, receive + peer * receive_step, bytes};
        group->transfers[count++] = (struct ah_transfer){peer, false, false, send + peer * send_step, bytes};
    }
    return exchange(group, count);
}

/* ---- sums in order of ranks -------------------------------------------------------------------------------------- */

/* Returns the data that `rank` gave: this rank's own, or a received piece in the scratch. */
static const char *brought(const struct group *group, const char *own, int rank)
{
    return rank == group->comm.rank ? own : group->scratch + (int64_t)rank * PIECE_BYTES;
}

static void sum_floats(const struct group *group, float *own, int64_t count)
{
    float sum[SUM_FLOATS];
    for (int64_t first = 0; first < count; first += SUM_FLOATS) {
        int64_t n = count - first < SUM_FLOATS ? count - first : SUM_FLOATS;
        for (int rank = 0; rank < group->comm.world_size; rank++) {
            const float *from = (const float *)(const void *)brought(group, (const char *)own, rank) + first;
            for (int64_t i = 0; i < n; i++)
                sum[i] = rank == 0 ? from[i] : sum[i] + from[i];
        }
        memcpy(own + first, sum, (size_t)n * sizeof *sum);
    }
}

static void sum_bf16(const struct group *group, uint16_t *own, int64_t count)
{
    float sum[SUM_FLOATS];
    for (int64_t first = 0; first < count; first += SUM_FLOATS) {
        int64_t n = count - first < SUM_FLOATS ? count - first : SUM_FLOATS;
        for (int rank = 0; rank < group->comm.world_size; rank++) {
            const uint16_t *from = (const uint16_t *)(const void *)brought(group, (const char *)own, rank) + first;
            for (int64_t i = 0; i < n; i++)
                sum[i] = rank == 0 ? ah__bf16_value(from[i]) : sum[i] + ah__bf16_value(from[i]);
        }
        ah__bf16_narrow(own + first, sum, n);
    }
}

static void sum_doubles(const struct group *group, double *own, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double sum = 0;
        for (int rank = 0; rank < group->comm.world_size; rank++)
            sum += ((const double *)(const void *)brought(group, (const char *)own, rank))[i];
        own[i] = sum;
    }
}

/* ---- collectives ------------------------------------------------------------------------------------------------- */

static int all_gather(struct group *group, char *buffer, int64_t part_bytes)
{
    return exchange_all(group, buffer + group->comm.rank * part_bytes, 0, buffer, part_bytes, part_bytes);
}

static int reduce_scatter(struct group *group, char *buffer, int64_t part_bytes, enum ah_dtype dtype)
{
    int64_t element = ah__dtype_bytes(dtype);
    for (int64_t first = 0; first < part_bytes; first += PIECE_BYTES) {
        int64_t bytes = part_bytes - first < PIECE_BYTES ? part_bytes - first : PIECE_BYTES;
        char *own = buffer + group->comm.rank * part_bytes + first;
        AH_TRY(exchange_all(group, buffer + first, part_bytes, group->scratch, PIECE_BYTES, bytes));
        if (dtype == AH_BF16)
            sum_bf16(group, (uint16_t *)(void *)own, bytes / element);
        else
            sum_floats(group, (float *)(void *)own, bytes / element);
    }
    return AH_OK;
}

/* Sums on every rank: each receives the data of all and adds them in the same order. */
static int sum_all(struct group *group, enum ah_collective kind, char *buffer, int64_t all_bytes)
{
    for (int64_t first = 0; first < all_bytes; first += PIECE_BYTES) {
        int64_t bytes = all_bytes - first < PIECE_BYTES ? all_bytes - first : PIECE_BYTES;
        AH_TRY(exchange_all(group, buffer + first, 0, group->scratch, PIECE_BYTES, bytes));
        if (kind == AH_SUM_DOUBLES)
            sum_doubles(group, (double *)(void *)(buffer + first), bytes / (int64_t)sizeof(double));
        else
            sum_floats(group, (float *)(void *)(buffer + first), bytes / (int64_t)sizeof(float));
    }
    return AH_OK;
}

static int group_collective(struct ah_comm *comm, enum ah_collective kind, void *buffer, int64_t part_count,
                            enum ah_dtype dtype)
{
    struct group *group = group_of(comm);
    if (!buffer || part_count < 0)
        return ah__fail(AH_EINTERNAL, "collective of %lld elements without a buffer", (long long)part_count);
    int64_t bytes = part_count * (kind == AH_SUM_DOUBLES ? (int64_t)sizeof(double) : ah__dtype_bytes(dtype));
    if (dtype != AH_F32 && (dtype != AH_BF16 || kind == AH_SUM_FLOATS))
        return ah__fail(AH_EINTERNAL, "collective of %s", ah__dtype_name(dtype));
    if (kind == AH_ALL_GATHER)
        return all_gather(group, buffer, bytes);
    return kind == AH_REDUCE_SCATTER ? reduce_scatter(group, buffer, bytes, dtype)
                                     : sum_all(group, kind, buffer, bytes);
}

static int group_move(struct ah_comm *comm, void *buffer, int64_t bytes, int from, int to)
{
    struct group *group = group_of(comm);
    int count = 0, rank = comm->rank;
    if (rank == from)
        for (int peer = 0; peer < comm->world_size; peer++)
            if (peer != rank && (to == AH_ALL_RANKS || to == peer))
                group->transfers[count++] = (struct ah_transfer){peer, false, false, buffer, bytes};
    if (rank != from && (to == AH_ALL_RANKS || to == rank))
        group->transfers[count++] = (struct ah_transfer){from, true, false, buffer, bytes};
    return count ? exchange(group, count) : AH_OK;
}

static int group_look(struct ah_comm *comm)
{
    char why[AH_TRANSPORT_WHY] = "";
    struct group *group = group_of(comm);
    return group->transport->look(group->transport->context, why) ? AH_OK : lose(group, why);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static bool last_words_exchange(struct group *group, double patience_s)
{
    char why[AH_TRANSPORT_WHY] = "";
    int count = 0, rank = group->comm.rank;
    bool failed = group->last[rank].status != AH_OK;
    for (int peer = 0; peer < group->comm.world_size; peer++) {
        if (peer == rank)
            continue;
        group->transfers[count++] =
            (struct ah_transfer){peer, true, false, &group->last[peer], (int64_t)sizeof group->last[peer]};
        group->transfers[count++] =
            (struct ah_transfer){peer, false, failed, &group->last[rank], (int64_t)sizeof group->last[rank]};
    }
    return group->transport->exchange(group->transport->context, AH_CHANNEL_END, group->transfers, count, patience_s,
                                      why);
}

/* Returns the lowest rank that failed by itself, else the lowest that failed, else -1. */
static int first_failed(const struct group *group)
{
    int failed = -1;
    for (int rank = group->comm.world_size - 1; rank >= 0; rank--)
        if (group->last[rank].status != AH_OK && (failed < 0 || !group->last[rank].lost || group->last[failed].lost))
            failed = rank;
    return failed;
}

static int group_end(struct ah_comm *comm, int status, bool *together)
{
    static const double patience_s = 3;
    struct group *group = group_of(comm);
    struct last_word *own = &group->last[comm->rank];
    own->status = status;
    own->lost = status != AH_OK && group->lost;
    if (status != AH_OK)
        ah__snprintf(own->message, sizeof own->message, "%s", ah_error());
    *together = last_words_exchange(group, status == AH_OK ? 0 : patience_s);
    if (!*together)
        return status != AH_OK ? status : ah__fail(AH_EDEVICE, "rank %d: another rank did not end", comm->rank);
    int failed = first_failed(group);
    if (failed < 0 || failed == comm->rank)
        return status;
    struct last_word *word = &group->last[failed];
    word->message[LAST_WORDS - 1] = 0;
    if (status != AH_OK && strcmp(word->message, own->message) == 0)
        return status;
    char name[RANK_NAME];
    int length = snprintf(name, sizeof name, "rank %d", failed);
    bool named = strncmp(word->message, name, (size_t)length) == 0; /* the message names its rank already */
    return named ? ah__fail(word->status, "%s", word->message) : ah__fail(word->status, "%s: %s", name, word->message);
}

static void group_close(struct ah_comm *comm)
{
    struct group *group = group_of(comm);
    ah__free(group->last);
    ah__free(group->transfers);
    ah__free(group->scratch);
    ah__free(group);
}

int ah__comm_group(struct ah_comm **out, const struct ah_transport *transport)
{
    static const struct ah_comm_ops ops = {group_collective, group_move, group_look, group_end, group_close};
    struct group *group;
    AH_TRY(ah__new(&group, 1, sizeof *group));
    group->comm = (struct ah_comm){&ops,
                                   transport->rank,
                                   transport->world_size,
                                   transport->neighbours,
                                   transport->local,
                                   transport->share,
                                   transport->shares};
    group->transport = transport;
    int status = ah__new(&group->transfers, 2 * (size_t)transport->world_size, sizeof *group->transfers);
    if (status == AH_OK)
        status = ah__new(&group->scratch, (size_t)transport->world_size, PIECE_BYTES);
    if (status == AH_OK)
        status = ah__new(&group->last, (size_t)transport->world_size, sizeof *group->last);
    if (status == AH_OK)
        *out = &group->comm;
    else
        group_close(&group->comm);
    return status;
}
