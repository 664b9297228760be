/* The data source: text, tokens or examples, cut into a training and a validation part and shuffled without
 * storing an order. Takes a path and numbers, gives batches. Knows no models and keeps no position: batch n is
 * a function of n.
 *
 * What is there is told by what is in it, unless a format is given: token files (data/token_file.h), nanoGPT's too
 * where a name ends in .bin and every 16 bits are a token; folders, pipes, JSON and packed files, whose documents are
 * read into memory (data/corpus.h); any other file is text, whose tokens are what the tokenizer makes of it. What is
 * none of these is refused.
 *
 * Packed, documents keep apart although they share a window: each token has its position in its document, a document's
 * end has no target, and several examples make a window (data/pack.h), the last examples those of the validation part.
 *
 * An example (prompt and completion, say) is a window: ids, zeros behind them, and targets that are AH_TARGET_IGNORED
 * but for what is learned of it; the last examples are the validation part. Of all else a window is seq + 1
 * neighbouring tokens: seq ids and, shifted by one, seq targets. Windows start at multiples of seq in their part. The
 * training part comes first, the validation part last, as large as a token file says or as asked for; validation is
 * held out when there is room for a window in each part, otherwise (or with val_fraction 0) both parts are the
 * whole. */
#ifndef AH_DATA_TOKENS_H
#define AH_DATA_TOKENS_H

#include "base/file.h"
#include "data/corpus.h"
#include "op/op.h"
#include "tokenizer/tokenizer.h"

struct ah_tokens;

struct ah_tokens_info {
    int64_t tokens;           /* in the file */
    int64_t train_tokens;     /* in the training part */
    int64_t val_tokens;       /* in the validation part */
    int64_t train_windows;    /* windows per epoch, >= 1 */
    int64_t train_filled;     /* of their places [train_windows, seq]: those that hold a token */
    int64_t val_windows;      /* >= 1 */
    bool held_out;            /* the parts do not overlap */
    bool text;                /* not a token file */
    const char *format;       /* "text", "llmc", "nanogpt", "documents" (of text), "examples" */
    enum ah_data_format form; /* of examples; AUTO: of several forms, or there are none */
    int64_t documents;        /* read; 0: text or a token file that does not say */
    int64_t examples;         /* that are used; 0: none */
    int64_t cut, left_out;    /* examples that are too long, and those with no room for what is learned */
    int64_t unlearned;        /* examples of which nothing is learned: labels or template leave all out */
    int64_t bad;              /* examples that are left out because their data call the answer a bad one */
    const char *bad_key;      /* by this key; null: there are none */
    const char *unread;       /* keys that nobody reads: "'a', 'b'"; null: there are none */
    bool templated;           /* conversations were rendered by a chat template */
    int64_t turns, apart;     /* of assistants in them, and those that are an example of their own (chat/chat.h) */
    int64_t memory_bytes;     /* that tokens take; 0: they are read from the file */
    int64_t seq;
    uint64_t signature;         /* of every byte and a text's tokenizer: tells another file apart on resume */
    uint64_t tokenizer;         /* its signature; 0: a token file */
    struct ah_file_stamp stamp; /* of the file when it was opened */
};

/* What an earlier opening found, so that a file that was not touched since need not be read whole again. */
struct ah_tokens_known {
    struct ah_file_stamp stamp;
    uint64_t signature;
    uint64_t tokenizer; /* its signature; 0: a token file */
    int64_t vocab_size; /* every token is below */
};

/* Opens the file and checks every token; the tokenizer is not used after the call. val_fraction in [0, 0.5] is the
 * validation part's share, at least one window. `known` may be null; where it is of this very file, its signature is
 * taken over. AH_EINPUT: missing, empty, shorter than one window, a token >=
 * vocab_size (each names file, found and expected); AH_ECORRUPT: a token file whose length does not fit its header. */
int ah__tokens_open(struct ah_tokens **out, const char *path, const struct ah_tokenizer *tokenizer, int64_t vocab_size,
                    int64_t seq, double val_fraction, const struct ah_tokens_known *known);
/* The same with what may be asked for beside. */
struct ah_tokens_options {
    enum ah_data_format format; /* AH_EINPUT when the data are of another */
    bool pack;                  /* AH_EINPUT for one text: it has no documents */
    int64_t seq;
    double val_fraction;
    const struct ah_tokens_known *known;
    const struct ah_corpus_chat *chat; /* null: conversations are refused */
    const volatile int *stop;          /* nonzero, seen between documents: AH_ESTOP; may be null */
};
int ah__tokens_open_with(struct ah_tokens **out, const char *path, const struct ah_tokenizer *tokenizer,
                         int64_t vocab_size, const struct ah_tokens_options *options);
/* How many windows the training part's examples would have, were they packed; 0 where there are none. AH_ENOMEM. */
int ah__tokens_packed(int64_t *out, const struct ah_tokens *tokens);
void ah__tokens_close(struct ah_tokens *tokens);
const struct ah_tokens_info *ah__tokens_info(const struct ah_tokens *tokens);
/* info->format, or which one of examples that are all of one form. */
const char *ah__tokens_format(const struct ah_tokens_info *info);

/* Training batch n = 0, 1, ... into the arrays of *to [batch, seq]; positions are not null where data are packed.
 * Sample k = n * batch + row is window k % windows of epoch k / windows, in an order that is a permutation chosen by
 * seed and epoch: every window once per epoch; batches may span two epochs. AH_EIO when the file cannot be read any
 * more, or was cut short meanwhile. Allocates nothing. */
int ah__tokens_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, uint64_t seed,
                     const struct ah_batch *to);
/* Validation batch n: the validation windows in order, from the first again after the last. Fails likewise. */
int ah__tokens_val_batch(const struct ah_tokens *tokens, int64_t n, int64_t batch, const struct ah_batch *to);

/* Tokens [first, first + count) of the whole, as they lie there; they must exist. Fails likewise. */
int ah__tokens_read(const struct ah_tokens *tokens, int64_t first, int64_t count, int32_t *ids);

/* Position `index` of a seeded permutation of 0 .. count-1. */
uint64_t ah__permute(uint64_t index, uint64_t count, uint64_t seed);

#endif
