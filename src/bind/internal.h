/* Shared by the files of the binder: everything an item is bound with, and how a task is added to its work. */
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

/* Returns this rank's share of the group's trained elements, [*first, *first + result); with one rank all. */
static inline int64_t ah__bind_part(int64_t *first, const struct bind *bind)
{
    int ranks = ah__step_ranks(bind->binding->partition);
    return ah__part_range(first, ah__bind_group(bind)->trained, bind->binding->rank, ranks);
}

/* Returns the address of this rank's trained elements in `whole`, which has the whole group in the compute dtype. */
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

/* ---- task.c ---- */

/* Adds a task to the item's work; all of it is zero but the type. */
struct ah_task *ah__bind_task(const struct bind *bind, enum ah_task_type type);
void ah__bind_copy(const struct bind *bind, void *to, const void *from, int64_t bytes);
/* Returns the elements [*first, *first + result) of `count` that the item's chunk covers. */
int64_t ah__bind_chunk_of(int64_t *first, const struct bind *bind, int64_t count);
/* Returns the elements of this rank's trained part that the item's chunk covers: [*first, *first + result), counted
 * from the part's first element. */
static inline int64_t ah__bind_chunk(int64_t *first, const struct bind *bind)
{
    int64_t part;
    return ah__bind_chunk_of(first, bind, ah__bind_part(&part, bind));
}

/* ---- updates.c ---- */

/* Adds the optimizer's step for states that are updated where they are stored: on the host, before or after the norm is
 * known, or on the device. */
void ah__bind_update(const struct bind *bind);
/* ah__bind_states_in copies a chunk of host states to a staging buffer. ah__bind_update_staged updates it there and
 * copies it back, to the shadow states if the norm is not known. */
void ah__bind_states_in(const struct bind *bind);
void ah__bind_update_staged(const struct bind *bind);
/* Move a chunk of a block on disk: read its parameters for a fetch, write its gradient, read states and gradient, write
 * states back. */
void ah__bind_disk_params(const struct bind *bind);
void ah__bind_disk_gradient(const struct bind *bind);
void ah__bind_disk_read(const struct bind *bind);
void ah__bind_disk_write(const struct bind *bind);
/* Adds the computation of the squared norm of this rank's part of the group's gradient. The norm of a group without a
 * gradient is zero from the start. */
void ah__bind_norm(const struct bind *bind);
/* Adds the computation of an iteration's gradient factor, after the last backward or its reduction, when all norms are
 * known. */
void ah__bind_clip(const struct bind *bind);

#endif
