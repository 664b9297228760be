/* The text after --plan: "resident", or "c=8,p=2,o=8" and more of the keys of sched/switches.def. */
#include <string.h>

#include "plan/search.h"

enum { NUMBER_MOST = 1000000 };

static int parse_number(int *out, const struct ah_switch_row *row, const char *text, int length)
{
    int64_t value = 0;
    int digits = 0;
    for (; digits < length && text[digits] >= '0' && text[digits] <= '9' && value <= NUMBER_MOST; digits++)
        value = value * 10 + (text[digits] - '0');
    if (length == 0 || digits < length || value < row->low || value > NUMBER_MOST)
        return ah__fail(AH_EINPUT, "--plan: %s=%.*s: found '%.*s', expected a number from %d to %d", row->key, length,
                        text, length, text, row->low, NUMBER_MOST);
    *out = (int)value;
    return AH_OK;
}

static bool is(const char *word, const char *text, int length)
{
    return strlen(word) == (size_t)length && strncmp(text, word, (size_t)length) == 0;
}

static int parse_word(int *out, const struct ah_switch_row *row, const char *text, int length)
{
    const char *const *words = ah__switch_words[row->kind];
    if (!is(words[0], text, length) && !is(words[1], text, length))
        return ah__fail(AH_EINPUT, "--plan: %s=%.*s: found '%.*s', expected %s or %s", row->key, length, text, length,
                        text, words[1], words[0]);
    *out = is(words[1], text, length);
    return AH_OK;
}

static int unknown(const char *name, int length)
{
    char keys[AH_SWITCHES_TEXT] = "";
    size_t used = 0;
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", i ? ", " : "", ah__switch_table[i].key);
    return ah__fail(AH_EINPUT, "--plan: found key '%.*s', expected one of %s", length, name, keys);
}

/* Parses one KEY=VALUE of `length` characters. *given: a bit for each switch. */
static int parse_item(struct ah_switches *switches, unsigned *given, const char *text, int length)
{
    const char *equals = memchr(text, '=', (size_t)length);
    if (!equals)
        return ah__fail(AH_EINPUT, "--plan: found '%.*s', expected auto, resident, c=..,p=..,o=.. or a plan file",
                        length, text);
    int name_length = (int)(equals - text), value_length = length - name_length - 1, value;
    int index = ah__switch_find(text, (size_t)name_length, false);
    if (index < 0)
        return unknown(text, name_length);
    const struct ah_switch_row *row = &ah__switch_table[index];
    if (*given >> index & 1)
        return ah__fail(AH_EINPUT, "--plan: key '%s': found twice, expected once", row->key);
    *given |= 1U << index;
    AH_TRY(ah__switch_words[row->kind][0] ? parse_word(&value, row, equals + 1, value_length)
                                          : parse_number(&value, row, equals + 1, value_length));
    ah__switch_set(switches, index, value);
    return AH_OK;
}

static int parse_items(struct ah_switches *switches, unsigned *given, const char *text)
{
    for (const char *at = text; at; at = strchr(at, ',')) {
        at += at != text; /* past the comma */
        AH_TRY(parse_item(switches, given, at, (int)strcspn(at, ",")));
    }
    return AH_OK;
}

int ah__plan_spec(struct ah_plan *out, unsigned *given, const char *text, int layers)
{
    struct ah_plan plan = {.switches.layers = layers};
    unsigned bits = 0;
    if (strcmp(text, "resident") == 0)
        bits = 1U << AH_SWITCH_embedding_on_host | 1U << AH_SWITCH_head_on_host;
    else
        AH_TRY(parse_items(&plan.switches, &bits, text));
    int status = ah__fixed_check(&(struct ah_fixed){bits, plan.switches});
    if (status != AH_OK)
        return ah__fail_prefix(status, "--plan");
    *out = plan;
    *given = bits;
    return AH_OK;
}

bool ah_plan_is_open(const char *text)
{
    struct ah_switches switches = {0};
    unsigned given = 0, complete = 0;
    if (!text || strcmp(text, "auto") == 0)
        return true;
    for (int i = 0; i < AH_SWITCH_COUNT; i++)
        complete |= (ah__switch_table[i].must == AH_MUST_TEXT ? 1U : 0U) << i;
    return strchr(text, '=') && parse_items(&switches, &given, text) == AH_OK && (given & complete) != complete;
}

int ah__plan_passes_given(const char *text)
{
    struct ah_switches switches = {0};
    unsigned given = 0;
    return text && strchr(text, '=') && parse_items(&switches, &given, text) == AH_OK ? switches.passes : 0;
}
