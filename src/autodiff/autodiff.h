/* Reverse-mode differentiation of a graph.
 *
 * Takes a graph whose nodes so far are forward operators, appends the operators that compute gradients, and gives for
 * every parameter that is not frozen the values that make up its gradient. Gradient rules are in one file per family of
 * operators in this folder. Must not know partitions, addresses or devices. */
#ifndef AH_AUTODIFF_AUTODIFF_H
#define AH_AUTODIFF_AUTODIFF_H

#include "graph/graph.h"

/* A parameter of the graph. */
struct ah_autodiff_param {
    int value;
    bool written; /* its gradient has been written before: new operators add to it; updated */
    bool frozen;  /* it has no gradient */
};

/* A value that is the gradient of a parameter, or a part of it. */
struct ah_autodiff_grad {
    int value;
    int param; /* index in params */
};

struct ah_autodiff {
    struct ah_graph *graph;
    int forward_count;                /* nodes [0, forward_count) are differentiated */
    int output;                       /* value whose gradient is given, -1: the graph ends in a loss */
    int loss;                         /* scalar that is differentiated, -1: none */
    int input;                        /* value whose gradient is wanted, -1: none */
    struct ah_autodiff_param *params; /* every parameter that the nodes read */
    size_t param_count;
    /* results */
    int dout;                       /* gradient of output, a value without a producer; -1 without output */
    int din;                        /* gradient of input, -1 without input */
    struct ah_autodiff_grad *grads; /* in the order they are computed; freed by the caller with ah__free, also after
                                       failure */
    size_t grad_count, grad_capacity;
};

/* Differentiates. AH_EINTERNAL if a node's result reaches neither output nor loss; AH_ENOMEM. */
int ah__autodiff(struct ah_autodiff *diff);

#endif
