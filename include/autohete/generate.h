/* Tokenizers, and using a trained model: generation, conversations and evaluation. */
#ifndef AUTOHETE_GENERATE_H
#define AUTOHETE_GENERATE_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizers -------------------------------------------------------------------------------------------------- */

/* Converts text to token ids and back. It remembers words it has seen, so it may be used by one thread at a time. */
struct ah_tokenizer;

/* Opens the tokenizer of a model's folder, its config.json or a GGUF file. In a folder it is tokenizer.json, else
 * vocab.json and merges.txt, else tokenizer.model; without them, if vocab_size is at most 256 or model_path is null,
 * tokens are bytes. AH_EINPUT: there is no tokenizer, or its files are wrong or ask for something that is not
 * supported. */
AH_API int ah_tokenizer_open(const struct ah_tokenizer **tokenizer, const char *model_path);
/* Sets *note to one line if the tokenizer may not split text in its own way, because its GGUF file does not say how,
 * else to null. The caller frees it with free(). */
AH_API int ah_tokenizer_note(char **note, const char *model_path);
/* Sets *note likewise, to one line if an adapter's folder has a tokenizer that is not the model's and is used instead.
 * Paths are as in struct ah_generate_options. */
AH_API int ah_adapter_note(char **note, const char *model_path, const char *adapter_dir);
AH_API void ah_tokenizer_close(const struct ah_tokenizer *tokenizer);
/* Returns the files that the tokenizer was read from: "tokenizer.json", "vocab.json and merges.txt", "tokenizer.model"
 * or "byte-level". Valid as long as the tokenizer. */
AH_API const char *ah_tokenizer_name(const struct ah_tokenizer *tokenizer);
/* Returns the size of the vocabulary; ids are below it. */
AH_API int32_t ah_tokenizer_vocab_size(const struct ah_tokenizer *tokenizer);
/* Encodes a text of `length` bytes as *count ids; the caller frees *ids with free(). `prompt`: adds the tokens that the
 * tokenizer's template puts around a prompt; documents to learn from go without. Bytes that are not UTF-8 are read as
 * U+FFFD, except by byte-level tokens. */
AH_API int ah_tokenizer_encode(int32_t **ids, int64_t *count, const struct ah_tokenizer *tokenizer, const char *text,
                               size_t length, bool prompt);
/* Decodes `count` ids into *text with a zero byte after it, and its length, since it may contain zero bytes; the caller
 * frees *text with free(). `skip_special`: without special tokens. AH_EINPUT: an id is not below the vocabulary's
 * size. */
AH_API int ah_tokenizer_decode(char **text, size_t *length, const struct ah_tokenizer *tokenizer, const int32_t *ids,
                               int64_t count, bool skip_special);
/* Returns the token as the vocabulary writes it, valid until the next call; null: the id has none. */
AH_API const char *ah_tokenizer_token(const struct ah_tokenizer *tokenizer, int32_t id);

/* ---- generation -------------------------------------------------------------------------------------------------- */

struct ah_generate_options {
    const char *model_dir;     /* a checkpoint, a training's folder (its newest), one with config.json and weights, or
                                * GGUF */
    const char *prompt;        /* text; null or empty: the token that begins a text (BOS), else the one that ends it,
                                * else a newline */
    int64_t tokens;            /* most tokens to add; the model's end of text ends it, too */
    double temperature;        /* 0: always the likeliest token */
    int top_k;                 /* choose among the top_k likeliest tokens; 0: all */
    double top_p;              /* choose among the likeliest that together have this probability; 0 or 1: all */
    double min_p;              /* choose among those at least this share as likely as the likeliest; 0: all */
    double repetition_penalty; /* divides the logits of tokens said before, multiplies negative ones; 0 or 1: no
                                * penalty */
    uint64_t seed;
    const char *device; /* as for ah_dev_open; default "auto" */
    int threads;        /* threads of the CPU device; 0: one per core */
    /* Called for each new token with the characters that it completes, possibly none, and none of special tokens. The
     * text is valid during the call and may contain zero bytes. A nonzero result stops. At the end, token -1 gives the
     * bytes of an incomplete last character. */
    int (*on_token)(int token, const char *text, size_t length, void *context);
    void *context;
    bool chat;                 /* the prompt is a user's message, rendered by the model's chat template */
    const char *chat_template; /* with `chat`: file of a template to use instead; null: the model's */
    const char *adapter_dir;   /* folder of an adapter for the model, written by PEFT or a training here; null: none, or
                                * model_dir is an adapter, which names its model */
};
/* Continues the prompt, with the folder's tokenizer; without one tokens are bytes (AH_EINPUT for a vocabulary beyond
 * 256). Gives the same bytes for any number of threads. */
AH_API int ah_generate(const struct ah_generate_options *options);

/* A conversation with a model, by its chat template. The model stays on the device between turns. */
struct ah_talk;

struct ah_talk_options {
    /* `prompt` and `chat` are not read; tokens: most tokens of an answer, 0: 512. Texts must outlive the
     * conversation. */
    struct ah_generate_options generate;
    const char *system;     /* system message before the conversation; null: none */
    int64_t context_tokens; /* most tokens of the whole conversation; 0: the model's longest, at most 4096 */
};
/* Opens a conversation. AH_EINPUT also: the model has no chat template. */
AH_API int ah_talk_open(struct ah_talk **talk, const struct ah_talk_options *options);
/* Says `text` as the user; on_token gets the answer. It ends when on_token returns nonzero, at the model's end of a
 * turn, after generate.tokens tokens, or at the end of the context. AH_EINPUT: the conversation has no room for the
 * text, or the template refuses it; then nothing was said. */
AH_API int ah_talk_say(struct ah_talk *talk, const char *text);
/* Closes the conversation; null is fine. */
AH_API void ah_talk_close(struct ah_talk *talk);

struct ah_eval_options {
    const char *model_dir; /* as for ah_generate */
    const char *data_path; /* as for ah_train; of several files without weights every token counts alike */
    int64_t batch;         /* windows at a time; 0: 8 */
    int64_t seq;           /* tokens in a window; 0: the training's, else the model's longest, at most 1024 */
    const char *device;    /* as for ah_dev_open; null: "auto" */
    int threads;           /* threads of the CPU device; 0: one per core */
    /* Called with the windows done and in all, of the current file. A nonzero result ends with AH_ESTOP. May be
     * null. */
    int (*on_progress)(int64_t done, int64_t windows, void *context);
    void *context;
    const char *eos;                      /* token that ends a text, or its id; null: as the tokenizer's files say */
    const char *chat_template, *train_on; /* as for ah_train */
    const char *adapter_dir;              /* as for ah_generate */
};
struct ah_eval_result {
    double loss;          /* natural log, mean over tokens */
    double perplexity;    /* e^loss */
    double bits_per_byte; /* bits per byte of the text that the tokens stand for; NaN: the data are token ids */
    int64_t tokens;       /* tokens predicted: all (without `bos` all but the first), or those that examples teach */
    bool bos;             /* each window, except examples, began with the token that stands before a text (BOS) */
};
/* Measures how well a model predicts data. The data are cut into windows of seq tokens, and each token is predicted
 * from those before it in its window. If the tokenizer puts a token before a text (BOS), each window begins with it,
 * and every token is predicted; else every token but the first. Each example is a window, in which the tokens that it
 * teaches are predicted. Computes in fp32, with the whole model on the device. */
AH_API int ah_eval(struct ah_eval_result *out, const struct ah_eval_options *options);
/* Writes a safetensors file with one tensor "logits", F32 [count, vocab_size]: the model's logits after each of the ids
 * [count]. Of the options it reads model_dir, adapter_dir, device and threads. AH_EINPUT: an id is not below
 * vocab_size, or there are more ids than the model takes. */
AH_API int ah_eval_logits(const char *path, const int32_t *ids, int64_t count, const struct ah_eval_options *options);

#ifdef __cplusplus
}
#endif
#endif
