/* What the checks of a timeline share: its spans by round, partition and kind, and in which order they must be. */
#ifndef AH_TESTS_SCHED_CHECKER_H
#define AH_TESTS_SCHED_CHECKER_H

#include "sched/check.h"

#include "test.h"

struct checker {
    const struct ah_timeline *timeline;
    const struct ah_sched_config *config;
    int64_t rounds;                /* all that the timeline has */
    int of_iteration;              /* rounds of one */
    const struct ah_span **voided; /* prefetches that were done again, since the update before was */
    size_t voided_count;
    const struct ah_span **found; /* [chunk][round][partition][kind]; backward casts and gathers count as chunk 1,
                                   * staged updates as those of the host */
};

static inline const struct ah_span *get(const struct checker *c, int64_t k, int partition, enum ah_item_kind kind)
{
    if (k < 0 || k >= c->rounds)
        return NULL;
    return c->found[(k * (c->config->switches.layers + 2) + partition) * AH_ITEM_COUNT + (int)kind];
}

static inline const struct ah_span *get_chunk(const struct checker *c, int64_t k, int partition, enum ah_item_kind kind,
                                              int chunk)
{
    int64_t one = c->rounds * (c->config->switches.layers + 2) * AH_ITEM_COUNT;
    if (k < 0 || k >= c->rounds)
        return NULL;
    return c->found[chunk * one + (k * (c->config->switches.layers + 2) + partition) * AH_ITEM_COUNT + (int)kind];
}

/* A cast or gather for the backward. */
static inline const struct ah_span *get_again(const struct checker *c, int64_t k, int partition, enum ah_item_kind kind)
{
    return get_chunk(c, k, partition, kind, 1);
}

/* The update of a chunk that counts: the final one; without one, the speculative one. */
static inline const struct ah_span *update_of(const struct checker *c, int64_t k, int partition, int chunk)
{
    const struct ah_span *final = get_chunk(c, k, partition, AH_ITEM_UPDATE_HOST, chunk);
    return final ? final : get_chunk(c, k, partition, AH_ITEM_UPDATE_SPECULATIVE, chunk);
}

/* What a chunk's staged update found in its stage; of a speculative one kept where no update is. */
static inline const struct ah_span *states_of(const struct checker *c, const struct ah_span *update)
{
    enum ah_item_kind kind = update->item.shadow_set >= 0 ? AH_ITEM_UPDATE_STAGED : AH_ITEM_STATES_IN;
    return get_chunk(c, update->item.round, update->item.partition, kind, update->item.chunk);
}

/* The kind under which an item is kept. */
static inline enum ah_item_kind kept_as(const struct ah_item *item)
{
    bool ahead = item->shadow_set >= 0;
    if (item->kind == AH_ITEM_UPDATE_STAGED)
        return ahead ? AH_ITEM_UPDATE_SPECULATIVE : AH_ITEM_UPDATE_HOST;
    return item->kind == AH_ITEM_STATES_IN && ahead ? AH_ITEM_UPDATE_STAGED : item->kind;
}

/* The round is the first, the last of an iteration. */
static inline bool begins(const struct checker *c, int64_t k)
{
    return k % c->of_iteration == 0;
}

static inline bool ends(const struct checker *c, int64_t k)
{
    return (k + 1) % c->of_iteration == 0;
}

/* The embedding's backward is in the last round alone: its gradient's place is the head's, too. */
static inline bool is_late(const struct checker *c)
{
    const struct ah_switches *switches = &c->config->switches;
    return c->config->shared_embedding ||
           (switches->share_embedding_head && (switches->head_on_host || !c->config->clips));
}

static inline bool on_host(const struct ah_sched_config *config, int g)
{
    if (g == 0)
        return config->switches.embedding_on_host;
    return g > config->switches.layers ? config->switches.head_on_host
                                       : g > config->switches.layers - config->switches.offload_optimizer;
}

/* A block without backward. */
static inline bool is_frozen(const struct ah_sched_config *config, int g)
{
    return g >= 1 && g <= config->switches.frozen_blocks;
}

/* The lowest block with a backward on the host, or the head. */
static inline int first_updated(const struct ah_sched_config *config)
{
    int first = config->switches.layers - config->switches.offload_optimizer + 1;
    return first > config->switches.frozen_blocks ? first : config->switches.frozen_blocks + 1;
}

static inline bool refetches(const struct ah_sched_config *config, int g)
{
    int first = first_updated(config);
    return g >= first && g < first + config->switches.offload_params && g <= config->switches.layers;
}

/* A block whose parameters, once fetched, stay for all rounds of an iteration. */
static inline bool is_kept(const struct checker *c, int g)
{
    const struct ah_sched_config *config = c->config;
    bool block = g >= 1 && g <= config->switches.layers && !is_frozen(config, g);
    return block && on_host(config, g) && !refetches(config, g) && c->of_iteration > 1 &&
           !config->policy->leaves_each_round;
}

/* The sum of a block stays on the device, where it becomes the gradient. */
static inline bool sum_stays(const struct checker *c, int g)
{
    const struct ah_switches *switches = &c->config->switches;
    return c->of_iteration > 1 && g > switches->frozen_blocks && g <= switches->layers &&
           g - switches->frozen_blocks <= switches->device_sums;
}

/* The round in which a group is fetched for this one: once in an iteration embedding and head, into places of their
 * own, and blocks that are kept. */
static inline int64_t fetched_in(const struct checker *c, int64_t k, int g)
{
    bool end = g == 0 || g > c->config->switches.layers;
    bool once = (end && !c->config->switches.share_embedding_head) || is_kept(c, g);
    return once ? k - k % c->of_iteration : k;
}

/* `later` must exist and start after `earlier`, which must exist, has ended. */
static inline void after(const struct checker *c, int64_t k, int g, enum ah_item_kind later_kind,
                         const struct ah_span *earlier, const char *what)
{
    const struct ah_span *later = get(c, k, g, later_kind);
    if (!later)
        fail_msg("iteration %lld partition %d: no %s", (long long)k, g, ah__item_names[later_kind]);
    else if (!earlier)
        fail_msg("iteration %lld partition %d: %s without %s", (long long)k, g, ah__item_names[later_kind], what);
    else if (later->start_ns < earlier->end_ns)
        fail_msg("iteration %lld partition %d: %s starts at %lld, before %s ends at %lld", (long long)k, g,
                 ah__item_names[later_kind], (long long)later->start_ns, what, (long long)earlier->end_ns);
}

/* `later` starts after `earlier` has ended, both given. */
static inline void after_span(const struct ah_span *later, const struct ah_span *earlier, const char *what)
{
    if (!later || !earlier)
        fail_msg("%s: %s", what, later ? "the earlier item is missing" : "the later item is missing");
    else if (later->start_ns < earlier->end_ns)
        fail_msg("iteration %lld partition %d: %s: %lld is before %lld", (long long)later->item.iteration,
                 later->item.partition, what, (long long)later->start_ns, (long long)earlier->end_ns);
}

/* Something that is held from one item's beginning to another's end. */
struct hold {
    int buffer;
    int64_t from, to;
};

/* Nothing if one of the items is missing. */
void hold_add(struct hold *holds, size_t *count, const struct ah_span *from, const struct ah_span *to, int buffer);
/* No buffer, of 0 .. buffers-1, is held twice at a time. */
void check_holds(struct hold *holds, size_t count, int buffers);

/* check_disk.c: blocks on disk, and the buffers of their chunks. */
void check_disk(const struct checker *c);

/* check_rounds.c: the shares of an iteration's rounds, and the sums of blocks between them. */
void check_shares(const struct checker *c, int64_t k);
void check_sums(const struct checker *c, int64_t k);
void check_sum_places(const struct checker *c);

#endif
