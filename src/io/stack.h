/* Stacks of matrices, as mixtures of experts have them: one parameter [E, ...] in whose name '*' stands for an expert's
 * number. Safetensors files of models have E tensors [...] instead, "experts.0.up_proj.weight" and so on; the data of a
 * stack is theirs, one after the other. Takes names and shapes, gives those in files. Knows no models. */
#ifndef AH_IO_STACK_H
#define AH_IO_STACK_H

#include "base/alloc.h"
#include "io/safetensors.h"

/* Returns true if the name is a stack's. */
bool ah__stack_is(const char *name);
/* Returns the number of tensors that a file has for a parameter: dim[0] for a stack, else 1. */
int64_t ah__stack_parts(const char *name, const struct ah_shape *shape);
/* Returns the shape of each of these tensors. */
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
