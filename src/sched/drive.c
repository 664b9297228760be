#include "sched/drive.h"

/* Submits everything that may be submitted now. */
static int submit_ready(struct ah_drive *drive, int64_t *in_flight)
{
    struct ah_work work;
    struct ah_event event;
    while (ah__sched_next(drive->sched, &work)) {
        if (drive->bind)
            AH_TRY(drive->bind(&work, drive->context));
        AH_TRY(drive->dev->ops->submit(drive->dev, &work, &event));
        ah__sched_submitted(drive->sched, &work, event);
        ++*in_flight;
        if (drive->timeline)
            ah__timeline_sample(drive->timeline, drive->dev->ops->now_ns(drive->dev),
                                ah__sched_slots_used(drive->sched));
    }
    return AH_OK;
}

static int complete_one(struct ah_drive *drive, int64_t *in_flight)
{
    struct ah_done done;
    AH_TRY(drive->dev->ops->wait_any(drive->dev, &done));
    --*in_flight;
    AH_TRY(done.status);
    ah__sched_complete(drive->sched, &done);
    if (drive->timeline) {
        ah__timeline_span(drive->timeline, &done);
        ah__timeline_sample(drive->timeline, done.end_ns, ah__sched_slots_used(drive->sched));
    }
    return drive->completed ? drive->completed(&done, drive->context) : AH_OK;
}

/* Waits for everything in flight after a failure, keeping the first failure's message. */
static int give_up(struct ah_drive *drive, int64_t in_flight, int status)
{
    char message[512];
    struct ah_done done;
    snprintf(message, sizeof message, "%s", ah_error());
    while (in_flight-- > 0 && drive->dev->ops->wait_any(drive->dev, &done) == AH_OK)
        ;
    return ah__fail(status, "%s", message);
}

int ah__drive(struct ah_drive *drive)
{
    int64_t in_flight = 0;
    for (;;) {
        int status = submit_ready(drive, &in_flight);
        if (status == AH_OK && ah__sched_drained(drive->sched) && in_flight == 0)
            return AH_OK;
        if (status == AH_OK && in_flight == 0)
            return ah__fail(AH_EINTERNAL, "scheduler: nothing is running and nothing may start (a deadlock)");
        if (status == AH_OK)
            status = complete_one(drive, &in_flight);
        if (status != AH_OK)
            return give_up(drive, in_flight, status);
    }
}
