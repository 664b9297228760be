/* Rotation by position as config.json has it: rope_theta and rope_scaling, or all of it in rope_parameters. Of scalings
 * there are those whose angles follow from the position alone, up to max_position_embeddings: "linear", "llama3",
 * "yarn", and "dynamic", which changes nothing up to there. */
#ifndef AH_MODEL_ROPE_H
#define AH_MODEL_ROPE_H

#include "base/json.h"

struct ah_rope {
    double theta;
    double part;              /* of a head's channels that rotate, from the first on */
    double factor, low, high; /* as in ah_rotary_options; of yarn low and high are beta_slow and beta_fast */
    int64_t original;
    double magnitude; /* of yarn: what is rotated is multiplied by it; 0: no yarn */
    bool whole;       /* of yarn: truncate, its bounds are whole pairs */
    double dynamic;   /* factor of "dynamic", which is only kept; 0: another */
};

/* The names that a family has for two of the keys when they stand beside the others, not in rope_parameters; `part`
 * null: all channels rotate. */
struct ah_rope_keys {
    const char *theta, *part;
    const char *type; /* of attention: where rope_parameters has an object for each, the one that is read; or null */
    bool local;       /* nothing but that object is read beside theta */
};

/* *rope holds what is taken where a key is missing. `positions`: max_position_embeddings. */
int ah__rope_parse(struct ah_rope *rope, const struct ah_json *json, const struct ah_rope_keys *keys,
                   int64_t positions);
/* Channels of a head of `size` that rotate; AH_EINPUT where they come in no pairs. */
int ah__rope_dims(int64_t *dims, const struct ah_rope *rope, const struct ah_json *json,
                  const struct ah_rope_keys *keys, int64_t size);
int ah__rope_add(cJSON *tree, const struct ah_rope *rope, const struct ah_rope_keys *keys);
/* x as for ah_graph_rotary(); dims 0: nothing rotates. */
struct ah_tensor ah__rope_record(struct ah_graph *graph, struct ah_tensor x, int64_t heads, int64_t dims,
                                 const struct ah_rope *rope, bool by_head);

#endif
