/* Checks that all blocks have one structure, so that programs compiled from the first block of a class run every block
 * of it. */
#include "partition/cut.h"

enum { NAME_BYTES = 256 };

struct pair {
    const struct ah_cut *cut;
    const int *first_param, *param_of;
    int a, b; /* partitions compared */
};

static const struct ah_node *node_at(const struct pair *pair, int block, int at)
{
    return &pair->cut->graph->nodes[pair->cut->first_node[block] + at];
}

static int differ(const struct pair *pair, int at, const char *how, const char *a, const char *b)
{
    char name_a[NAME_BYTES], name_b[NAME_BYTES], scope[NAME_BYTES];
    const struct ah_graph *graph = pair->cut->graph;
    const struct ah_node *node = node_at(pair, pair->a, at);
    return ah__fail(AH_EINPUT, "blocks '%s' and '%s' differ at operator %d (%s in %s): %s: %s against %s",
                    ah__cut_name(pair->cut, pair->a, name_a, sizeof name_a),
                    ah__cut_name(pair->cut, pair->b, name_b, sizeof name_b), at, ah__op_table[node->op]->name,
                    ah__graph_scope_path(graph, node->scope, scope, sizeof scope), how, a, b);
}

/* Writes an operand as text: two operands with the same text are the same operand of the same block structure. */
static void operand_text(const struct pair *pair, int block, int value, char *text, size_t size)
{
    const struct ah_value *v = value < 0 ? NULL : &pair->cut->graph->values[value];
    char shape[96], from[48] = "";
    int first = pair->cut->first_node[block], out = 0;
    if (!v) {
        snprintf(text, size, "absent");
        return;
    }
    ah__shape_format(shape, sizeof shape, &v->meta.shape);
    if (v->first > 0)
        snprintf(from, sizeof from, " from element %lld", (long long)v->first);
    if (v->kind == AH_VALUE_PARAM)
        snprintf(text, size, "%s %d %s%s", v->frozen ? "frozen parameter" : "parameter",
                 pair->param_of[value] - pair->first_param[block], shape, from);
    else if (v->kind == AH_VALUE_CACHE && v->producer < 0)
        snprintf(text, size, "a cache %s", shape);
    else if (v->kind == AH_VALUE_POSITIONS)
        snprintf(text, size, "the positions %s", shape);
    else if (v->producer < first)
        snprintf(text, size, "the block's input %s", shape);
    else {
        while (pair->cut->graph->nodes[v->producer].out[out] != value)
            out++;
        snprintf(text, size, "result %d of operator %d %s", out, v->producer - first, shape);
    }
}

/* Returns the parameter that an operand is or is a part of; null: it is not a parameter. */
static const struct ah_value *param_at(const struct pair *pair, int value)
{
    const struct ah_value *values = pair->cut->graph->values;
    return value >= 0 && values[value].kind == AH_VALUE_PARAM ? &values[values[value].whole] : NULL;
}

/* Checks that the same parameters of both blocks are frozen. Called before operands are compared, since frozen
 * parameters have other positions in their group. */
static int compare_frozen(const struct pair *pair, int count)
{
    for (int at = 0; at < count; at++)
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++) {
            const struct ah_value *a = param_at(pair, node_at(pair, pair->a, at)->in[i]);
            const struct ah_value *b = param_at(pair, node_at(pair, pair->b, at)->in[i]);
            if (a && b && a->frozen != b->frozen)
                return ah__fail(AH_EINPUT,
                                "freeze: found %s frozen and %s not, expected the same of all blocks, or all of the "
                                "embedding and of the lowest blocks",
                                a->frozen ? a->name : b->name, a->frozen ? b->name : a->name);
        }
    return AH_OK;
}

static int compare_operand(const struct pair *pair, int at, const char *side, int index, int value_a, int value_b)
{
    char a[160], b[160], how[32];
    operand_text(pair, pair->a, value_a, a, sizeof a);
    operand_text(pair, pair->b, value_b, b, sizeof b);
    for (size_t i = 0; a[i] == b[i]; i++)
        if (!a[i])
            return AH_OK;
    snprintf(how, sizeof how, "%s %d", side, index);
    return differ(pair, at, how, a, b);
}

static int compare_node(const struct pair *pair, int at)
{
    const struct ah_node *a = node_at(pair, pair->a, at), *b = node_at(pair, pair->b, at);
    if (a->op != b->op)
        return differ(pair, at, "operator", ah__op_table[a->op]->name, ah__op_table[b->op]->name);
    for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
        AH_TRY(compare_operand(pair, at, "input", i, a->in[i], b->in[i]));
    for (int i = 0; i < AH_OP_MAX_OUTPUTS; i++)
        AH_TRY(compare_operand(pair, at, "output", i, a->out[i], b->out[i]));
    return AH_OK;
}

static int count_of(const struct pair *pair, int block)
{
    return pair->cut->first_node[block + 1] - pair->cut->first_node[block];
}

static int compare_ends(const struct pair *pair)
{
    char a[160], b[160];
    int count = count_of(pair, pair->a);
    if (count_of(pair, pair->b) != count) {
        snprintf(a, sizeof a, "%d", count);
        snprintf(b, sizeof b, "%d", count_of(pair, pair->b));
        return differ(pair, count - 1, "number of operators", a, b);
    }
    return compare_operand(pair, count - 1, "what leaves,", 0, pair->cut->entering[pair->a + 1],
                           pair->cut->entering[pair->b + 1]);
}

/* Compares two blocks in everything but attributes. */
static int compare(struct pair pair, int a, int b)
{
    const struct ah_cut *cut = pair.cut;
    pair.a = a;
    pair.b = b;
    int shorter = count_of(&pair, a) < count_of(&pair, b) ? count_of(&pair, a) : count_of(&pair, b);
    if (cut->graph->lora_rank == 0)
        AH_TRY(compare_frozen(&pair, shorter));
    for (int at = 0; at < shorter; at++)
        AH_TRY(compare_node(&pair, at));
    return compare_ends(&pair);
}

static bool attrs_equal(const struct ah_cut *cut, int a, int b)
{
    const struct ah_node *nodes = cut->graph->nodes;
    int count = cut->first_node[a + 1] - cut->first_node[a];
    if (cut->first_node[b + 1] - cut->first_node[b] != count)
        return false;
    for (int at = 0; at < count; at++)
        if (!ah__attr_equal(&nodes[cut->first_node[a] + at].attr, &nodes[cut->first_node[b] + at].attr))
            return false;
    return true;
}

/* Returns the class of a block among classes [first, count), or `count`. block_of: a block of each class. */
static int class_find(const struct pair *pair, const int block_of[AH_CLASSES_MOST], int first, int count, int block)
{
    int class = first;
    while (class < count && !(ah__class_is_block(class) && attrs_equal(pair->cut, block_of[class], block)))
        class ++;
    return class;
}

/* The classes of blocks [first, last], from `from` on. */
static int find_classes(struct ah_partition *partition, uint8_t *class_of, int block_of[AH_CLASSES_MOST],
                        const struct pair *pair, int first, int last, int from)
{
    int *count = &partition->class_count;
    int above = *count;
    for (int block = first; block <= last; block++) {
        AH_TRY(compare(*pair, first, block));
        int class = class_find(pair, block_of, from, *count, block);
        if (class == AH_CLASSES_MOST)
            return ah__fail(AH_EINPUT, "found more than %d kinds of blocks, which differ in attributes",
                            AH_CLASSES_MOST - AH_CLASS_COUNT + 1);
        if (class == *count) {
            int like = class_find(pair, block_of, AH_CLASS_BLOCK, above, block);
            partition->like[class] = from == AH_CLASS_BLOCK ? class : like < above ? like : AH_CLASS_BLOCK;
            block_of[(*count)++] = block;
        }
        class_of[block] = (uint8_t) class;
    }
    return AH_OK;
}

int ah__cut_classes(struct ah_partition *partition, uint8_t *class_of, const struct ah_cut *cut, const int *first_param,
                    const int *param_of)
{
    const struct pair pair = {.cut = cut, .first_param = first_param, .param_of = param_of};
    int above = cut->below + 1, block_of[AH_CLASSES_MOST] = {[AH_CLASS_BLOCK] = above};
    partition->class_count = AH_CLASS_COUNT;
    for (int class = 0; class < AH_CLASS_COUNT; class ++)
        partition->like[class] = class;
    class_of[0] = AH_CLASS_EMBEDDING;
    class_of[cut->layers + 1] = AH_CLASS_HEAD;
    AH_TRY(find_classes(partition, class_of, block_of, &pair, above, cut->layers, AH_CLASS_BLOCK));
    return find_classes(partition, class_of, block_of, &pair, 1, cut->below, partition->class_count);
}
