#include "tokenizer/added_tokens.h"

#include <string.h>

#include "base/alloc.h"
#include "tokenizer/regex.h"
#include "tokenizer/utf8.h"

/* A byte of the tokens' texts. Children of a node are a list through `next`. */
struct node {
    int32_t child, next; /* index of a node; -1: none */
    int32_t token;       /* index of the token that ends here; -1: none */
    unsigned char byte;
};

struct trie {
    struct node *nodes;
    size_t count, room;
    int32_t first[256]; /* nodes of first bytes; -1: no token begins so */
    size_t tokens;
};

struct ah_added_tokens {
    struct ah_added_token *tokens;
    size_t count;
    struct trie tries[2];  /* [0]: tokens looked for in the original text; [1]: in the normalized text */
    struct ah_regex *word; /* matches one character of a word; null: no token is `single_word` */
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static int node_add(int32_t *out, struct trie *trie, unsigned char byte)
{
    AH_TRY(ah__grow(&trie->nodes, &trie->room, trie->count + 1, sizeof *trie->nodes));
    trie->nodes[trie->count] = (struct node){-1, -1, -1, byte};
    *out = (int32_t)trie->count++;
    return AH_OK;
}

static int32_t child_find(const struct trie *trie, int32_t node, unsigned char byte)
{
    int32_t child = trie->nodes[node].child;
    while (child >= 0 && trie->nodes[child].byte != byte)
        child = trie->nodes[child].next;
    return child;
}

static int child_get(int32_t *out, struct trie *trie, int32_t node, unsigned char byte)
{
    int32_t child = child_find(trie, node, byte);
    if (child < 0) {
        AH_TRY(node_add(&child, trie, byte));
        trie->nodes[child].next = trie->nodes[node].child;
        trie->nodes[node].child = child;
    }
    *out = child;
    return AH_OK;
}

/* Adds a token to the trie. If two tokens have the same text, the first counts. */
static int trie_add(struct trie *trie, const char *text, size_t length, int32_t token)
{
    if (length == 0)
        return AH_OK;
    int32_t *first = &trie->first[(unsigned char)text[0]], node = *first;
    if (node < 0)
        AH_TRY(node_add(&node, trie, (unsigned char)text[0]));
    *first = node;
    for (size_t i = 1; i < length; i++)
        AH_TRY(child_get(&node, trie, node, (unsigned char)text[i]));
    if (trie->nodes[node].token < 0)
        trie->nodes[node].token = token;
    trie->tokens++;
    return AH_OK;
}

static int token_add(struct ah_added_tokens *added, int32_t index, const struct ah_normalizer *normalizer)
{
    const struct ah_added_token *token = &added->tokens[index];
    const char *text = token->content;
    size_t length = strlen(text);
    struct ah_buf buffers[2] = {{0}};
    int status = token->normalized ? ah__normalize(&text, &length, buffers, normalizer) : AH_OK;
    if (status == AH_OK && length > AH_ADDED_TOKEN_BYTES)
        status = ah__fail(AH_EINPUT, "added token %d: found %zu bytes, expected at most %d", (int)token->id, length,
                          AH_ADDED_TOKEN_BYTES);
    if (status == AH_OK)
        status = trie_add(&added->tries[token->normalized], text, length, index);
    if (status == AH_OK && token->single_word && !added->word)
        status = ah__regex_new(&added->word, "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]", false);
    ah__buf_free(&buffers[0]);
    ah__buf_free(&buffers[1]);
    return status;
}

static int added_init(struct ah_added_tokens *added, const struct ah_added_token *tokens, size_t count,
                      const struct ah_normalizer *normalizer)
{
    for (int kind = 0; kind < 2; kind++)
        memset(added->tries[kind].first, 0xff, sizeof added->tries[kind].first);
    AH_TRY(ah__new(&added->tokens, count, sizeof *added->tokens));
    added->count = count;
    for (size_t i = 0; i < count; i++)
        added->tokens[i] = tokens[i];
    for (size_t i = 0; i < count; i++)
        AH_TRY(token_add(added, (int32_t)i, normalizer));
    return AH_OK;
}

int ah__added_tokens_new(struct ah_added_tokens **out, const struct ah_added_token *tokens, size_t count,
                         const struct ah_normalizer *normalizer)
{
    struct ah_added_tokens *added;
    AH_TRY(ah__new(&added, 1, sizeof *added));
    int status = added_init(added, tokens, count, normalizer);
    if (status != AH_OK) {
        ah__added_tokens_free(added);
        return status;
    }
    *out = added;
    return AH_OK;
}

void ah__added_tokens_free(struct ah_added_tokens *added)
{
    if (!added)
        return;
    ah__free(added->tokens);
    ah__free(added->tries[0].nodes);
    ah__free(added->tries[1].nodes);
    ah__regex_free(added->word);
    ah__free(added);
}

/* ---- finding ----------------------------------------------------------------------------------------------------- */

/* Returns the longest token at the place; -1: no token. */
static int32_t token_at(const struct trie *trie, const char *text, size_t length, size_t at, size_t *end)
{
    int32_t token = -1, node = trie->first[(unsigned char)text[at]];
    while (node >= 0) {
        at++;
        if (trie->nodes[node].token >= 0) {
            token = trie->nodes[node].token;
            *end = at;
        }
        node = at < length ? child_find(trie, node, (unsigned char)text[at]) : -1;
    }
    return token;
}

static bool is_space(uint32_t code)
{
    static const uint32_t ranges[][2] = {{0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},
                                         {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f},
                                         {0x205f, 0x205f}, {0x3000, 0x3000}};
    for (size_t i = 0; i < AH_LENGTH(ranges); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

/* Returns the bytes of the character that ends before `at` > 0. */
static size_t bytes_before(const char *text, size_t at)
{
    size_t bytes = 1;
    while (bytes < at && bytes < 4 && (text[at - bytes] & 0xc0) == 0x80)
        bytes++;
    return bytes;
}

static size_t spaces_before(const char *text, size_t at)
{
    while (at > 0) {
        size_t bytes = bytes_before(text, at);
        if (!is_space(ah__utf8_code(text + at - bytes, bytes)))
            break;
        at -= bytes;
    }
    return at;
}

static size_t spaces_behind(const char *text, size_t length, size_t at)
{
    while (at < length && is_space(ah__utf8_code(text + at, ah__utf8_bytes(text[at]))))
        at += ah__utf8_bytes(text[at]);
    return at;
}

static int word_is(bool *is, const struct ah_added_tokens *added, const char *text, size_t bytes)
{
    size_t start, end;
    return ah__regex_next(is, &start, &end, added->word, text, bytes, 0);
}

/* Sets *alone if no character of a word is next to [start, end). */
static int stands_alone(bool *alone, const struct ah_added_tokens *added, const char *text, size_t length, size_t start,
                        size_t end)
{
    bool before = false, behind = false;
    size_t bytes = start > 0 ? bytes_before(text, start) : 0;
    if (start > 0)
        AH_TRY(word_is(&before, added, text + start - bytes, bytes));
    if (end < length)
        AH_TRY(word_is(&behind, added, text + end, ah__utf8_bytes(text[end])));
    *alone = !before && !behind;
    return AH_OK;
}

int ah__added_tokens_split(const struct ah_added_tokens *added, bool normalized, const char *text, size_t length,
                           int (*part)(int32_t id, const char *text, size_t length, void *context), void *context)
{
    const struct trie *trie = &added->tries[normalized];
    size_t done = 0, end = 0;
    for (size_t at = 0; at < length && trie->tokens;) {
        int32_t index = token_at(trie, text, length, at, &end);
        if (index < 0) {
            at++;
            continue;
        }
        const struct ah_added_token *token = &added->tokens[index];
        size_t start = at;
        bool alone = true;
        if (token->single_word)
            AH_TRY(stands_alone(&alone, added, text, length, start, end));
        at = end;
        if (!alone)
            continue;
        if (token->lstrip)
            start = spaces_before(text, start);
        start = token->lstrip && start < done ? done : start;
        if (token->rstrip)
            end = spaces_behind(text, length, end);
        if (done < start)
            AH_TRY(part(-1, text + done, start - done, context));
        AH_TRY(part(token->id, NULL, 0, context));
        done = end;
    }
    return done < length ? part(-1, text + done, length - done, context) : AH_OK;
}
