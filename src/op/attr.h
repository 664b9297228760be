/* Attributes: what an operator is told besides its operands. One list gives the structure, the hash, the comparison,
 * the text and the JSON; what is not in the list does not exist. */
#ifndef AH_OP_ATTR_H
#define AH_OP_ATTR_H

#include "base/status.h"

/* By what waves of a rotation are multiplied, pair by pair; all 0: by nothing. */
enum { AH_ATTR_MOST_STRETCHES = 128 };
struct ah_stretch {
    float of[AH_ATTR_MOST_STRETCHES];
};

/* id, type (a number or bool), name. The default is zero: text and JSON show what differs from it. */
#define AH_ATTR_NUMBERS(X)                                                                                             \
    X(HEADS, int, heads)                                                                                               \
    X(KV_HEADS, int, kv_heads) /* of keys and values; each serves heads / kv_heads heads */                            \
    X(THETA, float, theta)     /* base of the wavelengths of a rotation by position */                                 \
    X(DIMS, int, dims)         /* of a head that rotate, from its first on; 0: all; -1: none */                        \
    X(FACTOR, float,                                                                                                   \
      factor) /* wavelengths of a rotation are stretched by it, 0: are not; all of them without `high`, \
                                else as Llama 3 does: none that fit `original` positions more than `high` times, all   \
                                that do so less than `low` times, those in between in part */              \
    X(LOW, float, low)                                                                                                 \
    X(HIGH, float, high)                                                                                               \
    X(ORIGINAL, int, original)                                                                                         \
    X(RAMP, bool, ramp) /* `low` and `high` are pairs, not times: up to `low` waves stay, from `high` on all \
                                   are stretched (YaRN) */         \
    X(MAGNITUDE, float, magnitude) /* what is rotated is multiplied by it; 0: by nothing */                            \
    X(BY_HEAD, bool, by_head)      /* q, k and v lie side by side within each head, not each for all heads */          \
    X(WINDOW, int, window)         /* keys that a query sees, its own the last of them; 0: all up to its own */        \
    X(CAP, float, cap)             /* x becomes cap * tanh(x / cap): scores, or logits; 0: x stays */                  \
    X(FIRST, int, first)           /* row of a table that is for position 0 */                                         \
    X(EPS, float, eps)             /* added to a variance */                                                           \
    X(OFFSET, float, offset)       /* added to the weight of a norm */                                                 \
    X(SCALE, float, scale)  /* what is multiplied by it; 0: queries times keys by 1 / sqrt of a head's channels */     \
    X(OUT_IN, bool, out_in) /* the weight is [O,I], not [I,O] */                                                       \
    X(ACC, unsigned, acc)   /* bit j: output j is added to, not overwritten */

/* And what is no number. */
#define AH_ATTR_LIST(X) AH_ATTR_NUMBERS(X) X(STRETCH, struct ah_stretch, stretch)

struct ah_attr {
#define AH_ATTR_FIELD(id, type, name) type name;
    AH_ATTR_LIST(AH_ATTR_FIELD)
#undef AH_ATTR_FIELD
};

/* Bits that say in a row which attributes its operator has. */
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

enum { AH_ATTR_TEXT_BYTES = 40 * AH_ATTR_COUNT }; /* room for the text of any attributes */

/* Which attributes differ from their default, as bits. */
unsigned ah__attr_set(const struct ah_attr *attr);
/* Bit for bit. */
bool ah__attr_equal(const struct ah_attr *a, const struct ah_attr *b);
uint64_t ah__attr_hash(const struct ah_attr *attr, uint64_t seed);
/* "heads=12, out_in=1" into text[size], "" when all are at their defaults; different values have different texts.
 * Returns text. */
char *ah__attr_format(char *text, size_t size, const struct ah_attr *attr);

#endif
