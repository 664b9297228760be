/* What selective recomputation makes again: of what backward reads all that costs little to make. */
#include "partition/compile.h"

/* Not bound by the traffic of its operands: a product of matrices, or attention. */
static bool is_dear(enum ah_op op)
{
    return ah__op_table[op]->limit != AH_OP_LIMIT_MEMORY;
}

/* When the block is recomputed: it entered, is made again by then, or was saved and is what its memory still holds. */
static bool is_there(const struct ah_section *section, const bool *cheap, const bool *saved, int value)
{
    const struct ah_value *v = &section->graph->values[value];
    if (v->producer < 0 || cheap[v->storage])
        return true;
    bool last = v->overwritten_by < 0 || v->overwritten_by >= section->forward_count;
    return saved[v->storage] && last;
}

static bool can_run_again(const struct ah_section *section, const bool *cheap, const bool *saved,
                          const struct ah_node *node)
{
    const struct ah_op_row *row = ah__op_table[node->op];
    bool can = !is_dear(node->op);
    for (int i = 0; can && i < row->inputs; i++)
        can = node->in[i] < 0 || is_there(section, cheap, saved, node->in[i]);
    for (int i = 0; can && i < row->outputs; i++)
        can = cheap[section->graph->values[node->out[i]].storage];
    return can;
}

/* From all that forward makes down to what holds together: memory that any operator that cannot run again writes is
 * not made again, nor is what was made of it and has no other source. */
void ah__cheap_find(bool *cheap, const struct ah_section *section, const bool *saved)
{
    const struct ah_graph *graph = section->graph;
    for (size_t v = 0; v < graph->value_count; v++)
        cheap[v] = graph->values[v].storage == (int)v && graph->values[v].producer >= 0 &&
                   graph->values[v].producer < section->forward_count;
    for (bool changed = true; changed;) {
        changed = false;
        for (int n = 0; n < section->forward_count; n++) {
            const struct ah_node *node = &graph->nodes[n];
            if (can_run_again(section, cheap, saved, node))
                continue;
            for (int i = 0; i < ah__op_table[node->op]->outputs; i++) {
                bool *mark = &cheap[graph->values[node->out[i]].storage];
                changed = changed || *mark;
                *mark = false;
            }
        }
    }
}
