#include "dev/sim.h"

#include "base/alloc.h"

enum { QUEUE = 16 }; /* most works waiting on a lane; AH_IN_FLIGHT_MOST of sched/item.h */
#define NEVER INT64_MAX

struct queued {
    int64_t ns; /* duration at full speed */
    int waits;
    struct ah_event wait[AH_WORK_MAX_WAITS];
    int64_t submitted_ns;
};

struct lane {
    int64_t start_ns, free_ns; /* start of the running item; end of the last one */
    uint64_t submitted, passed;
    unsigned head, tail; /* items [head, tail) are queued; the first may be running */
    struct queued queue[QUEUE];
};

/* The changing state of a simulation. */
struct state {
    unsigned running, blocked;     /* a bit for each lane; blocked: the lane's next item waits for other lanes */
    int64_t now_ns;                /* time of the machine */
    int64_t driver_ns;             /* time of the program that submits: later than the machine by the time to learn of a
                        * completion */
    double left_ns[AH_LANE_COUNT]; /* rest of the running item at full speed; 0: nothing runs */
    int64_t from_ns[AH_LANE_COUNT]; /* when the next item may start; 0: an item runs; NEVER: there is no item, or it
                                     * waits */
    struct lane lane[AH_LANE_COUNT];
};

struct sim {
    struct ah_dev dev;
    struct ah_sim_lanes lanes;
    double stretch[1 << AH_LANE_COUNT][AH_LANE_COUNT]; /* factor of an item's time on a lane while a set of lanes
                                                        * runs */
    struct state state;
};

static struct sim *sim_of(struct ah_dev *dev)
{
    return (struct sim *)(void *)dev;
}

/* Does nothing: simulated ranks are only numbers. */
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

/* Sets when the next item of a lane that does not run may start. */
static void admit(struct sim *sim, int index)
{
    struct state *state = &sim->state;
    const struct lane *lane = &state->lane[index];
    const struct queued *queued = &lane->queue[lane->head % QUEUE];
    unsigned bit = 1U << index;
    state->from_ns[index] = NEVER;
    state->blocked &= ~bit;
    if (lane->head == lane->tail)
        return;
    if (!waits_passed(state, queued)) {
        state->blocked |= bit;
        return;
    }
    int64_t at = lane->free_ns + sim->lanes.launch_ns[index];
    state->from_ns[index] = at > queued->submitted_ns ? at : queued->submitted_ns;
}

static void start(struct state *state, int index)
{
    struct lane *lane = &state->lane[index];
    state->running |= 1U << index;
    state->from_ns[index] = 0;
    state->left_ns[index] = (double)lane->queue[lane->head % QUEUE].ns;
    lane->start_ns = state->now_ns;
}

static double stretch(const struct ah_sim_lanes *lanes, int index, unsigned running)
{
    double stretched = 1;
    for (int other = 0; other < AH_LANE_COUNT; other++)
        if (other != index && running >> other & 1)
            stretched += lanes->slowdown[index][other] - 1;
    return stretched;
}

static void finish(struct sim *sim, int index)
{
    struct state *state = &sim->state;
    struct lane *lane = &state->lane[index];
    lane->head++;
    lane->passed++;
    lane->free_ns = state->now_ns;
    state->running &= ~(1U << index);
    state->left_ns[index] = 0;
    unsigned waiting = state->blocked | 1U << index;
    for (int l = 0; waiting >> l; l++)
        if (waiting >> l & 1)
            admit(sim, l);
}

static int64_t round_up(double ns)
{
    int64_t whole = (int64_t)ns;
    return whole + ((double)whole < ns);
}

/* Moves time to the next start or completion, whichever is first. *lane: its lane; *completes: it is a completion.
 * Returns false if nothing can ever happen. Simulations spend a fifth of their time here. */
static bool advance(struct sim *sim, int *lane, bool *completes)
{
    struct state *state = &sim->state;
    const double *stretched = sim->stretch[state->running];
    int64_t now = state->now_ns, next = NEVER;
    int first = 0;
    for (int l = 0; l < AH_LANE_COUNT; l++) {
        int64_t at = state->from_ns[l] > now ? state->from_ns[l] : now;
        if (state->running >> l & 1)
            at = now + round_up(state->left_ns[l] * stretched[l]);
        if (at >= next)
            continue;
        first = l;
        next = at;
        if (at == now)
            break; /* nothing is earlier; of equal times the first lane counts */
    }
    if (next == NEVER)
        return false;
    double passed = (double)(next - now);
    for (int l = 0; passed > 0 && state->running >> l; l++) {
        double left = state->left_ns[l] - passed / stretched[l];
        state->left_ns[l] = state->running >> l & 1 && left > 0 ? left : 0;
    }
    state->now_ns = next;
    *lane = first;
    *completes = state->running >> first & 1;
    if (*completes)
        finish(sim, first);
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
    struct sim *sim = sim_of(dev);
    struct state *state = &sim->state;
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
    if (lane->tail - lane->head == 1)
        admit(sim, (int)work->lane);
    *done = (struct ah_event){work->lane, ++lane->submitted};
    return AH_OK;
}

static int sim_wait_any(struct ah_dev *dev, struct ah_done *done)
{
    struct sim *sim = sim_of(dev);
    struct state *state = &sim->state;
    bool completes = false;
    int lane = 0;
    while (!completes)
        if (!advance(sim, &lane, &completes))
            return ah__fail(AH_EINTERNAL, "sim: nothing in flight can complete");
    *done = (struct ah_done){(enum ah_lane)lane, state->lane[lane].start_ns, state->now_ns, AH_OK};
    int64_t heard = state->now_ns + sim->lanes.notify_ns;
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
    ah__dev_sim_reset(&sim->dev);
    *out = &sim->dev;
    return AH_OK;
}

void ah__dev_sim_reset(struct ah_dev *dev)
{
    struct state *state = &sim_of(dev)->state;
    *state = (struct state){.running = 0};
    for (int l = 0; l < AH_LANE_COUNT; l++)
        state->from_ns[l] = NEVER;
}
