/* The table of switches.def, and what follows from it alone: bounds, text, hashing, random plans. Must not know
 * devices, models or which plan is good. */
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
/* Who may set a switch; each may set what those before may. */
enum ah_switch_use { AH_USE_PAPER = -1, AH_USE_BASIC, AH_USE_ALL };
enum ah_switch_must { AH_MUST_NONE, AH_MUST_FILE, AH_MUST_TEXT };

struct ah_switch_row {
    const char *field, *key;
    enum ah_switch_kind kind;
    enum ah_switch_use use;
    enum ah_switch_must must;
    size_t offset; /* of an int in struct ah_switches */
    int low;
    int (*high)(const struct ah_switches *s);
    const char *limit; /* the highest value in words */
    const char *term;
};
extern const struct ah_switch_row ah__switch_table[AH_SWITCH_COUNT];

/* For the lowest and the second value of a kind that has words; null: numbers. */
extern const char *const ah__switch_words[AH_KIND_COUNT][2];

static inline int ah__switch_get(const struct ah_switches *s, int index)
{
    int value;
    memcpy(&value, (const char *)s + ah__switch_table[index].offset, sizeof value);
    return value;
}

/* Returns its value; 0, as in a struct that leaves it out, counts as the lowest. */
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
struct ah_switches ah__switches_lowest(int layers, int world_size);

/* Returns the index of a key, as texts have it, or of a field, as files have it; -1: there is none. */
int ah__switch_find(const char *name, size_t length, bool fields);

/* Whether what is said of blocks, embedding and head is within its bounds. Buffers and numbers, which are fitted to a
 * machine, are not looked at. */
bool ah__switches_valid(const struct ah_switches *s);

/* All switches but those that have words. AH_EINPUT: "p=9: found 9, expected at most o=8"; the caller prefixes the
 * place. */
int ah__switches_check(const struct ah_switches *s);

uint64_t ah__switches_hash(const struct ah_switches *s, uint64_t hash);
bool ah__switches_equal(const struct ah_switches *a, const struct ah_switches *b);

/* "c=4,p=2,..." as after --plan, with `separator` for the comma. `all`: every switch, so that the text makes the same
 * plan again; else c, p, o, what other blocks do, and whether embedding and head share. */
enum { AH_SWITCHES_TEXT = 320 };
void ah__switches_text(char text[AH_SWITCHES_TEXT], const struct ah_switches *s, char separator, bool all);

/* A random choice of switches, for tests, benches and searches. */
struct ah_switches_draw {
    int (*draw)(void *context, int low, int high); /* both included */
    void *context;
    uint32_t without; /* switches (bits) that are to have their lowest values */
    uint32_t keep;    /* those that are to stay as they are where their bounds allow it */
    int rarely;       /* each other one is drawn with a chance of one in so many; or since its bounds leave no choice */
};
/* Draws a switch's lowest or highest value, any, one that is near the lowest, or one near what it was. Buffers may be
 * too few for the scheduler, which the caller mends. */
void ah__switches_draw(struct ah_switches *s, const struct ah_switches_draw *how);

#endif
