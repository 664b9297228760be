/* GPT-2 as recording calls, with the names and layouts of Hugging Face's GPT2LMHeadModel checkpoints (linear weights [in, out]).
 * Takes a configuration, gives a graph. Must not know memory, partitions or devices. */
#ifndef AH_MODEL_GPT2_H
#define AH_MODEL_GPT2_H

#include "base/json.h"

struct ah_gpt2 {
    int64_t vocab_size, n_positions, n_embd, n_layer, n_head, n_inner;
    double layer_norm_epsilon, initializer_range;
    bool relu; /* activation_function "relu" rather than "gelu_new" */
    bool tied; /* tie_word_embeddings: the head reads wte */
};

/* From Hugging Face's config keys. AH_EINPUT names file, key, found and expected; an unknown key is refused. */
int ah__gpt2_parse(struct ah_gpt2 *out, const struct ah_json *json);
/* The canonical config.json text: equal configurations give equal text. The caller frees *out with ah__free. */
int ah__gpt2_text(char **out, const struct ah_gpt2 *config);
/* ah_model_def.record; context is a struct ah_gpt2. */
int ah__gpt2_record(struct ah_graph *graph, int64_t batch, int64_t seq, void *context);

/* A model from config text in memory; `path` is for messages. AH_EINPUT, AH_ENOMEM. */
int ah__model_parse(struct ah_model **out, const char *text, size_t length, const char *path);

#endif
