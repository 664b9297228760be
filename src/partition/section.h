/* One partition as a graph of its own: forward operators, then the backward operators of reverse-mode autodiff.
 *
 * Takes a cut, gives a list of operators over values, which have no memory yet. A value that backward reads, or the
 * input, is never overwritten: if the model overwrites it, a sum overwrites its other operand or a copy is made.
 * Private to partition/. */
#ifndef AH_PARTITION_SECTION_H
#define AH_PARTITION_SECTION_H

#include "autodiff/autodiff.h"
#include "partition/cut.h"

struct ah_section {
    struct ah_graph *graph;
    int forward_count;                /* nodes [0, forward_count) are forward, the others backward */
    int input;                        /* the input activation (token ids for the embedding) */
    int output;                       /* the output activation, -1 for the head */
    int loss;                         /* for the head, else -1 */
    int scale;                        /* F32 [1], multiplies the loss, which then is no mean; -1: the loss is a mean */
    int dout;                         /* gradient of output, the first value that backward reads; -1 for the head */
    int din;                          /* gradient of input, -1 for the embedding */
    struct ah_autodiff_param *params; /* parameters that the section reads */
    int *recorded;                    /* by index in params: the parameter in the recorded graph */
    struct ah_autodiff_grad *grads;
    size_t param_count, grad_count, param_capacity, recorded_capacity;
};

/* Makes the section of partition `number` of the cut. The output of a frozen lowest block may be in its input's memory.
 * AH_EINTERNAL, AH_ENOMEM. Freed by ah__section_fini, also after failure. */
int ah__section_init(struct ah_section *section, const struct ah_cut *cut, int number);
void ah__section_fini(struct ah_section *section);

#endif
