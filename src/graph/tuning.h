/* Tuning: which parameters of a recorded model are trained. Freezes parameters by name and adds low-rank adapters
 * beside linear layers (LoRA, Hu et al. 2021). Private to graph/. */
#ifndef AH_GRAPH_TUNING_H
#define AH_GRAPH_TUNING_H

#include "graph/graph.h"

/* Value of lora_targets: all linear layers of the blocks, and all matrices of experts. */
#define AH_LORA_EVERY "every-matrix"
/* Takes the settings; call it before the first recording call. Strings are copied. AH_EINPUT, AH_ENOMEM. */
int ah__graph_tune(struct ah_graph *graph, const struct ah_tuning *tuning);
/* Returns true if the model's own parameter of that name, which is recorded next, is frozen. */
bool ah__graph_freezes(struct ah_graph *graph, const char *name);
/* Sets *out if a linear layer's weight gets an adapter: it is a target, or `all` and no targets are named. Adds the
 * layer to those that messages name. */
int ah__graph_adapts(bool *out, struct ah_graph *graph, const char *weight, bool all);
/* Returns "q_proj" of "model.layers.0.self_attn.q_proj.weight", with its length in *length. */
const char *ah__graph_module(const char *weight, size_t *length);
/* Checks that the model has every name that was asked for. AH_EINPUT. */
int ah__graph_tuning_check(const struct ah_graph *graph);

#endif
