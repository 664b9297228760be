/* A template as a tree. A node's kind says which members it has. Sequences are chained by `next`. */
#ifndef AH_CHAT_JINJA_NODE_H
#define AH_CHAT_JINJA_NODE_H

#include "chat/jinja_lex.h"

enum ah_node_kind {
    /* Expressions. */
    AH_NODE_CONST,     /* value */
    AH_NODE_NAME,      /* text */
    AH_NODE_LIST,      /* list */
    AH_NODE_TUPLE,     /* list */
    AH_NODE_DICT,      /* list of PAIR */
    AH_NODE_PAIR,      /* a: key, b: value */
    AH_NODE_CONDITION, /* a if b else c; c may be null */
    AH_NODE_OR,        /* a, b */
    AH_NODE_AND,       /* a, b */
    AH_NODE_NOT,       /* a */
    AH_NODE_COMPARE,   /* a, list of OPERAND */
    AH_NODE_OPERAND,   /* text: the sign, "in" or "not in"; a */
    AH_NODE_BINARY,    /* text: the sign; a, b */
    AH_NODE_CONCAT,    /* list */
    AH_NODE_MINUS,     /* a */
    AH_NODE_PLUS,      /* a */
    AH_NODE_ATTRIBUTE, /* a.text */
    AH_NODE_ITEM,      /* a[b] */
    AH_NODE_SLICE,     /* a:b:c, each may be null */
    AH_NODE_CALL,      /* a(list) */
    AH_NODE_KEYWORD,   /* text=a, among arguments and parameters; a parameter without a default has no a */
    AH_NODE_SPREAD,    /* *a or, with flag, **a, among arguments */
    AH_NODE_FILTER,    /* a|text(list) */
    AH_NODE_TEST,      /* a is text(list) */
    /* Statements. */
    AH_NODE_DATA,       /* value: a text */
    AH_NODE_PRINT,      /* a */
    AH_NODE_FOR,        /* for a in b if c: body, else: other */
    AH_NODE_IF,         /* if a: body, else: other; a lone IF in other is an elif */
    AH_NODE_SET,        /* a = b */
    AH_NODE_SET_BLOCK,  /* a = the output of body */
    AH_NODE_MACRO,      /* text, list of KEYWORD, body */
    AH_NODE_GENERATION, /* body: text that the model writes */
    AH_NODE_BREAK,
    AH_NODE_CONTINUE,
};

struct ah_node {
    enum ah_node_kind kind;
    int line;
    bool flag;
    const char *text;
    size_t length; /* bytes of text */
    struct ah_datum value;
    struct ah_node *a, *b, *c, *list, *body, *other;
    struct ah_node *next;
};

/* Parses a template's body into the heap, which also holds names and texts. `tokens`: its tokens. AH_EINPUT: "NAME:
 * line N: found ..., expected ...". */
int ah__jinja_parse(struct ah_node **body, struct ah_tokens *tokens, struct ah_heap *heap, const char *source,
                    size_t length, const char *name);

#endif
