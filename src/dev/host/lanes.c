#include "dev/host/lanes.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/alloc.h"
#include "dev/host/clock.h"

enum { LOOK_NS = 100000000, NS_PER_S = 1000000000 };

struct entry {
    struct ah_work work;
    struct ah_done done;
};

struct lane {
    struct ah_lanes *lanes;
    enum ah_lane lane;
    bool started;
    pthread_t thread;
    struct entry *ring; /* an entry belongs to the lane between submit and completion, else to the driver */
    /* protected by the mutex */
    pthread_cond_t wake;
    bool asleep;           /* has nothing to do, or waits for `needs` */
    struct ah_event needs; /* awaited event while asleep; {0,0}: waits for a submit */
    uint64_t submitted, finished, reported;
};

struct ah_lanes {
    struct ah_lanes_config config;
    pthread_mutex_t mutex;
    pthread_cond_t finished; /* the driver sleeps here */
    pthread_cond_t passed;   /* threads in ah__lanes_wait sleep here */
    bool stop, driver_asleep;
    int waiting; /* threads in ah__lanes_wait */
    int failed;  /* the first failed work's status, else AH_OK */
    char message[512];
    unsigned char order[AH_LANE_COUNT * AH_LANE_RING]; /* lanes of completed works, in order of completion */
    uint64_t order_in, order_out;
    struct lane lane[AH_LANE_COUNT];
};

static const char *label_text(const struct ah_work *work)
{
    return work->label.what ? work->label.what : "work";
}

/* ---- with the mutex held ----------------------------------------------------------------------------------------- */

static void lane_wake(struct lane *lane)
{
    if (!lane->asleep || lane->lanes->lane[lane->needs.lane].finished < lane->needs.sequence)
        return;
    lane->asleep = false;
    pthread_cond_signal(&lane->wake);
}

/* Sleeps until `needs` has passed ({0,0}: until there is work) or all lanes stop. */
static void lane_sleep(struct lane *lane, struct ah_event needs)
{
    lane->needs = needs;
    lane->asleep = true;
    while (lane->asleep && !lane->lanes->stop)
        pthread_cond_wait(&lane->wake, &lane->lanes->mutex);
    lane->asleep = false;
}

/* Returns the next entry, once its waits have passed; null when all lanes stop. */
static struct entry *entry_next(struct lane *lane)
{
    struct ah_lanes *lanes = lane->lanes;
    if (lane->finished == lane->submitted)
        lane_sleep(lane, (struct ah_event){0});
    if (lanes->stop)
        return NULL;
    struct entry *entry = &lane->ring[lane->finished % AH_LANE_RING];
    for (int i = 0; i < entry->work.waits; i++) {
        struct ah_event event = entry->work.wait[i];
        if (lanes->lane[event.lane].finished < event.sequence)
            lane_sleep(lane, event);
    }
    return lanes->stop ? NULL : entry;
}

/* Publishes the completion of the lane's oldest entry. */
static void entry_finish(struct lane *lane, struct ah_done done)
{
    struct ah_lanes *lanes = lane->lanes;
    if (done.status != AH_OK && lanes->failed == AH_OK) {
        lanes->failed = done.status;
        snprintf(lanes->message, sizeof lanes->message, "%s", ah_error());
    }
    done.lane = lane->lane;
    lane->ring[lane->finished++ % AH_LANE_RING].done = done;
    lanes->order[lanes->order_in++ % AH_LENGTH(lanes->order)] = (unsigned char)lane->lane;
    for (int i = 0; i < AH_LANE_COUNT; i++)
        if (lanes->lane[i].needs.sequence && lanes->lane[i].needs.lane == lane->lane)
            lane_wake(&lanes->lane[i]);
    if (lanes->waiting)
        pthread_cond_broadcast(&lanes->passed);
    if (lanes->driver_asleep) {
        lanes->driver_asleep = false;
        pthread_cond_signal(&lanes->finished);
    }
}

static uint64_t in_flight(const struct ah_lanes *lanes)
{
    uint64_t count = 0;
    for (int i = 0; i < AH_LANE_COUNT; i++)
        count += lanes->lane[i].submitted - lanes->lane[i].reported;
    return count;
}

/* Checks a work. A wait for an event that was never submitted would block the lane for ever. */
static int work_check(const struct ah_lanes *lanes, const struct ah_work *work)
{
    const char *device = lanes->config.device;
    if ((unsigned)work->lane >= AH_LANE_COUNT || lanes->config.kind[work->lane] == AH_LANE_ABSENT)
        return ah__fail(AH_EINTERNAL, "%s device: no lane %d", device, (int)work->lane);
    if (work->waits < 0 || work->waits > AH_WORK_MAX_WAITS || work->tasks < 0 || work->tasks > AH_WORK_MAX_TASKS)
        return ah__fail(AH_EINTERNAL, "%s device: %d waits and %d tasks in one work", device, work->waits, work->tasks);
    for (int i = 0; i < work->waits; i++) {
        struct ah_event event = work->wait[i];
        if ((unsigned)event.lane >= AH_LANE_COUNT || event.sequence > lanes->lane[event.lane].submitted)
            return ah__fail(
                AH_EINTERNAL, "%s device: %s of partition %d waits for work %llu of lane %d, not submitted yet", device,
                label_text(work), work->label.partition, (unsigned long long)event.sequence, (int)event.lane);
    }
    const struct lane *lane = &lanes->lane[work->lane];
    if (lane->submitted - lane->reported == AH_LANE_RING)
        return ah__fail(AH_EINTERNAL, "%s device: more than %d works in flight on lane %s", device, AH_LANE_RING,
                        ah_lane_name(work->lane));
    return AH_OK;
}

/* ---- a lane's thread --------------------------------------------------------------------------------------------- */

static void thread_begin(const struct lane *lane)
{
    const struct ah_lanes_config *config = &lane->lanes->config;
    /* The default slack of 50 us would make every throttled copy late. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    ah__host_denormals_off();
    if (config->pool[lane->lane])
        ah__pool_enter(config->pool[lane->lane]);
    else if (config->core[lane->lane] >= 0)
        ah__host_pin(config->core[lane->lane]);
}

static struct ah_done entry_run(const struct lane *lane, const struct ah_work *work)
{
    const struct ah_lanes_config *config = &lane->lanes->config;
    struct ah_done done = {.lane = lane->lane};
    done.status = config->run(config->context, work, &done);
    if (done.status != AH_OK)
        ah__fail_prefix(done.status, "lane %s: %s, partition %d, iteration %lld", ah_lane_name(lane->lane),
                        label_text(work), work->label.partition, (long long)work->label.iteration);
    return done;
}

static void *lane_main(void *argument)
{
    struct lane *lane = argument;
    struct ah_lanes *lanes = lane->lanes;
    thread_begin(lane);
    pthread_mutex_lock(&lanes->mutex);
    for (struct entry *entry; (entry = entry_next(lane));) {
        struct ah_done done = {.status = lanes->failed};
        pthread_mutex_unlock(&lanes->mutex);
        if (done.status == AH_OK)
            done = entry_run(lane, &entry->work);
        else
            done.start_ns = done.end_ns = ah__host_now_ns();
        pthread_mutex_lock(&lanes->mutex);
        entry_finish(lane, done);
        struct ah_event event = {.lane = lane->lane, .sequence = lane->finished};
        pthread_mutex_unlock(&lanes->mutex);
        if (lanes->config.passed)
            lanes->config.passed(lanes->config.context, event);
        pthread_mutex_lock(&lanes->mutex);
    }
    pthread_mutex_unlock(&lanes->mutex);
    return NULL;
}

/* ---- functions for the device ------------------------------------------------------------------------------------ */

int ah__lanes_submit(struct ah_lanes *lanes, const struct ah_work *work, struct ah_event *done)
{
    pthread_mutex_lock(&lanes->mutex);
    int status = work_check(lanes, work);
    if (status == AH_OK) {
        struct lane *lane = &lanes->lane[work->lane];
        lane->ring[lane->submitted % AH_LANE_RING].work = *work;
        *done = (struct ah_event){.lane = work->lane, .sequence = ++lane->submitted};
        if (!lane->needs.sequence)
            lane_wake(lane);
    }
    pthread_mutex_unlock(&lanes->mutex);
    return status;
}

/* Sleeps until some work has completed, or, if there is a `look`, until it is time to call it. With the mutex held. */
static void driver_sleep(struct ah_lanes *lanes)
{
    struct timespec until;
    lanes->driver_asleep = true;
    if (!lanes->config.look) {
        pthread_cond_wait(&lanes->finished, &lanes->mutex);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    if (pthread_cond_timedwait(&lanes->finished, &lanes->mutex, &until) != ETIMEDOUT)
        return;
    pthread_mutex_unlock(&lanes->mutex);
    lanes->config.look(lanes->config.context);
    pthread_mutex_lock(&lanes->mutex);
}

int ah__lanes_wait_any(struct ah_lanes *lanes, struct ah_done *done)
{
    pthread_mutex_lock(&lanes->mutex);
    if (!in_flight(lanes)) {
        pthread_mutex_unlock(&lanes->mutex);
        return ah__fail(AH_EINTERNAL, "%s device: waited with nothing in flight", lanes->config.device);
    }
    while (lanes->order_in == lanes->order_out)
        driver_sleep(lanes);
    struct lane *lane = &lanes->lane[lanes->order[lanes->order_out++ % AH_LENGTH(lanes->order)]];
    *done = lane->ring[lane->reported++ % AH_LANE_RING].done;
    if (done->status != AH_OK)
        ah__fail(done->status, "%s", lanes->message);
    pthread_mutex_unlock(&lanes->mutex);
    return AH_OK;
}

int ah__lanes_settle(struct ah_lanes *lanes)
{
    pthread_mutex_lock(&lanes->mutex);
    uint64_t busy = in_flight(lanes);
    if (!busy)
        lanes->failed = AH_OK;
    pthread_mutex_unlock(&lanes->mutex);
    if (busy)
        return ah__fail(AH_EINTERNAL, "%s device: memory released with %llu works in flight", lanes->config.device,
                        (unsigned long long)busy);
    return AH_OK;
}

void ah__lanes_finish(struct ah_lanes *lanes, const struct ah_done *done)
{
    pthread_mutex_lock(&lanes->mutex);
    entry_finish(&lanes->lane[done->lane], *done);
    pthread_mutex_unlock(&lanes->mutex);
}

bool ah__lanes_wait(struct ah_lanes *lanes, struct ah_event event)
{
    pthread_mutex_lock(&lanes->mutex);
    lanes->waiting++;
    while (!lanes->stop && lanes->lane[event.lane].finished < event.sequence)
        pthread_cond_wait(&lanes->passed, &lanes->mutex);
    lanes->waiting--;
    bool passed = lanes->lane[event.lane].finished >= event.sequence;
    pthread_mutex_unlock(&lanes->mutex);
    return passed;
}

int ah__lanes_failed(struct ah_lanes *lanes)
{
    pthread_mutex_lock(&lanes->mutex);
    int failed = lanes->failed;
    pthread_mutex_unlock(&lanes->mutex);
    return failed;
}

/* ---- starting and stopping --------------------------------------------------------------------------------------- */

static int lane_start(struct lane *lane)
{
    enum ah_lane_kind kind = lane->lanes->config.kind[lane->lane];
    if (kind == AH_LANE_ABSENT)
        return AH_OK;
    AH_TRY(ah__new(&lane->ring, AH_LANE_RING, sizeof *lane->ring));
    if (kind == AH_LANE_ELSEWHERE)
        return AH_OK;
    AH_TRY(ah__host_thread_room());
    int error = pthread_create(&lane->thread, NULL, lane_main, lane);
    if (error)
        return ah__fail(AH_ENOMEM, "%s device: no thread for lane %s: %s", lane->lanes->config.device,
                        ah_lane_name(lane->lane), strerror(error));
    lane->started = true;
    return AH_OK;
}

void ah__lanes_free(struct ah_lanes *lanes)
{
    if (!lanes)
        return;
    pthread_mutex_lock(&lanes->mutex);
    lanes->stop = true;
    pthread_cond_broadcast(&lanes->passed);
    for (int i = 0; i < AH_LANE_COUNT; i++)
        pthread_cond_signal(&lanes->lane[i].wake);
    pthread_mutex_unlock(&lanes->mutex);
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        if (lanes->lane[i].started)
            pthread_join(lanes->lane[i].thread, NULL);
        pthread_cond_destroy(&lanes->lane[i].wake);
        ah__free(lanes->lane[i].ring);
    }
    pthread_cond_destroy(&lanes->passed);
    pthread_cond_destroy(&lanes->finished);
    pthread_mutex_destroy(&lanes->mutex);
    ah__free(lanes);
}

int ah__lanes_new(struct ah_lanes **out, const struct ah_lanes_config *config)
{
    struct ah_lanes *lanes;
    pthread_condattr_t monotonic;
    int status = AH_OK;
    AH_TRY(ah__new(&lanes, 1, sizeof *lanes));
    lanes->config = *config;
    pthread_mutex_init(&lanes->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&lanes->finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_cond_init(&lanes->passed, NULL);
    for (int i = 0; i < AH_LANE_COUNT; i++) {
        lanes->lane[i].lanes = lanes;
        lanes->lane[i].lane = (enum ah_lane)i;
        pthread_cond_init(&lanes->lane[i].wake, NULL);
    }
    for (int i = 0; i < AH_LANE_COUNT && status == AH_OK; i++)
        status = lane_start(&lanes->lane[i]);
    if (status != AH_OK) {
        ah__lanes_free(lanes);
        return status;
    }
    *out = lanes;
    return AH_OK;
}
