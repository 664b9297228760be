/* Opens and renders a template. */
#include "chat/jinja.h"

#include <string.h>

#include "chat/jinja_eval_internal.h"

enum { TEMPLATE_BYTES_MOST = 1 << 28 }; /* bytes of a parsed template and its values */

struct ah_jinja {
    struct ah_heap heap;
    struct ah_node *body;
    struct ah_tokens tokens;
    const char *name;
};

int ah__jinja_open(const struct ah_jinja **out, const char *source, size_t length, const char *name)
{
    struct ah_jinja *jinja;
    AH_TRY(ah__new(&jinja, 1, sizeof *jinja));
    jinja->heap.most = TEMPLATE_BYTES_MOST;
    int status = ah__arena_strdup(&jinja->heap.arena, &jinja->name, name);
    if (status == AH_OK)
        status = ah__jinja_parse(&jinja->body, &jinja->tokens, &jinja->heap, source, length, jinja->name);
    if (status == AH_OK)
        *out = jinja;
    else
        ah__jinja_close(jinja);
    return status;
}

void ah__jinja_close(const struct ah_jinja *jinja)
{
    struct ah_jinja *own;
    memcpy(&own, &jinja, sizeof(void *));
    if (own)
        ah__arena_free(&own->heap.arena);
    ah__free(own);
}

bool ah__jinja_reads(const struct ah_jinja *jinja, const char *name, size_t length, bool inside)
{
    for (size_t i = 0; i < jinja->tokens.count; i++) {
        const struct ah_token *at = &jinja->tokens.items[i];
        bool member = i && at[-1].kind == AH_TOKEN_SIGN && at[-1].length == 1 && *at[-1].text == '.';
        bool fits = inside ? at->kind == AH_TOKEN_STRING || (at->kind == AH_TOKEN_NAME && member)
                           : at->kind == AH_TOKEN_NAME && !member;
        if (fits && at->length == length && memcmp(at->text, name, length) == 0)
            return true;
    }
    return false;
}

int ah__jinja_render(struct ah_rendered *out, const struct ah_jinja *jinja, struct ah_heap *heap,
                     struct ah_datum variables, const struct tm *now)
{
    struct ah_eval eval = {
        .out = out, .to = &out->text, .heap = heap, .name = jinja->name, .now = now, .variables = variables};
    AH_TRY(ah__scope_new(&eval.scope, &eval, NULL));
    AH_TRY(ah__eval_statements(&eval, jinja->body));
    return out->text.status;
}

void ah__rendered_free(struct ah_rendered *rendered)
{
    ah__buf_free(&rendered->text);
    ah__free(rendered->spans);
    *rendered = (struct ah_rendered){0};
}
