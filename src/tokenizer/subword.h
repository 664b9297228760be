/* Tokenizers of subwords: normalizer, added tokens, pre-tokenizer, byte pair encoding, template and decoder put
 * together as one struct ah_tokenizer. What they are is read from a folder by subword_json.c (tokenizer.json),
 * subword_merges.c (vocab.json and merges.txt) and subword_pieces.c (tokenizer.model). */
#ifndef AH_TOKENIZER_SUBWORD_H
#define AH_TOKENIZER_SUBWORD_H

#include "base/alloc.h"
#include "base/json.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/token_decode.h"
#include "tokenizer/tokenizer.h"

struct ah_subword {
    struct ah_tokenizer base;
    struct ah_arena arena;     /* strings of the parts */
    struct ah_token_map vocab; /* the model's */
    struct ah_token_map own;   /* the added tokens' */
    struct ah_token_map words; /* byte-level texts as the bytes they stand for, where words are looked up */
    struct ah_normalizer normalizer;
    struct ah_pretokenizer pre;
    struct ah_added_tokens *added;
    struct ah_bpe *bpe;
    struct ah_sentencepiece *pieces; /* null: normalizer, pre and bpe; else this instead of them */
    struct ah_token_decoder *decoder;
    struct ah_ids before, behind; /* what the template puts around a text */
    struct ah_ids stops;
    bool *special;        /* [vocab_size] */
    unsigned char *edges; /* [vocab_size], of enum ah_token_edges */
};

/* What is read first and made into parts of a subword tokenizer then. */
struct ah_subword_recipe {
    struct ah_subword *subword;
    const char *path; /* of the file, for messages */
    struct ah_bpe_merge *merges;
    size_t merge_count, merge_room;
    struct ah_added_token *added; /* contents in the arena */
    size_t added_count, added_room;
    struct ah_token_map added_map; /* the same, to be found */
    bool byte_level;               /* the pre-tokenizer gives bytes */
    bool byte_fallback, fuse_unknown, ignore_merges;
    const char *unknown; /* a text of the vocabulary; null: none */
    struct ah_token_decoder_options decoder;
    int decoder_stage;              /* of subword_json.c: how far the decoder's parts have come */
    const struct ah_json *specials; /* a template's special tokens, while it is read */
    bool template_has_text;
    bool maps_specials;       /* of vocab.json: special_tokens_map.json says what begins and ends texts */
    const char *unknown_text; /* of pieces: what the unknown one decodes to */
    int32_t bos, eos;         /* of both: what begins and ends texts where no file of the folder says it; -1: nothing */
    bool adds_bos, adds_eos;  /* around a prompt */
};

/* Leave *out null when the folder (null: there is none) does not have the file. AH_EINPUT names file, key, found and
 * expected; AH_ENOMEM. */
int ah__subword_open_json(const struct ah_tokenizer **out, const char *folder);
int ah__subword_open_merges(const struct ah_tokenizer **out, const char *folder);
int ah__subword_open_pieces(const struct ah_tokenizer **out, const char *folder);

/* A tokenizer from texts instead of files: tokenizer.json, tokenizer_config.json and generation_config.json, whose name
 * in messages is `path`. AH_EINPUT, AH_ENOMEM. */
struct ah_subword_texts {
    const char *path, *tokenizer, *config, *generation;
};
int ah__subword_open_texts(const struct ah_tokenizer **out, const struct ah_subword_texts *texts);

/* Reads FOLDER/name with `read`, where there is such a file, and makes the tokenizer. */
int ah__subword_open(const struct ah_tokenizer **out, const char *folder, const char *name,
                     int (*read)(struct ah_subword_recipe *recipe, const char *folder, const char *path));

/* For readers. A merge of two texts of the vocabulary; `where` names it in messages. */
int ah__subword_add_merge(struct ah_subword_recipe *recipe, const char *left, size_t left_length, const char *right,
                          size_t right_length, const char *where);
/* The vocabulary: an object of texts and ids. */
int ah__subword_read_vocab(struct ah_subword_recipe *recipe, const struct ah_json *vocab);
/* An added token, whose content is copied; one that is empty or there already is passed over. */
int ah__subword_add_token(struct ah_subword_recipe *recipe, struct ah_added_token token, const char *where);
/* Added tokens as tokenizer_config.json, added_tokens.json and special_tokens_map.json of the folder say
 * (subword_merges.c). */
int ah__subword_add_tokens(struct ah_subword_recipe *recipe, const char *folder);
/* Steps of the pre-tokenizer; `where` names them in messages. */
int ah__subword_add_step(struct ah_subword_recipe *recipe, const struct ah_pre_step *step, const char *where);
int ah__subword_add_split(struct ah_subword_recipe *recipe, const char *pattern, bool literal,
                          enum ah_split_behavior behavior, bool invert, const char *where);
/* How GPT-2 splits and how bytes come after it. */
int ah__subword_add_byte_level(struct ah_subword_recipe *recipe, bool prefix_space, bool splits, const char *where);
int ah__subword_add_normal(struct ah_subword_recipe *recipe, enum ah_normal_kind kind, const char *from, const char *to,
                           const char *where);

/* tokenizer.json's text (subword_json.c). */
int ah__subword_read_json(struct ah_subword_recipe *recipe, const char *text, size_t length);
/* What begins and ends texts, as tokenizer_config.json, generation_config.json and config.json of the folder say
 * (special_ids.c). */
int ah__special_ids_read(struct ah_subword *subword, const char *folder);
/* This token begins, or ends, texts where none is known that does; -1: nothing changes. */
int ah__special_id_set(struct ah_subword *subword, int32_t id, bool end);
int ah__special_ids_read_texts(struct ah_subword *subword, const struct ah_subword_texts *texts);
/* The same of the ids in the text of one more configuration. */
int ah__special_ids_add(struct ah_subword *subword, const char *config, const char *path);
/* The text in `key` of tokenizer_config.json and the like: a string, or an object with `content`. Null: neither. */
const char *ah__special_text(const struct ah_json *json, const char *key);

#endif
