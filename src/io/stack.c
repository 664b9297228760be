#include "io/stack.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

static const char scope[] = "experts.", weight[] = ".weight", bias[] = ".bias";

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

/* Returns what a name has from its '^' on, before ".weight" or ".bias"; null: it has none. */
static const char *mark_of(const char *name)
{
    const char *mark = strchr(name, '^'), *end = mark ? strchr(mark, '.') : NULL;
    return end && (strcmp(end, weight) == 0 || strcmp(end, bias) == 0) ? mark : NULL;
}

struct ah_stack_layout ah__stack_layout(const char *name)
{
    const char *mark = mark_of(name);
    return (struct ah_stack_layout){.turned = mark && mark[1] == 'T',
                                    .alternate = mark && mark[1] == 'T' && mark[2] == '2'};
}

struct ah_shape ah__stack_part_shape(const char *name, const struct ah_shape *shape)
{
    struct ah_shape part = *shape;
    if (ah__stack_layout(name).turned && shape->rank == 3) {
        part.dim[1] = shape->dim[2];
        part.dim[2] = shape->dim[1];
    }
    if (!star_of(name) || shape->rank < 2)
        return part;
    part.rank--;
    memmove(part.dim, part.dim + 1, (size_t)part.rank * sizeof part.dim[0]);
    part.dim[part.rank] = 0;
    return part;
}

int ah__stack_part_name(char **out, const char *name, int64_t part)
{
    const char *star = star_of(name), *mark = mark_of(name);
    if (mark)
        return ah__sprintf(out, "%.*s%s", (int)(mark - name), name,
                           strcmp(strchr(mark, '.'), bias) == 0 ? "_bias" : "");
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

/* ---- values ------------------------------------------------------------------------------------------------------ */

enum { TILE = 32 }; /* columns that are moved together, so that neither side leaves the cache */

/* Moves a matrix [outs, ins] to or from the order of files. */
static inline void matrix_move(char *to, const char *from, struct ah_stack_layout layout, int64_t outs, int64_t ins,
                               bool to_file, const size_t size)
{
    for (int64_t first = 0; first < ins; first += TILE)
        for (int64_t o = 0; o < outs; o++) {
            int64_t half = outs / 2, row = !layout.alternate ? o : o < half ? 2 * o : 2 * (o - half) + 1;
            for (int64_t i = first; i < ins && i < first + TILE; i++) {
                size_t here = (size_t)(o * ins + i), there = (size_t)(layout.turned ? i * outs + row : row * ins + i);
                memcpy(to + size * (to_file ? there : here), from + size * (to_file ? here : there), size);
            }
        }
}

static void move(void *to, const void *from, struct ah_stack_layout layout, int64_t outs, int64_t ins, bool to_file,
                 size_t size)
{
    if (size == sizeof(float))
        matrix_move(to, from, layout, outs, ins, to_file, sizeof(float));
    else
        matrix_move(to, from, layout, outs, ins, to_file, sizeof(uint16_t));
}

void ah__stack_restore(void *to, const void *from, struct ah_stack_layout layout, int64_t outs, int64_t ins,
                       size_t size)
{
    move(to, from, layout, outs, ins, false, size);
}

int ah__stack_append(struct ah_safetensors_writer *writer, const char *name, const void *values,
                     const struct ah_shape *shape, enum ah_dtype dtype)
{
    struct ah_stack_layout layout = ah__stack_layout(name);
    size_t size = (size_t)ah__dtype_bytes(dtype), all = (size_t)ah__shape_count(shape) * size;
    if (!ah__stack_differs(layout))
        return ah__safetensors_writer_append(writer, values, all);
    int64_t outs = shape->dim[1], ins = shape->rank == 3 ? shape->dim[2] : 1;
    size_t bytes = (size_t)(outs * ins) * size;
    char *room;
    AH_TRY(ah__new(&room, bytes, 1));
    int status = AH_OK;
    for (int64_t e = 0; e < shape->dim[0] && status == AH_OK; e++) {
        move(room, (const char *)values + (size_t)e * bytes, layout, outs, ins, true, size);
        status = ah__safetensors_writer_append(writer, room, bytes);
    }
    ah__free(room);
    return status;
}

void ah__stack_copy(void *to, const char *name, const void *data, const struct ah_shape *shape, enum ah_dtype dtype)
{
    struct ah_stack_layout layout = ah__stack_layout(name);
    size_t size = (size_t)ah__dtype_bytes(dtype);
    if (!ah__stack_differs(layout)) {
        memcpy(to, data, (size_t)ah__shape_count(shape) * size);
        return;
    }
    int64_t outs = shape->dim[1], ins = shape->rank == 3 ? shape->dim[2] : 1;
    size_t bytes = (size_t)(outs * ins) * size;
    for (int64_t e = 0; e < shape->dim[0]; e++)
        move((char *)to + (size_t)e * bytes, (const char *)data + (size_t)e * bytes, layout, outs, ins, false, size);
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
        if (!star_of(decl->name) && !mark_of(decl->name))
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
