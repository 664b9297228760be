/* The table of switches.def, and functions that follow from it alone: bounds, text, hashing, random plans. Must not
 * know devices, models or which plan is good. */
#ifndef AH_SCHED_SWITCH_TABLE_H
#define AH_SCHED_SWITCH_TABLE_H

#include <stddef.h>
#include <string.h>

#include "sched/switches.h"

/* AH_SWITCH_checkpoint, ...: index in the table. */
enum ah_switch {
#define AH_SWITCH(field, ...) AH_SWITCH_##field,
#include "sched/switches.def"
#undef AH_SWITCH
    AH_SWITCH_COUNT
};

enum ah_switch_kind { AH_KIND_BLOCKS, AH_KIND_BUFFERS, AH_KIND_NUMBER, AH_KIND_PLACE, AH_KIND_SHARE, AH_KIND_COUNT };
/* The policies that may set a switch; each use includes those before it. */
enum ah_switch_use { AH_USE_PAPER = -1, AH_USE_BASIC, AH_USE_ALL };
enum ah_switch_must { AH_MUST_NONE, AH_MUST_FILE, AH_MUST_TEXT };

struct ah_switch_row {
    const char *field, *key;
    enum ah_switch_kind kind;
    enum ah_switch_use use;
    enum ah_switch_must must;
    size_t offset; /* offset of an int in struct ah_switches */
    int low;
    int (*high)(const struct ah_switches *s);
    const char *limit; /* the highest value in words */
    const char *term;
};
extern const struct ah_switch_row ah__switch_table[AH_SWITCH_COUNT];

/* Words for the lowest and the second value of a kind; null: the kind's values are numbers. */
extern const char *const ah__switch_words[AH_KIND_COUNT][2];

static inline int ah__switch_get(const struct ah_switches *s, int index)
{
    int value;
    memcpy(&value, (const char *)s + ah__switch_table[index].offset, sizeof value);
    return value;
}

/* Returns the value of a switch; 0, as in a struct that leaves it out, counts as the lowest. */
static inline int ah__switch_meant(const struct ah_switches *s, int index)
{
    const struct ah_switch_row *row = &ah__switch_table[index];
    int value = ah__switch_get(s, index);
    return value == 0 && row->must == AH_MUST_NONE ? row->low : value;
}

static inline void ah__switch_set(struct ah_switches *s, int index, int value)
{
    memcpy((char *)s + ah__switch_table[index].offset, &value, sizeof value);
}

static inline int ah__switch_high(const struct ah_switches *s, int index)
{
    return ah__switch_table[index].high(s);
}

/* Returns switches with their lowest values: everything on the device, nothing recomputed, one chunk, one pass. */
struct ah_switches ah__switches_lowest(int layers, int frozen_blocks, int world_size);

/* Lowers counts of blocks to what their bounds allow. */
void ah__switches_clamp(struct ah_switches *s);

/* Returns the index of a key, as texts have it, or of a field, as files have it; -1: there is none. */
int ah__switch_find(const char *name, size_t length, bool fields);

/* Returns true if switches of blocks, embedding and head are within their bounds. Buffers and numbers, which are fitted
 * to a machine, are not checked. */
bool ah__switches_valid(const struct ah_switches *s);

/* Checks all switches but those with words. AH_EINPUT: "p=9: found 9, expected at most o=8"; the caller prefixes where
 * the switches come from. */
int ah__switches_check(const struct ah_switches *s);

uint64_t ah__switches_hash(const struct ah_switches *s, uint64_t hash);
bool ah__switches_equal(const struct ah_switches *a, const struct ah_switches *b);

/* Writes "c=4,p=2,..." as after --plan, with `separator` for the comma. `all`: every switch, so that the text makes the
 * same plan again; else c, p, o, switches of other blocks, and whether embedding and head share a buffer. */
enum { AH_SWITCHES_TEXT = 320 };
void ah__switches_text(char text[AH_SWITCHES_TEXT], const struct ah_switches *s, char separator, bool all);

/* Switches that a search keeps, with their values. */
struct ah_fixed {
    uint32_t mask; /* 1 << index of each */
    struct ah_switches at;
};

static inline bool ah__is_fixed(const struct ah_fixed *fixed, int index)
{
    return fixed->mask >> index & 1;
}

static inline void ah__fix(struct ah_fixed *fixed, int index, int value)
{
    fixed->mask |= 1U << index;
    ah__switch_set(&fixed->at, index, value);
}

/* Checks each fixed value against its bounds, with the other switches where they leave it most room. AH_EINPUT as
 * ah__switches_check. */
int ah__fixed_check(const struct ah_fixed *fixed);
/* "passes=4,buffers=6" of those that are fixed. */
void ah__fixed_text(char text[AH_SWITCHES_TEXT], const struct ah_fixed *fixed);
bool ah__fixed_holds(const struct ah_fixed *fixed, const struct ah_switches *s);
/* Sets the fixed switches. Others move as little as it takes to leave room for them, and back within their bounds. */
void ah__fixed_set(struct ah_switches *s, const struct ah_fixed *fixed);

/* A random choice of switches, for tests, benches and searches. */
struct ah_switches_draw {
    int (*draw)(void *context, int low, int high); /* both included */
    void *context;
    uint32_t without; /* switches (bits) that get their lowest values */
    uint32_t keep;    /* switches (bits) that stay as they are if their bounds allow it */
    int rarely;       /* each other switch is drawn with a chance of 1 in `rarely`, and always if it is out of its
                       * bounds */
};
/* Draws for each switch its lowest or highest value, any value, one near the lowest, or one near its old value. Buffers
 * may be too few for the scheduler; the caller corrects this. */
void ah__switches_draw(struct ah_switches *s, const struct ah_switches_draw *how);

#endif
