/* What of a recorded model is trained: parameters frozen by name, low-rank adapters beside linear layers (LoRA, Hu et
 * al. 2021). Private to graph/. */
#ifndef AH_GRAPH_TUNING_H
#define AH_GRAPH_TUNING_H

#include "graph/graph.h"

/* Before the first recording call. Strings are copied. AH_EINPUT, AH_ENOMEM. */
int ah__graph_tune(struct ah_graph *graph, const struct ah_tuning *tuning);
/* Whether the model's own parameter of that name, which is recorded next, is frozen. */
bool ah__graph_freezes(struct ah_graph *graph, const char *name);
/* y, what a linear layer with `weight` made of x, with what its adapter adds; y itself where it has none. */
struct ah_tensor ah__graph_adapt(struct ah_graph *graph, struct ah_tensor x, struct ah_tensor weight, bool out_in,
                                 struct ah_tensor y);
/* Every name that was asked for is one of the model's. AH_EINPUT. */
int ah__graph_tuning_check(const struct ah_graph *graph);

#endif
