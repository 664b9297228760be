/* What a plan's switches (struct ah_switches, autohete.h) mean for a partition or group. Everybody asks here. */
#ifndef AH_SCHED_SWITCHES_H
#define AH_SCHED_SWITCHES_H

#include "base/status.h"

/* A block: its buffers come from the pool. Embedding and head have memory of their own. */
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

/* Where no update changes it, an embedding on the host is on the device as well, once it has come to its place. */
static inline bool ah__embedding_stays(const struct ah_switches *switches, bool frozen)
{
    return frozen && switches->embedding_on_host && !switches->share_embedding_head && switches->world_size <= 1;
}

/* Frozen blocks that go with an embedding on the host come from there one by one; of several ranks, whose parts of them
 * are gathered with the embedding's, they come with it. */
static inline bool ah__streams_below(const struct ah_switches *switches)
{
    return switches->embedding_on_host && switches->world_size <= 1;
}

/* A block whose states are on the host and visit the device for their update: every so many-th of those on the host,
 * the last one among them, so that host and stages both get gradients from the start of backward to its end. */
static inline bool ah__staged(const struct ah_switches *switches, int group)
{
    int64_t index = group - ah__first_on_host(switches), on_host = switches->offload_optimizer;
    return ah__is_block(switches, group) && index >= 0 &&
           (index + 1) * switches->staged / on_host > index * switches->staged / on_host;
}

/* Any group's are. */
static inline bool ah__offloads(const struct ah_switches *switches)
{
    return switches->embedding_on_host || switches->offload_optimizer > 0 || switches->head_on_host;
}

/* Embedding and head may have one place on the device: nothing that must stay lies there, since their parameters come
 * from the host or from all ranks when they are used. */
static inline bool ah__may_share_ends(const struct ah_switches *switches)
{
    return switches->world_size > 1 || (switches->embedding_on_host && switches->head_on_host);
}

/* The same place serves their gradients, but where the head's waits on the device for the norm. */
static inline bool ah__share_gradients(const struct ah_switches *switches, bool clips)
{
    return switches->share_embedding_head && (switches->head_on_host || !clips);
}

/* Sets of a block's states on the host: one for each block there, and the shadow states. */
static inline int ah__host_sets(const struct ah_switches *switches)
{
    return switches->offload_optimizer + switches->shadows;
}

/* A block gives its parameters back after forward and fetches them again for backward. */
static inline bool ah__refetches(const struct ah_switches *switches, int group)
{
    return ah__is_block(switches, group) && ah__on_host(switches, group) &&
           group < ah__first_on_host(switches) + switches->offload_params;
}

/* A block that is optimized on the device and keeps its parameters there as they are used, in a place of its own, from
 * one update to the next: of several ranks they are gathered once in a step (ZeRO-2 rather than ZeRO-3). */
static inline bool ah__unsharded(const struct ah_switches *switches, int group)
{
    int below = ah__first_on_host(switches);
    return ah__is_block(switches, group) && group < below && group >= below - switches->unsharded;
}

/* Of several ranks, parameters are cast one block ahead, so that they are gathered beside the block before, where there
 * are buffers for that: for this block's parameters and the next one's, and for two gradients, being reduced and being
 * written, unless those have places of their own (`own_gradients`). With fewer each block waits for its own. */
enum { AH_BUFFERS_OF_GRADIENTS = 2 };

static inline int ah__buffers_to_gather_ahead(bool own_gradients)
{
    return 2 + (own_gradients ? 0 : AH_BUFFERS_OF_GRADIENTS);
}

static inline bool ah__gathers_ahead(const struct ah_switches *switches, bool own_gradients)
{
    return switches->world_size > 1 && switches->buffers >= ah__buffers_to_gather_ahead(own_gradients);
}

/* The most pieces in which the states of a block stream. */
enum { AH_SCHED_MOST_CHUNKS = 16 };

/* ---- rounds ---- */

/* The most rounds that a plan may have. */
enum { AH_SCHED_MOST_PASSES = 1024 };

/* Rounds over the model in which a step runs its micro-batches. */
static inline int ah__rounds(const struct ah_switches *switches, int micro_batches)
{
    int most = switches->world_size > 1 || micro_batches < 1 ? 1 : micro_batches;
    return switches->passes > most ? most : switches->passes > 1 ? switches->passes : 1;
}

/* The micro-batch that a round begins with; the next one's ends it. */
static inline int ah__round_first(int micro_batches, int rounds, int round)
{
    return (int)((int64_t)round * micro_batches / rounds);
}

/* Micro-batches of a round that has the most. */
static inline int ah__round_most(int micro_batches, int rounds)
{
    return (micro_batches + rounds - 1) / rounds;
}

/* ---- activations ---- */

/* Stages that activations on their way to the host and back pass through: one is written or read by the compute lane
 * while another comes or goes. */
enum { AH_ACTIVATION_BUFFERS = 2 };

/* Blocks whose activations pass the stages in turn: those that spend the time between forward and backward on the host,
 * and the last ones, which stay in their stages. So each that leaves frees the memory of one. */
static inline int ah__passing_blocks(const struct ah_switches *switches)
{
    return switches->offload_activations > 0 ? switches->offload_activations + AH_ACTIVATION_BUFFERS : 0;
}

/* Passing blocks below a block. They are spread evenly, so that link and compute lane both work all the time; the first
 * block is one. */
static inline int ah__passing_below(const struct ah_switches *switches, int block)
{
    int64_t passing = ah__passing_blocks(switches);
    return (int)(((block - 1) * passing + switches->layers - 1) / switches->layers);
}

/* Its activations lie in the stage ah__passing_below() % AH_ACTIVATION_BUFFERS. */
static inline bool ah__passes(const struct ah_switches *switches, int block)
{
    return ah__is_block(switches, block) && ah__passing_below(switches, block + 1) > ah__passing_below(switches, block);
}

/* The block that is the index-th (from 0) to pass. */
static inline int ah__passing_block(const struct ah_switches *switches, int index)
{
    return 1 + (int)((int64_t)index * switches->layers / ah__passing_blocks(switches));
}

/* Its activations leave for the host. */
static inline bool ah__leaves(const struct ah_switches *switches, int block)
{
    return ah__passes(switches, block) && ah__passing_below(switches, block) < switches->offload_activations;
}

/* The place of a block in the order in which blocks give up activations, from 1: those that stay on the device from the
 * first to the last, then those that pass. */
static inline int ah__giving_up(const struct ah_switches *switches, int block)
{
    int below = ah__passing_below(switches, block);
    return ah__passes(switches, block) ? switches->layers - ah__passing_blocks(switches) + below + 1 : block - below;
}

/* What a block keeps from forward to backward, the less the lower. */
enum ah_keeping {
    AH_KEEPS_INPUT,    /* it recomputes */
    AH_KEEPS_PRODUCTS, /* products and attention; it makes the rest again */
    AH_KEEPS_ALL,
    AH_KEEPING_COUNT
};

static inline enum ah_keeping ah__keeping_at(const struct ah_switches *switches, int giving_up)
{
    return giving_up <= switches->checkpoint                         ? AH_KEEPS_INPUT
           : giving_up <= switches->checkpoint + switches->selective ? AH_KEEPS_PRODUCTS
                                                                     : AH_KEEPS_ALL;
}

static inline enum ah_keeping ah__keeping(const struct ah_switches *switches, int block)
{
    return ah__keeping_at(switches, ah__giving_up(switches, block));
}

/* A block keeps no activations but its input. */
static inline bool ah__recomputes(const struct ah_switches *switches, int partition)
{
    return ah__is_block(switches, partition) && ah__keeping(switches, partition) == AH_KEEPS_INPUT;
}

/* A block keeps products and attention, and makes the rest again. */
static inline bool ah__recomputes_selectively(const struct ah_switches *switches, int partition)
{
    return ah__is_block(switches, partition) && ah__keeping(switches, partition) == AH_KEEPS_PRODUCTS;
}

/* How many blocks keep so much: of those that stay on the device (`stays`), or of the first `count` of those that
 * pass. */
static inline int ah__keeping_count(const struct ah_switches *switches, enum ah_keeping keeping, bool stays, int count)
{
    int staying = switches->layers - ah__passing_blocks(switches);
    int first = stays ? 0 : staying, last = stays ? staying : staying + count; /* in the order of giving up */
    int given[] = {0, switches->checkpoint, switches->checkpoint + switches->selective, switches->layers};
    int from = given[keeping] > first ? given[keeping] : first;
    int to = given[keeping + 1] < last ? given[keeping + 1] : last;
    return to > from ? to - from : 0;
}

/* Blocks that keep all of their activations. */
static inline int ah__keeping_blocks(const struct ah_switches *switches)
{
    return switches->layers - switches->checkpoint - switches->selective;
}

/* Ranks and chunks, where 0 and 1 both mean one. */
static inline int ah__world_size(const struct ah_switches *switches)
{
    return switches->world_size > 1 ? switches->world_size : 1;
}

static inline int ah__chunks(const struct ah_switches *switches)
{
    return switches->chunks > 1 ? switches->chunks : 1;
}

#endif
