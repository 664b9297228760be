#include "sched/costs.h"

#include "partition/partition.h"

static enum ah_keeping keeping(const struct ah_item *item)
{
    return item->recompute ? AH_KEEPS_INPUT : item->selective ? AH_KEEPS_PRODUCTS : AH_KEEPS_ALL;
}

int64_t ah__costs_gather_ns(const struct ah_costs *costs, int class, bool stays)
{
    return costs->ns[stays && costs->gathers_part[class] ? AH_ITEM_REDUCE : AH_ITEM_GATHER][class];
}

/* ---- by kind: for all micro-batches of a step and for all chunks ---- */

static int64_t alike_ns(const struct ah_costs *costs, const struct ah_item *item, enum ah_item_kind kind)
{
    return costs->ns[kind][ah__class_alike(ah__costs_class(costs, item->partition))];
}

static int64_t measured_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    return alike_ns(costs, item, item->kind);
}

static int64_t program_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    int64_t ns = costs->ns[item->kind][ah__costs_class(costs, item->partition)];
    if (item->kind == AH_ITEM_FORWARD)
        return ns;
    return ns + ah__costs_again_ns(costs, item->partition, item->recompute, item->selective);
}

static int64_t fetch_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    return item->stays ? 0 : measured_ns(costs, item);
}

/* Parameters and gradients have one size, so an EVICT takes as long as an OFFLOAD. */
static int64_t offload_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    return alike_ns(costs, item, AH_ITEM_OFFLOAD);
}

static int64_t activations_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    return (item->kind == AH_ITEM_ACTIVATIONS_OUT ? costs->out_ns : costs->in_ns)[keeping(item)];
}

static int64_t sums_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    return item->kind == AH_ITEM_SUMS_OUT ? costs->sums_out_ns : costs->sums_in_ns;
}

static int64_t disk_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    return item->kind == AH_ITEM_DISK_PARAMS     ? costs->disk_params_ns
           : item->kind == AH_ITEM_DISK_GRADIENT ? costs->disk_gradient_ns
           : item->kind == AH_ITEM_DISK_READ     ? costs->disk_read_ns
                                                 : costs->disk_write_ns;
}

static int64_t gather_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    return ah__costs_gather_ns(costs, ah__class_alike(ah__costs_class(costs, item->partition)), item->stays);
}

static int64_t step_item_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    static int64_t (*const of_kind[AH_ITEM_COUNT])(const struct ah_costs *, const struct ah_item *) = {
#define AH_ITEM(id, lane, name, short_name, shade, time, ...) time##_ns,
#include "sched/items.def"
#undef AH_ITEM
    };
    int64_t ns = of_kind[item->kind](costs, item);
    return item->chunks > 1 ? (ns + item->chunks - 1) / item->chunks : ns;
}

/* Returns the part of an item's time that is spent once for all its micro-batches. */
static int64_t once_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    bool runs = item->kind == AH_ITEM_FORWARD || item->kind == AH_ITEM_BACKWARD;
    return runs && ah__class_is_block(ah__costs_class(costs, item->partition)) ? costs->widen_ns : 0;
}

int64_t ah__costs_item_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    int64_t ns = step_item_ns(costs, item);
    if (item->micro_batches == 0)
        return ns;
    int64_t once = once_ns(costs, item), each = ns > once ? ns - once : 0;
    return once + (each * item->micro_batches + costs->micro_batches - 1) / costs->micro_batches;
}

int ah__costs_bind(struct ah_work *work, const struct ah_item *item, void *context)
{
    work->tasks = 1;
    work->task[0].type = AH_TASK_DELAY;
    work->task[0].as.delay.ns = ah__costs_item_ns(context, item);
    return AH_OK;
}
