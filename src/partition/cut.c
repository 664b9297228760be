#include "partition/cut.h"

#include <string.h>

enum { NAME_BYTES = 256 };

static const char *node_text(const struct ah_cut *cut, int number, char *text, size_t size)
{
    const struct ah_node *node = &cut->graph->nodes[number];
    char path[NAME_BYTES];
    snprintf(text, size, "%s in %s", ah__op_table[node->op]->name,
             ah__graph_scope_path(cut->graph, node->scope, path, sizeof path));
    return text;
}

static const char *top_name(const struct ah_cut *cut, int node)
{
    int top = ah__graph_top_scope(cut->graph, cut->graph->nodes[node].scope);
    return top < 0 ? "" : cut->graph->scopes[top].name;
}

char *ah__cut_name(const struct ah_cut *cut, int partition, char *text, size_t size)
{
    if (partition == 0 || partition == cut->layers + 1)
        snprintf(text, size, "%s", partition ? "head" : "embedding");
    else
        snprintf(text, size, "%s", top_name(cut, cut->first_node[partition]));
    return text;
}

/* ---- recognising blocks ----------------------------------------------------------------------------------------- */

struct scan {
    const char *first; /* name of block 0's scope */
    size_t prefix;
    bool after; /* the head has begun */
};

static int scan_block(struct ah_cut *cut, struct scan *scan, int node, int number, size_t prefix)
{
    const char *name = top_name(cut, node);
    char text[NAME_BYTES];
    if (scan->first && (prefix != scan->prefix || strncmp(name, scan->first, prefix) != 0))
        return ah__fail(AH_EINPUT, "scope '%s': found a second family of blocks, expected one (%s)", name, scan->first);
    if (scan->after)
        return ah__fail(AH_EINPUT,
                        "scope '%s': %s stands after operators outside the blocks, expected blocks without a gap", name,
                        node_text(cut, node, text, sizeof text));
    if (number == cut->layers - 1)
        return AH_OK;
    if (number != cut->layers)
        return ah__fail(AH_EINPUT, "scope '%s': found block %d, expected block %d", name, number, cut->layers);
    if (!scan->first) {
        scan->first = name;
        scan->prefix = prefix;
    }
    cut->first_node[++cut->layers] = node;
    return AH_OK;
}

static int find_blocks(struct ah_cut *cut)
{
    struct scan scan = {0};
    int count = (int)cut->graph->node_count;
    for (int n = 0; n < count; n++) {
        size_t prefix = 0;
        int number = ah__scope_number(top_name(cut, n), &prefix);
        if (number >= 0)
            AH_TRY(scan_block(cut, &scan, n, number, prefix));
        else if (cut->layers && !scan.after) {
            scan.after = true;
            cut->first_node[cut->layers + 1] = n;
        }
    }
    if (!cut->layers)
        return ah__fail(AH_EINPUT, "the graph has no blocks, expected top-level scopes NAME.0, NAME.1, ...");
    if (!scan.after)
        return ah__fail(AH_EINPUT, "the loss is computed in block '%s', expected outside the blocks",
                        top_name(cut, count - 1));
    cut->first_node[cut->layers + 2] = count;
    return AH_OK;
}

/* ---- frozen lowest blocks --------------------------------------------------------------------------------------- */

static bool is_frozen(const struct ah_cut *cut, int partition)
{
    const struct ah_graph *graph = cut->graph;
    for (int n = cut->first_node[partition]; n < cut->first_node[partition + 1]; n++)
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++) {
            int value = graph->nodes[n].in[i];
            if (value >= 0 && graph->values[value].kind == AH_VALUE_PARAM && !graph->values[value].frozen)
                return false;
        }
    return true;
}

/* Finds the frozen lowest blocks. A plan has at least one block: if all are frozen, the highest stays a block. Not with
 * adapters, which all blocks have, and not for inference. */
static void find_frozen(struct ah_cut *cut)
{
    int frozen = 0;
    if (cut->infers || cut->graph->lora_rank > 0)
        return;
    while (frozen <= cut->layers && is_frozen(cut, frozen))
        frozen++;
    cut->still = frozen > 0;
    if (cut->still)
        cut->below = frozen <= cut->layers ? frozen - 1 : cut->layers - 1;
}

/* ---- values that cross boundaries ------------------------------------------------------------------------------- */

static int partition_of(const struct ah_cut *cut, int node)
{
    int partition = 0;
    while (node >= cut->first_node[partition + 1])
        partition++;
    return partition;
}

static int read_param(struct ah_cut *cut, int partition, int part, int node)
{
    char owner[NAME_BYTES], text[NAME_BYTES];
    int value = cut->graph->values[part].whole;
    if (cut->owner[value] < 0)
        cut->owner[value] = partition;
    if (cut->owner[value] == partition)
        return AH_OK;
    if (cut->owner[value] == 0 && partition == cut->layers + 1) {
        cut->shared_by[value] = partition;
        cut->shared = true;
        return AH_OK;
    }
    return ah__fail(
        AH_EINPUT,
        "parameter '%s' of %s is also read by %s: only the head may share parameters, and only the embedding's",
        cut->graph->values[value].name, ah__cut_name(cut, cut->owner[value], owner, sizeof owner),
        node_text(cut, node, text, sizeof text));
}

static int read_activation(struct ah_cut *cut, int partition, int value, int node)
{
    const struct ah_value *v = &cut->graph->values[value];
    char text[NAME_BYTES], made[NAME_BYTES], name[NAME_BYTES];
    if (v->producer >= cut->first_node[partition])
        return AH_OK;
    if (v->producer < cut->first_node[partition - 1])
        return ah__fail(AH_EINPUT, "%%%d, made by %s, is read by %s: an activation may enter only the next partition",
                        value, node_text(cut, v->producer, made, sizeof made), node_text(cut, node, text, sizeof text));
    if (cut->entering[partition] < 0)
        cut->entering[partition] = value;
    if (cut->entering[partition] == value)
        return AH_OK;
    return ah__fail(AH_EINPUT, "%%%d, made by %s, enters %s beside %%%d: expected one activation at each boundary",
                    value, node_text(cut, v->producer, made, sizeof made),
                    ah__cut_name(cut, partition, name, sizeof name), cut->entering[partition]);
}

static int read_value(struct ah_cut *cut, int partition, int value, int node)
{
    char text[NAME_BYTES];
    switch (cut->graph->values[value].kind) {
    case AH_VALUE_PARAM:
        return read_param(cut, partition, value, node);
    case AH_VALUE_ACTIVATION:
        return read_activation(cut, partition, value, node);
    case AH_VALUE_TOKENS:
        if (partition == 0)
            return AH_OK;
        return ah__fail(AH_EINPUT, "%s reads the token ids: only the embedding may",
                        node_text(cut, node, text, sizeof text));
    case AH_VALUE_TARGETS:
        if (partition == cut->layers + 1)
            return AH_OK;
        return ah__fail(AH_EINPUT, "%s reads the targets: only the head may", node_text(cut, node, text, sizeof text));
    case AH_VALUE_CACHE:
        if (partition > 0 && partition <= cut->layers)
            return AH_OK;
        return ah__fail(AH_EINPUT, "%s keeps keys and values: only blocks may",
                        node_text(cut, node, text, sizeof text));
    case AH_VALUE_POSITIONS:
    case AH_VALUE_SCALE:
        break;
    }
    return AH_OK;
}

/* Checks that all boundary activations have one shape, also that of a single block, which is not compared with
 * others. */
static int check_shapes(const struct ah_cut *cut)
{
    char a[96], b[96], name[NAME_BYTES];
    const struct ah_shape *first = &cut->graph->values[cut->entering[1]].meta.shape;
    for (int p = 2; p < cut->layers + 2; p++) {
        const struct ah_shape *shape = &cut->graph->values[cut->entering[p]].meta.shape;
        if (!ah__shape_equal(first, shape))
            return ah__fail(AH_EINPUT, "block '%s' makes %s, expected %s as enters the first block",
                            ah__cut_name(cut, p - 1, name, sizeof name), ah__shape_format(a, sizeof a, shape),
                            ah__shape_format(b, sizeof b, first));
    }
    return AH_OK;
}

static int find_crossings(struct ah_cut *cut)
{
    int partition = 0;
    char name[NAME_BYTES];
    for (int n = 0; n < (int)cut->graph->node_count; n++) {
        partition = n >= cut->first_node[partition + 1] ? partition_of(cut, n) : partition;
        for (int i = 0; i < AH_OP_MAX_INPUTS; i++)
            if (cut->graph->nodes[n].in[i] >= 0)
                AH_TRY(read_value(cut, partition, cut->graph->nodes[n].in[i], n));
    }
    cut->entering[0] = cut->graph->tokens;
    for (int p = 1; p < cut->layers + 2; p++)
        if (cut->entering[p] < 0)
            return ah__fail(AH_EINPUT, "%s reads nothing that the partition before it made",
                            ah__cut_name(cut, p, name, sizeof name));
    return check_shapes(cut);
}

static int new_ints(struct ah_arena *arena, int **out, size_t count)
{
    AH_TRY(ah__arena_new(arena, out, count, sizeof **out));
    for (size_t i = 0; i < count; i++)
        (*out)[i] = -1;
    return AH_OK;
}

int ah__cut_init(struct ah_cut *cut, const struct ah_graph *graph, bool infers)
{
    *cut = (struct ah_cut){.graph = graph, .infers = infers};
    AH_TRY(new_ints(&cut->arena, &cut->first_node, graph->node_count + 3));
    cut->first_node[0] = 0;
    AH_TRY(find_blocks(cut));
    find_frozen(cut);
    AH_TRY(new_ints(&cut->arena, &cut->entering, (size_t)cut->layers + 2));
    AH_TRY(new_ints(&cut->arena, &cut->owner, graph->value_count));
    AH_TRY(new_ints(&cut->arena, &cut->shared_by, graph->value_count));
    return find_crossings(cut);
}

void ah__cut_fini(struct ah_cut *cut)
{
    ah__arena_free(&cut->arena);
}
