/* A model's configuration and parameters in GGUF files, translated from and to Hugging Face's folders. Takes keys and
 * names by gguf/gguf.h, gives config.json and parameters' names. A family is one row of a table. */
#ifndef AH_GGUF_CONFIG_H
#define AH_GGUF_CONFIG_H

#include "base/buf.h"
#include "base/json.h"
#include "gguf/write.h"

enum { AH_GGUF_NAME_SIZE = 128 };

/* Makes config.json of the model in a file, freed with ah__free. Unknown keys of the file's architecture are kept under
 * their own names, for model/keys.h to note. AH_EINPUT: an architecture that is no family here, or a key that asks for
 * a computation that is not supported; AH_ECORRUPT; AH_ENOMEM. */
int ah__gguf_config(char **text, const struct ah_gguf *file);

/* Gives Hugging Face's name of the parameter that a tensor of the file holds. False, with the tensor's own name: it is
 * a constant of the configuration (factors of rotations) or its name is unknown. */
bool ah__gguf_param(char name[AH_GGUF_NAME_SIZE], const struct ah_gguf *file, const char *tensor);
/* Returns true if a tensor is a constant of the configuration. */
bool ah__gguf_constant(const char *tensor);
#define AH_GGUF_FACTORS "rope_freqs.weight"
#define AH_GGUF_SHORT_FACTORS "rope_factors_short.weight"
#define AH_GGUF_LONG_FACTORS "rope_factors_long.weight"
/* Gives the number that the file's values contain in addition to the model's: 1 in the weights of Gemma's norms, else
 * 0. AH_EINPUT: an unknown architecture. */
int ah__gguf_added(float *added, const struct ah_gguf *file, const char *tensor);
/* Another order of a tensor's elements in files: [outer][y][x][inner] there are [outer][x][y][inner] here. Llama's
 * queries and keys have the rows of a head in pairs there, GPT-2's matrices are transposed. */
struct ah_gguf_swap {
    int64_t outer, x, y, inner; /* all zero: the same order */
    bool turned;                /* the tensor's two dimensions are exchanged, too */
};
/* Finds the order of a file's tensor. AH_EINPUT: the file does not tell the heads; AH_ECORRUPT: the rows do not fit the
 * number of heads. */
int ah__gguf_swapped(struct ah_gguf_swap *swap, const struct ah_gguf *file, const struct ah_gguf_tensor *tensor);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Writes the keys of a model, general.architecture first. AH_EINPUT names a property for which GGUF has no key;
 * AH_ENOMEM. */
int ah__gguf_put_config(struct ah_gguf_writer *writer, const struct ah_model_def *def);
/* Adds to notes (gguf/by_name.h) what llama.cpp computes differently from these keys. AH_ENOMEM. */
int ah__gguf_note_config(struct ah_buf *notes, const struct ah_model_def *def);
/* Writes general.architecture alone. AH_EINPUT: llama.cpp has no architecture for the model. */
int ah__gguf_put_architecture(struct ah_gguf_writer *writer, const struct ah_model_def *def);
/* Gives the file's name for a parameter of the model; false if it has none. */
bool ah__gguf_name(char name[AH_GGUF_NAME_SIZE], const struct ah_model_def *def, const char *param);
/* Gives the name of a second tensor that holds the second half of a parameter's rows of each expert; false: there is
 * none. Reading such a file, the second tensor's name is that of the first with AH_GGUF_PART before ".weight". */
bool ah__gguf_second(char name[AH_GGUF_NAME_SIZE], const struct ah_model_def *def, const char *param);
#define AH_GGUF_PART ".part"
/* Returns the number that is added to a parameter's values in files. */
float ah__gguf_adds(const struct ah_model_def *def, const char *param);
/* Finds how a parameter of the model, of this shape, is put into llama.cpp's order; also for a tensor with as many rows
 * as the parameter. */
int ah__gguf_swaps(struct ah_gguf_swap *swap, const struct ah_model_def *def, const char *param,
                   const struct ah_shape *shape);
/* Copies values into llama.cpp's order, to other memory. */
void ah__gguf_swap(float *to, const float *from, const struct ah_gguf_swap *swap);
/* Returns true if a tied embedding of the model is written a second time, as "output.weight", because llama.cpp needs
 * it. */
bool ah__gguf_needs_head(const struct ah_model_def *def);
/* Factors of the rotation's frequencies, each a tensor [count] in F32: one of Llama 3, or two of LongRoPE. */
struct ah_gguf_factors {
    const char *name; /* null: the end of the list */
    float *values;    /* freed with ah__free */
    int64_t count;
};
/* Computes the factors. AH_ENOMEM; the caller then frees those that were made before, too. */
int ah__gguf_rope_factors(struct ah_gguf_factors factors[2], const struct ah_model_def *def);

#endif
