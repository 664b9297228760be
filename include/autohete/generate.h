/* Text and tokens, and what a trained model is asked: text. */
#ifndef AUTOHETE_GENERATE_H
#define AUTOHETE_GENERATE_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

/* Text to token ids and back. Remembers words it has seen: for one thread at a time. */
struct ah_tokenizer;

/* The tokenizer of a model's folder or its config.json: tokenizer.json, else vocab.json and merges.txt, else
 * tokenizer.model; without them, where vocab_size is at most 256 or model_path is null, tokens are bytes. AH_EINPUT:
 * there is none, or what its files ask for is not known here, or wrong. */
AH_API int ah_tokenizer_open(const struct ah_tokenizer **tokenizer, const char *model_path);
/* *note: one line about what is done with such a tokenizer that may not be its own way, which the caller frees with
 * free(), or null: of a GGUF file that does not say how its text is split. */
AH_API int ah_tokenizer_note(char **note, const char *model_path);
/* *note: one line where an adapter's folder has a tokenizer that is not the model's and is used in its place, likewise;
 * paths as in struct ah_generate_options. */
AH_API int ah_adapter_note(char **note, const char *model_path, const char *adapter_dir);
AH_API void ah_tokenizer_close(const struct ah_tokenizer *tokenizer);
/* How it was told: "tokenizer.json", "vocab.json and merges.txt", "tokenizer.model" or "byte-level". As long as the
 * tokenizer. */
AH_API const char *ah_tokenizer_name(const struct ah_tokenizer *tokenizer);
/* Ids are below it. */
AH_API int32_t ah_tokenizer_vocab_size(const struct ah_tokenizer *tokenizer);
/* The ids of a text of `length` bytes, and how many; the caller frees *ids with free(). `prompt`: with what the
 * tokenizer's template puts around a text that a model is asked; documents to learn from go without. What is no UTF-8
 * is read as U+FFFD, but by byte-level tokens. */
AH_API int ah_tokenizer_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                               size_t length, bool prompt);
/* The text of `count` ids, terminated, and its length, since it may hold zero bytes; the caller frees *text with
 * free(). `skip_special`: without special tokens. AH_EINPUT: an id that is not below the vocabulary. */
AH_API int ah_tokenizer_decode(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids,
                               int64_t count, bool skip_special);
/* The token as the vocabulary writes it; null: the id has none. Until the next call. */
AH_API const char *ah_tokenizer_token(const struct ah_tokenizer *tokenizer, int32_t id);

/* ---- generation -------------------------------------------------------------------------------------------------- */

struct ah_generate_options {
    const char *model_dir;     /* a checkpoint, a training's folder (its newest), or one with config.json and weights */
    const char *prompt;        /* text; null or empty: what a text begins with, or a newline */
    int64_t tokens;            /* how many to add at most; the model's end of text ends it too */
    double temperature;        /* 0: the likeliest */
    int top_k;                 /* 0: all */
    double top_p;              /* the likeliest that together have this probability; 0 or 1: all */
    double min_p;              /* those at least this share as likely as the likeliest; 0: all */
    double repetition_penalty; /* logits of tokens said before: divided by it, negative ones multiplied; 0 or 1: not */
    uint64_t seed;
    const char *device; /* as for ah_dev_open; default "auto" */
    int threads;        /* of the CPU; 0: one per core */
    /* Each new token with the characters that it completes, maybe none, and none of special tokens; valid during the
     * call, may hold zero bytes. Nonzero stops. At the end, token -1 tells what was held back of a character that never
     * came whole. */
    int (*on_token)(int token, const char *text, size_t length, void *context);
    void *context;
    bool chat;                 /* the prompt is what a user says, rendered by the model's chat template */
    const char *chat_template; /* then: file of a template to use instead; null: the model's */
    const char *adapter_dir;   /* folder of an adapter for the model, PEFT's or of a training here; null: none, or
                                * model_dir is one, which says where its model is */
};
/* Continues the prompt, by the folder's tokenizer; without one tokens are bytes (AH_EINPUT for a vocabulary beyond
 * 256). Same bytes for any number of threads. */
AH_API int ah_generate(const struct ah_generate_options *options);

/* A conversation with a model, by its chat template. The model stays on the device between turns. */
struct ah_talk;

struct ah_talk_options {
    /* Prompt and chat are not read; tokens: of an answer at most, 0: 512. Texts must outlive the conversation. */
    struct ah_generate_options generate;
    const char *system;     /* what the model is told before; null: nothing */
    int64_t context_tokens; /* of the whole conversation at most; 0: the model's longest, at most 4096 */
};
/* AH_EINPUT also: the model has no chat template. */
AH_API int ah_talk_open(struct ah_talk **talk, const struct ah_talk_options *options);
/* What the user says next; the answer is told by on_token, which ends it by nonzero, as do the model's end of a
 * turn, so many tokens, and the context's. AH_EINPUT: the conversation has no room for it, or the template refuses
 * it; then nothing was said. */
AH_API int ah_talk_say(struct ah_talk *talk, const char *text);
/* Null is fine. */
AH_API void ah_talk_close(struct ah_talk *talk);

struct ah_eval_options {
    const char *model_dir; /* as for ah_generate */
    const char *data_path; /* as for ah_train; of several files without weights every token counts alike */
    int64_t batch;         /* windows at a time; 0: 8 */
    int64_t seq;           /* tokens in a window; 0: of the training, else the model's longest, at most 1024 */
    const char *device;    /* as for ah_dev_open; null: "auto" */
    int threads;           /* of the CPU; 0: one per core */
    /* Windows done and in all, of the file at work; nonzero ends with AH_ESTOP. May be null. */
    int (*on_progress)(int64_t done, int64_t windows, void *context);
    void *context;
    const char *eos;                      /* token that ends a text, or its id; null: as the tokenizer's files say */
    const char *chat_template, *train_on; /* as for ah_train */
    const char *adapter_dir;              /* as for ah_generate */
};
struct ah_eval_result {
    double loss;          /* natural log, mean over tokens */
    double perplexity;    /* e^loss */
    double bits_per_byte; /* of the text that the tokens stand for; NaN where the data are token ids */
    int64_t tokens;       /* predicted: all (but the first, without bos), or what examples teach */
    bool bos;             /* each window but those of examples began with the token that stands before a text */
};
/* How well a model predicts data. The data are cut into windows of seq tokens, and each token is predicted from those
 * before it in its window. Where the tokenizer puts a token before a text (BOS), each window begins with that, and
 * every token is predicted; else every token but the first. Of examples, each a window, what they teach is predicted.
 * In fp32, whole on the device. */
AH_API int ah_eval(struct ah_eval_result *out, const struct ah_eval_options *options);
/* Writes a safetensors file with one tensor "logits", F32 [count, vocab_size], of the model's logits behind each of the
 * ids [count]. Of the options it reads model_dir, device and threads. AH_EINPUT for an id not below vocab_size, or more
 * ids than the model takes. */
AH_API int ah_eval_logits(const char *path, const int32_t *ids, int64_t count, const struct ah_eval_options *options);

#ifdef __cplusplus
}
#endif
#endif
