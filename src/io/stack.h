/* Parameters that safetensors files of models have otherwise. Takes names and shapes, gives those in files, and moves
 * values. Knows no models.
 *
 * Stacks of matrices, as mixtures of experts have them: one parameter [E, ...] in whose name '*' stands for an expert's
 * number. Files have E tensors [...] instead, "experts.0.up_proj.weight" and so on; the data of a stack is theirs, one
 * after the other.
 *
 * Modules whose tensors transformers names without "weight": "NAME^.weight" is NAME in files. "NAME^T.weight" [E, O, I]
 * is NAME [E, I, O], and "NAME^T.bias" [E, O] is NAME_bias. With "^T2" the first and the second half of the O rows
 * alternate in files. */
#ifndef AH_IO_STACK_H
#define AH_IO_STACK_H

#include "base/alloc.h"
#include "io/safetensors.h"

/* How the values of a tensor in files differ: matrices are transposed; their rows, or a bias's elements, are those of
 * the first and second half here in turn. */
struct ah_stack_layout {
    bool turned, alternate;
};
/* Returns the layout that a parameter's name tells; all false: files have the same. */
struct ah_stack_layout ah__stack_layout(const char *name);
static inline bool ah__stack_differs(struct ah_stack_layout layout)
{
    return layout.turned || layout.alternate;
}
/* Moves one expert's values of a file [I, O], or [O, I] if not turned, to [O, I]. An element has `size` bytes, 2 or 4;
 * a bias has I = 1. `to` and `from` do not overlap. */
void ah__stack_restore(void *to, const void *from, struct ah_stack_layout layout, int64_t outs, int64_t ins,
                       size_t size);
/* Appends the values of a parameter as files have them. Fails as ah__safetensors_writer_append; AH_ENOMEM. */
int ah__stack_append(struct ah_safetensors_writer *writer, const char *name, const void *values,
                     const struct ah_shape *shape, enum ah_dtype dtype);
/* Copies a tensor of a file, data of the shape that ah__stack_part_shape() gives, as the parameter `name` has it. */
void ah__stack_copy(void *to, const char *name, const void *data, const struct ah_shape *shape, enum ah_dtype dtype);
/* Returns true if the name is a stack's. */
bool ah__stack_is(const char *name);
/* Returns the number of tensors that a file has for a parameter: dim[0] for a stack, else 1. */
int64_t ah__stack_parts(const char *name, const struct ah_shape *shape);
/* Returns the shape of each of these tensors, as files have it. */
struct ah_shape ah__stack_part_shape(const char *name, const struct ah_shape *shape);
/* Makes the name of one of them, 0 <= part < parts. The caller frees it with ah__free. AH_ENOMEM. */
int ah__stack_part_name(char **out, const char *name, int64_t part);
/* Makes the stack's name of a part's: '*' for the number behind "experts.". *out is null if the name has no such
 * number. *part receives the number. The text lives as long as the arena. AH_ENOMEM. */
int ah__stack_name(char **out, int64_t *part, struct ah_arena *arena, const char *name);

/* Declarations of a file's tensors, where stacks are their parts. Zero-initialised is valid. */
struct ah_stack_decls {
    struct ah_safetensors_decl *decl;
    size_t count;
    struct ah_arena arena;
};

/* Declares `count` tensors, each stack as its parts. Names of other tensors are not copied. Call fini also after a
 * failure. AH_ENOMEM. */
int ah__stack_decls_fill(struct ah_stack_decls *out, const struct ah_safetensors_decl *decls, size_t count);
void ah__stack_decls_fini(struct ah_stack_decls *decls);

#endif
