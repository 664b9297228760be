/* The tokens of documents, in memory: running text, or separate examples. Takes documents and a tokenizer, gives ids.
 * Knows no batches and no models.
 *
 * Documents of text follow one another, each followed by the document's end; a single file of text has no end, so that
 * it gives the same tokens packed and unpacked. A pair is one example: the tokens of prompt and completion together,
 * and the document's end; it is learned from the first token that differs from the prompt's own. A record of ids is an
 * example unchanged.
 *
 * A conversation is rendered by the model's chat template and tokenized without a token before or after it; chat/chat.h
 * says which part is learned. A record of an instruction is a conversation, too, or, for a model without a template, a
 * pair in the published layout (data/alpaca.h). */
#ifndef AH_DATA_CORPUS_H
#define AH_DATA_CORPUS_H

#include "chat/chat.h"
#include "data/documents.h"
#include "tokenizer/tokenizer.h"

struct ah_example {
    int64_t first;  /* index of its first id in the corpus */
    int32_t length; /* 2 .. seq + 1 */
};

struct ah_corpus {
    int32_t *ids; /* [count] */
    int64_t count;
    size_t room;
    bool *learned; /* [count] for examples: true if this id is a target; null: running text */
    size_t learned_room;
    struct ah_example *examples; /* null: running text */
    int64_t example_count;
    size_t example_room;
    enum ah_data_format form; /* form of the examples; AUTO: several forms */
    int64_t documents;        /* documents read, including those left out */
    int64_t cut;              /* examples that were longer than seq + 1 */
    int64_t left_out;         /* examples cut before their first learned id */
    int64_t unlearned;        /* examples without a learned id, whatever the room */
    int64_t bad;              /* examples whose answer their data mark as bad */
    const char *bad_key;      /* the key of that mark; null: no such example */
    char *unread;             /* keys that are not read (data/record_chat.h); null: no such keys */
    bool templated;           /* a chat template was used */
    int64_t turns, apart;     /* learned turns of assistants; those that are an example of their own */
    int64_t bytes;            /* bytes of the files */
    uint64_t signature;       /* hash of names in folders, order, every byte of the files, and the tokenizer */
};

/* How conversations are read. The template is opened at the first conversation. */
struct ah_corpus_chat {
    const char *model, *template_path; /* as for ah__model_chat_open */
    enum ah_train_on train_on;
    const char *adapter; /* as for ah__model_chat_open */
};

struct ah_corpus_options {
    enum ah_data_format format;
    const struct ah_tokenizer *tokenizer;
    const struct ah_corpus_chat *chat; /* null: conversations are refused */
    int64_t vocab_size;                /* every id is below it */
    int64_t most;                      /* examples are cut to most + 1 ids */
    const volatile int *stop;          /* nonzero: AH_ESTOP; may be null */
};

/* Reads all documents of `count` paths. AH_EINPUT names file, line and token, or says how much memory is free if the
 * tokens need more than half of it; AH_ESTOP; else as ah__documents_next. */
int ah__corpus_load(struct ah_corpus *out, const char *const *paths, size_t count,
                    const struct ah_corpus_options *options);
/* Zero-initialised is fine. */
void ah__corpus_free(struct ah_corpus *corpus);

/* Returns the id that ends a document: the tokenizer's end of text, else its beginning of text; for bytes 0, which no
 * text contains; -1 if there is no such id. */
int32_t ah__document_end(const struct ah_tokenizer *tokenizer);
/* AH_EINPUT if there is no such id, or it is not below vocab_size. */
int ah__document_end_check(const struct ah_tokenizer *tokenizer, int64_t vocab_size);
/* Checks that count ids are below vocab_size. AH_EINPUT names the first that is not; `where` names the document. */
int ah__ids_check(const int32_t *ids, int64_t count, int64_t vocab_size, const char *where);

#endif
