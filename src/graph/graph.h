/* The recorded graph: values and nodes on fake tensors, scopes, liveness. Never allocates tensor data.
 *
 * Takes recording calls (autohete.h) and gives a list of nodes in execution order. A value made in place has the memory
 * of input 0 (`storage`); the value it replaced may not be read any more. The same structure holds one partition's
 * forward and backward nodes while it is compiled. Must not know partitions, plans or devices. */
#ifndef AH_GRAPH_GRAPH_H
#define AH_GRAPH_GRAPH_H

#include "base/alloc.h"
#include "op/codes.h"
#include "op/op.h"

/* A scale is never recorded: partitions of micro-batches give their loss one. */
enum ah_value_kind {
    AH_VALUE_TOKENS,
    AH_VALUE_TARGETS,
    AH_VALUE_POSITIONS,
    AH_VALUE_CACHE,
    AH_VALUE_PARAM,
    AH_VALUE_ACTIVATION,
    AH_VALUE_SCALE
};

/* "the token ids", "a parameter", ... */
extern const char *const ah__value_names[];

struct ah_value {
    struct ah_meta meta;
    enum ah_value_kind kind;
    int producer;       /* node, -1 for tokens, targets, positions, parameters, a scale and what enters a partition */
    int storage;        /* the value whose memory this one is (itself unless made in place) */
    int overwritten_by; /* node that wrote over this value in place, -1: none */
    int scope;
    const char *name; /* parameters: full dotted name; else null, as of rows of them */
    int whole;        /* rows of a parameter: that parameter; else the value itself */
    int64_t first;    /* element of `whole` that it begins at */
    int64_t taken;    /* rows of it that are parameters to operators of their own */
    bool frozen;      /* a parameter that training leaves as it is */
    bool adapter;     /* a parameter that is an adapter's, not the model's own */
    enum ah_init init;
    float init_std;
};

struct ah_node {
    enum ah_op op;
    struct ah_attr attr;
    int in[AH_OP_MAX_INPUTS]; /* values, -1: absent */
    int out[AH_OP_MAX_OUTPUTS];
    int scope;
};

struct ah_scope {
    const char *name; /* its own part, "attn" */
    int parent;       /* -1: top level */
};

/* Names that were asked for, and whether the model has them. */
struct ah_graph_names {
    char **name;
    bool *found;
    size_t count;
};

/* Of a weight: its two factors, and what the first made of an input. */
struct ah_adapter {
    int whole, a, up, x, down; /* values */
};

struct ah_graph {
    struct ah_arena arena;
    enum ah_dtype compute;
    struct ah_value *values;
    struct ah_node *nodes;
    struct ah_scope *scopes;
    size_t value_count, node_count, scope_count, value_capacity, node_capacity, scope_capacity;
    int current_scope; /* -1: none */
    int tokens, targets, positions, loss;
    bool packed;   /* what depends on positions is given them; else they follow from a token's place */
    int64_t cache; /* rows of keys and values that attention keeps; 0: none */
    bool decodes;  /* attention sees what it has kept, and tokens are where their positions say */
    /* What is trained: see tuning.h. */
    struct ah_graph_names freeze, lora_targets; /* no targets: all linear layers */
    int lora_rank;                              /* 0: no adapters */
    float lora_scale;
    enum ah_codes codes;     /* of frozen matrices of blocks */
    const char *first_param; /* the model's first, as an example of a name */
    char **linears;          /* the last parts of linear layers' names */
    struct ah_adapter *adapters;
    size_t linear_count, linear_capacity, adapter_count, adapter_capacity;
    int status; /* first wrong recording call */
    char *message;
    bool finished;
    uint64_t config_hash; /* of the model's configuration text, 0: unknown; goes into signatures */
};

/* Appends a value that no node makes, whole in itself. *out receives its number. */
int ah__graph_value(struct ah_graph *graph, int *out, const struct ah_value *value);

/* The inputs of a node to be: ah__values(x, weight). What is absent is -1, or left out at the end. */
struct ah_values {
    const int *value;
    int count;
};
#define ah__values(...) ((struct ah_values){(const int[]){__VA_ARGS__}, (int)AH_LENGTH(((const int[]){__VA_ARGS__}))})

/* Appends a node after inferring its outputs; out[] receives the row's outputs. `given`: meta of output 0 where no
 * input determines it, else null. AH_EINPUT when shapes do not fit or an input was overwritten; AH_EINTERNAL for an
 * attribute that the operator does not have. */
int ah__graph_node(struct ah_graph *graph, enum ah_op op, const struct ah_attr *attr, struct ah_values in,
                   const struct ah_meta *given, int *out);

/* A parameter of an adapter by its full name. */
struct ah_tensor ah__graph_param_named(struct ah_graph *graph, const char *name, struct ah_shape shape,
                                       enum ah_init init, float std);
/* x [.., I] times weight [O, I], without an adapter. */
struct ah_tensor ah__graph_product(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight);
/* Whether a linear layer's weight is [O, I], as the product that reads it, or rows of it, says. */
bool ah__graph_is_out_in(const struct ah_graph *graph, int weight);
/* Keeps the failure that ah_error() holds; `what` was being recorded. */
struct ah_tensor ah__graph_remember(struct ah_graph *graph, int status, const char *what);

/* Top-level scope of a scope ("h.3" of "h.3.attn"), or -1. */
int ah__graph_top_scope(const struct ah_graph *graph, int scope);
/* The number of a block by its scope's name, "h.12" -> 12, with *prefix (null: not wanted) the bytes before the dot; -1
 * when the name does not end in a number behind a dot. */
int ah__scope_number(const char *name, size_t *prefix);
/* "h.3.attn" into text[size], "(top level)" for -1; returns text. */
char *ah__graph_scope_path(const struct ah_graph *graph, int scope, char *text, size_t size);

int64_t ah__value_bytes(const struct ah_value *value);
double ah__node_flops(const struct ah_graph *graph, const struct ah_node *node);

/* Liveness of the memory behind a value over a list of nodes: positions in the list of the first and the last node that
 * reads or writes it, -1 and -1 when none does. Indexed by value; meaningful where value == its own storage. */
struct ah_live {
    int first, last;
};
void ah__graph_live(struct ah_live *live, const struct ah_graph *graph, const int *nodes, int count);

#endif
