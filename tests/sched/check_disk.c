/* Blocks on disk: of so many blocks and of no others; a chunk is read before it is used and written before it is read
 * again, and has a host buffer for itself meanwhile. A gradient is there before its update reads it, until the last one
 * has. */
#include "sched/checker.h"

#include <stdlib.h>

static bool is_on_disk(const struct checker *c, int g)
{
    const struct ah_switches *switches = &c->config->switches;
    return g >= 1 && g <= switches->layers && g > switches->layers - switches->disk_blocks;
}

static bool same_chunk(const struct ah_item *a, const struct ah_item *b)
{
    return a->round == b->round && a->partition == b->partition && a->chunk == b->chunk;
}

/* The only item of a kind that belongs to `of`: a read for forward or backward, an update or its reads and writes,
 * ahead of the norm or not. Null: it is not in the record. */
static const struct ah_span *find(const struct checker *c, const struct ah_item *of, enum ah_item_kind kind,
                                  enum ah_phase phase)
{
    const struct ah_span *found = NULL;
    for (size_t i = 0; i < c->timeline->span_count; i++) {
        const struct ah_span *span = &c->timeline->spans[i];
        bool params = kind == AH_ITEM_DISK_PARAMS;
        if (span->item.kind != kind || !same_chunk(&span->item, of) || (params && span->item.phase != phase) ||
            (!params && span->item.shadow_set != of->shadow_set))
            continue;
        assert_null(found);
        found = span;
    }
    return found;
}

/* The place that a block's states are in when an iteration begins: that of the last write that counts; -1: unknown. */
static int place_before(const struct checker *c, const struct ah_item *item, const struct ah_span **write)
{
    int64_t before = item->iteration * c->of_iteration - 1; /* the last round of the iteration before */
    const struct ah_span *update = before >= 0 ? update_of(c, before, item->partition, item->chunk) : NULL;
    if (!update)
        return -1;
    *write = find(c, &update->item, AH_ITEM_DISK_WRITE, AH_PHASE_FORWARD);
    assert_non_null(*write);
    return update->item.shadow_set >= 0 ? update->item.shadow_set : update->item.set;
}

static void check_fetch(const struct checker *c, const struct ah_span *fetch, struct hold *holds, size_t *count)
{
    enum ah_phase phase = fetch->item.kind == AH_ITEM_REFETCH ? AH_PHASE_BACKWARD : AH_PHASE_FORWARD;
    const struct ah_span *read = find(c, &fetch->item, AH_ITEM_DISK_PARAMS, phase), *write = NULL;
    after_span(fetch, read, "fetch after its read from disk");
    assert_int_equal(fetch->item.slot, read->item.slot);
    assert_int_equal(fetch->item.set, read->item.set);
    hold_add(holds, count, read, fetch, read->item.slot);
    int place = is_frozen(c->config, fetch->item.partition) ? -1 : place_before(c, &fetch->item, &write);
    if (place >= 0) {
        after_span(read, write, "read from disk after the last write");
        assert_int_equal(read->item.set, place);
    }
    if (fetch->item.kind == AH_ITEM_REFETCH)
        after(c, fetch->item.round, fetch->item.partition, AH_ITEM_BACKWARD, fetch, "its refetch");
}

/* A chunk of a gradient has a buffer from its offload until it is on disk, over the one of the step before, of which no
 * update is left. */
static void check_gradient(const struct checker *c, const struct ah_span *offload, struct hold *holds, size_t *count)
{
    const struct ah_item *item = &offload->item;
    const struct ah_span *write = find(c, item, AH_ITEM_DISK_GRADIENT, AH_PHASE_FORWARD);
    int64_t before = item->iteration * c->of_iteration - 1;
    if (!write) /* the record ends before it */
        return;
    after_span(write, offload, "gradient to disk after its offload");
    assert_true(write->item.slot == item->slot);
    hold_add(holds, count, offload, write, item->slot);
    for (size_t i = 0; i < c->timeline->span_count; i++) {
        const struct ah_span *read = &c->timeline->spans[i];
        if (read->item.kind == AH_ITEM_DISK_READ && read->item.partition == item->partition &&
            read->item.chunk == item->chunk && read->item.round == before)
            after_span(write, read, "gradient to disk after the last update");
    }
}

static void check_update(const struct checker *c, const struct ah_span *update, struct hold *holds, size_t *count)
{
    const struct ah_item *item = &update->item;
    const struct ah_span *read = find(c, item, AH_ITEM_DISK_READ, AH_PHASE_FORWARD), *before = NULL;
    const struct ah_span *write = find(c, item, AH_ITEM_DISK_WRITE, AH_PHASE_FORWARD);
    after_span(update, read, "update after its states came from disk");
    assert_true(read->item.slot == item->slot && read->item.set == item->set);
    struct ah_item gradient = *item;
    gradient.shadow_set = -1;
    after_span(read, find(c, &gradient, AH_ITEM_DISK_GRADIENT, AH_PHASE_FORWARD),
               "states after the gradient is on disk");
    if (write) { /* else the record ends before it */
        after_span(write, update, "states to disk after their update");
        assert_true(write->item.slot == item->slot && write->item.set == item->set);
        hold_add(holds, count, read, write, item->slot);
    }
    int place = place_before(c, item, &before);
    if (place >= 0) {
        after_span(read, before, "states from disk after the last write");
        assert_int_equal(item->set, place);
    }
    assert_in_range(item->set, 0, c->config->clips ? 1 : 0);
    if (item->shadow_set >= 0)
        assert_int_equal(item->shadow_set, 1 - item->set);
}

void check_disk(const struct checker *c)
{
    size_t count = 0, moved = 0, of_disk = 0;
    struct hold *holds = calloc(c->timeline->span_count + 1, sizeof *holds);
    for (size_t i = 0; i < c->timeline->span_count; i++) {
        const struct ah_span *span = &c->timeline->spans[i];
        bool disk = is_on_disk(c, span->item.partition);
        of_disk += span->lane == AH_LANE_DISK;
        if (span->lane == AH_LANE_DISK)
            assert_true(disk);
        if (!disk)
            continue;
        assert_true(span->item.kind != AH_ITEM_STATES_IN && span->item.kind != AH_ITEM_UPDATE_STAGED);
        if (span->item.kind == AH_ITEM_PREFETCH || span->item.kind == AH_ITEM_REFETCH)
            check_fetch(c, span, holds, &count);
        else if (span->item.kind == AH_ITEM_UPDATE_HOST || span->item.kind == AH_ITEM_UPDATE_SPECULATIVE)
            check_update(c, span, holds, &count);
        else if (span->item.kind == AH_ITEM_OFFLOAD)
            check_gradient(c, span, holds, &count);
        moved += span->item.kind == AH_ITEM_PREFETCH;
    }
    assert_true(moved > 0 || of_disk == 0);
    check_holds(holds, count, c->config->switches.disk_blocks > 0 ? 2 + c->config->switches.disk_ahead : 0);
    free(holds);
}
