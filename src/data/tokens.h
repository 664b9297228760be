/* The data source: text, tokens or examples, cut into a training and a validation part and shuffled without storing an
 * order. Takes a path and numbers, gives batches. Knows no models and keeps no position: batch n is a function of n.
 *
 * The content decides the format, unless one is given: token files (data/token_file.h), including nanoGPT's if a name
 * ends in .bin and every 16 bits are a token; folders, pipes, JSON and packed files, whose documents are read into
 * memory (data/corpus.h); any other file is text, which the tokenizer encodes. All else is refused.
 *
 * Packed, documents stay apart although they share a window: each token has its position in its document, a document's
 * end has no target, and several examples make a window (data/pack.h), the last examples those of the validation part.
 *
 * An example (such as prompt and completion) is a window: ids, zeros after them, and targets that are AH_TARGET_IGNORED
 * except for its learned part; the last examples are the validation part. For all other data a window is seq + 1
 * neighbouring tokens: seq ids and, shifted by one, seq targets. Windows start at multiples of seq in their part. The
 * training part comes first, the validation part last, as large as a token file says or as asked for; validation is
 * held out if there is room for a window in each part, otherwise (or with val_fraction 0) both parts are the whole. */
#ifndef AH_DATA_TOKENS_H
#define AH_DATA_TOKENS_H

#include "base/file.h"
#include "data/corpus.h"
#include "op/op.h"
#include "tokenizer/tokenizer.h"

struct ah_tokens;

struct ah_tokens_info {
    int64_t tokens;           /* tokens in the file */
    int64_t train_tokens;     /* tokens in the training part */
    int64_t val_tokens;       /* tokens in the validation part */
    int64_t train_windows;    /* windows per epoch, >= 1 */
    int64_t train_filled;     /* places of [train_windows, seq] that hold a token */
    int64_t val_windows;      /* windows for validation, >= 1 */
    bool held_out;            /* the parts do not overlap */
    bool text;                /* not a token file */
    const char *format;       /* "text", "llmc", "nanogpt", "documents" (of text), "examples" */
    enum ah_data_format form; /* form of examples; AUTO: several forms, or no examples */
    int64_t documents;        /* documents read; 0: text, or a token file without their number */
    int64_t examples;         /* examples that are used; 0: other data */
    int64_t cut, left_out;    /* examples that were cut; examples cut before their first learned id */
    int64_t unlearned;        /* examples without a learned id: labels or template mask all */
    int64_t bad;              /* examples left out because their data mark the answer as bad */
    const char *bad_key;      /* the key of that mark; null: no such example */
    const char *unread;       /* keys that are not read: "'a', 'b'"; null: no such keys */
    bool templated;           /* conversations were rendered by a chat template */
    int64_t turns, apart;     /* assistants' turns; those that are an example of their own (chat/chat.h) */
    int64_t memory_bytes;     /* host memory of the tokens; 0: they are read from the file */
    int64_t seq;
    uint64_t signature;         /* hash of every byte and a text's tokenizer: shows on resume that a file differs */
    uint64_t tokenizer;         /* signature of the tokenizer; 0: a token file */
    struct ah_file_stamp stamp; /* identity of the file when it was opened */
};

/* Results of an earlier opening, so that an unchanged file need not be read whole again. */
struct ah_tokens_known {
    struct ah_file_stamp stamp;
    uint64_t signature;
    uint64_t tokenizer; /* signature of the tokenizer; 0: a token file */
    int64_t vocab_size; /* every token is below it */
};

/* Opens the file and checks every token; the tokenizer is not used after the call. val_fraction in [0, 0.5] is the
 * validation part's share, at least one window. `known` may be null; if it belongs to this very file, its signature is
 * taken over. AH_EINPUT: missing, empty, shorter than one window, a token >= vocab_size (each names file, found and
 * expected); AH_ECORRUPT: a token file whose length does not fit its header. */
int ah__tokens_open(struct ah_tokens **out, const char *path, const struct ah_tokenizer *tokenizer, int64_t vocab_size,
                    int64_t seq, double val_fraction, const struct ah_tokens_known *known);
/* More options of opening. */
struct ah_tokens_options {
    enum ah_data_format format; /* AH_EINPUT if the data have another */
    bool pack;                  /* AH_EINPUT for one text: it has no documents */
    int64_t seq;
    double val_fraction;
    const struct ah_tokens_known *known;
    const struct ah_corpus_chat *chat; /* null: conversations are refused */
    const volatile int *stop;          /* nonzero, checked between documents: AH_ESTOP; may be null */
};
int ah__tokens_open_with(struct ah_tokens **out, const char *path, const struct ah_tokenizer *tokenizer,
                         int64_t vocab_size, const struct ah_tokens_options *options);
/* Computes the number of windows that the training part's examples would have if they were packed; 0 without examples.
 * AH_ENOMEM. */
int ah__tokens_packed(int64_t *out, const struct ah_tokens *tokens);
void ah__tokens_close(struct ah_tokens *tokens);
const struct ah_tokens_info *ah__tokens_info(const struct ah_tokens *tokens);
/* Returns info->format, or the form of examples if all have the same. */
const char *ah__tokens_format(const struct ah_tokens_info *info);

/* Writes training batch n = 0, 1, ... to the arrays of *to [batch, seq]; positions are not null for packed data. Sample
 * k = n * batch + row is window k % windows of epoch k / windows, in an order that is a permutation chosen by seed and
 * epoch: every window once per epoch; batches may span two epochs. AH_EIO if the file cannot be read any more, or was
 * cut short since. Allocates nothing. */
int ah__tokens_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, uint64_t seed,
                     const struct ah_batch *to);
/* Writes validation batch n: the validation windows in order, from the first again after the last. Fails as above. */
int ah__tokens_val_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, const struct ah_batch *to);

/* Reads tokens [first, first + count) of the whole, in the data's order; they must exist. Fails as above. */
int ah__tokens_read(const struct ah_tokens *tokens, int64_t first, int64_t count, int32_t *ids);

/* Returns element `index` of a seeded permutation of 0 .. count-1. */
uint64_t ah__permute(uint64_t index, uint64_t count, uint64_t seed);

#endif
