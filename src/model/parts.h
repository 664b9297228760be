/* Records layers that several families share, with Hugging Face's names and layouts. Knows no family and no config
 * key. */
#ifndef AH_MODEL_PARTS_H
#define AH_MODEL_PARTS_H

#include "model/config.h"

/* A matrix product: parameters NAME.weight, [out, in] unless `in_first`, and NAME.bias [out]. */
struct ah_part_linear {
    int64_t in, out;
    double std; /* standard deviation of the weight's initial values; the bias begins at zero */
    bool bias, in_first;
};

/* Records x [..., in] -> [..., out]. */
struct ah_tensor ah__part_linear(struct ah_graph *graph, const char *name, struct ah_tensor x,
                                 const struct ah_part_linear *linear);
/* A matrix [out, in] for each of `count` experts. */
struct ah_part_experts {
    int64_t count, in, out;
    double std;
    bool bias; /* a parameter NAME.bias [count, out] that begins at zero */
};

/* Records x [rows, in] -> [rows, out] with the parameter NAME.weight [count, out, in]. In files its matrices may be
 * tensors of their own, where '*' in the name is an expert's number from 0 on. */
struct ah_tensor ah__part_experts(struct ah_graph *graph, const char *name, struct ah_tensor x,
                                  const struct ah_part_experts *experts, const struct ah_routes *routes);
/* Records layernorm with parameters NAME.weight and NAME.bias [width]. */
struct ah_tensor ah__part_layernorm(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t width,
                                    double eps);
/* Records rmsnorm with the parameter NAME.weight [width]; width divides the channels of x. The multiplier, weight plus
 * offset, begins at one. */
struct ah_tensor ah__part_rmsnorm(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t width,
                                  double eps, double offset);
/* Records the parameter NAME.weight [rows, width]. */
struct ah_tensor ah__part_table(struct ah_graph *graph, const char *name, int64_t rows, int64_t width, double std);
struct ah_tensor ah__part_activation(struct ah_graph *graph, enum ah_activation activation, struct ah_tensor x);

#endif
