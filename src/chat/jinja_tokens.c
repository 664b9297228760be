/* A parser's place among a template's tokens: which token is next, which is expected, how deep the nesting is. */
#include <string.h>

#include "chat/jinja_parser_internal.h"

int ah__node_new(struct ah_node **out, struct ah_parser *parser, enum ah_node_kind kind)
{
    AH_TRY(ah__heap_new(parser->heap, out, 1, sizeof **out));
    (*out)->kind = kind;
    (*out)->line = parser->at->line;
    return AH_OK;
}

int ah__parser_fail(const struct ah_parser *parser, const char *expected)
{
    enum { SHOWN_MOST = 40 };
    const struct ah_token *at = parser->at;
    int shown = at->length < SHOWN_MOST ? (int)at->length : SHOWN_MOST;
    if (at->kind == AH_TOKEN_END)
        return ah__fail(AH_EINPUT, "%s: line %d: found the template's end, expected %s", parser->name, at->line,
                        expected);
    if (at->kind == AH_TOKEN_DATA)
        return ah__fail(AH_EINPUT, "%s: line %d: found text, expected %s", parser->name, at->line, expected);
    return ah__fail(AH_EINPUT, "%s: line %d: found '%.*s', expected %s", parser->name, at->line, shown, at->text,
                    expected);
}

bool ah__parser_sees(const struct ah_parser *parser, enum ah_token_kind kind, const char *text)
{
    const struct ah_token *at = parser->at;
    return at->kind == kind && (!text || (at->length == strlen(text) && memcmp(at->text, text, at->length) == 0));
}

bool ah__parser_takes(struct ah_parser *parser, enum ah_token_kind kind, const char *text)
{
    bool sees = ah__parser_sees(parser, kind, text);
    parser->at += sees;
    return sees;
}

int ah__parser_expect(struct ah_parser *parser, enum ah_token_kind kind, const char *text)
{
    static const char *const names[] = {
        [AH_TOKEN_BLOCK_END] = "'%}'", [AH_TOKEN_PRINT_END] = "'}}'", [AH_TOKEN_NAME] = "a name"};
    if (ah__parser_takes(parser, kind, text))
        return AH_OK;
    return ah__parser_fail(parser, text ? text : names[kind]);
}

int ah__parser_name(const char **text, size_t *length, struct ah_parser *parser)
{
    *text = parser->at->text;
    *length = parser->at->length;
    return ah__parser_expect(parser, AH_TOKEN_NAME, NULL);
}

int ah__parser_enter(struct ah_parser *parser)
{
    enum { DEPTH_MOST = 200 };
    if (++parser->depth > DEPTH_MOST)
        return ah__fail(AH_EINPUT, "%s: line %d: found a template nested more than %d deep", parser->name,
                        parser->at->line, DEPTH_MOST);
    return AH_OK;
}

void ah__parser_leave(struct ah_parser *parser)
{
    parser->depth--;
}
