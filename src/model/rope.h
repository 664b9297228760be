/* Rotation by position as config.json has it: rope_theta and rope_scaling, or all of it in rope_parameters. Of scalings
 * there are those whose angles follow from the position alone, up to max_position_embeddings: "linear", "llama3",
 * "yarn", and "dynamic", which changes nothing up to there; and "longrope", which has other angles for sequences longer
 * than the original ones. */
#ifndef AH_MODEL_ROPE_H
#define AH_MODEL_ROPE_H

#include "base/json.h"

enum { AH_ROPE_MOST_PAIRS = 128 };

struct ah_rope {
    double theta;
    double part;              /* of a head's channels that rotate, from the first on */
    double factor, low, high; /* as in ah_rotary_options; of yarn low and high are beta_slow and beta_fast */
    int64_t original;
    double magnitude; /* of yarn and longrope: what is rotated is multiplied by it; 0: neither */
    bool whole;       /* of yarn: truncate, its bounds are whole pairs */
    double dynamic;   /* factor of "dynamic", which is only kept; 0: another */
    int stretches;    /* of longrope: numbers in each of the next two; 0: no longrope */
    /* By what wavelengths are multiplied, pair by pair: in sequences of up to `original` tokens, and in longer ones. */
    float brief[AH_ROPE_MOST_PAIRS], lengthy[AH_ROPE_MOST_PAIRS];
    double usual; /* of longrope: the magnitude where attention_factor is missing */
};

/* The names that a family has for two of the keys when they stand beside the others, not in rope_parameters; `part`
 * null: all channels rotate. */
struct ah_rope_keys {
    const char *theta, *part;
    const char *original; /* original_max_position_embeddings, which then is before that in the object; or null */
    const char *type; /* of attention: where rope_parameters has an object for each, the one that is read; or null */
    bool local;       /* nothing but that object is read beside theta */
};

/* *rope holds what is taken where a key is missing. `positions`: max_position_embeddings. */
int ah__rope_parse(struct ah_rope *rope, const struct ah_json *json, const struct ah_rope_keys *keys,
                   int64_t positions);
/* Channels of a head of `size` that rotate; AH_EINPUT where they come in no pairs. */
int ah__rope_dims(int64_t *dims, const struct ah_rope *rope, const struct ah_json *json,
                  const struct ah_rope_keys *keys, int64_t size);
/* Sequences longer than this rotate otherwise; 0: all alike. */
int64_t ah__rope_switch(const struct ah_rope *rope);
int ah__rope_add(cJSON *tree, const struct ah_rope *rope, const struct ah_rope_keys *keys);
/* x as for ah_graph_rotary(); dims 0: nothing rotates. */
struct ah_tensor ah__rope_record(struct ah_graph *graph, struct ah_tensor x, int64_t heads, int64_t dims,
                                 const struct ah_rope *rope, bool by_head);

#endif
