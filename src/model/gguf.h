/* What GGUF files call what Hugging Face's folders have: a model's configuration and its parameters, both ways. Takes
 * io/gguf.h's keys and names, gives config.json and parameters' names. A family is one row of a table. */
#ifndef AH_MODEL_GGUF_H
#define AH_MODEL_GGUF_H

#include "base/buf.h"
#include "base/json.h"
#include "io/gguf_write.h"

enum { AH_GGUF_NAME_SIZE = 128 };

/* config.json of the model in a file, freed with ah__free. Keys of the file's architecture that are not known stand in
 * it under their own names, for model/keys.h to note. AH_EINPUT: an architecture that is no family here, or a key that
 * asks for what is not computed; AH_ECORRUPT; AH_ENOMEM. */
int ah__gguf_config(char **text, const struct ah_gguf *file);

/* The parameter that a tensor of the file holds, under Hugging Face's name; false: none, it is a constant that the
 * configuration has (factors of rotations) or of no name that is known, which is then given as it is. */
bool ah__gguf_param(char name[AH_GGUF_NAME_SIZE], const struct ah_gguf *file, const char *tensor);
/* Whether a tensor is such a constant. */
bool ah__gguf_constant(const char *tensor);
#define AH_GGUF_FACTORS "rope_freqs.weight"
#define AH_GGUF_SHORT_FACTORS "rope_factors_short.weight"
#define AH_GGUF_LONG_FACTORS "rope_factors_long.weight"
/* What was added to a tensor's values: 1 to the weights of Gemma's norms, else 0. AH_EINPUT: an unknown
 * architecture. */
int ah__gguf_added(float *added, const struct ah_gguf *file, const char *tensor);
/* Some tensors lie in another order in files: [outer][y][x][inner] elements there are [outer][x][y][inner] of ours.
 * Llama's queries and keys have the rows of a head in pairs there, GPT-2's matrices are turned. */
struct ah_gguf_swap {
    int64_t outer, x, y, inner; /* all zero: it lies as ours */
    bool turned;                /* the tensor's two dimensions are the other way round, too */
};
/* Of a file's tensor. AH_EINPUT: the file does not say; AH_ECORRUPT: its rows are not those of so many heads. */
int ah__gguf_swapped(struct ah_gguf_swap *swap, const struct ah_gguf *file, const struct ah_gguf_tensor *tensor);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The keys of a model, general.architecture first. AH_EINPUT names what GGUF has no key for; AH_ENOMEM. */
int ah__gguf_put_config(struct ah_gguf_writer *writer, const struct ah_model *model);
/* Adds to notes (source/gguf_by_name.h) what llama.cpp computes otherwise from them. AH_ENOMEM. */
int ah__gguf_note_config(struct ah_buf *notes, const struct ah_model *model);
/* general.architecture alone. AH_EINPUT: llama.cpp has none for the model. */
int ah__gguf_put_architecture(struct ah_gguf_writer *writer, const struct ah_model *model);
/* The file's name for a parameter of the model; false: none. */
bool ah__gguf_name(char name[AH_GGUF_NAME_SIZE], const struct ah_model *model, const char *param);
/* What is added to its values. */
float ah__gguf_adds(const struct ah_model *model, const char *param);
/* How a parameter of the model, of this shape, is put into llama.cpp's order; or what has as many rows as it. */
int ah__gguf_swaps(struct ah_gguf_swap *swap, const struct ah_model *model, const char *param,
                   const struct ah_shape *shape);
/* Ours -> theirs, into other memory. */
void ah__gguf_swap(float *to, const float *from, const struct ah_gguf_swap *swap);
/* Whether a tied embedding of the model is written a second time, as "output.weight": llama.cpp wants it. */
bool ah__gguf_needs_head(const struct ah_model *model);
/* Factors of the rotation's frequencies, each a tensor [count] in F32: Llama 3's, or LongRoPE's two. */
struct ah_gguf_factors {
    const char *name; /* null: no more of them */
    float *values;    /* freed with ah__free */
    int64_t count;
};
/* AH_ENOMEM; what was made before is freed by the caller then too. */
int ah__gguf_rope_factors(struct ah_gguf_factors factors[2], const struct ah_model *model);

#endif
