/* Parses statements. */
#include <string.h>

#include "chat/jinja_parser_internal.h"

static int statement(struct ah_node **out, struct ah_parser *parser);

static bool takes_word(struct ah_parser *parser, const char *text)
{
    return ah__parser_takes(parser, AH_TOKEN_NAME, text);
}

static int block_end(struct ah_parser *parser)
{
    return ah__parser_expect(parser, AH_TOKEN_BLOCK_END, NULL);
}

/* ---- sequences of statements ------------------------------------------------------------------------------------- */

/* Returns true if "{%" and one of the words follow. The list of words ends with null; without a list only the
 * template's end counts. */
static bool ends_here(const struct ah_parser *parser, const char *const *words)
{
    struct ah_parser next = *parser;
    if (!words)
        return parser->at->kind == AH_TOKEN_END;
    if (!ah__parser_takes(&next, AH_TOKEN_BLOCK_BEGIN, NULL))
        return false;
    for (; *words; words++)
        if (ah__parser_sees(&next, AH_TOKEN_NAME, *words))
            return true;
    return false;
}

static int print(struct ah_node **out, struct ah_parser *parser)
{
    AH_TRY(ah__node_new(out, parser, AH_NODE_PRINT));
    AH_TRY(ah__expression_tuple(&(*out)->a, parser, true));
    return ah__parser_expect(parser, AH_TOKEN_PRINT_END, NULL);
}

static int data(struct ah_node **out, struct ah_parser *parser)
{
    AH_TRY(ah__node_new(out, parser, AH_NODE_DATA));
    (*out)->value = ah__datum_text(parser->at->text, parser->at->length);
    parser->at++;
    return AH_OK;
}

/* Parses statements up to "{%" and one of the words, and takes the "{%". */
static int statements(struct ah_node **out, struct ah_parser *parser, const char *const *words)
{
    *out = NULL;
    AH_TRY(ah__parser_enter(parser));
    for (struct ah_node **to = out; !ends_here(parser, words);) {
        if (parser->at->kind == AH_TOKEN_END)
            return ah__parser_fail(parser, words[0]);
        if (parser->at->kind == AH_TOKEN_DATA)
            AH_TRY(data(to, parser));
        else if (ah__parser_takes(parser, AH_TOKEN_PRINT_BEGIN, NULL))
            AH_TRY(print(to, parser));
        else {
            parser->at++;
            AH_TRY(statement(to, parser));
        }
        to = &(*to)->next;
    }
    ah__parser_leave(parser);
    parser->at += words != NULL;
    return AH_OK;
}

/* Parses the "%}" of a statement's head, the body, and the word that ends it. */
static int body_to(struct ah_node **out, struct ah_parser *parser, const char *word)
{
    const char *const words[] = {word, NULL};
    AH_TRY(block_end(parser));
    AH_TRY(statements(out, parser, words));
    parser->at++;
    return AH_OK;
}

static int body_of(struct ah_node **out, struct ah_parser *parser, const char *word)
{
    AH_TRY(body_to(out, parser, word));
    return block_end(parser);
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

/* Returns true if the node can be set: a name, a name in a namespace if `attributes`, or a tuple of these. */
static bool is_target(const struct ah_node *node, bool attributes)
{
    if (node->kind == AH_NODE_NAME)
        return true;
    if (node->kind == AH_NODE_ATTRIBUTE)
        return attributes && node->a->kind == AH_NODE_NAME;
    if (node->kind != AH_NODE_TUPLE)
        return false;
    for (const struct ah_node *item = node->list; item; item = item->next)
        if (!is_target(item, attributes))
            return false;
    return true;
}

/* Parses one of the targets that commas separate. It reads only primaries and suffixes, so that `in` and `=` end it. */
static int target_one(struct ah_node **out, struct ah_parser *parser, bool attributes)
{
    struct ah_node *first;
    AH_TRY(ah__parser_enter(parser));
    AH_TRY(ah__expression_primary(&first, parser));
    AH_TRY(ah__expression_postfix(out, parser, first));
    ah__parser_leave(parser);
    return is_target(*out, attributes) ? AH_OK : ah__parser_fail(parser, "a name to set before it");
}

static int target(struct ah_node **out, struct ah_parser *parser, bool attributes)
{
    struct ah_node *first, **to = &first;
    bool tuple = false;
    do {
        AH_TRY(target_one(to, parser, attributes));
        to = &(*to)->next;
        tuple |= ah__parser_sees(parser, AH_TOKEN_SIGN, ",");
    } while (ah__parser_takes(parser, AH_TOKEN_SIGN, ",") && parser->at->kind == AH_TOKEN_NAME &&
             !ah__parser_sees(parser, AH_TOKEN_NAME, "in"));
    *out = first;
    if (!tuple)
        return AH_OK;
    AH_TRY(ah__node_new(out, parser, AH_NODE_TUPLE));
    (*out)->list = first;
    return AH_OK;
}

static int for_parse(struct ah_node *node, struct ah_parser *parser)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    AH_TRY(target(&node->a, parser, false));
    AH_TRY(ah__parser_expect(parser, AH_TOKEN_NAME, "in"));
    AH_TRY(ah__expression_tuple(&node->b, parser, false));
    if (takes_word(parser, "if"))
        AH_TRY(ah__expression(&node->c, parser, true));
    AH_TRY(block_end(parser));
    parser->loops++;
    AH_TRY(statements(&node->body, parser, ends));
    parser->loops--;
    if (takes_word(parser, "else"))
        return body_of(&node->other, parser, "endfor");
    parser->at++;
    return block_end(parser);
}

static int if_parse(struct ah_node *node, struct ah_parser *parser)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    for (;;) {
        AH_TRY(ah__expression_tuple(&node->a, parser, false));
        AH_TRY(block_end(parser));
        AH_TRY(statements(&node->body, parser, ends));
        if (!takes_word(parser, "elif"))
            break;
        AH_TRY(ah__node_new(&node->other, parser, AH_NODE_IF));
        node = node->other;
    }
    if (takes_word(parser, "else"))
        return body_of(&node->other, parser, "endif");
    parser->at++;
    return block_end(parser);
}

static int set_parse(struct ah_node *node, struct ah_parser *parser)
{
    AH_TRY(target(&node->a, parser, true));
    if (ah__parser_takes(parser, AH_TOKEN_SIGN, "=")) {
        AH_TRY(ah__expression_tuple(&node->b, parser, true));
        return block_end(parser);
    }
    node->kind = AH_NODE_SET_BLOCK;
    return body_of(&node->body, parser, "endset");
}

/* Parses parameters after "(", each with a default or without. */
static int parameters(struct ah_node **list, struct ah_parser *parser)
{
    for (struct ah_node **to = list; !ah__parser_takes(parser, AH_TOKEN_SIGN, ")"); to = &(*to)->next) {
        AH_TRY(ah__node_new(to, parser, AH_NODE_KEYWORD));
        AH_TRY(ah__parser_name(&(*to)->text, &(*to)->length, parser));
        if (ah__parser_takes(parser, AH_TOKEN_SIGN, "="))
            AH_TRY(ah__expression(&(*to)->a, parser, true));
        if (!ah__parser_sees(parser, AH_TOKEN_SIGN, ")"))
            AH_TRY(ah__parser_expect(parser, AH_TOKEN_SIGN, ","));
    }
    return AH_OK;
}

/* Parses the body of a function. Loops around it do not count inside. */
static int function_body(struct ah_node *node, struct ah_parser *parser, const char *end)
{
    int loops = parser->loops;
    parser->loops = 0;
    AH_TRY(body_to(&node->body, parser, end));
    parser->loops = loops;
    return AH_OK;
}

static int macro_parse(struct ah_node *node, struct ah_parser *parser)
{
    AH_TRY(ah__parser_name(&node->text, &node->length, parser));
    AH_TRY(ah__parser_expect(parser, AH_TOKEN_SIGN, "("));
    AH_TRY(parameters(&node->list, parser));
    AH_TRY(function_body(node, parser, "endmacro"));
    return block_end(parser);
}

static int generation_parse(struct ah_node *node, struct ah_parser *parser)
{
    AH_TRY(function_body(node, parser, "endgeneration"));
    return block_end(parser);
}

static int loop_end_parse(struct ah_node *node, struct ah_parser *parser)
{
    (void)node;
    if (!parser->loops)
        return ah__parser_fail(parser, "break and continue within a loop");
    return block_end(parser);
}

static const struct {
    const char *word;
    enum ah_node_kind kind;
    int (*parse)(struct ah_node *node, struct ah_parser *parser); /* called after the word */
} rows[] = {
    {"for", AH_NODE_FOR, for_parse},
    {"if", AH_NODE_IF, if_parse},
    {"set", AH_NODE_SET, set_parse},
    {"macro", AH_NODE_MACRO, macro_parse},
    {"generation", AH_NODE_GENERATION, generation_parse},
    {"break", AH_NODE_BREAK, loop_end_parse},
    {"continue", AH_NODE_CONTINUE, loop_end_parse},
};

/* Parses a statement after "{%". */
static int statement(struct ah_node **out, struct ah_parser *parser)
{
    for (size_t i = 0; i < AH_LENGTH(rows); i++) {
        if (!ah__parser_sees(parser, AH_TOKEN_NAME, rows[i].word))
            continue;
        AH_TRY(ah__node_new(out, parser, rows[i].kind));
        parser->at++;
        return rows[i].parse(*out, parser);
    }
    return ah__parser_fail(parser, "a statement that is known here (for, if, set, macro, generation, break, "
                                   "continue)");
}

int ah__jinja_parse(struct ah_node **body, struct ah_tokens *tokens, struct ah_heap *heap, const char *source,
                    size_t length, const char *name)
{
    struct ah_parser parser = {.heap = heap, .name = name};
    AH_TRY(ah__jinja_lex(tokens, heap, source, length, name));
    parser.at = tokens->items;
    return statements(body, &parser, NULL);
}
