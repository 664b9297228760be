/* The meaning of a plan's switches (struct ah_switches, autohete.h) for a partition or group. All rooms ask here. */
#ifndef AH_SCHED_SWITCHES_H
#define AH_SCHED_SWITCHES_H

#include "base/status.h"

/* Returns true for blocks, whose buffers come from the pool. Embedding and head have memory of their own. */
static inline bool ah__is_block(const struct ah_switches *switches, int group)
{
    return group >= 1 && group <= switches->layers;
}

/* Returns true for a block without backward. Switches of recomputation, re-fetching, activations and updates count the
 * other blocks, which lie above. */
static inline bool ah__is_frozen(const struct ah_switches *switches, int group)
{
    return group >= 1 && group <= switches->frozen_blocks;
}

static inline int ah__trained_blocks(const struct ah_switches *switches)
{
    return switches->layers - switches->frozen_blocks;
}

/* Returns the lowest block that is on the host, with its optimizer states if it has any; layers + 1: no block. */
static inline int ah__first_on_host(const struct ah_switches *switches)
{
    return switches->layers - switches->offload_optimizer + 1;
}

/* Returns the number of blocks with a backward on the host; the lowest of them; and the other numbers. */
static inline int ah__trained_on_host(const struct ah_switches *switches)
{
    int trained = ah__trained_blocks(switches);
    return switches->offload_optimizer < trained ? switches->offload_optimizer : trained;
}

static inline int ah__first_trained_on_host(const struct ah_switches *switches)
{
    return switches->layers - ah__trained_on_host(switches) + 1;
}

static inline int ah__frozen_on_host(const struct ah_switches *switches)
{
    return switches->offload_optimizer - ah__trained_on_host(switches);
}

static inline int ah__trained_on_device(const struct ah_switches *switches)
{
    return ah__trained_blocks(switches) - ah__trained_on_host(switches);
}

/* ---- disk ---- */

/* Host buffers through which a chunk of a block on disk passes: two let a read or write overlap with the work on the
 * chunk before. */
enum { AH_DISK_SLOTS = 2, AH_DISK_MOST_AHEAD = 14 };

/* Returns true for blocks whose parameters and states are on disk: the highest, which forward needs last and whose
 * gradients come first. */
static inline bool ah__on_disk(const struct ah_switches *switches, int group)
{
    return ah__is_block(switches, group) && group > switches->layers - switches->disk_blocks;
}

/* Returns the number of blocks with a backward on disk; of blocks without. */
static inline int ah__trained_on_disk(const struct ah_switches *switches)
{
    int trained = ah__trained_blocks(switches);
    return switches->disk_blocks < trained ? switches->disk_blocks : trained;
}

static inline int ah__frozen_on_disk(const struct ah_switches *switches)
{
    return switches->disk_blocks - ah__trained_on_disk(switches);
}

/* Returns the number of host buffers for chunks of blocks on disk. */
static inline int ah__disk_slots(const struct ah_switches *switches)
{
    return switches->disk_blocks > 0 ? AH_DISK_SLOTS + switches->disk_ahead : 0;
}

/* Returns the number of places that a chunk of states has on disk: a second one for updates before the norm is known,
 * which leave the old states as they are. */
static inline int ah__disk_places(bool clips)
{
    return clips ? 2 : 1;
}

/* Returns true if the optimizer states of a group are on the host: its parameters are fetched and its gradient is
 * offloaded. */
static inline bool ah__on_host(const struct ah_switches *switches, int group)
{
    if (group == 0)
        return switches->embedding_on_host;
    return group > switches->layers ? switches->head_on_host : group >= ah__first_on_host(switches);
}

/* Returns true if an embedding on the host also stays on the device after its first fetch, since no update changes
 * it. */
static inline bool ah__embedding_stays(const struct ah_switches *switches, bool frozen)
{
    return frozen && switches->embedding_on_host && !switches->share_embedding_head && switches->world_size <= 1;
}

/* Returns true for blocks whose states are on the host but are updated on the device, chunk by chunk: evenly spaced
 * among the blocks on the host that are not on disk, the last one included, so that host updates and staged ones both
 * get gradients from the start of backward to its end. */
static inline bool ah__staged(const struct ah_switches *switches, int group)
{
    int64_t index = group - ah__first_trained_on_host(switches);
    int64_t of = ah__trained_on_host(switches) - ah__trained_on_disk(switches);
    return ah__is_block(switches, group) && index >= 0 && index < of &&
           (index + 1) * switches->staged / of > index * switches->staged / of;
}

/* Returns true if the optimizer states of any group are on the host. */
static inline bool ah__offloads(const struct ah_switches *switches)
{
    return switches->embedding_on_host || switches->offload_optimizer > 0 || switches->head_on_host;
}

/* Returns true if embedding and head may share a device buffer: nothing must stay in it, since their parameters come
 * from the host or from all ranks when they are used. */
static inline bool ah__may_share_ends(const struct ah_switches *switches)
{
    return switches->world_size > 1 || (switches->embedding_on_host && switches->head_on_host);
}

/* Returns true if their gradients share memory too, which is not possible if the head's waits on the device for the
 * norm. */
static inline bool ah__share_gradients(const struct ah_switches *switches, bool clips)
{
    return switches->share_embedding_head && (switches->head_on_host || !clips);
}

/* Returns the number of sets of a block's states on the host: one for each block there that is not on disk, and the
 * shadow states. */
static inline int ah__host_sets(const struct ah_switches *switches)
{
    return ah__trained_on_host(switches) - ah__trained_on_disk(switches) + switches->shadows;
}

/* Returns true if a block releases its parameters after forward and fetches them again for backward. */
static inline bool ah__refetches(const struct ah_switches *switches, int group)
{
    int first = ah__first_trained_on_host(switches);
    return ah__is_block(switches, group) && group >= first && group < first + switches->offload_params;
}

/* A block gives its parameters back after forward: it fetches them again, or has no backward. */
static inline bool ah__releases(const struct ah_switches *switches, int group)
{
    return ah__refetches(switches, group) || (ah__is_frozen(switches, group) && ah__on_host(switches, group));
}

/* Returns true for blocks that are optimized on the device and keep all their parameters in memory of their own from
 * one update to the next: several ranks gather them once in a step (ZeRO-2 rather than ZeRO-3). */
static inline bool ah__unsharded(const struct ah_switches *switches, int group)
{
    int below = ah__first_on_host(switches);
    return ah__is_block(switches, group) && group < below && group >= below - switches->unsharded;
}

/* Returns the number of unsharded blocks without backward. */
static inline int ah__unsharded_frozen(const struct ah_switches *switches)
{
    int frozen = switches->unsharded - ah__trained_on_device(switches);
    return frozen > 0 ? frozen : 0;
}

/* With several ranks, parameters are cast one block ahead, so that they are gathered during the block before, if there
 * are enough buffers: for this block's parameters and the next one's, and for two gradients, one being reduced and one
 * being written, unless gradients have memory of their own (`own_gradients`). With fewer buffers each block waits for
 * its own parameters. */
enum { AH_BUFFERS_OF_GRADIENTS = 2 };

static inline int ah__buffers_to_gather_ahead(bool own_gradients)
{
    return 2 + (own_gradients ? 0 : AH_BUFFERS_OF_GRADIENTS);
}

static inline bool ah__gathers_ahead(const struct ah_switches *switches, bool own_gradients)
{
    return switches->world_size > 1 && switches->buffers >= ah__buffers_to_gather_ahead(own_gradients);
}

/* The most chunks of a block. */
enum { AH_SCHED_MOST_CHUNKS = 16 };

/* ---- rounds ---- */

/* The most rounds that a plan may have. */
enum { AH_SCHED_MOST_PASSES = 1024 };

/* Returns the number of rounds over the model in which a step runs its micro-batches. */
static inline int ah__rounds(const struct ah_switches *switches, int micro_batches)
{
    int most = switches->world_size > 1 || micro_batches < 1 ? 1 : micro_batches;
    return switches->passes > most ? most : switches->passes > 1 ? switches->passes : 1;
}

/* Returns the first micro-batch of a round; the first of the next round is its end. */
static inline int ah__round_first(int micro_batches, int rounds, int round)
{
    return (int)((int64_t)round * micro_batches / rounds);
}

/* Returns the number of blocks whose sums stay on the device between rounds, where they become gradients: the lowest
 * with a backward. */
static inline int ah__staying_sums(const struct ah_switches *switches, int rounds)
{
    int trained = ah__trained_blocks(switches);
    return rounds <= 1 ? 0 : switches->device_sums < trained ? switches->device_sums : trained;
}

/* Returns true for these blocks. */
static inline bool ah__sum_stays(const struct ah_switches *switches, int rounds, int group)
{
    int index = group - 1 - switches->frozen_blocks;
    return index >= 0 && index < ah__staying_sums(switches, rounds);
}

/* Returns the largest number of micro-batches in a round. */
static inline int ah__round_most(int micro_batches, int rounds)
{
    return (micro_batches + rounds - 1) / rounds;
}

/* ---- activations ---- */

/* Staging buffers of activations on their way to the host and back: one is written or read by the compute lane while
 * another is copied. */
enum { AH_ACTIVATION_BUFFERS = 2 };

/* Returns the number of blocks that use the staging buffers in turn: those whose activations are offloaded, and the
 * last ones, whose activations stay in the staging buffers. So each offloaded block frees the memory of one. */
static inline int ah__passing_blocks(const struct ah_switches *switches)
{
    return switches->offload_activations > 0 ? switches->offload_activations + AH_ACTIVATION_BUFFERS : 0;
}

/* Returns how many blocks below a block use the staging buffers. They are evenly spaced, so that link and compute lane
 * both work all the time; the first block is one of them. */
static inline int ah__passing_below(const struct ah_switches *switches, int block)
{
    int64_t passing = ah__passing_blocks(switches), index = block - 1 - switches->frozen_blocks;
    int trained = ah__trained_blocks(switches);
    return index < 0 ? 0 : (int)((index * passing + trained - 1) / trained);
}

/* Returns true if a block's activations use the staging buffers: number ah__passing_below() % AH_ACTIVATION_BUFFERS. */
static inline bool ah__passes(const struct ah_switches *switches, int block)
{
    return ah__is_block(switches, block) && !ah__is_frozen(switches, block) &&
           ah__passing_below(switches, block + 1) > ah__passing_below(switches, block);
}

/* Returns the index-th block (from 0) that uses the staging buffers. */
static inline int ah__passing_block(const struct ah_switches *switches, int index)
{
    int64_t trained = ah__trained_blocks(switches);
    return 1 + switches->frozen_blocks + (int)(index * trained / ah__passing_blocks(switches));
}

/* Returns true if a block's activations are offloaded. */
static inline bool ah__leaves(const struct ah_switches *switches, int block)
{
    return ah__passes(switches, block) && ah__passing_below(switches, block) < switches->offload_activations;
}

/* Returns the position of a block, from 1, in the order in which blocks start to recompute: first the blocks that do
 * not use staging buffers, from the lowest to the highest, then those that do. */
static inline int ah__giving_up(const struct ah_switches *switches, int block)
{
    int below = ah__passing_below(switches, block),
        staying = ah__trained_blocks(switches) - ah__passing_blocks(switches);
    return ah__passes(switches, block) ? staying + below + 1 : block - switches->frozen_blocks - below;
}

/* Activations that a block keeps from forward to backward, in ascending order of size. */
enum ah_keeping {
    AH_KEEPS_INPUT,    /* it recomputes fully */
    AH_KEEPS_PRODUCTS, /* products and attention; it recomputes the rest */
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
    return ah__is_frozen(switches, block) ? AH_KEEPS_INPUT : ah__keeping_at(switches, ah__giving_up(switches, block));
}

/* Returns true if a block keeps no activations but its input for backward. */
static inline bool ah__recomputes(const struct ah_switches *switches, int partition)
{
    return ah__is_block(switches, partition) && !ah__is_frozen(switches, partition) &&
           ah__keeping(switches, partition) == AH_KEEPS_INPUT;
}

/* Returns true if a block keeps products and attention, and recomputes the rest. */
static inline bool ah__recomputes_selectively(const struct ah_switches *switches, int partition)
{
    return ah__is_block(switches, partition) && ah__keeping(switches, partition) == AH_KEEPS_PRODUCTS;
}

/* Returns how many blocks keep `keeping`: of those that do not use staging buffers (`stays`), or of the first `count`
 * of those that do. */
static inline int ah__keeping_count(const struct ah_switches *switches, enum ah_keeping keeping, bool stays, int count)
{
    int staying = ah__trained_blocks(switches) - ah__passing_blocks(switches);
    int first = stays ? 0 : staying, last = stays ? staying : staying + count; /* positions as of ah__giving_up */
    int given[] = {0, switches->checkpoint, switches->checkpoint + switches->selective, ah__trained_blocks(switches)};
    int from = given[keeping] > first ? given[keeping] : first;
    int to = given[keeping + 1] < last ? given[keeping + 1] : last;
    return to > from ? to - from : 0;
}

/* Returns the number of blocks that keep all their activations. */
static inline int ah__keeping_blocks(const struct ah_switches *switches)
{
    return ah__trained_blocks(switches) - switches->checkpoint - switches->selective;
}

/* Return world size and chunks; 0 and 1 both mean one. */
static inline int ah__world_size(const struct ah_switches *switches)
{
    return switches->world_size > 1 ? switches->world_size : 1;
}

static inline int ah__chunks(const struct ah_switches *switches)
{
    return switches->chunks > 1 ? switches->chunks : 1;
}

#endif
