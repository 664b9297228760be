#include <string.h>

#include "profile/workload.h"

enum { RECORDS = 512, REPEATS_MOST = 5, LEAST_TOGETHER = 3, LEAST_ALONE = 2, KINDS = 2, PINGS = 33, PROBE = 8 };
static const int64_t together_ns = 24000000, alone_ns = 10000000, pair_ns = 150000000, ahead_ns = 6000000;
/* Two lanes cannot slow each other by more than this factor: if more is measured, another program on the machine is the
 * cause. A collective, which passes from rank to rank, may wait for a turn on a busy core at each hand-over. */
static const double slowdown_most = 4, collective_most = 16;

/* Lanes whose work can overlap; the last only with several ranks. */
static const enum ah_lane stream_lanes[] = {AH_LANE_COMPUTE, AH_LANE_H2D, AH_LANE_D2H, AH_LANE_HOST, AH_LANE_COMM};

/* The record of one lane during a stream. */
struct lane_record {
    int submitted, completed, in_flight;
    int count; /* length of the arrays; later items are not recorded */
    int64_t start_ns[RECORDS], end_ns[RECORDS];
    unsigned char kind[RECORDS]; /* which of the lane's alternating items */
};

struct stream {
    struct ah_workload *workload;
    const struct ah_costs *costs;
    bool fed[AH_LANE_COUNT];
    int together; /* items of the comm lane, if it is fed: the same number on every rank, however long they take */
    struct lane_record lane[AH_LANE_COUNT];
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- keeping lanes busy */

/* Returns the lane's n-th item: block after block; compute alternates forward and backward, comm gathers and
 * reductions. */
static struct ah_item typical_item(const struct ah_workload *workload, enum ah_lane lane, int n)
{
    static const enum ah_item_kind kind_table[AH_LANE_COUNT][KINDS] = {
        [AH_LANE_COMPUTE] = {AH_ITEM_FORWARD, AH_ITEM_BACKWARD},
        [AH_LANE_H2D] = {AH_ITEM_PREFETCH, AH_ITEM_PREFETCH},
        [AH_LANE_D2H] = {AH_ITEM_OFFLOAD, AH_ITEM_OFFLOAD},
        [AH_LANE_HOST] = {AH_ITEM_UPDATE_HOST, AH_ITEM_UPDATE_HOST},
        [AH_LANE_COMM] = {AH_ITEM_GATHER, AH_ITEM_REDUCE},
    };
    int turn = lane == AH_LANE_COMPUTE || lane == AH_LANE_COMM ? n / KINDS : n;
    return (struct ah_item){.kind = kind_table[lane][n % KINDS],
                            .partition = 1 + turn % workload->copies,
                            .param_buffer = -1,
                            .grad_buffer = -1};
}

static int stream_feed(struct stream *stream, enum ah_lane lane)
{
    struct lane_record *record = &stream->lane[lane];
    struct ah_work work;
    struct ah_event event;
    struct ah_item item = typical_item(stream->workload, lane, record->submitted);
    AH_TRY(ah__workload_work(&work, stream->workload, &item));
    AH_TRY(stream->workload->dev->ops->submit(stream->workload->dev, &work, &event));
    record->submitted++;
    record->in_flight++;
    return AH_OK;
}

static void record_add(struct lane_record *record, const struct ah_done *done)
{
    if (record->count < RECORDS) {
        record->start_ns[record->count] = done->start_ns;
        record->end_ns[record->count] = done->end_ns;
        record->kind[record->count++] = (unsigned char)(record->completed % KINDS);
    }
    record->completed++;
    record->in_flight--;
}

/* Returns true if every fed lane has completed `least` items, and the comm lane all collectives. */
static bool stream_enough(const struct stream *stream, int least)
{
    for (int i = 0; i < AH_LANE_COUNT; i++)
        if (stream->fed[i] && stream->lane[i].completed < (i == AH_LANE_COMM ? stream->together : least))
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

/* Returns the time of the lane's first item, alone. */
static int64_t item_ns(const struct stream *stream, enum ah_lane lane)
{
    int64_t ns = stream->costs->ns[typical_item(stream->workload, lane, 0).kind][AH_CLASS_BLOCK];
    return ns > 0 ? ns : 1;
}

/* Fills the lane's queue for some time ahead, since this thread may be scheduled late on a busy machine. */
static int stream_start(struct stream *stream, enum ah_lane lane)
{
    enum { AHEAD_LEAST = 2, AHEAD_MOST = 96 };
    int64_t ahead = ahead_ns / item_ns(stream, lane);
    ahead = ahead < AHEAD_LEAST ? AHEAD_LEAST : ahead > AHEAD_MOST ? AHEAD_MOST : ahead;
    if (lane == AH_LANE_COMM && ahead > stream->together)
        ahead = stream->together;
    stream->fed[lane] = true;
    for (int64_t i = 0; i < ahead; i++)
        AH_TRY(stream_feed(stream, lane));
    return AH_OK;
}

/* Keeps the given lanes fed until each has completed `least` items and `least_ns` have passed; the comm lane until it
 * has completed stream->together. */
static int stream_run(struct stream *stream, const enum ah_lane *lanes, int count, int least, int64_t least_ns)
{
    struct ah_dev *dev = stream->workload->dev;
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
        bool more = !stream_enough(stream, least) || dev->ops->now_ns(dev) - start_ns < least_ns;
        if (done.lane == AH_LANE_COMM ? stream->lane[done.lane].submitted < stream->together : more)
            AH_TRY(stream_feed(stream, done.lane));
    }
    return AH_OK;
}

/* Decides, the same on all ranks, how many collectives take least_ns, and as long as `least` items of the other lanes
 * and one more. A few are tried beside the same lanes first: if ranks and other programs share cores, a collective may
 * take hundreds of times as long as alone, and hundreds of them would take minutes. */
static int together_decide(struct stream *stream, const enum ah_lane *lanes, int count, int least, int64_t least_ns)
{
    struct ah_comm *comm = stream->workload->comm;
    const struct lane_record *record = &stream->lane[AH_LANE_COMM];
    stream->together = PROBE;
    AH_TRY(ah__workload_agree(stream->workload, stream_run(stream, lanes, count, least, 0)));
    int64_t each_ns = (record->end_ns[PROBE - 1] - record->start_ns[0]) / PROBE;
    AH_TRY(comm->ops->move(comm, &each_ns, sizeof each_ns, 0, AH_ALL_RANKS));
    each_ns = later(each_ns, item_ns(stream, AH_LANE_COMM));
    for (int i = 0; i < count; i++)
        least_ns = later(least_ns, (least + 1) * item_ns(stream, lanes[i]));
    stream->together = (int)earlier(later(least, least_ns / each_ns), RECORDS);
    return AH_OK;
}

/* Runs a stream that all ranks end before the next begins. */
static int stream_in_step(struct stream *stream, const enum ah_lane *lanes, int count, int least, int64_t least_ns)
{
    for (int i = 0; i < count; i++)
        if (lanes[i] == AH_LANE_COMM)
            AH_TRY(together_decide(stream, lanes, count, least, least_ns));
    return ah__workload_agree(stream->workload, stream_run(stream, lanes, count, least, least_ns));
}

/* ---- evaluation */

/* Sums over each kind of item: time and number; and for how long of that time the other lane was busy. */
struct sums {
    double ns[KINDS], count[KINDS], overlap_ns;
};

/* Returns the nanoseconds of [from, to] in which the lane was busy; *first is moved to the first item that ends after
 * `from`. */
static int64_t busy_between(const struct lane_record *record, int *first, int64_t from, int64_t to)
{
    int64_t busy = 0;
    while (*first < record->count && record->end_ns[*first] <= from)
        ++*first;
    for (int i = *first; i < record->count && record->start_ns[i] < to; i++)
        busy += earlier(record->end_ns[i], to) - later(record->start_ns[i], from);
    return busy;
}

/* Sums over the items that are completely in the time for which both lanes have records. */
static struct sums sums_together(const struct lane_record *lane, const struct lane_record *other)
{
    struct sums sums = {0};
    int first = 0;
    if (!lane->count || !other->count)
        return sums;
    int64_t from = later(lane->start_ns[0], other->start_ns[0]);
    int64_t to = earlier(lane->end_ns[lane->count - 1], other->end_ns[other->count - 1]);
    for (int i = 0; i < lane->count; i++) {
        if (lane->start_ns[i] < from || lane->end_ns[i] > to)
            continue;
        sums.ns[lane->kind[i]] += (double)(lane->end_ns[i] - lane->start_ns[i]);
        sums.count[lane->kind[i]] += 1;
        sums.overlap_ns += (double)busy_between(other, &first, lane->start_ns[i], lane->end_ns[i]);
    }
    return sums;
}

/* Returns the factor by which streams are longer: ranks on the same cores take turns of milliseconds each. */
static int64_t times_longer(const struct stream *room)
{
    return room->workload->comm->shares > 1 ? 2 : 1;
}

/* Adds up the sums of all ranks: if they share cores, one has the time that another lacks. */
static int sums_of_all(struct sums *sums, const struct stream *room)
{
    double values[] = {sums->ns[0], sums->ns[1], sums->count[0], sums->count[1], sums->overlap_ns};
    AH_TRY(ah__comm_sum(room->workload->comm, values, (int)AH_LENGTH(values)));
    *sums = (struct sums){{values[0], values[1]}, {values[2], values[3]}, values[4]};
    return AH_OK;
}

static int sums_alone(struct sums *sums, struct stream *room, enum ah_lane lane, int64_t least_ns)
{
    AH_TRY(stream_in_step(room, &lane, 1, LEAST_ALONE, least_ns));
    *sums = sums_together(&room->lane[lane], &room->lane[lane]);
    return sums_of_all(sums, room);
}

/* Inverts the fluid model: work that takes `alone` took `together`, of which `overlap` ran at 1/slowdown. */
static double slowdown_of(const struct sums *together, const struct sums *by_itself, double most)
{
    double alone = 0, actual = 0;
    for (int i = 0; i < KINDS; i++) {
        if (together->count[i] <= 0 || by_itself->count[i] <= 0)
            continue;
        actual += together->ns[i];
        alone += together->count[i] * by_itself->ns[i] / by_itself->count[i];
    }
    double done_in_overlap = alone - (actual - together->overlap_ns);
    if (together->overlap_ns <= done_in_overlap)
        return 1;
    return together->overlap_ns < most * done_in_overlap ? together->overlap_ns / done_in_overlap : most;
}

static double mean_of(const struct sums *sums)
{
    double count = sums->count[0] + sums->count[1];
    return count > 0 ? (sums->ns[0] + sums->ns[1]) / count : 0;
}

/* The measurements of one pair of lanes, for each repetition. */
struct pair {
    enum ah_lane lane[2];
    int repeats;
    struct sums together[2][REPEATS_MOST], alone[2][REPEATS_MOST];
};

/* Measures a pair together, then each lane alone, close in time, so that a drifting clock affects both alike. */
static int pair_once(struct pair *pair, struct stream *room)
{
    struct ah_dev *dev = room->workload->dev;
    int64_t start_ns = dev->ops->now_ns(dev), passed_ns;
    AH_TRY(stream_in_step(room, pair->lane, 2, LEAST_TOGETHER, together_ns * times_longer(room)));
    for (int i = 0; i < 2; i++) {
        struct sums *together = &pair->together[i][pair->repeats];
        *together = sums_together(&room->lane[pair->lane[i]], &room->lane[pair->lane[1 - i]]);
        AH_TRY(sums_of_all(together, room));
    }
    AH_TRY(ah__workload_elapsed(&passed_ns, room->workload, start_ns));
    int64_t least_ns = later(alone_ns, passed_ns / 4);
    for (int i = 0; i < 2; i++)
        AH_TRY(sums_alone(&pair->alone[i][pair->repeats], room, pair->lane[i], least_ns));
    pair->repeats++;
    return AH_OK;
}

static int pair_measure(struct pair *pair, struct stream *room)
{
    struct ah_dev *dev = room->workload->dev;
    int64_t start_ns = dev->ops->now_ns(dev), passed_ns;
    do {
        AH_TRY(pair_once(pair, room));
        AH_TRY(ah__workload_elapsed(&passed_ns, room->workload, start_ns));
    } while (pair->repeats < REPEATS_MOST && passed_ns < pair_ns * times_longer(room));
    return AH_OK;
}

/* Returns the lower quartile; sorts in place. */
static double low_of(double *values, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
            double swap = values[j];
            values[j] = values[j - 1];
            values[j - 1] = swap;
        }
    return values[count / 4];
}

static struct sums fastest_of(const struct sums *sums, int count)
{
    struct sums best = {0};
    for (int n = 0; n < count; n++)
        for (int i = 0; i < KINDS; i++) {
            bool is_first = best.count[i] <= 0;
            if (sums[n].count[i] <= 0 || (!is_first && sums[n].ns[i] / sums[n].count[i] >= best.ns[i] / best.count[i]))
                continue;
            best.ns[i] = sums[n].ns[i];
            best.count[i] = sums[n].count[i];
        }
    return best;
}

static struct sums all_of(const struct sums *sums, int count)
{
    struct sums all = {0};
    for (int n = 0; n < count; n++) {
        for (int i = 0; i < KINDS; i++) {
            all.ns[i] += sums[n].ns[i];
            all.count[i] += sums[n].count[i];
        }
        all.overlap_ns += sums[n].overlap_ns;
    }
    return all;
}

/* Returns the slowdown of one lane of a pair. Other programs can only add time, so of the lane alone only the fastest
 * repetition counts, and of the lanes together one of the faster ones. Ranks take time from each other as other
 * programs would, in slices as long as a repetition: so with several ranks all repetitions count. */
static double pair_slowdown(const struct pair *pair, int which, const struct stream *room)
{
    double values[REPEATS_MOST];
    struct sums alone = fastest_of(pair->alone[which], pair->repeats);
    if (room->workload->comm->world_size > 1) {
        struct sums together = all_of(pair->together[which], pair->repeats);
        return slowdown_of(&together, &alone, pair->lane[which] == AH_LANE_COMM ? collective_most : slowdown_most);
    }
    for (int i = 0; i < pair->repeats; i++)
        values[i] = slowdown_of(&pair->together[which][i], &alone, slowdown_most);
    return low_of(values, pair->repeats);
}

static double pair_mean_ns(const struct pair *pair, int which)
{
    double values[REPEATS_MOST];
    struct sums alone = fastest_of(pair->alone[which], pair->repeats);
    for (int i = 0; i < pair->repeats; i++)
        values[i] = mean_of(pair->together[which][i].overlap_ns > 0 ? &pair->together[which][i] : &alone);
    return low_of(values, pair->repeats);
}

static int64_t rate(int64_t bytes, double ns)
{
    return (int64_t)((double)bytes / (ns < 1 ? 1 : ns) * 1e9);
}

static void rates_fill(struct ah_profile *profile, const struct ah_workload *workload, const struct pair *both)
{
    int ranks = ah__step_ranks(workload->partition);
    int64_t element = ah__dtype_bytes(workload->partition->compute);
    int64_t in = ah__part_count(workload->place[1].count, ranks) * element;
    int64_t trained = workload->place[1].trained; /* if no part of a block is trained, no gradient is offloaded: the
                                                   * rate is that of fetches */
    int64_t out = trained ? ah__part_count(trained, ranks) * element : in;
    enum ah_item_kind leaving = trained ? AH_ITEM_OFFLOAD : AH_ITEM_PREFETCH;
    profile->h2d_bytes_per_s = rate(in, (double)profile->costs.ns[AH_ITEM_PREFETCH][AH_CLASS_BLOCK]);
    profile->d2h_bytes_per_s = rate(out, (double)profile->costs.ns[leaving][AH_CLASS_BLOCK]);
    profile->h2d_both_bytes_per_s = rate(in, pair_mean_ns(both, 0));
    profile->d2h_both_bytes_per_s = rate(out, pair_mean_ns(both, trained ? 1 : 0));
}

static int pair_run(struct stream *room, struct ah_profile *profile, enum ah_lane a, enum ah_lane b)
{
    double(*slowdown)[AH_LANE_COUNT] = profile->costs.lanes.slowdown;
    struct pair pair = {.lane = {a, b}};
    AH_TRY(pair_measure(&pair, room));
    slowdown[a][b] = pair_slowdown(&pair, 0, room);
    slowdown[b][a] = pair_slowdown(&pair, 1, room);
    if (a == AH_LANE_H2D && b == AH_LANE_D2H)
        rates_fill(profile, room->workload, &pair);
    return AH_OK;
}

/* Measures all pairs of lanes, or those with one lane. */
static int streams_run(struct stream *room, struct ah_profile *profile, const enum ah_lane *with)
{
    struct ah_comm *comm = room->workload->comm;
    size_t lanes = AH_LENGTH(stream_lanes) - (comm->world_size > 1 ? 0 : 1);
    AH_TRY(comm->ops->move(comm, &profile->costs, sizeof profile->costs, 0, AH_ALL_RANKS)); /* the costs decide how long
                                                                                             * streams run */
    for (int a = 0; !with && a < AH_LANE_COUNT; a++)
        for (int b = 0; b < AH_LANE_COUNT; b++)
            profile->costs.lanes.slowdown[a][b] = 1;
    for (size_t a = 0; a < lanes; a++)
        for (size_t b = a + 1; b < lanes; b++)
            if (!with || stream_lanes[a] == *with || stream_lanes[b] == *with)
                AH_TRY(pair_run(room, profile, stream_lanes[a], stream_lanes[b]));
    return AH_OK;
}

/* ---- the time through the driver */

int ah__profile_notify(int64_t *notify_ns, struct ah_dev *dev)
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

static int ping(struct ah_dev *dev)
{
    struct ah_event event;
    return dev->ops->submit(dev, &(struct ah_work){.lane = AH_LANE_H2D}, &event);
}

/* Runs programs one after the other, and after each completion submits a ping. */
static int notify_beside(double sums[2], struct stream *room)
{
    struct ah_dev *dev = room->workload->dev;
    struct lane_record *compute = &room->lane[AH_LANE_COMPUTE];
    struct ah_done done;
    memset(room->lane, 0, sizeof room->lane);
    AH_TRY(stream_feed(room, AH_LANE_COMPUTE));
    AH_TRY(stream_feed(room, AH_LANE_COMPUTE));
    for (int pings = 0; pings < PINGS;) {
        AH_TRY(dev->ops->wait_any(dev, &done));
        AH_TRY(done.status);
        if (done.lane == AH_LANE_H2D) {
            sums[0] += (double)(done.start_ns - compute->end_ns[pings++]);
            sums[1] += 1;
            continue;
        }
        record_add(compute, &done);
        if (compute->submitted < PINGS)
            AH_TRY(stream_feed(room, AH_LANE_COMPUTE));
        AH_TRY(ping(dev));
    }
    return AH_OK;
}

/* Measures notify_ns again if ranks share cores: they keep all cores busy, so that the calling thread must wait for its
 * turn. */
static int notify_crowded(struct ah_profile *profile, struct stream *room)
{
    double sums[2] = {0};
    if (room->workload->comm->shares < 2)
        return AH_OK;
    AH_TRY(ah__workload_agree(room->workload, notify_beside(sums, room)));
    AH_TRY(ah__comm_sum(room->workload->comm, sums, 2));
    profile->costs.lanes.notify_ns = later(profile->costs.lanes.notify_ns, (int64_t)(sums[0] / sums[1]));
    return AH_OK;
}

static int room_run(struct ah_workload *workload, struct ah_profile *profile, const enum ah_lane *with)
{
    struct stream *room;
    AH_TRY(ah__new(&room, 1, sizeof *room));
    room->workload = workload;
    room->costs = &profile->costs;
    int status = streams_run(room, profile, with);
    if (status == AH_OK && !with)
        status = notify_crowded(profile, room);
    ah__free(room);
    return status;
}

int ah__profile_streams(struct ah_workload *workload, struct ah_profile *profile)
{
    return room_run(workload, profile, NULL);
}

int ah__profile_streams_host(struct ah_workload *workload, struct ah_profile *profile)
{
    const enum ah_lane host = AH_LANE_HOST;
    return room_run(workload, profile, &host);
}
