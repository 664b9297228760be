/* Cuts the graph into embedding, blocks and head. Takes a finished graph, gives for every operator its partition, for
 * every boundary the one activation that crosses it, for every parameter its owner. Private to partition/.
 *
 * If the embedding and the lowest blocks are frozen, nothing below the first trained block is learned: backward ends
 * there. */
#ifndef AH_PARTITION_CUT_H
#define AH_PARTITION_CUT_H

#include "graph/graph.h"
#include "partition/partition.h"

struct ah_cut {
    struct ah_arena arena;
    const struct ah_graph *graph;
    int layers;      /* blocks */
    int below;       /* the frozen lowest blocks, which have no backward */
    int *first_node; /* [layers + 3]: partition p has nodes first_node[p] .. first_node[p+1]-1 */
    int *entering;   /* [layers + 2]: the activation that enters partition p; for partition 0 the token ids */
    int *owner;      /* per value: the first partition that reads a parameter or its rows; -1 for other values */
    int *shared_by;  /* per value: layers + 1 if the head also reads a parameter of the embedding, else -1 */
    bool shared;     /* the head reads a parameter of the embedding */
    bool infers;     /* sections have no backward, and nothing is frozen */
    bool still;      /* the embedding and the frozen lowest blocks have no backward either, since all of them is
                      * frozen */
    bool scaled;     /* sections give their loss a scale; set by the caller, false at first */
};

/* Cuts a graph. AH_EINPUT: the message names the operator or value that prevents it. Freed by ah__cut_fini, also after
 * failure. */
int ah__cut_init(struct ah_cut *cut, const struct ah_graph *graph, bool infers);
void ah__cut_fini(struct ah_cut *cut);
/* Returns true if a partition has a backward. */
static inline bool ah__cut_learns(const struct ah_cut *cut, int partition)
{
    return !cut->infers && !(partition <= cut->below && cut->still);
}
/* Writes "embedding", "h.3" or "head" into text[size]; returns text. */
char *ah__cut_name(const struct ah_cut *cut, int partition, char *text, size_t size);

/* Checks that all blocks have equal operators, shapes, parameters and operands; frozen lowest blocks and the others are
 * compared each among themselves. Fills class_of [layers + 2], by partition number, and class_count and `like` of the
 * partition: blocks have different classes if they differ in attributes or only one is below. `param_of`: value ->
 * index of a parameter; `first_param`: partition -> index of its first. */
int ah__cut_classes(struct ah_partition *partition, uint8_t *class_of, const struct ah_cut *cut, const int *first_param,
                    const int *param_of);

#endif
