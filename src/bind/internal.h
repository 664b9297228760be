/* What the files of the binder share: everything an item is bound with, and how a task is added to its work. */
#ifndef AH_BIND_INTERNAL_H
#define AH_BIND_INTERNAL_H

#include "bind/bind.h"

/* Everything an item is bound with. */
struct bind {
    struct ah_work *work;
    const struct ah_item *item;
    const struct ah_binding *binding;
    const struct ah_addresses *at;
};

static inline const struct ah_group *ah__bind_group(const struct bind *bind)
{
    return &bind->binding->partition->groups[bind->binding->group];
}

static inline int64_t ah__bind_element_bytes(const struct bind *bind)
{
    return ah__dtype_bytes(bind->binding->partition->compute);
}

/* The trained elements of the group that are this rank's: *first and so many; all of one rank alone. */
static inline int64_t ah__bind_part(int64_t *first, const struct bind *bind)
{
    int ranks = ah__step_ranks(bind->binding->partition);
    return ah__part_range(first, ah__bind_group(bind)->trained, bind->binding->rank, ranks);
}

/* Where they lie in what has the whole group in the compute dtype. */
static inline char *ah__bind_part_at(const struct bind *bind, char *whole)
{
    int64_t first;
    ah__bind_part(&first, bind);
    return whole ? whole + first * ah__bind_element_bytes(bind) : NULL;
}

static inline bool ah__bind_sharded(const struct bind *bind)
{
    return ah__step_ranks(bind->binding->partition) > 1;
}

/* One more task of the item, all of it zero but the type. */
struct ah_task *ah__bind_task(const struct bind *bind, enum ah_task_type type);
void ah__bind_copy(const struct bind *bind, void *to, const void *from, int64_t bytes);
/* The elements of this rank's trained part that the item's chunk covers: *first, counted from the part's first, and so
 * many. */
int64_t ah__bind_chunk(int64_t *first, const struct bind *bind);

/* ---- updates.c ---- */

/* The optimizer's step where the states stay: on the host, ahead of the norm or not, or on the device. */
void ah__bind_update(const struct bind *bind);
/* A chunk of states that the host has comes to a stage; it is updated there and goes home: to the spare states while
 * the norm is not known. */
void ah__bind_states_in(const struct bind *bind);
void ah__bind_update_staged(const struct bind *bind);
/* The squared norm of this rank's part of the group's gradient; that of a group without a gradient is zero from the
 * start. */
void ah__bind_norm(const struct bind *bind);
/* The factor of an iteration; the last backward, or its reduction, knows all norms. */
void ah__bind_clip(const struct bind *bind);

#endif
