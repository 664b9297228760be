/* What reading (gguf.c) and writing (gguf_write.c) models' keys in GGUF files share: a row for each architecture
 * (gguf_arch.c), with what it has beside the keys of all. */
#ifndef AH_MODEL_GGUF_INTERNAL_H
#define AH_MODEL_GGUF_INTERNAL_H

#include "base/buf.h"
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

/* How the rows of a tensor lie in files. */
enum ah_gguf_order {
    AH_GGUF_AS_OURS,
    AH_GGUF_QUERIES, /* rows of a head as pairs, not as two halves */
    AH_GGUF_KEYS,    /* the same, with fewer heads */
    AH_GGUF_BY_PART, /* queries, keys and values of all heads one after the other, not head by head */
    AH_GGUF_TURNED,  /* matrices [O, I], not [I, O] */
};

/* Names of parameters, without ".weight" and ".bias": of the model, or of a block behind "blk.N." and
 * "model.layers.N.". */
struct ah_gguf_rename {
    const char *gguf, *ours;
};
/* A tensor of blocks, or any other, of which files have another order. */
struct ah_gguf_ordered {
    const char *gguf;
    enum ah_gguf_order order;
};
/* Keys of integers: in files behind "ARCH.", and in config.json. */
struct ah_gguf_size {
    const char *gguf, *ours;
};

struct ah_gguf_arch {
    const char *name, *model_type;    /* in the file; in config.json */
    bool permuted;                    /* queries and keys, for rotations of neighbours */
    bool states_bias;                 /* config.json says whether attention has biases */
    bool states_mlp_bias;             /* and whether the feed-forward network has */
    bool adds_one;                    /* weights of norms are kept with one added to them */
    bool yarn;                        /* rotations may be YaRN's */
    bool windows;                     /* llama.cpp computes with windows of attention */
    bool partial;                     /* rope.dimension_count may be a part of a head's channels */
    bool head_apart;                  /* a head that is the embedding is written as one of its own, too */
    const struct ah_gguf_rename *own; /* of blocks, before the names that most have; ends with nulls; null: none */
    /* Of an architecture that has no more in common with Llama; ends with nulls each, null: as Llama. */
    const char *blocks;                    /* before the number of a block: "transformer.h." */
    const struct ah_gguf_rename *outer;    /* names outside of blocks */
    const struct ah_gguf_ordered *ordered; /* null: none */
    const struct ah_gguf_size *sizes;      /* keys of config.json; norms, heads and rotations are read's and write's */
    const char *const *honoured;           /* keys that the next reads, ends with null; null: none */
    int (*read)(const struct ah_gguf_config *config); /* the other keys; null: there are none */
    int (*write)(const struct ah_gguf_written *to); /* AH_EINPUT: what llama.cpp would compute otherwise; null: none */
};

enum { AH_GGUF_ARCHS = 10, AH_GGUF_GPTS = 2 };
extern const struct ah_gguf_arch ah__gguf_archs[AH_GGUF_ARCHS], ah__gguf_gpts[AH_GGUF_GPTS];
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

/* A number that the file has to have. */
int ah__gguf_add_needed(const struct ah_gguf_config *config, const char *key, const char *as);
/* rope_theta and rope_scaling, of heads of `size` channels. */
int ah__gguf_add_rope(const struct ah_gguf_config *config, int64_t size);
/* The share of `size` channels of which `dims` are left when it is rounded down. */
double ah__gguf_part(int64_t dims, int64_t size);
/* The keys of rope_scaling. AH_EINPUT: llama.cpp has no such one. */
int ah__gguf_put_rope(const struct ah_gguf_written *to);
/* A window of attention (model/gguf_window.c); *window: -1 or 0 where there is none. layer_types, if the file says
 * which blocks have it. */
int ah__gguf_add_window(int64_t *window, const struct ah_gguf_config *config);
/* layer_types as the file says it; else every period-th block sees all. */
int ah__gguf_add_types(const struct ah_gguf_config *config, int64_t period);
int ah__gguf_put_window(const struct ah_gguf_written *to);
/* Whether every period-th block sees all and the others do not. */
bool ah__gguf_types_are(const struct ah_json *json, int64_t period);
/* Notes a window that llama.cpp does not have, where texts may be longer. */
int ah__gguf_note_window(struct ah_buf *notes, const struct ah_json *json, const struct ah_gguf_arch *arch);

/* By how much YaRN enlarges queries and keys. */
double ah__gguf_yarn_growth(double factor);
/* Llama 3's factor of the i-th of `pairs` frequencies, as the model's authors publish it. The keys are ours: llama.cpp
 * has none, and needs none. They are written where other values are than the usual ones. */
struct ah_gguf_llama3 {
    double theta, factor, low, high, original;
};
#define AH_GGUF_LLAMA3_FACTOR "rope.llama3.factor"
#define AH_GGUF_LLAMA3_LOW "rope.llama3.low_freq_factor"
#define AH_GGUF_LLAMA3_HIGH "rope.llama3.high_freq_factor"
double ah__gguf_llama3(const struct ah_gguf_llama3 *rope, int64_t i, int64_t pairs);

#endif
