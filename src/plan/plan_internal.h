/* Shared by the files of planning: plans as text and files, and checks.
 *
 * Takes text and files that are not checked, gives plans that hold together (0 <= p <= o <= L, 0 <= c <= L). Must not
 * know devices. */
#ifndef AH_PLAN_PLAN_INTERNAL_H
#define AH_PLAN_PLAN_INTERNAL_H

#include "base/json.h"
#include "layout/layout.h"
#include "sched/switch_table.h"

/* Parses "resident" (everything on the device, no recomputation) or keys of sched/switches.def, in any order, for a
 * model of `layers` blocks. Fills the switches of *out; those that the text leaves open are 0. *given: a bit (1 <<
 * AH_SWITCH_...) for each that it decides. Zeroes predictions and signature, leaves policy empty. AH_EINPUT: "--plan:
 * KEY: found X, expected Y". */
int ah__plan_spec(struct ah_plan *out, unsigned *given, const char *text, int layers);

/* Reads a file of ah_plan_save: every key present, none unknown, right types and ranges, consistent with each other.
 * AH_EIO, AH_EINPUT; AH_ESTALE if another version of AutoHete wrote it. */
int ah__plan_read(struct ah_plan *out, const char *path);

/* ah__plan_tree makes the JSON tree that ah_plan_save writes; the caller deletes it, also after a failure.
 * ah__plan_from_tree reads a plan of any version from such a tree: one to be shown, not to be run. */
int ah__plan_tree(cJSON **out, const struct ah_plan *plan);
int ah__plan_from_tree(struct ah_plan *out, const struct ah_json *json);

/* Returns true if embedding and head may share a buffer in some plan of the model: the parameters of neither are needed
 * together with the other's. */
static inline bool ah__plan_has_ends(const struct ah_partition *partition)
{
    return partition->shared_group < 0 && !partition->code[AH_CLASS_EMBEDDING].backward_needs_params;
}

/* Checks that embedding and head may share a buffer, if the plan says so. AH_EINPUT: "embedding_head=shared: found X,
 * expected Y"; the caller prefixes. */
int ah__plan_check_ends(const struct ah_switches *switches, const struct ah_partition *partition);

/* Checks that a step has at least as many micro-batches as passes. AH_EINPUT; the caller prefixes. */
int ah__plan_check_passes(const struct ah_switches *switches, const struct ah_partition *partition);

/* Checks that a plan that was read is for this partition: layers and signature (ah_partition.signature) equal, switches
 * consistent. AH_ESTALE names the difference, AH_EINPUT the switch that is out of range; the caller prefixes the
 * file. */
int ah__plan_check(const struct ah_plan *plan, const struct ah_partition *partition);

#endif
