/* Shared by reading files (gguf.c) and their metadata (values.c). */
#ifndef AH_GGUF_INTERNAL_H
#define AH_GGUF_INTERNAL_H

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "gguf/gguf.h"

/* Types of values, by their numbers in files. */
enum ah_gguf_kind {
    AH_GGUF_KIND_U8,
    AH_GGUF_KIND_I8,
    AH_GGUF_KIND_U16,
    AH_GGUF_KIND_I16,
    AH_GGUF_KIND_U32,
    AH_GGUF_KIND_I32,
    AH_GGUF_KIND_F32,
    AH_GGUF_KIND_BOOL,
    AH_GGUF_KIND_TEXT,
    AH_GGUF_KIND_ARRAY,
    AH_GGUF_KIND_U64,
    AH_GGUF_KIND_I64,
    AH_GGUF_KIND_F64,
    AH_GGUF_KINDS
};
/* Bytes of a value of each type; 0 for a text and an array. */
extern const int ah__gguf_kind_bytes[AH_GGUF_KINDS];

struct ah_gguf_entry {
    const char *key, *text; /* text: the value of a text, terminated */
    uint32_t kind, element; /* element: the type of an array's elements */
    uint64_t count;         /* number of an array's elements */
    const unsigned char *data;
};

struct ah_gguf {
    const char *path; /* in the arena, like all names and texts */
    struct ah_map map;
    struct ah_arena arena;
    struct ah_gguf_entry *entries; /* sorted by key */
    size_t entry_count;
    struct ah_gguf_tensor *tensors; /* sorted by name */
    size_t tensor_count;
    size_t at; /* while the file is opened: bytes read so far */
};

int ah__gguf_compare_entries(const void *a, const void *b);

/* Returns the value of up to 8 bytes, the lowest first. */
static inline uint64_t ah__gguf_value(const unsigned char *data, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, data, (size_t)bytes);
    return value;
}

#endif
