/* Inside planning: plans as text and files, and constants that several planners share.
 *
 * Takes text and files nobody has checked, gives plans that hold together (0 <= p <= o <= L, 0 <= c <= L). Must not
 * know devices. */
#ifndef AH_PLAN_PLAN_INTERNAL_H
#define AH_PLAN_PLAN_INTERNAL_H

#include "base/json.h"
#include "plan/layout.h"
#include "sched/switch_table.h"

/* "resident" (everything on the device, no recomputation) or keys of sched/switches.def, in any order, for a model of
 * `layers` blocks. Fills the switches of *out; those that the text leaves open are 0. *given: a bit (1 <<
 * AH_SWITCH_...) for each that it decides. Zeroes predictions and signature, leaves policy empty. AH_EINPUT: "--plan:
 * KEY: found X, expected Y". */
int ah__plan_spec(struct ah_plan *out, unsigned *given, const char *text, int layers);

/* Reads what ah_plan_save wrote: every key present, none unknown, right types and ranges, consistent with each other.
 * AH_EIO, AH_EINPUT; AH_ESTALE when another version of AutoHete wrote it. */
int ah__plan_read(struct ah_plan *out, const char *path);

/* The same as a tree: what ah_plan_save writes, which the caller deletes, also after a failure; and what was read. */
int ah__plan_tree(cJSON **out, const struct ah_plan *plan);
int ah__plan_from_tree(struct ah_plan *out, const struct ah_json *json);

/* Embedding and head may share a place in some plan of the model: neither's parameters are needed while the other's
 * are. */
static inline bool ah__plan_has_ends(const struct ah_partition *partition)
{
    return partition->shared_group < 0 && !partition->code[AH_CLASS_EMBEDDING].backward_needs_params;
}

/* Whether they may where a plan says so. AH_EINPUT: "embedding_head=shared: found X, expected Y"; the caller
 * prefixes. */
int ah__plan_check_ends(const struct ah_switches *switches, const struct ah_partition *partition);

/* Whether the micro-batches of a step suffice for its passes. AH_EINPUT; the caller prefixes. */
int ah__plan_check_passes(const struct ah_switches *switches, const struct ah_partition *partition);

/* Whether a read plan was made for this partition: layers and signature (ah_partition.signature) equal, switches
 * consistent. AH_ESTALE says what differs, AH_EINPUT which switch is out of range; the caller prefixes the file. */
int ah__plan_check(const struct ah_plan *plan, const struct ah_partition *partition);

#endif
