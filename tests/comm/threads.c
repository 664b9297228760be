#include "comm/threads.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "test.h"

/* What one rank has for another on a channel; the receiver copies it from where it lies. */
struct message {
    const void *data; /* null: none */
    int64_t bytes;
    bool alarms;
};

struct team {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int world_size;
    struct message box[AH_CHANNEL_COUNT][THREADS_MOST][THREADS_MOST]; /* from, to */
    void (*work)(int rank, void *context);
    void *context;
};

struct member {
    struct team *team;
    struct ah_transport transport;
    pthread_t thread;
};

static _Thread_local const char *refusal;

void threads_refuse(const char *why)
{
    refusal = why;
}

/* A rank that has raised the alarm, or -1. */
static int alarming(const struct member *member)
{
    int failed = -1;
    for (int from = 0; from < member->team->world_size; from++)
        if (member->team->box[AH_CHANNEL_END][from][member->transport.rank].alarms)
            failed = from;
    return failed;
}

/* False: for so long nothing changed, or it is of no use to wait for work. */
static bool changed(struct member *member, enum ah_channel channel, double patience_s)
{
    struct team *team = member->team;
    struct timespec until;
    if (channel == AH_CHANNEL_WORK && alarming(member) >= 0)
        return false;
    if (patience_s <= 0)
        return pthread_cond_wait(&team->changed, &team->mutex) == 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)patience_s + 1;
    return pthread_cond_timedwait(&team->changed, &team->mutex, &until) == 0;
}

static bool send_all(struct member *member, enum ah_channel channel, const struct ah_transfer *t, int count,
                     double patience_s)
{
    for (int i = 0; i < count; i++) {
        struct message *box = &member->team->box[channel][member->transport.rank][t[i].peer];
        if (t[i].receives)
            continue;
        while (box->data)
            if (!changed(member, channel, patience_s))
                return false;
        *box = (struct message){t[i].buffer, t[i].bytes, t[i].alarms};
    }
    return true;
}

static bool receive_all(struct member *member, enum ah_channel channel, const struct ah_transfer *t, int count,
                        double patience_s)
{
    for (int i = 0; i < count; i++) {
        struct message *box = &member->team->box[channel][t[i].peer][member->transport.rank];
        if (!t[i].receives)
            continue;
        while (!box->data)
            if (!changed(member, channel, patience_s))
                return false;
        assert_int_equal(box->bytes, t[i].bytes);
        memcpy(t[i].buffer, box->data, (size_t)t[i].bytes);
        box->data = NULL;
        pthread_cond_broadcast(&member->team->changed);
    }
    return true;
}

static bool taken_all(struct member *member, enum ah_channel channel, const struct ah_transfer *t, int count,
                      double patience_s)
{
    for (int i = 0; i < count; i++)
        while (!t[i].receives && member->team->box[channel][member->transport.rank][t[i].peer].data)
            if (!changed(member, channel, patience_s))
                return false;
    return true;
}

static bool exchange(void *context, enum ah_channel channel, const struct ah_transfer *transfers, int count,
                     double patience_s, char why[AH_TRANSPORT_WHY])
{
    struct member *member = context;
    if (refusal && channel == AH_CHANNEL_WORK) {
        snprintf(why, AH_TRANSPORT_WHY, "%s", refusal);
        refusal = NULL;
        return false;
    }
    pthread_mutex_lock(&member->team->mutex);
    bool done = send_all(member, channel, transfers, count, patience_s);
    pthread_cond_broadcast(&member->team->changed);
    done = done && receive_all(member, channel, transfers, count, patience_s) &&
           taken_all(member, channel, transfers, count, patience_s);
    pthread_mutex_unlock(&member->team->mutex);
    if (!done)
        snprintf(why, AH_TRANSPORT_WHY, "no answer");
    return done;
}

static bool look(void *context, char why[AH_TRANSPORT_WHY])
{
    struct member *member = context;
    pthread_mutex_lock(&member->team->mutex);
    int failed = alarming(member);
    pthread_mutex_unlock(&member->team->mutex);
    if (failed >= 0)
        snprintf(why, AH_TRANSPORT_WHY, "rank %d has failed", failed);
    return failed < 0;
}

static void *member_main(void *argument)
{
    struct member *member = argument;
    struct ah_comm *comm;
    assert_ok(ah__comm_group(&comm, &member->transport));
    ah__comm_of_thread(comm);
    member->team->work(comm->rank, member->team->context);
    ah__comm_of_thread(NULL);
    comm->ops->close(comm);
    return NULL;
}

void threads_run(int ranks, void (*work)(int rank, void *context), void *context)
{
    static struct team team;
    struct member member[THREADS_MOST];
    assert_in_range(ranks, 1, THREADS_MOST);
    memset(&team, 0, sizeof team);
    pthread_mutex_init(&team.mutex, NULL);
    pthread_cond_init(&team.changed, NULL);
    team.world_size = ranks;
    team.work = work;
    team.context = context;
    for (int i = 0; i < ranks; i++) {
        member[i] = (struct member){.team = &team};
        member[i].transport = (struct ah_transport){.abi = AH_TRANSPORT_ABI,
                                                    .size = sizeof member[i].transport,
                                                    .rank = i,
                                                    .world_size = ranks,
                                                    .neighbours = ranks,
                                                    .local = i,
                                                    .share = i,
                                                    .shares = ranks,
                                                    .context = &member[i],
                                                    .exchange = exchange,
                                                    .look = look};
        assert_int_equal(pthread_create(&member[i].thread, NULL, member_main, &member[i]), 0);
    }
    for (int i = 0; i < ranks; i++)
        pthread_join(member[i].thread, NULL);
    pthread_cond_destroy(&team.changed);
    pthread_mutex_destroy(&team.mutex);
}
