/* Shared by reading (config.c) and writing (config_write.c) of models' keys in GGUF files: a row for each architecture
 * (arch.c, arch_gpt.c), with the keys and names that it has beside the common ones. */
#ifndef AH_GGUF_ARCH_INTERNAL_H
#define AH_GGUF_ARCH_INTERNAL_H

#include "base/buf.h"
#include "base/json.h"
#include "gguf/write.h"

struct ah_gguf_arch;

/* A configuration that is being read. */
struct ah_gguf_config {
    const struct ah_gguf *file;
    const struct ah_gguf_arch *arch;
    cJSON *tree;
};
/* A configuration that is being written. */
struct ah_gguf_written {
    struct ah_gguf_writer *writer;
    const struct ah_gguf_arch *arch;
    struct ah_json json; /* config.json, parsed */
};

/* The order of a tensor's rows in files. */
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
/* A tensor, in blocks or outside, whose order in files differs. */
struct ah_gguf_ordered {
    const char *gguf;
    enum ah_gguf_order order;
};
/* Key of an integer: in files, behind "ARCH.", and in config.json. */
struct ah_gguf_size {
    const char *gguf, *ours;
};

struct ah_gguf_arch {
    const char *name, *model_type;    /* name in files; model_type in config.json */
    bool permuted;                    /* queries and keys are permuted, for rotations of adjacent channels */
    bool states_bias;                 /* config.json says whether attention has biases */
    bool states_mlp_bias;             /* config.json says whether the feed-forward network has biases */
    bool adds_one;                    /* files have weights of norms with one added to them */
    bool yarn;                        /* rotations may be YaRN's */
    bool rounded_apart;               /* the ends of YaRN's ramp are not whole pairs, though llama.cpp rounds them */
    bool windows;                     /* llama.cpp computes with windows of attention */
    bool partial;                     /* rope.dimension_count may be a part of a head's channels */
    bool head_apart;                  /* a tied head is written as a tensor of its own, too */
    const struct ah_gguf_rename *own; /* names in blocks, before the common ones; null-terminated, or null */
    /* For an architecture that has nothing else in common with Llama; each ends with nulls; null: as Llama. */
    const char *blocks;                    /* name before the number of a block: "transformer.h." */
    const struct ah_gguf_rename *outer;    /* names outside of blocks */
    const struct ah_gguf_ordered *ordered; /* tensors in another order; null: no such tensors */
    const struct ah_gguf_size *sizes;      /* keys; `read` and `write` do norms, heads and rotations */
    /* Keys of mixtures of experts, beside the others; ends with nulls; null: there are none. */
    const struct ah_gguf_size *experts;
    const char *const *honoured;                      /* keys that `read` reads, null-terminated; null: no keys */
    int (*read)(const struct ah_gguf_config *config); /* reads the other keys; null: no such keys */
    int (*write)(const struct ah_gguf_written *to); /* writes them; AH_EINPUT: llama.cpp differs; null: no such keys */
};

/* A row: name in files, model_type, the other members. */
#define AH_GGUF_ARCH(row_name, row_type, ...)                                                                          \
    {                                                                                                                  \
        .name = (row_name), .model_type = (row_type), __VA_ARGS__                                                      \
    }

enum { AH_GGUF_GPTS = 2, AH_GGUF_MIXTURES = 6 };
extern const struct ah_gguf_arch ah__gguf_gpts[AH_GGUF_GPTS], ah__gguf_mixtures[AH_GGUF_MIXTURES];
/* Returns the architecture of a model_type, or null. */
const struct ah_gguf_arch *ah__gguf_arch_of(const char *model_type);

/* Finds the architecture of a file, by its name and, where two have one name, by whether it has experts. AH_EINPUT
 * lists the known ones. */
int ah__gguf_arch_find(const struct ah_gguf_arch **out, const struct ah_gguf *file);

enum { AH_GGUF_KEY_SIZE = 128 };
/* Writes "ARCH.key" into room and returns it. */
const char *ah__gguf_key_of(char room[AH_GGUF_KEY_SIZE], const struct ah_gguf_arch *arch, const char *key);

/* Granite's keys and factors (arch.c). */
#define AH_GGUF_GRANITE_KEYS "embedding_scale", "residual_scale", "attention.scale", "logit_scale"
int ah__gguf_granite_read(const struct ah_gguf_config *config);
int ah__gguf_granite_write(const struct ah_gguf_written *to);
/* Reads a key; -1 if it is missing. */
int ah__gguf_read_int(int64_t *out, const struct ah_gguf_config *config, const char *key);
/* Copies an integer that the file must have into the tree under the name `as`. */
int ah__gguf_add_int(const struct ah_gguf_config *config, const char *key, const char *as);
/* Copies a number into the tree, if the file has it. */
int ah__gguf_add_double(const struct ah_gguf_config *config, const char *key, const char *as);
/* Returns a float of the file with the fewest digits that give it back: 1e-05, not 9.99999974e-06. */
double ah__gguf_shortest(double value);

/* Copies a number that the file must have. */
int ah__gguf_add_needed(const struct ah_gguf_config *config, const char *key, const char *as);
/* Adds rope_theta and rope_scaling, for heads of `size` channels. */
int ah__gguf_add_rope(const struct ah_gguf_config *config, int64_t size);
/* Returns the share of `size` channels that gives `dims` when it is rounded down. */
double ah__gguf_part(int64_t dims, int64_t size);
/* Parses the model's canonical configuration; freed with ah__json_free. */
int ah__gguf_def_open(struct ah_json *json, const struct ah_model_def *def);
/* Writes the keys of rope_scaling. AH_EINPUT: llama.cpp has no such scaling. */
int ah__gguf_put_rope(const struct ah_gguf_written *to);
/* Adds the window of attention (gguf/window.c); *window is -1 or 0 without one. Also adds layer_types if the file
 * says which blocks have it. */
int ah__gguf_add_window(int64_t *window, const struct ah_gguf_config *config);
/* Adds layer_types as the file says; else every period-th block has full attention. */
int ah__gguf_add_types(const struct ah_gguf_config *config, int64_t period);
int ah__gguf_put_window(const struct ah_gguf_written *to);
/* Writes which blocks have the window, one bool for each, from layer_types. */
void ah__gguf_put_types(const struct ah_gguf_written *to);
/* Returns true if every period-th block has full attention and the others have a window. */
bool ah__gguf_types_are(const struct ah_json *json, int64_t period);
/* Notes a window that llama.cpp does not apply, if texts may be longer than it. */
int ah__gguf_note_window(struct ah_buf *notes, const struct ah_json *json, const struct ah_gguf_arch *arch);

/* Keys of ours for the parameters of Llama 3's factors, for which llama.cpp has none and needs none; written if a value
 * is not the usual one. */
#define AH_GGUF_LLAMA3_FACTOR "rope.llama3.factor"
#define AH_GGUF_LLAMA3_LOW "rope.llama3.low_freq_factor"
#define AH_GGUF_LLAMA3_HIGH "rope.llama3.high_freq_factor"

#endif
