#include <string.h>

#include "profile/bench.h"

enum { RECORDS = 512, REPEATS_MOST = 3, LEAST_TOGETHER = 3, LEAST_ALONE = 2, KINDS = 2, PINGS = 33 };
static const int64_t together_ns = 24000000, alone_ns = 10000000, pair_ns = 120000000, short_ns = 1000000;

/* Lanes whose work can overlap. */
static const enum ah_lane stream_lanes[] = {AH_LANE_COMPUTE, AH_LANE_H2D, AH_LANE_D2H, AH_LANE_HOST};

/* What one lane did during a stream. */
struct lane_record {
    int submitted, completed, in_flight;
    int64_t first_start_ns, last_end_ns;
    int count; /* of the arrays; later items are not recorded */
    int64_t start_ns[RECORDS], end_ns[RECORDS];
    unsigned char kind[RECORDS]; /* which of the lane's alternating items */
};

struct stream {
    struct ah_bench *bench;
    const struct ah_costs *costs;
    bool fed[AH_LANE_COUNT];
    struct lane_record lane[AH_LANE_COUNT];
};

/* ---- keeping lanes busy */

/* The lane's n-th item: block after block; compute alternates forward and backward. */
static void typical_work(struct ah_work *work, const struct ah_bench *bench, enum ah_lane lane, int n)
{
    static const enum ah_item_kind kind_table[AH_LANE_COUNT][KINDS] = {
        [AH_LANE_COMPUTE] = {AH_ITEM_FORWARD, AH_ITEM_BACKWARD},
        [AH_LANE_H2D] = {AH_ITEM_PREFETCH, AH_ITEM_PREFETCH},
        [AH_LANE_D2H] = {AH_ITEM_OFFLOAD, AH_ITEM_OFFLOAD},
        [AH_LANE_HOST] = {AH_ITEM_UPDATE_HOST, AH_ITEM_UPDATE_HOST},
    };
    int turn = lane == AH_LANE_COMPUTE ? n / KINDS : n;
    ah__bench_work(work, bench, kind_table[lane][n % KINDS], 1 + turn % bench->copies, false);
}

static int stream_feed(struct stream *stream, enum ah_lane lane)
{
    struct lane_record *record = &stream->lane[lane];
    struct ah_work work;
    struct ah_event event;
    typical_work(&work, stream->bench, lane, record->submitted);
    AH_TRY(stream->bench->dev->ops->submit(stream->bench->dev, &work, &event));
    record->submitted++;
    record->in_flight++;
    return AH_OK;
}

static void record_add(struct lane_record *record, const struct ah_done *done)
{
    if (record->completed == 0)
        record->first_start_ns = done->start_ns;
    record->last_end_ns = done->end_ns;
    if (record->count < RECORDS) {
        record->start_ns[record->count] = done->start_ns;
        record->end_ns[record->count] = done->end_ns;
        record->kind[record->count++] = (unsigned char)(record->completed % KINDS);
    }
    record->completed++;
    record->in_flight--;
}

/* Whether every fed lane has done `least` items. */
static bool stream_enough(const struct stream *stream, int least)
{
    for (int i = 0; i < AH_LANE_COUNT; i++)
        if (stream->fed[i] && stream->lane[i].completed < least)
            return false;
    return true;
}

static int in_flight(const struct stream *stream)
{
    int count = 0;
    for (int i = 0; i < AH_LANE_COUNT; i++)
        count += stream->lane[i].in_flight;
    return count;
}

/* Fills the lane's queue: short items need more of them ahead, or the lane would wait for this thread. */
static int stream_start(struct stream *stream, enum ah_lane lane)
{
    enum { AHEAD_SHORT = 8, AHEAD_LONG = 2 };
    struct ah_work work;
    typical_work(&work, stream->bench, lane, 0);
    int ahead = stream->costs->ns[work.item.kind][AH_CLASS_BLOCK] < short_ns ? AHEAD_SHORT : AHEAD_LONG;
    stream->fed[lane] = true;
    for (int i = 0; i < ahead; i++)
        AH_TRY(stream_feed(stream, lane));
    return AH_OK;
}

/* Keeps the given lanes fed until each has done `least` items and `least_ns` have passed. */
static int stream_run(struct stream *stream, const enum ah_lane *lanes, int count, int least, int64_t least_ns)
{
    struct ah_dev *dev = stream->bench->dev;
    memset(stream->fed, 0, sizeof stream->fed);
    memset(stream->lane, 0, sizeof stream->lane);
    int64_t start_ns = dev->ops->now_ns(dev);
    for (int i = 0; i < count; i++)
        AH_TRY(stream_start(stream, lanes[i]));
    while (in_flight(stream)) {
        struct ah_done done;
        AH_TRY(dev->ops->wait_any(dev, &done));
        AH_TRY(done.status);
        record_add(&stream->lane[done.lane], &done);
        if (!stream_enough(stream, least) || dev->ops->now_ns(dev) - start_ns < least_ns)
            AH_TRY(stream_feed(stream, done.lane));
    }
    return AH_OK;
}

/* ---- what it says */

/* Mean time of each kind of item that lies wholly between two moments, and how many there were. */
struct means {
    double sum_ns[KINDS];
    int count[KINDS];
};

static struct means means_between(const struct lane_record *record, int64_t from_ns, int64_t to_ns)
{
    struct means means = {0};
    for (int i = 0; i < record->count; i++) {
        if (record->start_ns[i] < from_ns || record->end_ns[i] > to_ns)
            continue;
        means.sum_ns[record->kind[i]] += (double)(record->end_ns[i] - record->start_ns[i]);
        means.count[record->kind[i]]++;
    }
    return means;
}

/* Items while the other lane was busy against items alone; 1 when nothing was fully overlapped. */
static double slowdown_of(const struct means *together, const struct means *alone)
{
    double actual = 0, expected = 0;
    for (int i = 0; i < KINDS; i++) {
        if (!together->count[i] || !alone->count[i])
            continue;
        actual += together->sum_ns[i];
        expected += together->count[i] * alone->sum_ns[i] / alone->count[i];
    }
    return expected > 0 && actual > expected ? actual / expected : 1;
}

static struct means means_together(const struct stream *stream, enum ah_lane lane, enum ah_lane other)
{
    const struct lane_record *a = &stream->lane[lane], *b = &stream->lane[other];
    int64_t from = a->first_start_ns > b->first_start_ns ? a->first_start_ns : b->first_start_ns;
    int64_t to = a->last_end_ns < b->last_end_ns ? a->last_end_ns : b->last_end_ns;
    return means_between(a, from, to);
}

static int alone(struct means *means, struct stream *room, enum ah_lane lane)
{
    AH_TRY(stream_run(room, &lane, 1, LEAST_ALONE, alone_ns));
    *means = means_between(&room->lane[lane], INT64_MIN, INT64_MAX);
    return AH_OK;
}

struct pair_result {
    double slowdown[2];    /* of a by b, of b by a */
    double mean_ns[2];     /* of an item while both are busy */
};

static double mean_of(const struct means *means, const struct means *otherwise)
{
    int count = means->count[0] + means->count[1];
    if (!count)
        means = otherwise, count = means->count[0] + means->count[1];
    return count ? (means->sum_ns[0] + means->sum_ns[1]) / count : 1;
}

/* Together, then each alone, close in time, so that a drifting clock or a noisy neighbour hits all alike. */
static int pair_once(struct pair_result *result, struct stream *room, const enum ah_lane pair[2])
{
    struct means together[2], by_itself[2];
    AH_TRY(stream_run(room, pair, 2, LEAST_TOGETHER, together_ns));
    for (int i = 0; i < 2; i++)
        together[i] = means_together(room, pair[i], pair[1 - i]);
    for (int i = 0; i < 2; i++) {
        AH_TRY(alone(&by_itself[i], room, pair[i]));
        result->slowdown[i] = slowdown_of(&together[i], &by_itself[i]);
        result->mean_ns[i] = mean_of(&together[i], &by_itself[i]);
    }
    return AH_OK;
}

static double middle_of(double *values, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
            double swap = values[j];
            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
    return count ? (values[count / 2] + values[(count - 1) / 2]) / 2 : 1;
}

static int pair_measure(struct pair_result *result, struct stream *room, const enum ah_lane pair[2])
{
    double slowdown[2][REPEATS_MOST], mean_ns[2][REPEATS_MOST];
    struct ah_dev *dev = room->bench->dev;
    int64_t start_ns = dev->ops->now_ns(dev);
    int repeats = 0;
    do {
        AH_TRY(pair_once(result, room, pair));
        for (int i = 0; i < 2; i++) {
            slowdown[i][repeats] = result->slowdown[i];
            mean_ns[i][repeats] = result->mean_ns[i];
        }
        repeats++;
    } while (repeats < REPEATS_MOST && dev->ops->now_ns(dev) - start_ns < pair_ns);
    for (int i = 0; i < 2; i++) {
        result->slowdown[i] = middle_of(slowdown[i], repeats);
        result->mean_ns[i] = middle_of(mean_ns[i], repeats);
    }
    return AH_OK;
}

static int64_t rate(int64_t bytes, double ns)
{
    return (int64_t)((double)bytes / (ns < 1 ? 1 : ns) * 1e9);
}

static void rates_fill(struct ah_profile *profile, const struct ah_bench *bench, const struct pair_result *both)
{
    int64_t bytes = bench->place[1].count * ah__dtype_bytes(bench->partition->compute);
    profile->h2d_bytes_per_s = rate(bytes, (double)profile->costs.ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK]);
    profile->d2h_bytes_per_s = rate(bytes, (double)profile->costs.ns[AH_ITEM_OFFLOAD][AH_CLASS_BLOCK]);
    profile->h2d_both_bytes_per_s = rate(bytes, both->mean_ns[0]);
    profile->d2h_both_bytes_per_s = rate(bytes, both->mean_ns[1]);
}

static int streams_run(struct stream *room, const struct ah_bench *bench, struct ah_profile *profile)
{
    for (int a = 0; a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            profile->costs.slowdown[a][b] = 1;
    for (size_t a = 0; a < AH_LENGTH(stream_lanes); a++)
        for (size_t b = a + 1; b < AH_LENGTH(stream_lanes); b++) {
            const enum ah_lane pair[2] = {stream_lanes[a], stream_lanes[b]};
            struct pair_result result = {0};
            AH_TRY(pair_measure(&result, room, pair));
            profile->costs.slowdown[pair[0]][pair[1]] = result.slowdown[0];
            profile->costs.slowdown[pair[1]][pair[0]] = result.slowdown[1];
            if (pair[0] == AH_LANE_H2D && pair[1] == AH_LANE_D2H)
                rates_fill(profile, bench, &result);
        }
    return AH_OK;
}

int ah__bench_streams(struct ah_bench *bench, struct ah_profile *profile)
{
    struct stream *room;
    AH_TRY(ah__new(&room, 1, sizeof *room));
    room->bench = bench;
    room->costs = &profile->costs;
    int status = streams_run(room, bench, profile);
    ah__free(room);
    return status;
}

/* ---- latencies */

static int gap_measure(int64_t *gap_ns, struct ah_dev *dev, enum ah_lane lane)
{
    struct ah_samples gaps = {0};
    struct ah_work work = {.lane = lane};
    struct ah_event event;
    struct ah_done done;
    int64_t end_ns = 0;
    for (int i = 0; i < PINGS; i++)
        AH_TRY(dev->ops->submit(dev, &work, &event));
    for (int i = 0; i < PINGS; i++) {
        AH_TRY(dev->ops->wait_any(dev, &done));
        AH_TRY(done.status);
        if (i)
            ah__samples_add(&gaps, done.start_ns - end_ns);
        end_ns = done.end_ns;
    }
    *gap_ns = ah__samples_median(&gaps);
    return AH_OK;
}

static int notify_measure(int64_t *notify_ns, struct ah_dev *dev)
{
    struct ah_samples pings = {0};
    struct ah_work work = {.lane = AH_LANE_H2D};
    struct ah_done done;
    int64_t end_ns = 0;
    for (int i = 0; i < PINGS; i++) {
        AH_TRY(ah__dev_run(dev, &work, &done));
        if (i)
            ah__samples_add(&pings, done.start_ns - end_ns);
        end_ns = done.end_ns;
    }
    *notify_ns = ah__samples_median(&pings);
    return AH_OK;
}

int ah__bench_latencies(struct ah_bench *bench, struct ah_costs *costs)
{
    for (size_t i = 0; i < AH_LENGTH(stream_lanes); i++)
        AH_TRY(gap_measure(&costs->launch_ns[stream_lanes[i]], bench->dev, stream_lanes[i]));
    return notify_measure(&costs->notify_ns, bench->dev);
}
