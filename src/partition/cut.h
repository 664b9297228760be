/* Where the graph is cut: embedding, blocks, head. Takes a finished graph, gives for every operator its partition, for
 * every boundary the one activation that crosses it, for every parameter its owner. Private to partition/.
 *
 * Where the embedding and the lowest blocks are frozen, nothing is learned from what reaches them: backward ends above
 * them. Those blocks go with the embedding: their forward follows its own. */
#ifndef AH_PARTITION_CUT_H
#define AH_PARTITION_CUT_H

#include "graph/graph.h"
#include "partition/partition.h"

struct ah_cut {
    struct ah_arena arena;
    const struct ah_graph *graph;
    int layers;      /* all of the model's blocks */
    int below;       /* the lowest of them, which go with the embedding */
    int *first_node; /* [layers + 3]: partition p holds nodes first_node[p] .. first_node[p+1]-1 */
    int *entering;   /* [layers + 2]: the activation that enters partition p; of partition 0 the token ids */
    int *owner;      /* per value: the first partition that reads a parameter or its rows; -1 for other values */
    int *shared_by;  /* per value: layers + 1 when the head reads a parameter of the embedding too, else -1 */
    bool shared;     /* some parameter is */
    bool infers;     /* sections have no backward, and nothing is frozen */
    bool still;      /* the embedding has none either, nor have the blocks below: all of it is frozen */
    bool scaled;     /* sections give their loss a scale; the caller's, false at first */
};

/* AH_EINPUT says which operator or value stands in the way. Freed by ah__cut_fini, also after failure. */
int ah__cut_init(struct ah_cut *cut, const struct ah_graph *graph, bool infers);
void ah__cut_fini(struct ah_cut *cut);
/* Whether backward makes anything in a partition. */
static inline bool ah__cut_learns(const struct ah_cut *cut, int partition)
{
    return !cut->infers && !(partition <= cut->below && cut->still);
}
/* "embedding", "h.3", "head" into text[size]; returns text. */
char *ah__cut_name(const struct ah_cut *cut, int partition, char *text, size_t size);

/* Proves all blocks equal in operators, shapes, parameters and operands; those below and those above each among
 * themselves. class_of [layers + 2], by partition number: blocks that differ in attributes are of different classes, of
 * which there are *class_count; the lowest block above is of AH_CLASS_BLOCK. `param_of`: value -> index of a parameter;
 * `first_param`: partition -> index of its first. */
int ah__cut_classes(uint8_t *class_of, int *class_count, const struct ah_cut *cut, const int *first_param,
                    const int *param_of);

#endif
