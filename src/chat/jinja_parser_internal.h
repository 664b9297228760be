/* Declarations that the parser's files share: jinja_tokens.c, jinja_expression.c, jinja_parse.c. */
#ifndef AH_CHAT_JINJA_PARSER_INTERNAL_H
#define AH_CHAT_JINJA_PARSER_INTERNAL_H

#include "chat/jinja_lex.h"
#include "chat/jinja_node.h"

struct ah_parser {
    const struct ah_token *at; /* the next token; stays at END */
    struct ah_heap *heap;
    const char *name; /* name of the template */
    int depth;
    int loops; /* number of loops around this place, within its macro */
};

int ah__node_new(struct ah_node **out, struct ah_parser *parser, enum ah_node_kind kind);
/* Fails with AH_EINPUT: names the next token and what was expected. */
int ah__parser_fail(const struct ah_parser *parser, const char *expected);
bool ah__parser_sees(const struct ah_parser *parser, enum ah_token_kind kind, const char *text);
/* Returns true, and goes to the next token, if the present token is this one. */
bool ah__parser_takes(struct ah_parser *parser, enum ah_token_kind kind, const char *text);
int ah__parser_expect(struct ah_parser *parser, enum ah_token_kind kind, const char *text);
int ah__parser_name(const char **text, size_t *length, struct ah_parser *parser);
/* Counts a level; every call needs one of ah__parser_leave. AH_EINPUT: nested too deep. */
int ah__parser_enter(struct ah_parser *parser);
void ah__parser_leave(struct ah_parser *parser);

/* Parses an expression, including `a if b else c` if `condition`. */
int ah__expression(struct ah_node **out, struct ah_parser *parser, bool condition);
/* Parses an expression, or several with commas, which are a tuple. */
int ah__expression_tuple(struct ah_node **out, struct ah_parser *parser, bool condition);
int ah__expression_primary(struct ah_node **out, struct ah_parser *parser);
int ah__expression_postfix(struct ah_node **out, struct ah_parser *parser, struct ah_node *first);

#endif
