#include "io/stack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char scope[] = "experts.";

static const char *star_of(const char *name)
{
    return strchr(name, '*');
}

bool ah__stack_is(const char *name)
{
    return star_of(name) != NULL;
}

int64_t ah__stack_parts(const char *name, const struct ah_shape *shape)
{
    return star_of(name) && shape->rank > 1 ? shape->dim[0] : 1;
}

struct ah_shape ah__stack_part_shape(const char *name, const struct ah_shape *shape)
{
    struct ah_shape part = *shape;
    if (!star_of(name) || shape->rank < 2)
        return part;
    part.rank--;
    memmove(part.dim, part.dim + 1, (size_t)part.rank * sizeof part.dim[0]);
    part.dim[part.rank] = 0;
    return part;
}

int ah__stack_part_name(char **out, const char *name, int64_t part)
{
    const char *star = star_of(name);
    return star ? ah__sprintf(out, "%.*s%" PRId64 "%s", (int)(star - name), name, part, star + 1)
                : ah__strdup(out, name);
}

/* Returns the length of the number that a name has behind "experts.", written as a number is; 0: it has none. */
static size_t number_length(const char **at, const char *name)
{
    enum { MOST_DIGITS = 9 };
    const char *found = strstr(name, scope);
    *at = found ? found + sizeof scope - 1 : name;
    size_t digits = found && (found == name || found[-1] == '.') ? strspn(*at, "0123456789") : 0;
    bool written = digits && digits <= MOST_DIGITS && (*at)[digits] == '.' && (digits == 1 || **at != '0');
    return written ? digits : 0;
}

int ah__stack_name(char **out, int64_t *part, struct ah_arena *arena, const char *name)
{
    const char *at;
    size_t digits = number_length(&at, name), all = strlen(name), before = (size_t)(at - name);
    *out = NULL;
    if (!digits)
        return AH_OK;
    *part = strtoll(at, NULL, 10);
    AH_TRY(ah__arena_new(arena, out, all - digits + 2, 1));
    memcpy(*out, name, before);
    (*out)[before] = '*';
    memcpy(*out + before + 1, at + digits, all - before - digits + 1);
    return AH_OK;
}

/* ---- declarations ------------------------------------------------------------------------------------------------ */

static int decl_add(struct ah_stack_decls *out, const struct ah_safetensors_decl *decl)
{
    int64_t parts = ah__stack_parts(decl->name, &decl->shape);
    const struct ah_shape shape = ah__stack_part_shape(decl->name, &decl->shape);
    for (int64_t i = 0; i < parts; i++) {
        struct ah_safetensors_decl *to = &out->decl[out->count++];
        char *name;
        *to = (struct ah_safetensors_decl){decl->name, decl->dtype, shape};
        if (!star_of(decl->name))
            continue;
        AH_TRY(ah__stack_part_name(&name, decl->name, i));
        int status = ah__arena_strdup(&out->arena, &to->name, name);
        ah__free(name);
        AH_TRY(status);
    }
    return AH_OK;
}

int ah__stack_decls_fill(struct ah_stack_decls *out, const struct ah_safetensors_decl *decls, size_t count)
{
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        all += (size_t)ah__stack_parts(decls[i].name, &decls[i].shape);
    AH_TRY(ah__arena_new(&out->arena, &out->decl, all, sizeof *out->decl));
    for (size_t i = 0; i < count; i++)
        AH_TRY(decl_add(out, &decls[i]));
    return AH_OK;
}

void ah__stack_decls_fini(struct ah_stack_decls *decls)
{
    ah__arena_free(&decls->arena);
    *decls = (struct ah_stack_decls){.count = 0};
}
