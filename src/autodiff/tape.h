/* Tape: the functions that gradient rules use. Private to autodiff/.
 *
 * Several values may hold one gradient's memory (a residual sum passes one gradient to both sides), so it is
 * overwritten only while exactly one value still holds it. */
#ifndef AH_AUTODIFF_TAPE_H
#define AH_AUTODIFF_TAPE_H

#include "autodiff/autodiff.h"

/* State of one value of the graph. */
struct ah_grad_state {
    int grad_plus_1; /* forward values: the gradient so far plus 1; 0: no gradient */
    int holders;     /* storage of a gradient: number of forward values that still hold it */
};

struct ah_tape {
    struct ah_autodiff *diff;
    struct ah_grad_state *states;
    size_t capacity;
};

/* Appends an operator, with the parameters of ah__graph_node. */
int ah__tape_emit(struct ah_tape *tape, enum ah_op op, struct ah_attr attr, struct ah_values in,
                  const struct ah_meta *given, int *out);
/* Adds `grad` to the gradient of `value`. */
int ah__tape_add(struct ah_tape *tape, int value, int grad);
/* Notes that the node's result no longer holds `grad`: its memory may be overwritten if no other value does. */
void ah__tape_release(struct ah_tape *tape, int grad);
/* Makes *grad a gradient that may be overwritten: *grad itself while only one value holds it, else a copy. */
int ah__tape_own(struct ah_tape *tape, int *grad);

/* Appends an operator whose output 0 is the gradient of a parameter; appends nothing for a frozen one. */
int ah__tape_param(struct ah_tape *tape, enum ah_op op, struct ah_attr attr, struct ah_values in, int param);
/* Note the gradient of a parameter of an operator with several outputs. begin: sets bit `output` of attr->acc if the
 * parameter's gradient has been written before, and remembers that it now is. end: `grad` is that gradient. A frozen
 * parameter's gradient is discarded: such outputs are optional. */
void ah__tape_param_begin(struct ah_tape *tape, struct ah_attr *attr, int output, int param);
int ah__tape_param_end(struct ah_tape *tape, int param, int grad);

/* The rule of each forward operator: emits operators for the gradients of the node's inputs. `dy` is the gradient of
 * output 0. A rule releases dy when it has read it, before it adds to the last of its inputs. */
typedef int ah_gradient_rule(struct ah_tape *tape, const struct ah_node *node, int dy);
#define AH_GRADIENT_DECLARE(id, name) ah_gradient_rule ah__gradient_##name;
AH_OP_FORWARD_LIST(AH_GRADIENT_DECLARE)
#undef AH_GRADIENT_DECLARE

#endif
