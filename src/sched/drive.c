#include "sched/drive.h"

static void observe(const struct ah_drive *drive, const struct ah_span *span, int64_t now_ns)
{
    if (drive->observe)
        drive->observe(span, now_ns, ah__sched_buffers_used(drive->sched), drive->observe_context);
}

static int submit_one(const struct ah_drive *drive, struct ah_in_flight *in_flight, const struct ah_next *next)
{
    struct ah_work work; /* large, so only the used members are set */
    struct ah_event event;
    work.label = ah__item_label(&next->item);
    work.lane = next->lane;
    work.waits = next->waits;
    work.tasks = 0;
    for (int i = 0; i < next->waits; i++)
        work.wait[i] = next->wait[i];
    AH_TRY(drive->bind(&work, &next->item, drive->bind_context));
    AH_TRY(ah__in_flight_push(in_flight, next->lane, &next->item));
    int status = drive->dev->ops->submit(drive->dev, &work, &event);
    if (status != AH_OK) {
        ah__in_flight_take_back(in_flight, next->lane);
        return status;
    }
    ah__sched_submitted(drive->sched, next, event);
    if (drive->observe)
        observe(drive, NULL, drive->dev->ops->now_ns(drive->dev));
    return AH_OK;
}

/* Submits everything that may be submitted now. */
static int submit_ready(const struct ah_drive *drive, struct ah_in_flight *in_flight)
{
    struct ah_next next;
    if (drive->extend)
        drive->extend(drive->extend_context);
    while (ah__sched_next(drive->sched, &next))
        AH_TRY(submit_one(drive, in_flight, &next));
    return AH_OK;
}

static int complete_one(const struct ah_drive *drive, struct ah_in_flight *in_flight)
{
    struct ah_done done;
    AH_TRY(drive->dev->ops->wait_any(drive->dev, &done));
    struct ah_span span = ah__in_flight_pop(in_flight, &done);
    AH_TRY(done.status);
    ah__sched_complete(drive->sched, span.lane, &span.item);
    observe(drive, &span, span.end_ns);
    return drive->completed ? drive->completed(&span, drive->completed_context) : AH_OK;
}

/* Waits for everything in flight after a failure, keeping the first failure's message. */
static int give_up(const struct ah_drive *drive, int in_flight, int status)
{
    char message[512];
    struct ah_done done;
    snprintf(message, sizeof message, "%s", ah_error());
    while (in_flight-- > 0 && drive->dev->ops->wait_any(drive->dev, &done) == AH_OK)
        ;
    return ah__fail(status, "%s", message);
}

int ah__drive(const struct ah_drive *drive)
{
    struct ah_in_flight in_flight = {.count = 0};
    for (;;) {
        int status = submit_ready(drive, &in_flight);
        if (status == AH_OK && ah__sched_drained(drive->sched) && in_flight.count == 0)
            return AH_OK;
        if (status == AH_OK && in_flight.count == 0)
            return ah__fail(AH_EINTERNAL, "scheduler: nothing is running and nothing may start (a deadlock)");
        if (status == AH_OK)
            status = complete_one(drive, &in_flight);
        if (status == AH_DRIVE_ENOUGH)
            return AH_OK;
        if (status != AH_OK)
            return give_up(drive, in_flight.count, status);
    }
}
