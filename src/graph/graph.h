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

/* A scale is never recorded: it is the factor of the loss that partitions of micro-batches receive. */
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
    int producer; /* node; -1: no node (tokens, targets, positions, parameters, a scale and a partition's inputs) */
    int storage;  /* value whose memory this value uses (itself unless made in place) */
    int overwritten_by; /* node that wrote over this value in place, -1: none */
    int scope;
    const char *name; /* full dotted name of a parameter; else null, also for rows of a parameter */
    int whole;        /* rows of a parameter: that parameter; else the value itself */
    int64_t first;    /* element of `whole` at which these rows begin */
    int64_t taken;    /* rows of this parameter that operators read as parameters of their own */
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
    const char *name; /* the scope's own part of its path, "attn" */
    int parent;       /* -1: top level */
};

/* Names that the user asked for, and for each whether the model has it. */
struct ah_graph_names {
    char **name;
    bool *found;
    size_t count;
};

/* The adapter of a weight: its factors `a` and `up`, and `down`, the scaled product of `a` and input `x`. */
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
    bool packed;   /* positions are an input of their own; else a token's place is its position */
    int64_t cache; /* rows of keys and values that attention keeps; 0: none */
    bool decodes;  /* attention reads the cache, and the positions say where tokens are */
    /* The part of the model that is trained: see tuning.h. */
    struct ah_graph_names freeze, lora_targets; /* no targets: all linear layers */
    int lora_rank;                              /* 0: no adapters */
    bool lora_experts;                          /* without targets experts have adapters, too */
    float lora_scale;
    enum ah_codes codes;     /* format of frozen matrices of blocks */
    const char *first_param; /* name of the model's first parameter, an example for messages */
    char **linears;          /* the last parts of linear layers' names */
    struct ah_adapter *adapters;
    size_t linear_count, linear_capacity, adapter_count, adapter_capacity;
    int status; /* status of the first wrong recording call, else AH_OK */
    char *message;
    bool finished;
    uint64_t config_hash; /* hash of the model's configuration text, 0: unknown; goes into signatures */
};

/* Appends a value without a producer, with memory of its own. *out receives its number. */
int ah__graph_value(struct ah_graph *graph, int *out, const struct ah_value *value);

/* The inputs of a new node, as in ah__values(x, weight). An absent input is -1, or left out at the end. */
struct ah_values {
    const int *value;
    int count;
};
#define ah__values(...) ((struct ah_values){(const int[]){__VA_ARGS__}, (int)AH_LENGTH(((const int[]){__VA_ARGS__}))})

/* Appends a node after inferring its outputs. out[] receives as many values as the operator's row has outputs. `given`:
 * meta of output 0 if no input determines it, else null. AH_EINPUT if shapes do not fit or an input was overwritten;
 * AH_EINTERNAL if the operator does not have an attribute that is set. */
int ah__graph_node(struct ah_graph *graph, enum ah_op op, const struct ah_attr *attr, struct ah_values in,
                   const struct ah_meta *given, int *out);

/* Records a parameter of an adapter by its full name. */
struct ah_tensor ah__graph_param_named(struct ah_graph *graph, const char *name, struct ah_shape shape,
                                       enum ah_init init, float std);
/* Records an operator after checking its inputs. */
struct ah_tensor ah__graph_record(struct ah_graph *graph, enum ah_op op, struct ah_attr attr, struct ah_values in);
/* The same for an operator with several results: out[] receives all of them. False: a call was wrong. */
bool ah__graph_record_all(int *out, struct ah_graph *graph, enum ah_op op, struct ah_attr attr, struct ah_values in);
/* Returns true if the linear layer that reads `weight`, or rows of it, has it as [O, I]; false for [I, O] and if no
 * linear layer reads it. */
bool ah__graph_is_out_in(const struct ah_graph *graph, int weight);
/* Keeps the failure that ah_error() holds as the graph's; `what` was being recorded. */
struct ah_tensor ah__graph_remember(struct ah_graph *graph, int status, const char *what);

/* Returns the top-level scope of a scope ("h.3" of "h.3.attn"), or -1. */
int ah__graph_top_scope(const struct ah_graph *graph, int scope);
/* Returns the number of a block by its scope's name, "h.12" -> 12; -1 if the name does not end in a dot and a number.
 * *prefix receives the bytes before the dot; null: not wanted. */
int ah__scope_number(const char *name, size_t *prefix);
/* Writes "h.3.attn" to text[size], "(top level)" for -1; returns text. */
char *ah__graph_scope_path(const struct ah_graph *graph, int scope, char *text, size_t size);

int64_t ah__value_bytes(const struct ah_value *value);
double ah__node_flops(const struct ah_graph *graph, const struct ah_node *node);

/* Liveness of the memory behind a value over a list of nodes: positions in the list of the first and the last node that
 * reads or writes it; -1 and -1 if no node does. Indexed by value; meaningful only for a value with storage of its
 * own. */
struct ah_live {
    int first, last;
};
void ah__graph_live(struct ah_live *live, const struct ah_graph *graph, const int *nodes, int count);

#endif
