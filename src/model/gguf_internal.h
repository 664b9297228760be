/* What reading (gguf.c) and writing (gguf_write.c) models' keys in GGUF files share: a row for each architecture
 * (gguf_arch.c), with what it has beside the keys of all. */
#ifndef AH_MODEL_GGUF_INTERNAL_H
#define AH_MODEL_GGUF_INTERNAL_H

#include "base/json.h"
#include "io/gguf_write.h"

struct ah_gguf_arch;

/* A configuration that is read. */
struct ah_gguf_config {
    const struct ah_gguf *file;
    const struct ah_gguf_arch *arch;
    cJSON *tree;
};
/* One that is written. */
struct ah_gguf_written {
    struct ah_gguf_writer *writer;
    const struct ah_gguf_arch *arch;
    struct ah_json json; /* config.json's text */
};

/* Names of parameters, without ".weight" and ".bias": of the model, or of a block behind "blk.N." and
 * "model.layers.N.". */
struct ah_gguf_rename {
    const char *gguf, *ours;
};

struct ah_gguf_arch {
    const char *name, *model_type;    /* in the file; in config.json */
    bool permuted;                    /* queries and keys, for rotations of neighbours */
    bool states_bias;                 /* config.json says whether attention has biases */
    bool states_mlp_bias;             /* and whether the feed-forward network has */
    bool adds_one;                    /* weights of norms are kept with one added to them */
    bool yarn;                        /* rotations may be YaRN's */
    bool partial;                     /* rope.dimension_count may be a part of a head's channels */
    const struct ah_gguf_rename *own; /* of blocks, before the names that most have; ends with nulls; null: none */
    const char *const *honoured;      /* keys that the next reads, ends with null; null: none */
    int (*read)(const struct ah_gguf_config *config); /* the other keys; null: there are none */
    int (*write)(const struct ah_gguf_written *to); /* AH_EINPUT: what llama.cpp would compute otherwise; null: none */
};

enum { AH_GGUF_ARCHS = 10 };
extern const struct ah_gguf_arch ah__gguf_archs[AH_GGUF_ARCHS];
/* The architecture of a model_type, null: none. */
const struct ah_gguf_arch *ah__gguf_arch_of(const char *model_type);

/* That of a file. AH_EINPUT lists those there are. */
int ah__gguf_arch_find(const struct ah_gguf_arch **out, const struct ah_gguf *file);

enum { AH_GGUF_KEY_SIZE = 128 };
/* "ARCH.key" into room; returns it. */
const char *ah__gguf_key_of(char room[AH_GGUF_KEY_SIZE], const struct ah_gguf_arch *arch, const char *key);

/* A key that may be missing, -1 then. */
int ah__gguf_read_int(int64_t *out, const struct ah_gguf_config *config, const char *key);
/* A key into the tree, where it is there. */
int ah__gguf_add_double(const struct ah_gguf_config *config, const char *key, const char *as);
/* A float of the file in as few digits as give it back: 1e-05 and not 9.99999974e-06. */
double ah__gguf_shortest(double value);

/* By how much YaRN enlarges queries and keys. */
double ah__gguf_yarn_growth(double factor);
/* Llama 3's factor of the i-th of `pairs` frequencies, as the model's authors publish it. */
struct ah_gguf_llama3 {
    double theta, factor, low, high, original;
};
double ah__gguf_llama3(const struct ah_gguf_llama3 *rope, int64_t i, int64_t pairs);

#endif
