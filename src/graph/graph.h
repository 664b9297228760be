/* The recorded graph: values and nodes on fake tensors, scopes, autodiff, liveness. Never allocates tensor data. */
#ifndef AH_GRAPH_GRAPH_H
#define AH_GRAPH_GRAPH_H

#include "base/alloc.h"
#include "op/op.h"

enum ah_value_kind { AH_VALUE_TOKENS, AH_VALUE_TARGETS, AH_VALUE_PARAM, AH_VALUE_ACTIVATION };

struct ah_value {
    struct ah_meta meta;
    enum ah_value_kind kind;
    int producer; /* node, -1 for tokens, targets and parameters */
    int storage;  /* the value whose memory this one is (itself unless made in place) */
    int scope;
    const char *name; /* parameters: full dotted name; else null */
    enum ah_init init;
    float init_std;
};

struct ah_node {
    enum ah_op op;
    struct ah_attr attr;
    int in[AH_OP_MAX_INPUTS];  /* values, -1: absent */
    int out[AH_OP_MAX_OUTPUTS];
    int scope;
};

struct ah_scope {
    const char *name; /* its own part, "attn" */
    int parent;       /* -1: top level */
};

struct ah_graph {
    struct ah_arena arena;
    enum ah_dtype compute;
    struct ah_value *values;
    struct ah_node *nodes;
    struct ah_scope *scopes;
    size_t value_count, node_count, scope_count, value_capacity, node_capacity, scope_capacity;
    int current_scope; /* -1: none */
    int tokens, targets, loss;
    int status;        /* first wrong recording call */
    char *message;
    bool finished;
};

/* Appends a node after inferring its outputs; out[] receives output values. Shared by recording and autodiff. */
int ah__graph_node(struct ah_graph *graph, enum ah_op op, const struct ah_attr *attr, const int *in, int *out);

/* Top-level scope of a node or value ("h.3"), or -1. */
int ah__graph_top_scope(const struct ah_graph *graph, int scope);

#endif
