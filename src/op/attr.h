/* Attributes: an operator's settings besides its operands. One list gives the structure, the hash, the comparison, the
 * text and the JSON; an attribute exists only by its line in the list. */
#ifndef AH_OP_ATTR_H
#define AH_OP_ATTR_H

#include "base/status.h"

/* Factors of a rotation's wavelengths, by pair; all 0: no factors. */
enum { AH_ATTR_MOST_STRETCHES = 128 };
struct ah_stretch {
    float of[AH_ATTR_MOST_STRETCHES];
};

enum { AH_MOST_PICKS = 32 }; /* limit of `picks` */

/* Attributes that are a number or bool: id, type, name. The default is zero: text and JSON show what differs from it.
 * FACTOR stretches the wavelengths of a rotation; 0: not at all. Without `high` it stretches all of them, else as Llama
 * 3 does: not those that fit `original` positions more than `high` times, wholly those that fit them less than `low`
 * times, and in part those in between. With RAMP, `low` and `high` are not times but pairs: waves up to pair `low`
 * stay, waves from pair `high` on are stretched (YaRN). */
#define AH_ATTR_NUMBERS(X)                                                                                             \
    X(HEADS, int, heads)                                                                                               \
    X(KV_HEADS, int, kv_heads) /* heads of keys and values; each serves heads / kv_heads heads */                      \
    X(THETA, float, theta)     /* base of the wavelengths of a rotation by position */                                 \
    X(DIMS, int, dims)         /* channels of a head that rotate, from its first on; 0: all; -1: no channel */         \
    X(FACTOR, float, factor)   /* see above */                                                                         \
    X(LOW, float, low)                                                                                                 \
    X(HIGH, float, high)                                                                                               \
    X(ORIGINAL, int, original)                                                                                         \
    X(RAMP, bool, ramp)                                                                                                \
    X(MAGNITUDE, float, magnitude)  /* factor of rotated vectors; 0: no factor */                                      \
    X(BY_HEAD, bool, by_head)       /* q, k and v are side by side within each head, not each for all heads */         \
    X(WINDOW, int, window)          /* keys that a query sees, up to its own; 0: all up to its own */                  \
    X(CAP, float, cap)              /* x becomes cap * tanh(x / cap): scores, or logits; 0: x stays */                 \
    X(FIRST, int, first)            /* row of a table for position 0 */                                                \
    X(EPS, float, eps)              /* added to a variance */                                                          \
    X(OFFSET, float, offset)        /* added to the weight of a norm */                                                \
    X(SCALE, float, scale)          /* a factor; 0: queries times keys by 1 / sqrt of a head's channels */             \
    X(LIMIT, float, limit)          /* a gate, and what it multiplies, stay within it */                               \
    X(OUT_IN, bool, out_in)         /* the weight is [O,I], not [I,O] */                                               \
    X(PICKS, int, picks)            /* experts that compute a token */                                                 \
    X(NORMALISED, bool, normalised) /* the weights of a token's experts sum to 1 */                                    \
    X(ACC, unsigned, acc)           /* bit j: output j is added to, not overwritten */

/* All attributes: numbers and STRETCH, which is an array. */
#define AH_ATTR_LIST(X) AH_ATTR_NUMBERS(X) X(STRETCH, struct ah_stretch, stretch)

struct ah_attr {
#define AH_ATTR_FIELD(id, type, name) type name;
    AH_ATTR_LIST(AH_ATTR_FIELD)
#undef AH_ATTR_FIELD
};

/* Bits for a row's `attrs`: the attributes that its operator has. */
enum {
#define AH_ATTR_INDEX(id, type, name) AH_ATTR_INDEX_##id,
    AH_ATTR_LIST(AH_ATTR_INDEX)
#undef AH_ATTR_INDEX
        AH_ATTR_COUNT
};
enum {
#define AH_ATTR_BIT(id, type, name) AH_ATTR_##id = 1 << AH_ATTR_INDEX_##id,
    AH_ATTR_LIST(AH_ATTR_BIT)
#undef AH_ATTR_BIT
};

enum { AH_ATTR_TEXT_BYTES = 40 * AH_ATTR_COUNT }; /* room for the text of all attributes */

/* Returns the attributes that differ from their default, as bits. */
unsigned ah__attr_set(const struct ah_attr *attr);
/* Compares bit for bit. */
bool ah__attr_equal(const struct ah_attr *a, const struct ah_attr *b);
uint64_t ah__attr_hash(const struct ah_attr *attr, uint64_t seed);
/* Writes "heads=12, out_in=1" to text[size], "" if all are at their defaults; different values have different texts.
 * Returns text. */
char *ah__attr_format(char *text, size_t size, const struct ah_attr *attr);

#endif
