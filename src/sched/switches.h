/* What a plan's switches (struct ah_switches, autohete.h) mean for a partition or group: every room asks here. */
#ifndef AH_SCHED_SWITCHES_H
#define AH_SCHED_SWITCHES_H

#include "base/status.h"

/* A block: its slots come from the pool. Embedding and head have memory of their own. */
static inline bool ah__is_block(const struct ah_switches *switches, int group)
{
    return group >= 1 && group <= switches->layers;
}

/* The lowest block whose optimizer states are on the host; layers + 1: none. */
static inline int ah__first_on_host(const struct ah_switches *switches)
{
    return switches->layers - switches->offload_optimizer + 1;
}

/* The optimizer states of a group are on the host: its parameters are fetched and its gradient leaves. */
static inline bool ah__on_host(const struct ah_switches *switches, int group)
{
    if (group == 0)
        return switches->embedding_on_host;
    return group > switches->layers ? switches->head_on_host : group >= ah__first_on_host(switches);
}

/* A block whose states are on the host and visit the device for their update: every so many-th of those on the host,
 * the last one among them, so that host and stages both get gradients from the start of backward to its end. */
static inline bool ah__streams(const struct ah_switches *switches, int group)
{
    int64_t index = group - ah__first_on_host(switches), on_host = switches->offload_optimizer;
    return ah__is_block(switches, group) && index >= 0 &&
           (index + 1) * switches->streamed / on_host > index * switches->streamed / on_host;
}

/* Any group's are. */
static inline bool ah__offloads(const struct ah_switches *switches)
{
    return switches->embedding_on_host || switches->offload_optimizer > 0 || switches->head_on_host;
}

/* Sets of a block's states on the host: one for each block there, and the spare ones. */
static inline int ah__host_sets(const struct ah_switches *switches)
{
    return switches->offload_optimizer + switches->spares;
}

/* A block gives its parameters back after forward and fetches them again for backward. */
static inline bool ah__refetches(const struct ah_switches *switches, int group)
{
    return ah__is_block(switches, group) && ah__on_host(switches, group) &&
           group < ah__first_on_host(switches) + switches->offload_params;
}

/* A block keeps no activations but its input. */
static inline bool ah__recomputes(const struct ah_switches *switches, int partition)
{
    return partition >= 1 && partition <= switches->checkpoint;
}

/* A block keeps products and attention, and makes the rest again. */
static inline bool ah__recomputes_selectively(const struct ah_switches *switches, int partition)
{
    return partition > switches->checkpoint && partition <= switches->checkpoint + switches->selective;
}

/* Blocks that keep all of their activations: the last ones. */
static inline int ah__keeping_blocks(const struct ah_switches *switches)
{
    return switches->layers - switches->checkpoint - switches->selective;
}

/* 0 <= c, 0 <= selective, c + selective <= L, 0 <= p <= o <= L, and streamed and spares are of those o. */
static inline bool ah__switches_valid(const struct ah_switches *switches)
{
    return switches->checkpoint >= 0 && switches->selective >= 0 && ah__keeping_blocks(switches) >= 0 &&
           switches->offload_params >= 0 &&
           switches->offload_params <= switches->offload_optimizer && switches->offload_optimizer <= switches->layers &&
           switches->spares >= 0 && switches->spares <= switches->offload_optimizer && switches->streamed >= 0 &&
           switches->streamed <= switches->offload_optimizer;
}

/* Ranks and tiles, where 0 and 1 both mean one. */
static inline int ah__ranks(const struct ah_switches *switches)
{
    return switches->ranks > 1 ? switches->ranks : 1;
}

static inline int ah__tiles(const struct ah_switches *switches)
{
    return switches->tiles > 1 ? switches->tiles : 1;
}

#endif
