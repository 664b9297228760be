#include "gguf/by_name.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"

/* ---- llama.cpp's rules ------------------------------------------------------------------------------------------- */

/* Phi-3's special tokens that keep the white space after them. llama.cpp loads a Phi-3 only with all of these and
 * phi_end. */
static const char *const phi_keeps[] = {"<unk>", "<s>", "<|endoftext|>"};
static const char phi_end[] = "</s>";

/* Returns the first place of `part`, in lower case, in the name, or null. */
static const char *part_of(const char *name, const char *part)
{
    for (; name && *name; name++)
        if (strncasecmp(name, part, strlen(part)) == 0)
            return name;
    return NULL;
}

static bool is_phi(const char *name)
{
    return part_of(name, "phi-3") || part_of(name, "phi3");
}

int ah__gguf_edges_named(const char *name, const char *token)
{
    if (!is_phi(name))
        return part_of(name, "modern-bert") && strcmp(token, "[MASK]") == 0 ? AH_EDGE_LEFT : 0;
    for (size_t i = 0; i < AH_LENGTH(phi_keeps); i++)
        if (strcmp(token, phi_keeps[i]) == 0)
            return 0;
    return AH_EDGE_RIGHT;
}

/* Ends of turns, texts and messages, and the markers around a gap to be filled. */
static const char *const controls[] = {"</s>",
                                       "<|eot_id|>",
                                       "<|eom_id|>",
                                       "<|im_end|>",
                                       "<|end|>",
                                       "<|return|>",
                                       "<|call|>",
                                       "<|calls|>",
                                       "<|flush|>",
                                       "<end_of_turn>",
                                       "<|endoftext|>",
                                       "<|end_of_text|>",
                                       "<EOT>",
                                       "_<EOT>",
                                       "[EOT]",
                                       "[EOS]",
                                       "<end_of_utterance>",
                                       "<eos>",
                                       "<turn|>",
                                       "<|tool_response>",
                                       "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
                                       "<|fim_prefix|>",
                                       "<fim-prefix>",
                                       "<fim_prefix>",
                                       "<PRE>",
                                       "<|fim_suffix|>",
                                       "<fim-suffix>",
                                       "<fim_suffix>",
                                       "<SUF>",
                                       "<|fim_middle|>",
                                       "<fim-middle>",
                                       "<fim_middle>",
                                       "<MID>"};

bool ah__gguf_control_named(const char *token)
{
    for (size_t i = 0; i < AH_LENGTH(controls); i++)
        if (strcmp(token, controls[i]) == 0)
            return true;
    return false;
}

/* ---- a tokenizer under a name ------------------------------------------------------------------------------------ */

static bool has_token(const struct ah_tokenizer *tokenizer, const char *text)
{
    for (int32_t id = 0; id < tokenizer->vocab_size; id++) {
        const char *token = tokenizer->token(tokenizer, id);
        if (token && strcmp(token, text) == 0)
            return true;
    }
    return false;
}

/* Returns true if the tokenizer has the tokens without which llama.cpp loads no Phi-3. */
static bool may_be_phi(const struct ah_tokenizer *tokenizer)
{
    for (size_t i = 0; i < AH_LENGTH(phi_keeps); i++)
        if (!has_token(tokenizer, phi_keeps[i]))
            return false;
    return has_token(tokenizer, phi_end);
}

struct named {
    char *name;
    int64_t differences; /* number of added tokens that llama.cpp treats unlike the tokenizer */
    const char *first;   /* the first of these tokens */
};

static void differ(struct named *to, const struct ah_tokenizer *tokenizer)
{
    for (int32_t id = 0; id < tokenizer->vocab_size; id++) {
        if (!tokenizer->is_added(tokenizer, id))
            continue;
        const char *token = tokenizer->token(tokenizer, id);
        if (tokenizer->edges(tokenizer, id) != ah__gguf_edges_named(to->name, token) && to->differences++ == 0)
            to->first = token;
    }
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Makes a name of Phi-3: "Phi 3 Mini" -> "Phi-3 Mini", "Chat" -> "Chat (Phi-3)". */
static int phi_name(char **out, const char *name)
{
    const char *apart = part_of(name, "phi 3");
    AH_TRY(ah__sprintf(out, apart ? "%s" : "%s (Phi-3)", name));
    if (apart)
        (*out)[apart - name + 3] = '-';
    return AH_OK;
}

/* Makes a name that is not Phi-3's: "phi-3" and "phi3" -> "phi 3". */
static int plain_name(char **out, const char *name)
{
    struct ah_buf text = {0};
    for (const char *at = name; *at; at++) {
        bool phi = strncasecmp(at, "phi-3", 5) == 0 || strncasecmp(at, "phi3", 4) == 0;
        ah__buf_add(&text, at, phi ? 3 : 1);
        if (phi)
            ah__buf_add(&text, " 3", 2);
        at += !phi ? 0 : at[3] == '-' ? 4 : 3;
    }
    ah__buf_add(&text, "", 0);
    *out = text.text;
    return text.status;
}

struct ah_buf *ah__gguf_clause(struct ah_buf *notes)
{
    if (notes->length)
        ah__buf_printf(notes, "; ");
    return notes;
}

static void notes_add(struct ah_buf *notes, const struct named *to, bool renamed, bool strips)
{
    bool many = to->differences > 1;
    if (renamed)
        ah__buf_printf(ah__gguf_clause(notes),
                       "named '%.80s': by 'phi-3' in a name alone llama.cpp takes white space behind special tokens "
                       "along, as this tokenizer does%s",
                       to->name, strips ? "" : " not");
    if (to->differences)
        ah__buf_printf(ah__gguf_clause(notes),
                       "%lld added token%s, '%.40s' first, take%s white space along or stand%s alone ('rstrip', "
                       "'lstrip', 'single_word') otherwise than in llama.cpp, so that ids beside them differ",
                       (long long)to->differences, many ? "s" : "", to->first, many ? "" : "s", many ? "" : "s");
}

/* Chooses the better of a name that strips no white space and one that does. The caller frees both. */
static int settle(struct named names[2], struct ah_buf *notes, const struct ah_tokenizer *tokenizer, const char *name)
{
    bool was = is_phi(name);
    AH_TRY(plain_name(&names[0].name, name));
    AH_TRY(was ? ah__strdup(&names[1].name, name) : phi_name(&names[1].name, name));
    for (int i = 0; i < 2; i++)
        differ(&names[i], tokenizer);
    bool better = names[1].differences < names[0].differences + was;
    bool strips = better && may_be_phi(tokenizer);
    notes_add(notes, &names[strips], strips != was, strips);
    struct named chosen = names[strips];
    names[strips] = names[0];
    names[0] = chosen;
    return notes->status;
}

int ah__gguf_name_settle(char **settled, struct ah_buf *notes, const struct ah_tokenizer *tokenizer, const char *name)
{
    struct named names[2] = {0};
    int status = settle(names, notes, tokenizer, name);
    ah__free(names[1].name);
    if (status == AH_OK)
        *settled = names[0].name;
    else
        ah__free(names[0].name);
    return status;
}
