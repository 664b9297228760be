/* Tests. Each returns a BOOL. */
#include "chat/jinja_tests.h"

#include "chat/characters.h"

static int say(struct ah_datum *out, bool truth)
{
    *out = ah__datum_bool(truth);
    return AH_OK;
}

static bool is_kind(const struct ah_call *call, enum ah_datum_kind kind)
{
    return call->self.kind == kind;
}

#define TEST(name, condition)                                                                                          \
    static int name(struct ah_datum *out, const struct ah_call *call)                                                  \
    {                                                                                                                  \
        return say(out, condition);                                                                                    \
    }
TEST(is_defined, !is_kind(call, AH_DATUM_UNDEFINED))
TEST(is_undefined, is_kind(call, AH_DATUM_UNDEFINED))
TEST(is_none, is_kind(call, AH_DATUM_NONE))
TEST(is_string, is_kind(call, AH_DATUM_TEXT))
TEST(is_mapping, is_kind(call, AH_DATUM_DICT))
TEST(is_number, ah__datum_is_number(call->self))
TEST(is_integer, is_kind(call, AH_DATUM_INT))
TEST(is_float, is_kind(call, AH_DATUM_REAL))
TEST(is_boolean, is_kind(call, AH_DATUM_BOOL))
TEST(is_true, is_kind(call, AH_DATUM_BOOL) && call->self.truth)
TEST(is_false, is_kind(call, AH_DATUM_BOOL) && !call->self.truth)
TEST(is_equal, ah__datum_equal(call->heap, call->self, *call->given[0]))
TEST(is_unequal, !ah__datum_equal(call->heap, call->self, *call->given[0]))
/* UNDEFINED counts, as in Python: it is empty, but has a length and items. */
TEST(is_sequence, is_kind(call, AH_DATUM_UNDEFINED) || is_kind(call, AH_DATUM_TEXT) || is_kind(call, AH_DATUM_LIST) ||
                      is_kind(call, AH_DATUM_TUPLE) || is_kind(call, AH_DATUM_DICT))
TEST(is_iterable, is_kind(call, AH_DATUM_UNDEFINED) || is_kind(call, AH_DATUM_TEXT) || is_kind(call, AH_DATUM_LIST) ||
                      is_kind(call, AH_DATUM_TUPLE) || is_kind(call, AH_DATUM_DICT) || is_kind(call, AH_DATUM_ITER) ||
                      is_kind(call, AH_DATUM_LOOP))
#undef TEST

static int is_same(struct ah_datum *out, const struct ah_call *call)
{
    struct ah_datum a = call->self, b = *call->given[0];
    bool scalar = a.kind == AH_DATUM_TEXT || ah__datum_is_number(a) || a.kind == AH_DATUM_NONE;
    return say(out, a.kind == b.kind && (scalar ? ah__datum_equal(call->heap, a, b) : a.inner == b.inner));
}

static int is_in(struct ah_datum *out, const struct ah_call *call)
{
    bool found;
    AH_TRY(ah__datum_contains(&found, call->heap, *call->given[0], call->self));
    return say(out, found);
}

#define ORDER(name, sign, condition)                                                                                   \
    static int name(struct ah_datum *out, const struct ah_call *call)                                                  \
    {                                                                                                                  \
        int order;                                                                                                     \
        AH_TRY(ah__datum_order(&order, call->heap, call->self, *call->given[0], sign));                                \
        return say(out, condition);                                                                                    \
    }
ORDER(is_less, "<", order < 0)
ORDER(is_less_equal, "<=", order <= 0)
ORDER(is_greater, ">", order > 0)
ORDER(is_greater_equal, ">=", order >= 0)
#undef ORDER

static const struct ah_call_row rows[] = {
    {"defined", is_defined, "", 0},    {"undefined", is_undefined, "", 0},   {"none", is_none, "", 0},
    {"string", is_string, "", 0},      {"mapping", is_mapping, "", 0},       {"number", is_number, "", 0},
    {"integer", is_integer, "", 0},    {"float", is_float, "", 0},           {"boolean", is_boolean, "", 0},
    {"true", is_true, "", 0},          {"false", is_false, "", 0},           {"sequence", is_sequence, "", 0},
    {"iterable", is_iterable, "", 0},  {"sameas", is_same, "other", 1},      {"in", is_in, "seq", 1},
    {"eq", is_equal, "other", 1},      {"equalto", is_equal, "other", 1},    {"==", is_equal, "other", 1},
    {"ne", is_unequal, "other", 1},    {"!=", is_unequal, "other", 1},       {"lt", is_less, "other", 1},
    {"lessthan", is_less, "other", 1}, {"<", is_less, "other", 1},           {"le", is_less_equal, "other", 1},
    {"<=", is_less_equal, "other", 1}, {"gt", is_greater, "other", 1},       {"greaterthan", is_greater, "other", 1},
    {">", is_greater, "other", 1},     {"ge", is_greater_equal, "other", 1}, {">=", is_greater_equal, "other", 1},
};

int ah__test_call(bool *out, struct ah_call *call, const char *name, size_t length)
{
    const struct ah_call_row *row = ah__call_find(rows, AH_LENGTH(rows), name, length);
    struct ah_datum value;
    if (!row)
        return ah__fail(AH_EINPUT, "found the test '%.*s', which is not known here", (int)length, name);
    AH_TRY(ah__call_row(&value, call, row, "test"));
    *out = value.truth;
    return AH_OK;
}
