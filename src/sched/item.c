#include "sched/item.h"

const char *const ah__item_names[AH_ITEM_COUNT] = {
#define AH_ITEM(id, lane, name, ...) name,
#include "sched/items.def"
#undef AH_ITEM
};

const char *const ah__item_short_names[AH_ITEM_COUNT] = {
#define AH_ITEM(id, lane, name, short_name, ...) short_name,
#include "sched/items.def"
#undef AH_ITEM
};

const enum ah_lane ah__item_lanes[AH_ITEM_COUNT] = {
#define AH_ITEM(id, lane, ...) AH_LANE_##lane,
#include "sched/items.def"
#undef AH_ITEM
};

const enum ah_profiled ah__item_profiled[AH_ITEM_COUNT] = {
#define AH_ITEM(id, lane, name, short_name, shade, time, profile, ...) AH_PROFILED_##profile,
#include "sched/items.def"
#undef AH_ITEM
};

const struct ah_item ah__item_none = {.sum = -1, .param_buffer = -1, .grad_buffer = -1, .shadow_set = -1, .slot = -1};

int ah__in_flight_push(struct ah_in_flight *in_flight, enum ah_lane lane, const struct ah_item *item)
{
    if (in_flight->pushed[lane] - in_flight->popped[lane] == AH_IN_FLIGHT_MOST)
        return ah__fail(AH_EINTERNAL, "lane %s: more than %d items in flight", ah_lane_name(lane), AH_IN_FLIGHT_MOST);
    in_flight->items[lane][in_flight->pushed[lane]++ % AH_IN_FLIGHT_MOST] = *item;
    in_flight->count++;
    return AH_OK;
}

void ah__in_flight_take_back(struct ah_in_flight *in_flight, enum ah_lane lane)
{
    in_flight->pushed[lane]--;
    in_flight->count--;
}

struct ah_span ah__in_flight_pop(struct ah_in_flight *in_flight, const struct ah_done *done)
{
    in_flight->count--;
    return (struct ah_span){
        .item = in_flight->items[done->lane][in_flight->popped[done->lane]++ % AH_IN_FLIGHT_MOST],
        .lane = done->lane,
        .start_ns = done->start_ns,
        .end_ns = done->end_ns,
    };
}
