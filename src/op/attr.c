#include "op/attr.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/hash.h"

bool ah__attr_equal(const struct ah_attr *a, const struct ah_attr *b)
{
#define EQUAL(id, type, name) &&memcmp(&a->name, &b->name, sizeof a->name) == 0
    return true AH_ATTR_LIST(EQUAL);
#undef EQUAL
}

unsigned ah__attr_set(const struct ah_attr *attr)
{
    static const struct ah_attr defaults;
    unsigned set = 0;
#define ADD(id, type, name)                                                                                            \
    set |= memcmp(&attr->name, &defaults.name, sizeof attr->name) != 0 ? (unsigned)AH_ATTR_##id : 0;
    AH_ATTR_LIST(ADD)
#undef ADD
    return set;
}

static bool is_stretched(const struct ah_attr *attr)
{
    return ah__attr_set(attr) & AH_ATTR_STRETCH;
}

static uint64_t stretch_hash(const struct ah_stretch *stretch, uint64_t seed)
{
    return ah__hash(stretch, sizeof *stretch, seed);
}

uint64_t ah__attr_hash(const struct ah_attr *attr, uint64_t seed)
{
    uint64_t bits;
#define ADD(id, type, name)                                                                                            \
    bits = 0;                                                                                                          \
    memcpy(&bits, &attr->name, sizeof attr->name);                                                                     \
    seed = ah__hash_int(bits, seed);
    AH_ATTR_NUMBERS(ADD)
#undef ADD
    return is_stretched(attr) ? stretch_hash(&attr->stretch, seed) : seed;
}

/* Writes a float with the fewest digits that give it back. */
static void float_format(char *text, size_t size, double value)
{
    for (int digits = 6; digits <= 9; digits++) {
        ah__snprintf(text, size, "%.*g", digits, value);
        float again = ah__strtof(text, NULL), exact = (float)value;
        if (memcmp(&again, &exact, sizeof exact) == 0)
            return;
    }
}

/* Writes the number of stretches and their hash: they are too many to be read. */
static void stretch_format(char *text, size_t size, struct ah_stretch value)
{
    int count = 0;
    while (count < AH_ATTR_MOST_STRETCHES && value.of[count] > 0)
        count++;
    snprintf(text, size, "%d:%016llx", count, (unsigned long long)stretch_hash(&value, 0));
}

static void int_format(char *text, size_t size, int64_t value)
{
    snprintf(text, size, "%lld", (long long)value);
}

char *ah__attr_format(char *text, size_t size, const struct ah_attr *attr)
{
    char value[32];
    size_t used = 0;
    unsigned set = ah__attr_set(attr);
    text[0] = 0;
#define ADD(id, type, name)                                                                                            \
    if (set & AH_ATTR_##id && used < size) {                                                                           \
        _Generic(attr->name, float                                                                                     \
                 : float_format, struct ah_stretch                                                                     \
                 : stretch_format, default                                                                             \
                 : int_format)(value, sizeof value, attr->name);                                                       \
        int n = snprintf(text + used, size - used, "%s" #name "=%s", used ? ", " : "", value);                         \
        used += n > 0 ? (size_t)n : 0;                                                                                 \
    }
    AH_ATTR_LIST(ADD)
#undef ADD
    return text;
}
