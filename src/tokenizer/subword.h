/* Tokenizers of subwords: normalizer, added tokens, pre-tokenizer, byte pair encoding, template and decoder put
 * together as one struct ah_tokenizer. Its parts are read from a folder by subword_json.c (tokenizer.json),
 * subword_merges.c (vocab.json and merges.txt) or subword_pieces.c (tokenizer.model). */
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
    struct ah_token_map vocab; /* texts of the model's tokens */
    struct ah_token_map own;   /* texts of the added tokens */
    struct ah_token_map words; /* byte-level: tokens as the bytes they stand for, to look up words */
    struct ah_normalizer normalizer;
    struct ah_pretokenizer pre;
    struct ah_added_tokens *added;
    struct ah_bpe *bpe;
    struct ah_sentencepiece *pieces; /* replaces normalizer, pre and bpe; null: those are used */
    struct ah_token_decoder *decoder;
    struct ah_ids before, behind; /* ids that the template puts around a text */
    struct ah_ids stops;
    bool *special;        /* [vocab_size] */
    unsigned char *edges; /* [vocab_size], bits of enum ah_token_edges */
};

/* The settings that readers gather before the parts of a tokenizer are made. */
struct ah_subword_recipe {
    struct ah_subword *subword;
    const char *path; /* path of the file, for messages */
    struct ah_bpe_merge *merges;
    size_t merge_count, merge_room;
    struct ah_added_token *added; /* their texts are in the arena */
    size_t added_count, added_room;
    struct ah_token_map added_map; /* the same tokens by text */
    bool byte_level;               /* the pre-tokenizer returns bytes */
    bool byte_fallback, fuse_unknown, ignore_merges;
    const char *unknown; /* text of the unknown token; null: none */
    struct ah_token_decoder_options decoder;
    int decoder_stage;              /* for subword_json.c: the last part of the decoder that was read */
    const struct ah_json *specials; /* special tokens of a template that is being read */
    bool template_has_text;
    bool maps_specials;       /* for vocab.json: special_tokens_map.json names the tokens that begin and end texts */
    const char *unknown_text; /* for SentencePiece: decoded text of the unknown piece */
    int32_t bos, eos;         /* for both: tokens that begin and end texts if no file names them; -1: none */
    bool adds_bos, adds_eos;  /* put around a prompt */
};

/* Leave *out null if the folder does not have the file, or is null. AH_EINPUT names file, key, found and expected;
 * AH_ENOMEM. */
int ah__subword_open_json(const struct ah_tokenizer **out, const char *folder);
int ah__subword_open_merges(const struct ah_tokenizer **out, const char *folder);
int ah__subword_open_pieces(const struct ah_tokenizer **out, const char *folder);

/* Makes a tokenizer from texts instead of files: tokenizer.json, tokenizer_config.json and generation_config.json.
 * `path` names them in messages. AH_EINPUT, AH_ENOMEM. */
struct ah_subword_texts {
    const char *path, *tokenizer, *config, *generation;
};
int ah__subword_open_texts(const struct ah_tokenizer **out, const struct ah_subword_texts *texts);

/* Reads FOLDER/name with `read`, if there is such a file, and makes the tokenizer. */
int ah__subword_open(const struct ah_tokenizer **out, const char *folder, const char *name,
                     int (*read)(struct ah_subword_recipe *recipe, const char *folder, const char *path));

/* The functions below are for readers.
 * Adds a merge of two texts of the vocabulary; `where` names it in messages. */
int ah__subword_add_merge(struct ah_subword_recipe *recipe, const char *left, size_t left_length, const char *right,
                          size_t right_length, const char *where);
/* Reads the vocabulary: an object of texts and ids. */
int ah__subword_read_vocab(struct ah_subword_recipe *recipe, const struct ah_json *vocab);
/* Adds an added token, whose content is copied. An empty token, or a token that is there already, is ignored. */
int ah__subword_add_token(struct ah_subword_recipe *recipe, struct ah_added_token token, const char *where);
/* Adds the added tokens that tokenizer_config.json, added_tokens.json and special_tokens_map.json of the folder name
 * (subword_merges.c). */
int ah__subword_add_tokens(struct ah_subword_recipe *recipe, const char *folder);
/* Add steps of the pre-tokenizer; `where` names them in messages. */
int ah__subword_add_step(struct ah_subword_recipe *recipe, const struct ah_pre_step *step, const char *where);
int ah__subword_add_split(struct ah_subword_recipe *recipe, const char *pattern, bool literal,
                          enum ah_split_behavior behavior, bool invert, const char *where);
/* Adds the steps of GPT-2: its split if `splits`, then bytes. */
int ah__subword_add_byte_level(struct ah_subword_recipe *recipe, bool prefix_space, bool splits, const char *where);
int ah__subword_add_normal(struct ah_subword_recipe *recipe, enum ah_normal_kind kind, const char *from, const char *to,
                           const char *where);

/* Makes a tokenizer of texts, the first of which `read` reads. */
int ah__subword_make(const struct ah_tokenizer **out, const struct ah_subword_texts *texts,
                     int (*read)(struct ah_subword_recipe *recipe, const char *text, size_t length));
/* Reads the tokens that begin and end texts from tokenizer_config.json, special_tokens_map.json, generation_config.json
 * and config.json of the folder (special_ids.c). */
int ah__special_ids_read(struct ah_subword *subword, const char *folder);
/* Sets the token that begins, or ends, texts if none is known yet; -1: changes nothing. */
int ah__special_id_set(struct ah_subword *subword, int32_t id, bool end);
int ah__special_ids_read_texts(struct ah_subword *subword, const struct ah_subword_texts *texts);
/* Reads the ids in the text of one more configuration. */
int ah__special_ids_add(struct ah_subword *subword, const char *config, const char *path);
/* Returns the text in `key` of tokenizer_config.json and similar files: a string, or the `content` of an object. Null:
 * neither. */
const char *ah__special_text(const struct ah_json *json, const char *key);

#endif
