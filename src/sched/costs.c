#include "sched/costs.h"

static enum ah_keeping keeping(const struct ah_item *item)
{
    return item->recompute ? AH_KEEPS_INPUT : item->selective ? AH_KEEPS_PRODUCTS : AH_KEEPS_ALL;
}

int64_t ah__costs_item_ns(const struct ah_costs *costs, const struct ah_item *item)
{
    enum ah_class class = ah__class_of(item->partition, costs->layers);
    /* Parameters and gradients are of one size, so going home is as long for either. */
    int64_t ns = costs->ns[item->kind == AH_ITEM_EVICT ? AH_ITEM_OFFLOAD : item->kind][class];
    if (item->kind == AH_ITEM_ACTIVATIONS_OUT || item->kind == AH_ITEM_ACTIVATIONS_IN)
        ns = (item->kind == AH_ITEM_ACTIVATIONS_OUT ? costs->out_ns : costs->in_ns)[keeping(item)];
    if (item->chunks > 1)
        ns = (ns + item->chunks - 1) / item->chunks;
    if (item->kind != AH_ITEM_BACKWARD)
        return ns;
    return ns + (item->recompute ? costs->recompute_ns[class] : item->selective ? costs->selective_ns[class] : 0);
}

int ah__costs_bind(struct ah_work *work, const struct ah_item *item, void *context)
{
    work->tasks = 1;
    work->task[0].type = AH_TASK_DELAY;
    work->task[0].as.delay.ns = ah__costs_item_ns(context, item);
    return AH_OK;
}
