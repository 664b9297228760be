/* Parses expressions, from the loosest to the tightest: condition, or, and, not, comparison, + -, ~, * / // %, **,
 * sign, and suffixes of a value: attributes, items, calls, filters, tests. */
#include <string.h>

#include "chat/jinja_parser_internal.h"

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool sees_sign(const struct ah_parser *parser, const char *text)
{
    return ah__parser_sees(parser, AH_TOKEN_SIGN, text);
}

static bool takes_sign(struct ah_parser *parser, const char *text)
{
    return ah__parser_takes(parser, AH_TOKEN_SIGN, text);
}

static bool takes_word(struct ah_parser *parser, const char *text)
{
    return ah__parser_takes(parser, AH_TOKEN_NAME, text);
}

static bool sees_word_after(const struct ah_parser *parser, const char *first, const char *second)
{
    struct ah_parser next = *parser;
    return ah__parser_takes(&next, AH_TOKEN_NAME, first) && ah__parser_sees(&next, AH_TOKEN_NAME, second);
}

/* ---- primaries --------------------------------------------------------------------------------------------------- */

static int constant(struct ah_node **out, struct ah_parser *parser, struct ah_datum value)
{
    AH_TRY(ah__node_new(out, parser, AH_NODE_CONST));
    (*out)->value = value;
    return AH_OK;
}

static int name(struct ah_node **out, struct ah_parser *parser)
{
    const struct {
        const char *word;
        struct ah_datum value;
    } words[] = {{"true", ah__datum_bool(true)},   {"True", ah__datum_bool(true)}, {"false", ah__datum_bool(false)},
                 {"False", ah__datum_bool(false)}, {"none", ah__datum_none()},     {"None", ah__datum_none()}};
    for (size_t i = 0; i < AH_LENGTH(words); i++)
        if (ah__parser_sees(parser, AH_TOKEN_NAME, words[i].word)) {
            AH_TRY(constant(out, parser, words[i].value));
            parser->at++;
            return AH_OK;
        }
    AH_TRY(ah__node_new(out, parser, AH_NODE_NAME));
    return ah__parser_name(&(*out)->text, &(*out)->length, parser);
}

/* Parses a string. Adjacent strings are joined. */
static int string(struct ah_node **out, struct ah_parser *parser)
{
    size_t length = 0, done = 0;
    char *text;
    for (const struct ah_token *at = parser->at; at->kind == AH_TOKEN_STRING; at++)
        length += at->length;
    AH_TRY(ah__heap_new(parser->heap, &text, length + 1, 1));
    AH_TRY(constant(out, parser, ah__datum_text(text, length)));
    for (; parser->at->kind == AH_TOKEN_STRING; done += parser->at++->length)
        memcpy(text + done, parser->at->text, parser->at->length);
    return AH_OK;
}

/* Parses items with commas up to `end`, and takes `end` too. */
static int items(struct ah_node **list, struct ah_parser *parser, const char *end)
{
    struct ah_node **to = list;
    while (!takes_sign(parser, end)) {
        AH_TRY(ah__expression(to, parser, true));
        to = &(*to)->next;
        if (!sees_sign(parser, end))
            AH_TRY(ah__parser_expect(parser, AH_TOKEN_SIGN, ","));
    }
    return AH_OK;
}

static int dict(struct ah_node **out, struct ah_parser *parser)
{
    AH_TRY(ah__node_new(out, parser, AH_NODE_DICT));
    struct ah_node **to = &(*out)->list;
    while (!takes_sign(parser, "}")) {
        AH_TRY(ah__node_new(to, parser, AH_NODE_PAIR));
        AH_TRY(ah__expression(&(*to)->a, parser, true));
        AH_TRY(ah__parser_expect(parser, AH_TOKEN_SIGN, ":"));
        AH_TRY(ah__expression(&(*to)->b, parser, true));
        to = &(*to)->next;
        if (!sees_sign(parser, "}"))
            AH_TRY(ah__parser_expect(parser, AH_TOKEN_SIGN, ","));
    }
    return AH_OK;
}

/* Parses after "(": an expression, a tuple or (). */
static int parenthesis(struct ah_node **out, struct ah_parser *parser)
{
    if (takes_sign(parser, ")"))
        return ah__node_new(out, parser, AH_NODE_TUPLE);
    AH_TRY(ah__expression_tuple(out, parser, true));
    return ah__parser_expect(parser, AH_TOKEN_SIGN, ")");
}

int ah__expression_primary(struct ah_node **out, struct ah_parser *parser)
{
    const struct ah_token *at = parser->at;
    if (at->kind == AH_TOKEN_NAME)
        return name(out, parser);
    if (at->kind == AH_TOKEN_STRING)
        return string(out, parser);
    if (at->kind == AH_TOKEN_INT || at->kind == AH_TOKEN_REAL) {
        AH_TRY(constant(out, parser, at->kind == AH_TOKEN_INT ? ah__datum_int(at->integer) : ah__datum_real(at->real)));
        parser->at++;
        return AH_OK;
    }
    if (takes_sign(parser, "("))
        return parenthesis(out, parser);
    if (takes_sign(parser, "[")) {
        AH_TRY(ah__node_new(out, parser, AH_NODE_LIST));
        return items(&(*out)->list, parser, "]");
    }
    if (takes_sign(parser, "{"))
        return dict(out, parser);
    return ah__parser_fail(parser, "an expression");
}

/* ---- suffixes of a value ----------------------------------------------------------------------------------------- */

static int argument_end(struct ah_parser *parser)
{
    return sees_sign(parser, ")") ? AH_OK : ah__parser_expect(parser, AH_TOKEN_SIGN, ",");
}

/* Parses *list or **dict among arguments. */
static int spread(struct ah_node **out, struct ah_parser *parser)
{
    AH_TRY(ah__node_new(out, parser, AH_NODE_SPREAD));
    (*out)->flag = sees_sign(parser, "**");
    parser->at++;
    AH_TRY(ah__expression(&(*out)->a, parser, true));
    return argument_end(parser);
}

/* Parses arguments after "(". */
static int arguments(struct ah_node **list, struct ah_parser *parser)
{
    bool keywords = false;
    for (struct ah_node **to = list; !takes_sign(parser, ")"); to = &(*to)->next) {
        bool keyword = parser->at->kind == AH_TOKEN_NAME && parser->at[1].kind == AH_TOKEN_SIGN &&
                       parser->at[1].length == 1 && parser->at[1].text[0] == '=';
        if (sees_sign(parser, "*") || sees_sign(parser, "**")) {
            AH_TRY(spread(to, parser));
            keywords |= (*to)->flag;
            continue;
        }
        if (!keyword && keywords)
            return ah__parser_fail(parser, "a keyword argument, as those before it");
        keywords |= keyword;
        if (keyword) {
            AH_TRY(ah__node_new(to, parser, AH_NODE_KEYWORD));
            AH_TRY(ah__parser_name(&(*to)->text, &(*to)->length, parser));
            parser->at++;
            AH_TRY(ah__expression(&(*to)->a, parser, true));
        } else
            AH_TRY(ah__expression(to, parser, true));
        AH_TRY(argument_end(parser));
    }
    return AH_OK;
}

/* Parses one part of a[...]: an expression or a slice. */
static int subscript(struct ah_node **out, struct ah_parser *parser)
{
    struct ah_node *start = NULL, *slice;
    if (!sees_sign(parser, ":")) {
        AH_TRY(ah__expression(&start, parser, true));
        if (!sees_sign(parser, ":")) {
            *out = start;
            return AH_OK;
        }
    }
    AH_TRY(ah__node_new(&slice, parser, AH_NODE_SLICE));
    parser->at++;
    slice->a = start;
    if (!sees_sign(parser, ":") && !sees_sign(parser, "]"))
        AH_TRY(ah__expression(&slice->b, parser, true));
    if (takes_sign(parser, ":") && !sees_sign(parser, "]"))
        AH_TRY(ah__expression(&slice->c, parser, true));
    *out = slice;
    return AH_OK;
}

/* Parses after ".": a name, or a number, which is an item. */
static int attribute(struct ah_node **out, struct ah_parser *parser, struct ah_node *of)
{
    bool number = parser->at->kind == AH_TOKEN_INT;
    AH_TRY(ah__node_new(out, parser, number ? AH_NODE_ITEM : AH_NODE_ATTRIBUTE));
    (*out)->a = of;
    if (number)
        return ah__expression_primary(&(*out)->b, parser);
    return ah__parser_name(&(*out)->text, &(*out)->length, parser);
}

static int call(struct ah_node **out, struct ah_parser *parser, struct ah_node *of)
{
    AH_TRY(ah__node_new(out, parser, AH_NODE_CALL));
    (*out)->a = of;
    return arguments(&(*out)->list, parser);
}

int ah__expression_postfix(struct ah_node **out, struct ah_parser *parser, struct ah_node *first)
{
    *out = first;
    for (;;) {
        struct ah_node *of = *out;
        if (takes_sign(parser, ".")) {
            AH_TRY(attribute(out, parser, of));
        } else if (takes_sign(parser, "[")) {
            AH_TRY(ah__node_new(out, parser, AH_NODE_ITEM));
            (*out)->a = of;
            AH_TRY(subscript(&(*out)->b, parser));
            AH_TRY(ah__parser_expect(parser, AH_TOKEN_SIGN, "]"));
        } else if (takes_sign(parser, "("))
            AH_TRY(call(out, parser, of));
        else
            return AH_OK;
    }
}

/* Parses after "|" or "is": a name with dots, and arguments if a parenthesis follows. */
static int named(struct ah_node **out, struct ah_parser *parser, enum ah_node_kind kind, struct ah_node *of)
{
    AH_TRY(ah__node_new(out, parser, kind));
    (*out)->a = of;
    return ah__parser_name(&(*out)->text, &(*out)->length, parser);
}

static int filter(struct ah_node **out, struct ah_parser *parser, struct ah_node *of)
{
    AH_TRY(named(out, parser, AH_NODE_FILTER, of));
    return takes_sign(parser, "(") ? arguments(&(*out)->list, parser) : AH_OK;
}

/* Parses a test. Its argument may have no parentheses: x is divisibleby 3. */
static int test(struct ah_node **out, struct ah_parser *parser, struct ah_node *of)
{
    bool negated = takes_word(parser, "not");
    struct ah_node *found, *argument;
    AH_TRY(named(&found, parser, AH_NODE_TEST, of));
    enum ah_token_kind kind = parser->at->kind;
    if (takes_sign(parser, "("))
        AH_TRY(arguments(&found->list, parser));
    else if ((kind == AH_TOKEN_NAME && !ah__parser_sees(parser, kind, "else") && !ah__parser_sees(parser, kind, "or") &&
              !ah__parser_sees(parser, kind, "and")) ||
             kind == AH_TOKEN_STRING || kind == AH_TOKEN_INT || kind == AH_TOKEN_REAL || sees_sign(parser, "[") ||
             sees_sign(parser, "{")) {
        if (ah__parser_sees(parser, kind, "is"))
            return ah__parser_fail(parser, "one test of a value");
        AH_TRY(ah__expression_primary(&argument, parser));
        AH_TRY(ah__expression_postfix(&found->list, parser, argument));
    }
    if (!negated) {
        *out = found;
        return AH_OK;
    }
    AH_TRY(ah__node_new(out, parser, AH_NODE_NOT));
    (*out)->a = found;
    return AH_OK;
}

static int filters(struct ah_node **out, struct ah_parser *parser, struct ah_node *first)
{
    *out = first;
    for (;;) {
        struct ah_node *of = *out;
        if (takes_sign(parser, "|"))
            AH_TRY(filter(out, parser, of));
        else if (takes_word(parser, "is"))
            AH_TRY(test(out, parser, of));
        else if (takes_sign(parser, "("))
            AH_TRY(call(out, parser, of));
        else
            return AH_OK;
    }
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static int unary(struct ah_node **out, struct ah_parser *parser, bool filtered)
{
    struct ah_node *first;
    AH_TRY(ah__parser_enter(parser));
    if (sees_sign(parser, "-") || sees_sign(parser, "+")) {
        AH_TRY(ah__node_new(&first, parser, sees_sign(parser, "-") ? AH_NODE_MINUS : AH_NODE_PLUS));
        parser->at++;
        AH_TRY(unary(&first->a, parser, false));
    } else
        AH_TRY(ah__expression_primary(&first, parser));
    AH_TRY(ah__expression_postfix(out, parser, first));
    first = *out;
    if (filtered)
        AH_TRY(filters(out, parser, first));
    ah__parser_leave(parser);
    return AH_OK;
}

/* Levels of binary operators that group to the left, the tightest first. */
static const char *const binary_signs[][5] = {{"**"}, {"*", "/", "//", "%"}, {"~"}, {"+", "-"}};
enum { LEVEL_CONCAT = 2, LEVEL_SUM = 3 };

static const char *binary_sign(const struct ah_parser *parser, int level)
{
    for (const char *const *sign = binary_signs[level]; *sign; sign++)
        if (sees_sign(parser, *sign))
            return *sign;
    return NULL;
}

static int binary(struct ah_node **out, struct ah_parser *parser, int level);

static int concat(struct ah_node **out, struct ah_parser *parser, struct ah_node *first)
{
    AH_TRY(ah__node_new(out, parser, AH_NODE_CONCAT));
    (*out)->list = first;
    for (struct ah_node **to = &first->next; takes_sign(parser, "~"); to = &(*to)->next)
        AH_TRY(binary(to, parser, LEVEL_CONCAT - 1));
    return AH_OK;
}

static int binary(struct ah_node **out, struct ah_parser *parser, int level)
{
    const char *sign;
    if (level < 0)
        return unary(out, parser, true);
    AH_TRY(binary(out, parser, level - 1));
    while ((sign = binary_sign(parser, level))) {
        struct ah_node *left = *out;
        if (level == LEVEL_CONCAT) {
            AH_TRY(concat(out, parser, left));
            continue;
        }
        AH_TRY(ah__node_new(out, parser, AH_NODE_BINARY));
        (*out)->text = sign;
        (*out)->length = strlen(sign);
        (*out)->a = left;
        parser->at++;
        AH_TRY(binary(&(*out)->b, parser, level - 1));
    }
    return AH_OK;
}

/* Takes a comparison and returns its sign; null: no comparison follows. */
static const char *comparison_sign(struct ah_parser *parser)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    for (size_t i = 0; i < AH_LENGTH(signs); i++)
        if (takes_sign(parser, signs[i]))
            return signs[i];
    if (takes_word(parser, "in"))
        return "in";
    if (!sees_word_after(parser, "not", "in"))
        return NULL;
    parser->at += 2;
    return "not in";
}

static int comparison(struct ah_node **out, struct ah_parser *parser)
{
    struct ah_node *first, *compare, **to;
    const char *sign;
    AH_TRY(binary(&first, parser, LEVEL_SUM));
    *out = first;
    AH_TRY(ah__node_new(&compare, parser, AH_NODE_COMPARE));
    compare->a = first;
    for (to = &compare->list; (sign = comparison_sign(parser)); to = &(*to)->next) {
        AH_TRY(ah__node_new(to, parser, AH_NODE_OPERAND));
        (*to)->text = sign;
        (*to)->length = strlen(sign);
        AH_TRY(binary(&(*to)->a, parser, LEVEL_SUM));
        *out = compare;
    }
    return AH_OK;
}

static int negation(struct ah_node **out, struct ah_parser *parser)
{
    if (!ah__parser_sees(parser, AH_TOKEN_NAME, "not"))
        return comparison(out, parser);
    AH_TRY(ah__parser_enter(parser));
    AH_TRY(ah__node_new(out, parser, AH_NODE_NOT));
    parser->at++;
    AH_TRY(negation(&(*out)->a, parser));
    ah__parser_leave(parser);
    return AH_OK;
}

/* Parses `and` and, if `either`, `or`. */
static int logical(struct ah_node **out, struct ah_parser *parser, bool either)
{
    AH_TRY(either ? logical(out, parser, false) : negation(out, parser));
    while (takes_word(parser, either ? "or" : "and")) {
        struct ah_node *left = *out;
        AH_TRY(ah__node_new(out, parser, either ? AH_NODE_OR : AH_NODE_AND));
        (*out)->a = left;
        AH_TRY(either ? logical(&(*out)->b, parser, false) : negation(&(*out)->b, parser));
    }
    return AH_OK;
}

int ah__expression(struct ah_node **out, struct ah_parser *parser, bool condition)
{
    AH_TRY(ah__parser_enter(parser));
    AH_TRY(logical(out, parser, true));
    while (condition && takes_word(parser, "if")) {
        struct ah_node *then = *out;
        AH_TRY(ah__node_new(out, parser, AH_NODE_CONDITION));
        (*out)->a = then;
        AH_TRY(logical(&(*out)->b, parser, true));
        if (takes_word(parser, "else"))
            AH_TRY(ah__expression(&(*out)->c, parser, true));
    }
    ah__parser_leave(parser);
    return AH_OK;
}

static bool tuple_ends(const struct ah_parser *parser)
{
    return parser->at->kind == AH_TOKEN_BLOCK_END || parser->at->kind == AH_TOKEN_PRINT_END || sees_sign(parser, ")");
}

int ah__expression_tuple(struct ah_node **out, struct ah_parser *parser, bool condition)
{
    struct ah_node *first, **to = &first;
    bool tuple = false;
    do {
        if (tuple && tuple_ends(parser))
            break;
        AH_TRY(ah__expression(to, parser, condition));
        to = &(*to)->next;
        tuple |= sees_sign(parser, ",");
    } while (takes_sign(parser, ","));
    *out = first;
    if (!tuple)
        return AH_OK;
    AH_TRY(ah__node_new(out, parser, AH_NODE_TUPLE));
    (*out)->list = first;
    return AH_OK;
}
