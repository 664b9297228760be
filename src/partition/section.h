/* One partition as a graph of its own: forward operators, then the backward operators of reverse-mode autodiff.
 *
 * Takes a cut, gives a list of operators over values; no value has a place in memory yet. A value that backward reads,
 * or that entered, is never written over: where the model does so, a sum changes sides or a copy is made. Private to
 * partition/. */
#ifndef AH_PARTITION_SECTION_H
#define AH_PARTITION_SECTION_H

#include "autodiff/autodiff.h"
#include "partition/cut.h"

struct ah_section {
    struct ah_graph *graph;
    int forward_count;                /* nodes [0, forward_count) are forward, the others backward */
    int input;                        /* what enters (token ids for the embedding) */
    int output;                       /* what leaves, -1 for the head */
    int loss;                         /* head, else -1 */
    int scale;                        /* what the loss is multiplied by instead of being a mean, F32 [1]; -1: nothing */
    int dout;                         /* gradient of output, the first thing backward reads; -1 for the head */
    int din;                          /* gradient of input, -1 for the embedding */
    struct ah_autodiff_param *params; /* that the section reads */
    int *recorded;                    /* by index in params: the parameter in the recorded graph */
    struct ah_autodiff_grad *grads;
    size_t param_count, grad_count, param_capacity, recorded_capacity;
};

/* Of partition `number` of the cut. Of a block below, output may be where input is. AH_EINTERNAL, AH_ENOMEM. Freed by
 * ah__section_fini, also after failure. */
int ah__section_init(struct ah_section *section, const struct ah_cut *cut, int number);
void ah__section_fini(struct ah_section *section);

#endif
