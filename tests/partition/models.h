/* Small models with all kinds of blocks, recorded through the public calls. */
#ifndef AH_TESTS_PARTITION_MODELS_H
#define AH_TESTS_PARTITION_MODELS_H

#include "test.h"

enum { MODEL_BATCH = 2, MODEL_SEQ = 8, MODEL_EMBD = 16, MODEL_VOCAB = 24 };

typedef struct ah_tensor (*model_block)(struct ah_graph *graph, struct ah_tensor x, int number);

struct model_case {
    const char *name;
    model_block block;
    int forward_copies, backward_copies; /* copies the compiler must add to one block */
};
extern const struct model_case model_cases[];
extern const int model_case_count;

/* Steps of a block for tests of their own. */
struct ah_tensor model_linear(struct ah_graph *graph, const char *name, struct ah_tensor x, int64_t in, int64_t out);
struct ah_tensor model_norm(struct ah_graph *graph, const char *name, struct ah_tensor x);
struct ah_tensor model_attention(struct ah_graph *graph, struct ah_tensor x, int heads);
/* A block of rmsnorm, rotary, grouped attention and silu_mul. */
struct ah_tensor model_llama(struct ah_graph *graph, struct ah_tensor x, int number);

/* Embedding, `layers` blocks in scopes h.0, h.1, ..., norm and head; returns what ah_graph_finish() does. */
int model_record(struct ah_graph *graph, model_block block, int layers, bool tied);
/* The same, which must succeed; the caller frees. In fp32 unless told. */
struct ah_graph *model_graph(model_block block, int layers, bool tied);
struct ah_graph *model_graph_in(enum ah_dtype compute, model_block block, int layers, bool tied);

#endif
