#include "sched/simulate.h"

#include "test.h"

#include "base/hash.h"

static uint64_t counter;

int draw(int from, int to)
{
    return from + (int)(ah__random_bits(7, counter++) % (uint64_t)(to - from + 1));
}

void random_costs(struct ah_costs *costs, const struct ah_sched_config *config)
{
    *costs = (struct ah_costs){.layers = config->switches.layers,
                               .micro_batches = config->micro_batches,
                               .sums_out_ns = draw(1, 4000),
                               .sums_in_ns = draw(1, 4000),
                               .lanes.notify_ns = draw(0, 1) * draw(0, 500)};
    for (int kind = 0; kind < AH_ITEM_COUNT; kind++)
        for (int class = 0; class < AH_CLASS_COUNT; class ++)
            costs->ns[kind][class] = draw(1, 1 << draw(3, 14));
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        costs->recompute_ns[class] = draw(1, 4000);
    for (int a = 0; a < AH_LANE_COUNT; a++) {
        costs->lanes.launch_ns[a] = draw(0, 1) * draw(0, 200);
        for (int b = 0; b < AH_LANE_COUNT; b++)
            costs->lanes.slowdown[a][b] = 1 + (a == b ? 0 : draw(0, 10) / 10.0);
    }
}

static int64_t complete_before;

/* Nothing completes of an iteration that was complete. Also clips a third of the iterations. */
static int count_buffers(const struct ah_span *span, void *context)
{
    struct ah_drive *drive = context;
    assert_true(span->item.iteration >= complete_before);
    complete_before = ah__sched_iterations(drive->sched);
    assert_true(ah__sched_buffers_used(drive->sched) >= 0);
    if (span->item.kind == AH_ITEM_RESULT && span->item.partition == 0 && draw(0, 2) == 0)
        ah__sched_clipped(drive->sched, span->item.iteration);
    return AH_OK;
}

void drive_ok(const struct ah_drive *drive, const struct ah_sched_config *config)
{
    char text[AH_SWITCHES_TEXT];
    if (ah__drive(drive) == AH_OK)
        return;
    ah__switches_text(text, &config->switches, ',', true);
    fail_msg("%s: %s, %s, layers %d, world size %d, clips %d", ah_error(), config->policy->name, text,
             config->switches.layers, config->switches.world_size, config->clips);
}

struct ah_drive drive_of(struct ah_costs *costs)
{
    struct ah_drive drive = {.bind = ah__costs_bind, .bind_context = costs};
    assert_ok(ah__dev_sim_open(&drive.dev, &costs->lanes));
    return drive;
}

void simulate(const struct ah_sched_config *config, struct ah_costs *costs, struct ah_timeline *timeline,
              int iterations, bool forward_only)
{
    struct ah_drive drive = drive_of(costs);
    drive.completed = count_buffers;
    drive.completed_context = &drive;
    drive.observe = ah__timeline_observe;
    drive.observe_context = timeline;
    assert_ok(ah__sched_new(&drive.sched, config));
    ah__sched_limit(drive.sched, iterations, forward_only);
    complete_before = 0;
    drive_ok(&drive, config);
    assert_int_equal(ah__sched_iterations(drive.sched), iterations);
    assert_int_equal(ah__sched_buffers_used(drive.sched), 0);
    for (size_t i = 0; i < timeline->sample_count; i++)
        assert_in_range(timeline->samples[i].buffers_used, 0, config->switches.buffers);
    drive.dev->ops->close(drive.dev);
    ah__sched_free(drive.sched);
}
