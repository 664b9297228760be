#include "dev/sim.h"

#include "base/alloc.h"

enum { QUEUE = 8 }; /* pieces of work waiting on a lane; schedulers keep at most a few */

struct queued {
    int64_t ns; /* at full speed */
    int waits;
    struct ah_event wait[AH_WORK_MAX_WAITS];
    int64_t submitted_ns;
};

struct lane {
    struct queued queue[QUEUE];
    unsigned head, tail; /* items [head, tail) are queued; the one at head may be running */
    int64_t start_ns, free_ns; /* of the running item; when the last one ended */
    double left_ns;            /* of the running item at full speed */
    uint64_t submitted, passed;
};

/* What a simulation changes. */
struct state {
    struct lane lane[AH_LANE_COUNT];
    unsigned running; /* a bit for each lane */
    int64_t now_ns;    /* of the machine */
    int64_t driver_ns; /* of the program that submits: behind the machine by what it takes to hear of a completion */
    struct ah_done done[AH_LANE_COUNT * QUEUE]; /* completed, not yet told */
    unsigned done_head, done_tail;
};

struct sim {
    struct ah_dev dev;
    struct ah_sim_lanes lanes;
    double stretch[1 << AH_LANE_COUNT][AH_LANE_COUNT]; /* of a lane's items while a set of lanes runs */
    struct state state;
};

static struct sim *sim_of(struct ah_dev *dev)
{
    return (struct sim *)(void *)dev;
}

/* Its ranks are figures. */
static int sim_join(struct ah_dev *dev)
{
    (void)dev;
    return AH_OK;
}

static int64_t work_ns(const struct ah_work *work)
{
    int64_t ns = 0;
    for (int t = 0; t < work->tasks; t++)
        ns += work->task[t].as.delay.ns;
    return ns;
}

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static bool waits_passed(const struct state *state, const struct queued *queued)
{
    for (int w = 0; w < queued->waits; w++)
        if (state->lane[queued->wait[w].lane].passed < queued->wait[w].sequence)
            return false;
    return true;
}

/* When the lane, which does not run, can start its next item, INT64_MAX if that still waits for another lane. */
static int64_t ready_ns(const struct state *state, const struct lane *lane, int64_t launch_ns)
{
    if (lane->head == lane->tail)
        return INT64_MAX;
    const struct queued *queued = &lane->queue[lane->head % QUEUE];
    if (!waits_passed(state, queued))
        return INT64_MAX;
    int64_t at = lane->free_ns + launch_ns;
    at = at > queued->submitted_ns ? at : queued->submitted_ns;
    return at > state->now_ns ? at : state->now_ns;
}

static void start(struct state *state, int index)
{
    struct lane *lane = &state->lane[index];
    state->running |= 1U << index;
    lane->start_ns = state->now_ns;
    lane->left_ns = (double)lane->queue[lane->head % QUEUE].ns;
}

static double stretch(const struct ah_sim_lanes *lanes, int index, unsigned running)
{
    double stretched = 1;
    for (int other = 0; other < AH_LANE_COUNT; other++)
        if (other != index && running >> other & 1)
            stretched += lanes->slowdown[index][other] - 1;
    return stretched;
}

static void finish(struct state *state, int index)
{
    struct lane *lane = &state->lane[index];
    state->done[state->done_tail++ % AH_LENGTH(state->done)] =
        (struct ah_done){(enum ah_lane)index, lane->start_ns, state->now_ns, AH_OK};
    lane->head++;
    state->running &= ~(1U << index);
    lane->passed++;
    lane->free_ns = state->now_ns;
}

static int64_t round_up(double ns)
{
    int64_t whole = (int64_t)ns;
    return whole + ((double)whole < ns);
}

/* Moves time to the next start or completion, whichever is first; false when nothing can ever happen. */
static bool advance(struct sim *sim)
{
    struct state *state = &sim->state;
    const double *stretched = sim->stretch[state->running];
    int64_t next = INT64_MAX;
    int first = -1;
    for (int l = 0; l < AH_LANE_COUNT; l++) {
        struct lane *lane = &state->lane[l];
        int64_t at = state->running >> l & 1 ? state->now_ns + round_up(lane->left_ns * stretched[l])
                                             : ready_ns(state, lane, sim->lanes.launch_ns[l]);
        if (at >= next)
            continue;
        next = at;
        first = l;
    }
    if (first < 0)
        return false;
    double passed = (double)(next - state->now_ns);
    for (int l = 0; l < AH_LANE_COUNT && passed > 0; l++) {
        double left = state->lane[l].left_ns - passed / stretched[l];
        if (state->running >> l & 1)
            state->lane[l].left_ns = left > 0 ? left : 0;
    }
    state->now_ns = next;
    if (state->running >> first & 1)
        finish(state, first);
    else
        start(state, first);
    return true;
}

/* ---- the seam ---------------------------------------------------------------------------------------------------- */

static int sim_no_memory(struct ah_dev *dev, int64_t bytes, char **base)
{
    (void)dev, (void)bytes, (void)base;
    return ah__fail(AH_EDEVICE, "sim: a simulated device holds no data");
}

static int sim_memory_release(struct ah_dev *dev)
{
    (void)dev;
    return AH_OK;
}

static int sim_prepare(struct ah_dev *dev, const struct ah_program *program, struct ah_prepared **out)
{
    (void)dev, (void)program, (void)out;
    return ah__fail(AH_EDEVICE, "sim: a simulated device runs no programs");
}

static void sim_prepared_free(struct ah_dev *dev, struct ah_prepared *prepared)
{
    (void)dev, (void)prepared;
}

static int sim_submit(struct ah_dev *dev, const struct ah_work *work, struct ah_event *done)
{
    struct state *state = &sim_of(dev)->state;
    struct lane *lane = &state->lane[work->lane];
    for (int t = 0; t < work->tasks; t++)
        if (work->task[t].type != AH_TASK_DELAY)
            return ah__fail(AH_EINTERNAL, "sim: task type %d, expected delays only", (int)work->task[t].type);
    if (lane->tail - lane->head == QUEUE)
        return ah__fail(AH_EINTERNAL, "sim: lane %s: more than %d items queued", ah_lane_name(work->lane), QUEUE);
    struct queued *queued = &lane->queue[lane->tail++ % QUEUE];
    queued->ns = work_ns(work);
    queued->waits = work->waits;
    queued->submitted_ns = state->driver_ns;
    for (int w = 0; w < work->waits; w++)
        queued->wait[w] = work->wait[w];
    *done = (struct ah_event){work->lane, ++lane->submitted};
    return AH_OK;
}

static int sim_wait_any(struct ah_dev *dev, struct ah_done *done)
{
    struct sim *sim = sim_of(dev);
    struct state *state = &sim->state;
    while (state->done_head == state->done_tail)
        if (!advance(sim))
            return ah__fail(AH_EINTERNAL, "sim: nothing in flight can complete");
    *done = state->done[state->done_head++ % AH_LENGTH(state->done)];
    int64_t heard = done->end_ns + sim->lanes.notify_ns;
    state->driver_ns = heard > state->driver_ns ? heard : state->driver_ns;
    return AH_OK;
}

static int64_t sim_now_ns(struct ah_dev *dev)
{
    return sim_of(dev)->state.driver_ns;
}

static void sim_info(struct ah_dev *dev, struct ah_dev_info *out)
{
    (void)dev;
    *out = (struct ah_dev_info){.name = "sim", .threads = 1, .host_threads = 1, .align_bytes = 1};
}

static void sim_close(struct ah_dev *dev)
{
    ah__free(dev);
}

int ah__dev_sim_open(struct ah_dev **out, const struct ah_sim_lanes *lanes)
{
    static const struct ah_dev_ops ops = {
        .join = sim_join,
        .device_memory = sim_no_memory,
        .host_memory = sim_no_memory,
        .memory_release = sim_memory_release,
        .prepare = sim_prepare,
        .prepared_free = sim_prepared_free,
        .submit = sim_submit,
        .wait_any = sim_wait_any,
        .now_ns = sim_now_ns,
        .info = sim_info,
        .close = sim_close,
    };
    struct sim *sim;
    AH_TRY(ah__new(&sim, 1, sizeof *sim));
    sim->dev.ops = &ops;
    sim->lanes = *lanes;
    for (unsigned running = 0; running < AH_LENGTH(sim->stretch); running++)
        for (int l = 0; l < AH_LANE_COUNT; l++)
            sim->stretch[running][l] = stretch(lanes, l, running);
    *out = &sim->dev;
    return AH_OK;
}

void ah__dev_sim_reset(struct ah_dev *dev)
{
    sim_of(dev)->state = (struct state){.running = 0};
}
