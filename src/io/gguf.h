/* GGUF files, as llama.cpp and its like keep models: metadata and tensors, little-endian, versions 2 and 3. Reads them
 * and trusts nothing it reads; io/gguf_write.h writes them. Knows no models and no tokenizers.
 *
 * Layout: "GGUF", version, number of tensors, number of keys; keys with typed values; of each tensor name, shape, type
 * and offset; data, from a multiple of general.alignment (32) on.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md */
#ifndef AH_IO_GGUF_H
#define AH_IO_GGUF_H

#include "base/status.h"

/* How a tensor's elements are stored: in blocks of so many elements and bytes. */
struct ah_gguf_type {
    uint32_t id; /* in the file */
    const char *name;
    int block, bytes;
    /* Blocks of `count` elements in all as floats, any address; null: a type that is not read. */
    void (*widen)(float *to, const unsigned char *from, int64_t count);
};
enum { AH_GGUF_F32 = 0, AH_GGUF_F16 = 1, AH_GGUF_Q8_0 = 8, AH_GGUF_BF16 = 30 };
/* Null: no type has this number. */
const struct ah_gguf_type *ah__gguf_type(uint32_t id);

enum { AH_GGUF_RANK = 4 };
struct ah_gguf_tensor {
    const char *name;
    const struct ah_gguf_type *type;
    int rank;
    int64_t dim[AH_GGUF_RANK]; /* slowest first, as everywhere here; the file has them the other way round */
    const unsigned char *data; /* in the mapped file */
    size_t bytes;
};

struct ah_gguf;

/* Whether a regular file begins as GGUF files do. */
bool ah__gguf_is(const char *path);
/* Maps the file and checks all of it but the tensors' values: lengths, types, shapes, places without overlap, no key
 * and no name twice, texts in UTF-8. AH_EINPUT: missing or empty; AH_ECORRUPT names file, key or tensor, found and
 * expected; AH_ENOMEM. */
int ah__gguf_open(struct ah_gguf **out, const char *path);
/* Null is fine. */
void ah__gguf_close(struct ah_gguf *file);
const char *ah__gguf_path(const struct ah_gguf *file);

size_t ah__gguf_count(const struct ah_gguf *file);
/* The index-th tensor in order of names. Valid until close, as all that is given. */
const struct ah_gguf_tensor *ah__gguf_at(const struct ah_gguf *file, size_t index);
/* Null: no tensor of that name. */
const struct ah_gguf_tensor *ah__gguf_find(const struct ah_gguf *file, const char *name);

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

/* The key of an index in order of keys; null: that many there are. */
const char *ah__gguf_key(const struct ah_gguf *file, size_t index);
bool ah__gguf_has(const struct ah_gguf *file, const char *key);
/* What a key has. A key that is missing leaves *out as it is. AH_EINPUT names file, key, found and expected. */
int ah__gguf_int(int64_t *out, const struct ah_gguf *file, const char *key, int64_t min, int64_t max);
int ah__gguf_double(double *out, const struct ah_gguf *file, const char *key, double min, double max);
int ah__gguf_bool(bool *out, const struct ah_gguf *file, const char *key);
int ah__gguf_text(const char **out, const struct ah_gguf *file, const char *key);

/* The elements of an array, read one after the other. */
struct ah_gguf_array {
    const struct ah_gguf *file;
    const char *key;
    uint32_t type; /* of the elements, as in the file */
    int64_t count; /* of all */
    int64_t next;  /* index of the next one */
    const unsigned char *at;
};
/* count 0 where the key is missing. AH_EINPUT: no array of texts, integers, bools or numbers. */
int ah__gguf_texts(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
int ah__gguf_ints(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
int ah__gguf_bools(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
int ah__gguf_doubles(struct ah_gguf_array *out, const struct ah_gguf *file, const char *key);
/* The next one, of which there is one. A text is not terminated; UTF-8. Of bools an integer, 0 or 1. */
const char *ah__gguf_next_text(size_t *length, struct ah_gguf_array *array);
int64_t ah__gguf_next_int(struct ah_gguf_array *array);
double ah__gguf_next_double(struct ah_gguf_array *array);

#endif
