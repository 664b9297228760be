/* Arithmetic and comparison as in Python. Whole numbers have 64 bits; a larger result is an error. */
#include <math.h>
#include <string.h>

#include "chat/jinja_eval_internal.h"
#include "chat/jinja_filters.h"
#include "chat/jinja_text.h"

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static int too_large(void)
{
    return ah__fail(AH_EINPUT, "found a whole number that 64 bits do not hold");
}

static int int_power(struct ah_datum *out, int64_t base, int64_t power)
{
    int64_t result = 1;
    for (; power > 0; power--) {
        if (base == 0 || base == 1 || base == -1) {
            result = base == -1 && power % 2 == 0 ? 1 : base;
            break;
        }
        if (__builtin_mul_overflow(result, base, &result))
            return too_large();
    }
    *out = ah__datum_int(result);
    return AH_OK;
}

static int int_divide(struct ah_datum *out, int64_t a, int64_t b, bool rest)
{
    if (b == -1) {
        if (!rest && a == INT64_MIN)
            return too_large();
        *out = ah__datum_int(rest ? 0 : -a);
        return AH_OK;
    }
    int64_t quotient = a / b, remainder = a % b;
    if (remainder && (remainder < 0) != (b < 0)) {
        quotient--;
        remainder += b;
    }
    *out = ah__datum_int(rest ? remainder : quotient);
    return AH_OK;
}

static int ints(struct ah_datum *out, const char *sign, int64_t a, int64_t b)
{
    int64_t result;
    bool over;
    switch (*sign) {
    case '+':
        over = __builtin_add_overflow(a, b, &result);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &result);
        break;
    default:
        over = __builtin_mul_overflow(a, b, &result);
    }
    *out = ah__datum_int(result);
    return over ? too_large() : AH_OK;
}

/* Returns Python's remainder, which has the divisor's sign. */
static double real_rest(double a, double b)
{
    double rest = fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
        rest += b;
    return rest == 0 ? copysign(0, b) : rest;
}

static int reals(struct ah_datum *out, const char *sign, double a, double b)
{
    double result;
    if (strcmp(sign, "//") == 0)
        result = floor((a - real_rest(a, b)) / b + 0.5);
    else if (strcmp(sign, "**") == 0)
        result = pow(a, b);
    else
        switch (*sign) {
        case '+':
            result = a + b;
            break;
        case '-':
            result = a - b;
            break;
        case '*':
            result = a * b;
            break;
        case '/':
            result = a / b;
            break;
        default:
            result = real_rest(a, b);
        }
    *out = ah__datum_real(result);
    return AH_OK;
}

static int numbers(struct ah_datum *out, const char *sign, struct ah_datum a, struct ah_datum b)
{
    bool power = strcmp(sign, "**") == 0;
    bool whole = a.kind != AH_DATUM_REAL && b.kind != AH_DATUM_REAL && strcmp(sign, "/") != 0 &&
                 !(power && ah__datum_as_int(b) < 0);
    if (strchr("/%", *sign) && ah__datum_as_real(b) == 0)
        return ah__fail(AH_EINPUT, "found a division by zero");
    if (!whole)
        return reals(out, sign, ah__datum_as_real(a), ah__datum_as_real(b));
    int64_t left = ah__datum_as_int(a), right = ah__datum_as_int(b);
    if (power)
        return int_power(out, left, right);
    if (strchr("/%", *sign))
        return int_divide(out, left, right, *sign == '%');
    return ints(out, sign, left, right);
}

/* ---- texts and lists --------------------------------------------------------------------------------------------- */

/* Adds two texts. If only one is marked as safe, the other is escaped. */
static int texts_add(struct ah_datum *out, struct ah_eval *eval, struct ah_datum a, struct ah_datum b)
{
    char *text;
    bool safe = a.safe || b.safe;
    if (a.safe != b.safe) {
        struct ah_call call = {.heap = eval->heap, .self = a.safe ? b : a, .raw = &(struct ah_arguments){0}};
        AH_TRY(ah__filter_call(a.safe ? &b : &a, &call, "escape", strlen("escape")));
    }
    AH_TRY(ah__heap_text(eval->heap, &text, a.length + b.length));
    memcpy(text, a.text, a.length);
    memcpy(text + a.length, b.text, b.length);
    *out = ah__datum_text(text, a.length + b.length);
    out->safe = safe;
    return AH_OK;
}

static int lists_add(struct ah_datum *out, struct ah_eval *eval, struct ah_datum a, struct ah_datum b)
{
    AH_TRY(ah__datum_list(out, eval->heap, a.kind));
    for (size_t i = 0; i < a.list->count; i++)
        AH_TRY(ah__datum_append(out, eval->heap, a.list->items[i]));
    for (size_t i = 0; i < b.list->count; i++)
        AH_TRY(ah__datum_append(out, eval->heap, b.list->items[i]));
    return AH_OK;
}

static int list_repeat(struct ah_datum *out, struct ah_eval *eval, struct ah_datum list, int64_t times)
{
    AH_TRY(ah__datum_list(out, eval->heap, list.kind));
    for (int64_t i = 0; i < times && list.list->count; i++)
        for (size_t k = 0; k < list.list->count; k++)
            AH_TRY(ah__datum_append(out, eval->heap, list.list->items[k]));
    return AH_OK;
}

static bool is_list(struct ah_datum value)
{
    return value.kind == AH_DATUM_LIST || value.kind == AH_DATUM_TUPLE;
}

static bool is_whole(struct ah_datum value)
{
    return value.kind == AH_DATUM_INT || value.kind == AH_DATUM_BOOL;
}

static int operate(struct ah_datum *out, struct ah_eval *eval, const char *sign, struct ah_datum a, struct ah_datum b)
{
    if (ah__datum_is_number(a) && ah__datum_is_number(b))
        return numbers(out, sign, a, b);
    if (strcmp(sign, "+") == 0 && a.kind == b.kind && a.kind == AH_DATUM_TEXT)
        return texts_add(out, eval, a, b);
    if (strcmp(sign, "+") == 0 && a.kind == b.kind && is_list(a))
        return lists_add(out, eval, a, b);
    if (strcmp(sign, "*") == 0 && (is_whole(a) || is_whole(b))) {
        struct ah_datum many = is_whole(a) ? b : a;
        int64_t times = ah__datum_as_int(is_whole(a) ? a : b);
        if (many.kind == AH_DATUM_TEXT)
            return ah__text_repeat(out, eval->heap, many, times);
        if (is_list(many))
            return list_repeat(out, eval, many, times);
    }
    for (int i = 0; i < 2; i++) {
        struct ah_datum side = i ? b : a;
        if (side.kind == AH_DATUM_UNDEFINED)
            return ah__fail(AH_EINPUT, "'%.*s' is undefined beside '%s'", (int)side.length, side.text, sign);
    }
    return ah__fail(AH_EINPUT, "'%s' found between %s and %s", sign, ah__datum_type(a), ah__datum_type(b));
}

int ah__eval_binary(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum a, b;
    AH_TRY(ah__eval(&a, eval, node->a));
    AH_TRY(ah__eval(&b, eval, node->b));
    return operate(out, eval, node->text, a, b);
}

/* ---- comparison -------------------------------------------------------------------------------------------------- */

static int compare(bool *out, struct ah_heap *heap, struct ah_datum a, const char *sign, struct ah_datum b)
{
    int order;
    bool equal = sign[0] == '=' || sign[0] == '!';
    if (equal) {
        *out = ah__datum_equal(heap, a, b) == (sign[0] == '=');
        return AH_OK;
    }
    if (sign[0] == 'i' || sign[0] == 'n') {
        AH_TRY(ah__datum_contains(out, heap, b, a));
        *out = *out == (sign[0] == 'i');
        return AH_OK;
    }
    AH_TRY(ah__datum_order(&order, heap, a, b, sign));
    bool or_equal = sign[1] == '=';
    *out = sign[0] == '<' ? order < 0 || (or_equal && order == 0) : order > 0 || (or_equal && order == 0);
    return AH_OK;
}

/* a < b < c is a < b and b < c. */
int ah__eval_compare(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node)
{
    struct ah_datum left, right;
    bool good = true;
    AH_TRY(ah__eval(&left, eval, node->a));
    for (const struct ah_node *operand = node->list; operand && good; operand = operand->next) {
        AH_TRY(ah__eval(&right, eval, operand->a));
        AH_TRY(compare(&good, eval->heap, left, operand->text, right));
        left = right;
    }
    *out = ah__datum_bool(good);
    return AH_OK;
}
