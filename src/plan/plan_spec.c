#include <stddef.h>
#include <string.h>

#include "plan/plan_internal.h"

enum { NUMBER_MOST = 1000000 };

/* Keys of a spec. `bit` 0: must be there. `words`: one of these instead of a number, for no and yes. */
static const struct key {
    const char *name;
    size_t offset;
    int min;
    unsigned bit;
    const char *words[2];
} keys[] = {
    {"c", offsetof(struct ah_plan, switches.checkpoint), 0, 0, {NULL}},
    {"p", offsetof(struct ah_plan, switches.offload_params), 0, 0, {NULL}},
    {"o", offsetof(struct ah_plan, switches.offload_optimizer), 0, 0, {NULL}},
    {"buffers", offsetof(struct ah_plan, switches.buffers), 1, AH_PLAN_GIVEN_SLOTS, {NULL}},
    {"ahead", offsetof(struct ah_plan, switches.prefetch_distance), 1, AH_PLAN_GIVEN_AHEAD, {NULL}},
    {"chunks", offsetof(struct ah_plan, switches.chunks), 1, AH_PLAN_GIVEN_CHUNKS, {NULL}},
    {"out_of_order", offsetof(struct ah_plan, switches.out_of_order), 0, AH_PLAN_GIVEN_OVERTAKING, {NULL}},
    {"finishing", offsetof(struct ah_plan, switches.finishing), 0, AH_PLAN_GIVEN_FINISHING, {NULL}},
    {"order", offsetof(struct ah_plan, switches.order), 0, AH_PLAN_GIVEN_ORDER, {NULL}},
    {"shadows", offsetof(struct ah_plan, switches.shadows), 0, AH_PLAN_GIVEN_SPARES, {NULL}},
    {"selective", offsetof(struct ah_plan, switches.selective), 0, AH_PLAN_GIVEN_SELECTIVE, {NULL}},
    {"staged", offsetof(struct ah_plan, switches.staged), 0, AH_PLAN_GIVEN_STREAMED, {NULL}},
    {"a", offsetof(struct ah_plan, switches.offload_activations), 0, AH_PLAN_GIVEN_ACTIVATIONS, {NULL}},
    {"whole", offsetof(struct ah_plan, switches.unsharded), 0, AH_PLAN_GIVEN_WHOLE, {NULL}},
    {"embedding", offsetof(struct ah_plan, switches.embedding_on_host), 0, AH_PLAN_GIVEN_EMBEDDING, {"device", "host"}},
    {"head", offsetof(struct ah_plan, switches.head_on_host), 0, AH_PLAN_GIVEN_HEAD, {"device", "host"}},
    {"ends", offsetof(struct ah_plan, switches.share_embedding_head), 0, AH_PLAN_GIVEN_ENDS, {"apart", "shared"}},
};

static const struct key *key_find(const char *name, size_t length)
{
    for (size_t i = 0; i < AH_LENGTH(keys); i++)
        if (strlen(keys[i].name) == length && strncmp(keys[i].name, name, length) == 0)
            return &keys[i];
    return NULL;
}

static int parse_number(int *out, const struct key *key, const char *text, int length)
{
    int64_t value = 0;
    int digits = 0;
    for (; digits < length && text[digits] >= '0' && text[digits] <= '9' && value <= NUMBER_MOST; digits++)
        value = value * 10 + (text[digits] - '0');
    if (length == 0 || digits < length || value < key->min || value > NUMBER_MOST)
        return ah__fail(AH_EINPUT, "--plan: %s=%.*s: found '%.*s', expected a number from %d to %d", key->name, length,
                        text, length, text, key->min, NUMBER_MOST);
    *out = (int)value;
    return AH_OK;
}

static int parse_word(bool *out, const struct key *key, const char *text, int length)
{
    bool is[2];
    for (int i = 0; i < 2; i++)
        is[i] = strlen(key->words[i]) == (size_t)length && strncmp(text, key->words[i], (size_t)length) == 0;
    if (!is[0] && !is[1])
        return ah__fail(AH_EINPUT, "--plan: %s=%.*s: found '%.*s', expected %s or %s", key->name, length, text, length,
                        text, key->words[1], key->words[0]);
    *out = is[1];
    return AH_OK;
}

/* One KEY=VALUE of `length` characters. *seen: a bit for each row of `keys`. */
static int parse_item(struct ah_plan *plan, unsigned *seen, const char *text, int length)
{
    const char *equals = memchr(text, '=', (size_t)length);
    if (!equals)
        return ah__fail(AH_EINPUT, "--plan: found '%.*s', expected auto, resident, c=..,p=..,o=.. or a plan file",
                        length, text);
    int name_length = (int)(equals - text), value_length = length - name_length - 1;
    const struct key *key = key_find(text, (size_t)name_length);
    if (!key)
        return ah__fail(AH_EINPUT,
                        "--plan: found key '%.*s', expected one of c, p, o, buffers, ahead, chunks, out_of_order, "
                        "finishing, order, "
                        "shadows, selective, staged, a, whole, embedding, head, ends",
                        name_length, text);
    unsigned bit = 1U << (key - keys);
    if (*seen & bit)
        return ah__fail(AH_EINPUT, "--plan: key '%s': found twice, expected once", key->name);
    *seen |= bit;
    char *field = (char *)plan + key->offset;
    return key->words[0] ? parse_word((bool *)field, key, equals + 1, value_length)
                         : parse_number((int *)(void *)field, key, equals + 1, value_length);
}

/* Every key without a bit must have been seen; the bits of the others are the answer. */
static int collect_given(unsigned *given, unsigned seen)
{
    unsigned bits = 0;
    for (size_t i = 0; i < AH_LENGTH(keys); i++) {
        if (!(seen >> i & 1) && !keys[i].bit)
            return ah__fail(AH_EINPUT, "--plan: %s is missing: a plan by hand needs %s=NUMBER", keys[i].name,
                            keys[i].name);
        bits |= seen >> i & 1 ? keys[i].bit : 0;
    }
    *given = bits;
    return AH_OK;
}

int ah__plan_spec(struct ah_plan *out, unsigned *given, const char *text, int layers)
{
    struct ah_plan plan = {.switches.layers = layers};
    unsigned bits = AH_PLAN_GIVEN_EMBEDDING | AH_PLAN_GIVEN_HEAD, seen = 0;
    if (strcmp(text, "resident") != 0) {
        for (const char *at = text; at; at = strchr(at, ',')) {
            at += at != text; /* past the comma */
            AH_TRY(parse_item(&plan, &seen, at, (int)strcspn(at, ",")));
        }
        AH_TRY(collect_given(&bits, seen));
    }
    int status = ah__plan_switches(&plan);
    if (status != AH_OK)
        return ah__fail_prefix(status, "--plan");
    *out = plan;
    *given = bits;
    return AH_OK;
}
