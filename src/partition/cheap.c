/* Finds the values that selective recomputation recomputes: those that backward reads and that are cheap to compute. */
#include "partition/compile.h"

/* Returns true for operators whose time is not bound by memory traffic: matrix products and attention. */
static bool is_dear(enum ah_op op)
{
    return ah__op_table[op]->limit != AH_OP_LIMIT_MEMORY;
}

/* Returns true if a value is available when the block recomputes: it entered the block, is recomputed by then, or was
 * saved and not overwritten. */
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

/* Starts with all storages that forward writes, and removes, until nothing changes, those written by an operator that
 * cannot run again, since they and the values computed from them have no other source. */
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
