/* GGUF files, as llama.cpp and related programs store models: metadata and tensors, little-endian, versions 2 and 3.
 * This is the reader, which trusts nothing it reads; gguf/write.h is the writer. Knows no models and no tokenizers.
 *
 * Layout: "GGUF", version, number of tensors, number of keys; keys with typed values; for each tensor its name, shape,
 * type and offset; data, starting at a multiple of general.alignment (32).
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
#ifndef AH_GGUF_GGUF_H
#define AH_GGUF_GGUF_H

#include "base/status.h"

/* A format of tensor elements, which are stored in blocks of `block` elements and `bytes` bytes. */
struct ah_gguf_type {
    uint32_t id; /* number in files */
    const char *name;
    int block, bytes;
    /* Converts whole blocks, `count` elements in all, at any address, to floats; null: a type that is not supported. */
    void (*widen)(float *to, const unsigned char *from, int64_t count);
};
enum { AH_GGUF_F32 = 0, AH_GGUF_F16 = 1, AH_GGUF_Q8_0 = 8, AH_GGUF_BF16 = 30 };
/* Returns the type of this number, or null. */
const struct ah_gguf_type *ah__gguf_type(uint32_t id);

enum { AH_GGUF_RANK = 4 };
struct ah_gguf_tensor {
    const char *name;
    const struct ah_gguf_type *type;
    int rank;
    int64_t dim[AH_GGUF_RANK]; /* slowest first, as everywhere in this library; files have the opposite order */
    const unsigned char *data; /* in the mapped file */
    size_t bytes;
};

struct ah_gguf;

/* Returns true if the path is a regular file that begins like a GGUF file. */
bool ah__gguf_is(const char *path);
/* Maps the file and checks all of it but the tensors' values: lengths, types, shapes, data that do not overlap, no
 * duplicate key or name, texts in UTF-8. AH_EINPUT: missing or empty; AH_ECORRUPT names file, key or tensor, found and
 * expected; AH_ENOMEM. */
int ah__gguf_open(struct ah_gguf **out, const char *path);
/* Null is fine. */
void ah__gguf_close(struct ah_gguf *file);
const char *ah__gguf_path(const struct ah_gguf *file);

size_t ah__gguf_count(const struct ah_gguf *file);
/* Returns the index-th tensor in order of names. Like all results it is valid until close. */
const struct ah_gguf_tensor *ah__gguf_at(const struct ah_gguf *file, size_t index);
/* Returns the tensor of that name, or null. */
const struct ah_gguf_tensor *ah__gguf_find(const struct ah_gguf *file, const char *name);

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

/* Returns the index-th key in order of keys, or null if there are fewer. */
const char *ah__gguf_key(const struct ah_gguf *file, size_t index);
bool ah__gguf_has(const struct ah_gguf *file, const char *key);
/* Read the value of a key. If the key is missing, *out is unchanged. AH_EINPUT names file, key, found and expected. */
int ah__gguf_int(int64_t *out, const struct ah_gguf *file, const char *key, int64_t min, int64_t max);
int ah__gguf_double(double *out, const struct ah_gguf *file, const char *key, double min, double max);
int ah__gguf_bool(bool *out, const struct ah_gguf *file, const char *key);
int ah__gguf_text(const char **out, const struct ah_gguf *file, const char *key);

/* An array of the metadata, whose elements are read one after the other. */
struct ah_gguf_array {
    const struct ah_gguf *file;
    const char *key;
    uint32_t type; /* type of the elements, as in the file */
    int64_t count; /* number of all elements */
    int64_t next;  /* index of the next element */
    const unsigned char *at;
};
/* Begin to read the array of a key; `count` is 0 if the key is missing. AH_EINPUT: not an array of texts, integers,
 * bools or numbers. */
int ah__gguf_texts(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
int ah__gguf_ints(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
int ah__gguf_bools(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
int ah__gguf_doubles(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
/* Return the next element; the caller checks that there is one. A text is UTF-8 and not terminated. A bool is the
 * integer 0 or 1. */
const char *ah__gguf_next_text(size_t *length, struct ah_gguf_array *array);
int64_t ah__gguf_next_int(struct ah_gguf_array *array);
double ah__gguf_next_double(struct ah_gguf_array *array);

#endif
