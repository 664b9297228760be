/* One partition as a graph of its own: forward operators, then the backward operators of reverse-mode autodiff.
 *
 * Takes a cut, gives a list of operators over values; no value has a place in memory yet. A value that backward reads, or that
 * entered, is never written over: where the model does so, a sum changes sides or a copy is made. Private to partition/. */
#ifndef AH_PARTITION_SECTION_H
#define AH_PARTITION_SECTION_H

#include "partition/cut.h"

/* A parameter the section reads. */
struct ah_section_param {
    int value; /* in the section's graph */
    int main;  /* value in the recorded graph */
    bool written; /* some operator before has written its gradient: later ones add */
};

/* A value that is the gradient of a parameter, or a part of it. */
struct ah_section_grad {
    int value;
    int param; /* index in params */
};

struct ah_section {
    struct ah_graph *graph;
    int forward_count; /* nodes [0, forward_count) are forward, the others backward */
    int input;         /* what enters (token ids for the embedding) */
    int output;        /* what leaves, -1 for the head */
    int loss;          /* head, else -1 */
    int dout;          /* gradient of output, the first thing backward reads; -1 for the head */
    int din;           /* gradient of input, -1 for the embedding */
    struct ah_section_param *params;
    struct ah_section_grad *grads;
    size_t param_count, grad_count, param_capacity, grad_capacity;
};

/* Of partition `number` of the cut. AH_EINTERNAL, AH_ENOMEM. Freed by ah__section_fini, also after failure. */
int ah__section_init(struct ah_section *section, const struct ah_cut *cut, int number);
void ah__section_fini(struct ah_section *section);

/* Appends the backward operators; called by ah__section_init. */
int ah__section_differentiate(struct ah_section *section);

/* Operands of a forward operator that its backward reads, as bits over inputs and outputs. */
struct ah_backward_reads {
    unsigned in, out;
};
struct ah_backward_reads ah__backward_reads(enum ah_op op);

#endif
