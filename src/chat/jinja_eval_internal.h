/* The state of one rendering, which the evaluator's files share. */
#ifndef AH_CHAT_JINJA_EVAL_INTERNAL_H
#define AH_CHAT_JINJA_EVAL_INTERNAL_H

#include "chat/jinja.h"
#include "chat/jinja_call.h"
#include "chat/jinja_node.h"

struct ah_variable {
    const char *name;
    size_t length;
    struct ah_datum value;
    struct ah_variable *next;
};
/* Variables of a scope. Other names are looked up in the parent. */
struct ah_scope {
    struct ah_variable *first;
    struct ah_scope *parent;
};

enum ah_flow { AH_FLOW_ON, AH_FLOW_BREAK, AH_FLOW_CONTINUE };

struct ah_eval {
    struct ah_rendered *out;
    struct ah_buf *to; /* out->text, or the text of a macro or a block */
    struct ah_heap *heap;
    const char *name; /* name of the template */
    const struct tm *now;
    struct ah_datum variables;
    struct ah_scope *scope;
    enum ah_flow flow;
    int64_t steps;
    int depth;
    bool failed; /* the error message names its line already */
};

/* State of a running `for`. */
struct ah_loop {
    const struct ah_node *node;
    struct ah_scope *scope; /* the scope around the loop */
    struct ah_datum_list items;
    size_t index;
};
struct ah_macro {
    const struct ah_node *node;
    struct ah_scope *scope; /* the scope of its definition */
};

/* Counts a step and a level. Every call needs one of ah__eval_leave, which adds the line to an error message. */
int ah__eval_enter(struct ah_eval *eval);
int ah__eval_leave(struct ah_eval *eval, int status, int line);

/* Computes an expression's value. */
int ah__eval(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node);
int ah__eval_binary(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node);
int ah__eval_compare(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node);
/* Calls a macro, a function, a method, or a loop. */
int ah__eval_call(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *node);
/* Evaluates the arguments of a call, a filter or a test. */
int ah__eval_arguments(struct ah_arguments *out, struct ah_eval *eval, const struct ah_node *list);
void ah__eval_loop_attribute(struct ah_datum *out, struct ah_datum loop, const char *name, size_t length);

/* Runs statements; their output goes to eval->to. */
int ah__eval_statements(struct ah_eval *eval, const struct ah_node *node);
/* Makes a text of the output of statements, in a new scope within `scope`. */
int ah__eval_gather(struct ah_datum *out, struct ah_eval *eval, const struct ah_node *body, struct ah_scope *scope);

int ah__scope_new(struct ah_scope **out, struct ah_eval *eval, struct ah_scope *parent);
int ah__scope_set(struct ah_eval *eval, struct ah_scope *scope, const char *name, size_t length, struct ah_datum value);
/* Finds a variable of the scopes or of the rendering, a function of the environment, or UNDEFINED. */
int ah__scope_get(struct ah_datum *out, struct ah_eval *eval, const char *name, size_t length);

#endif
