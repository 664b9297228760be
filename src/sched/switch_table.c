#include "sched/switch_table.h"

#include <stdio.h>

#include "base/format.h"
#include "base/hash.h"

static int ah__most_activations(const struct ah_switches *s)
{
    int trained = ah__trained_blocks(s);
    return trained > AH_ACTIVATION_BUFFERS ? trained - AH_ACTIVATION_BUFFERS : 0;
}

/* Returns how many blocks may be on disk: blocks that are staged are not. */
static int ah__most_on_disk(const struct ah_switches *s)
{
    return s->staged > 0 ? ah__trained_on_host(s) - s->staged : s->offload_optimizer;
}

#define AH_SWITCH(field, key, kind, use, must, low, high, limit, term)                                                 \
    static int high_##field(const struct ah_switches *s)                                                               \
    {                                                                                                                  \
        (void)s;                                                                                                       \
        return high;                                                                                                   \
    }
#include "sched/switches.def"
#undef AH_SWITCH

const struct ah_switch_row ah__switch_table[AH_SWITCH_COUNT] = {
#define AH_SWITCH(field, key, kind, use, must, low, high, limit, term)                                                 \
    {#field, key,          AH_KIND_##kind, AH_USE_##use, AH_MUST_##must, offsetof(struct ah_switches, field),          \
     low,    high_##field, limit,          term},
#include "sched/switches.def"
#undef AH_SWITCH
};

/* The struct has layers, world size, frozen blocks, one member per row, and members reserved for later rows. */
_Static_assert(sizeof(struct ah_switches) == AH_SWITCHES_INTS * sizeof(int) &&
                   offsetof(struct ah_switches, reserved) == (3 + AH_SWITCH_COUNT) * sizeof(int),
               "struct ah_switches and switches.def differ: run tests/lint/switches . --write");

const char *const ah__switch_words[AH_KIND_COUNT][2] = {
    [AH_KIND_PLACE] = {"device", "host"}, [AH_KIND_SHARE] = {"separate", "shared"}};

static bool is_word(const char *word, const char *name, size_t length)
{
    return strlen(word) == length && memcmp(word, name, length) == 0;
}

int ah__switch_find(const char *name, size_t length, bool fields)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (is_word(fields ? ah__switch_table[i].field : ah__switch_table[i].key, name, length))
            return i;
    return -1;
}

struct ah_switches ah__switches_lowest(int layers, int frozen_blocks, int world_size)
{
    struct ah_switches lowest = {.layers = layers, .frozen_blocks = frozen_blocks, .world_size = world_size};
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        ah__switch_set(&lowest, i, ah__switch_table[i].low);
    return lowest;
}

static bool is_within(const struct ah_switches *s, int index)
{
    int value = ah__switch_get(s, index);
    return value >= ah__switch_table[index].low && value <= ah__switch_high(s, index);
}

void ah__switches_clamp(struct ah_switches *s)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (ah__switch_table[i].kind == AH_KIND_BLOCKS && ah__switch_get(s, i) > ah__switch_high(s, i))
            ah__switch_set(s, i, ah__switch_high(s, i));
}

bool ah__switches_valid(const struct ah_switches *s)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++) {
        enum ah_switch_kind kind = ah__switch_table[i].kind;
        if (kind != AH_KIND_BUFFERS && kind != AH_KIND_NUMBER && !is_within(s, i))
            return false;
    }
    return true;
}

int ah__switches_check(const struct ah_switches *s)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++) {
        const struct ah_switch_row *row = &ah__switch_table[i];
        int value = ah__switch_meant(s, i);
        bool words = ah__switch_words[row->kind][0] != NULL;
        if (words || (value >= row->low && value <= ah__switch_high(s, i)))
            continue;
        if (value < row->low)
            return ah__fail(AH_EINPUT, "%s=%d: found %d, expected at least %d", row->key, value, value, row->low);
        bool number = row->limit[0] >= '0' && row->limit[0] <= '9';
        return ah__fail(AH_EINPUT, "%s=%d: found %d, expected at most %s%s%d", row->key, value, value,
                        number ? "" : row->limit, number ? "" : "=", ah__switch_high(s, i));
    }
    return AH_OK;
}

uint64_t ah__switches_hash(const struct ah_switches *s, uint64_t hash)
{
    hash = ah__hash_int((uint64_t)s->layers, ah__hash_int((uint64_t)s->world_size, hash));
    hash = ah__hash_int((uint64_t)s->frozen_blocks, hash);
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        hash = ah__hash_int((uint64_t)ah__switch_meant(s, i), hash);
    return hash;
}

bool ah__switches_equal(const struct ah_switches *a, const struct ah_switches *b)
{
    bool equal = a->layers == b->layers && a->world_size == b->world_size && a->frozen_blocks == b->frozen_blocks;
    for (int i = 0; i < AH_SWITCH_COUNT && equal; i++)
        equal = ah__switch_meant(a, i) == ah__switch_meant(b, i);
    return equal;
}

/* Returns true if the short text names a switch besides c, p and o. */
static bool is_named(const struct ah_switches *s, int index)
{
    const struct ah_switch_row *row = &ah__switch_table[index];
    return (row->kind == AH_KIND_BLOCKS || row->kind == AH_KIND_SHARE) && ah__switch_get(s, index) > row->low;
}

static size_t add_text(char text[AH_SWITCHES_TEXT], size_t length, const struct ah_switches *s, int index,
                       char separator)
{
    const struct ah_switch_row *row = &ah__switch_table[index];
    const char *const *words = ah__switch_words[row->kind];
    int value = ah__switch_get(s, index);
    char number[16];
    snprintf(number, sizeof number, "%d", value);
    if (length && length < AH_SWITCHES_TEXT - 1)
        text[length++] = separator;
    ah__snprintf(text + length, AH_SWITCHES_TEXT - length, "%s=%s", row->key,
                 words[0] && (value == 0 || value == 1) ? words[value] : number);
    return length + strlen(text + length);
}

void ah__switches_text(char text[AH_SWITCHES_TEXT], const struct ah_switches *s, char separator, bool all)
{
    static const int papers[] = {AH_SWITCH_checkpoint, AH_SWITCH_offload_params, AH_SWITCH_offload_optimizer};
    size_t length = 0;
    for (size_t i = 0; i < AH_LENGTH(papers); i++)
        length = add_text(text, length, s, papers[i], separator);
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (ah__switch_table[i].must != AH_MUST_TEXT && (all || is_named(s, i)))
            length = add_text(text, length, s, i, separator);
}

/* ---- fixed switches ---------------------------------------------------------------------------------------------- */

int ah__fixed_check(const struct ah_fixed *fixed)
{
    struct ah_switches s = ah__switches_lowest(fixed->at.layers, fixed->at.frozen_blocks, fixed->at.world_size);
    ah__fixed_set(&s, fixed);
    return ah__switches_check(&s);
}

void ah__fixed_text(char text[AH_SWITCHES_TEXT], const struct ah_fixed *fixed)
{
    size_t length = 0;
    *text = 0;
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (ah__is_fixed(fixed, i))
            length = add_text(text, length, &fixed->at, i, ',');
}

bool ah__fixed_holds(const struct ah_fixed *fixed, const struct ah_switches *s)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (ah__is_fixed(fixed, i) && ah__switch_get(s, i) != ah__switch_get(&fixed->at, i))
            return false;
    return true;
}

/* Sums up by how much fixed switches exceed what the others leave them. */
static int excess_of(const struct ah_fixed *fixed, const struct ah_switches *s)
{
    int sum = 0;
    for (int i = 0; i < AH_SWITCH_COUNT; i++) {
        int excess = ah__is_fixed(fixed, i) ? ah__switch_get(s, i) - ah__switch_high(s, i) : 0;
        sum += excess > 0 ? excess : 0;
    }
    return sum;
}

/* Gives a switch the nearest of the values that leave the fixed ones most room. */
static void make_room(struct ah_switches *s, int index, const struct ah_fixed *fixed)
{
    int low = ah__switch_table[index].low, high = ah__switch_high(s, index), value = ah__switch_get(s, index);
    int best = value, least = excess_of(fixed, s);
    for (int change = 1; change <= high - low && least > 0; change++)
        for (int moved = value - change; moved <= value + change; moved += 2 * change) {
            ah__switch_set(s, index, moved);
            int excess = moved < low || moved > high ? least : excess_of(fixed, s);
            best = excess < least ? moved : best;
            least = excess < least ? excess : least;
        }
    ah__switch_set(s, index, best);
}

void ah__fixed_set(struct ah_switches *s, const struct ah_fixed *fixed)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (ah__is_fixed(fixed, i))
            ah__switch_set(s, i, ah__switch_get(&fixed->at, i));
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (!ah__is_fixed(fixed, i))
            make_room(s, i, fixed);
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        if (!ah__is_fixed(fixed, i) && ah__switch_get(s, i) > ah__switch_high(s, i))
            ah__switch_set(s, i, ah__switch_high(s, i));
}

/* ---- random choices ---------------------------------------------------------------------------------------------- */

static int draw_value(int value, int low, int high, const struct ah_switches_draw *how)
{
    enum { HALVINGS = 8, STEP = 2 };
    switch (how->draw(how->context, 0, 4)) {
    case 0:
        return low;
    case 1:
        return high;
    case 2:
        return low + ((high - low) >> how->draw(how->context, 1, HALVINGS));
    case 3:
        value += how->draw(how->context, -STEP, STEP);
        return value < low ? low : value > high ? high : value;
    default:
        return how->draw(how->context, low, high);
    }
}

void ah__switches_draw(struct ah_switches *s, const struct ah_switches_draw *how)
{
    for (int i = 0; i < AH_SWITCH_COUNT; i++) {
        int low = ah__switch_table[i].low, high = ah__switch_high(s, i), value = ah__switch_get(s, i);
        bool keeps = how->keep >> i & 1 || how->draw(how->context, 1, how->rarely) > 1;
        if (how->without >> i & 1)
            ah__switch_set(s, i, low);
        else if (!keeps || !is_within(s, i))
            ah__switch_set(s, i, draw_value(value, low, high, how));
    }
}
