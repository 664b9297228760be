/* Rotation by position as config.json has it: rope_theta and rope_scaling, or both in rope_parameters. Supports the
 * scalings whose angles follow from the position alone, up to max_position_embeddings ("linear", "llama3", "yarn", and
 * "dynamic", which changes nothing up to there), and "longrope", which has other angles for sequences longer than the
 * original ones. */
#ifndef AH_MODEL_ROPE_H
#define AH_MODEL_ROPE_H

#include "base/json.h"

enum { AH_ROPE_MOST_PAIRS = 128 };

struct ah_rope {
    double theta;
    double part;              /* share of a head's channels that rotate, from the first on */
    double factor, low, high; /* as in ah_rotary_options; for yarn low and high are beta_slow and beta_fast */
    int64_t original;
    double magnitude; /* yarn, longrope: factor of rotated vectors; 0: another scaling */
    bool whole;       /* yarn: truncate, its bounds are whole pairs */
    double dynamic;   /* factor of "dynamic", only kept for writing; 0: another scaling */
    int stretches;    /* longrope: numbers in each of the next two arrays; 0: another scaling */
    /* Factors of wavelengths, by pair: in sequences of up to `original` tokens, and in longer ones. */
    float brief[AH_ROPE_MOST_PAIRS], lengthy[AH_ROPE_MOST_PAIRS];
    double usual; /* longrope: the magnitude if attention_factor is missing */
};

/* A family's names for two of the keys when they are beside the others, not in rope_parameters; `part` null: all
 * channels rotate. */
struct ah_rope_keys {
    const char *theta, *part;
    const char *original; /* original_max_position_embeddings beside the others, which replaces the object's; or null */
    const char *type;     /* type of attention whose object is read if rope_parameters has one for each; or null */
    bool local;           /* only that object is read, beside theta */
};

/* Reads a rotation; *rope holds the defaults. `positions`: max_position_embeddings. */
int ah__rope_parse(struct ah_rope *rope, const struct ah_json *json, const struct ah_rope_keys *keys,
                   int64_t positions);
/* Gives the channels of a head of `size` channels that rotate; AH_EINPUT if their number is odd. */
int ah__rope_dims(int64_t *dims, const struct ah_rope *rope, const struct ah_json *json,
                  const struct ah_rope_keys *keys, int64_t size);
/* Returns the length beyond which sequences rotate by other angles; 0: all rotate alike. */
int64_t ah__rope_switch(const struct ah_rope *rope);
int ah__rope_add(cJSON *tree, const struct ah_rope *rope, const struct ah_rope_keys *keys);
/* Records the rotation of x, as for ah_graph_rotary(); dims 0: nothing rotates. */
struct ah_tensor ah__rope_record(struct ah_graph *graph, struct ah_tensor x, int64_t heads, int64_t dims,
                                 const struct ah_rope *rope, bool by_head);

#endif
