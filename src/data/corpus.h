/* The tokens of documents, in memory: of running text, or of examples of their own. Takes documents and a tokenizer,
 * gives ids. Knows no batches and no models.
 *
 * Documents of text follow one another, each with the document's end behind it; a single file of text has none, so
 * that it gives the same tokens packed and unpacked. A pair is one example: the tokens of prompt and completion
 * together, and the document's end; what is learned of it begins where its tokens are no longer those of the prompt
 * alone. A record of ids is an example as it stands.
 *
 * A conversation is rendered by the model's chat template and tokenized as it stands there, with no token before or
 * behind it; what is learned of it says chat/chat.h. A record of an instruction is a conversation, too, or, for a model
 * without a template, a pair, laid out as published (data/alpaca.h). */
#ifndef AH_DATA_CORPUS_H
#define AH_DATA_CORPUS_H

#include "chat/chat.h"
#include "data/documents.h"
#include "tokenizer/tokenizer.h"

struct ah_example {
    int64_t first;  /* of its ids in the corpus */
    int32_t length; /* 2 .. seq + 1 */
};

struct ah_corpus {
    int32_t *ids; /* [count] */
    int64_t count;
    size_t room;
    bool *learned; /* [count] of examples: whether this id is a target; null: running text */
    size_t learned_room;
    struct ah_example *examples; /* null: running text */
    int64_t example_count;
    size_t example_room;
    enum ah_data_format form; /* of the examples; AUTO: several */
    int64_t documents;        /* read, those left out too */
    int64_t cut;              /* examples that were longer than seq + 1 */
    int64_t left_out;         /* examples of which nothing that is learned had room */
    int64_t unlearned;        /* and examples of which nothing is learned, whatever room there is */
    int64_t bad;              /* and examples whose answer their data call a bad one */
    const char *bad_key;      /* by this key; null: there are none */
    char *unread;             /* keys that nobody reads (data/record_chat.h); null: none */
    bool templated;           /* a chat template was used */
    int64_t turns, apart;     /* of assistants that are learned, and those of them that are an example of their own */
    int64_t bytes;            /* of the files */
    uint64_t signature;       /* of names in folders, order and every byte of the files, and the tokenizer */
};

/* How conversations are read. The template is opened when the first one is met. */
struct ah_corpus_chat {
    const char *model, *template_path; /* as for ah__model_chat_open */
    enum ah_train_on train_on;
    const char *adapter; /* likewise */
};

struct ah_corpus_options {
    enum ah_data_format format;
    const struct ah_tokenizer *tokenizer;
    const struct ah_corpus_chat *chat; /* null: conversations are refused */
    int64_t vocab_size;                /* every id is below */
    int64_t most;                      /* examples are cut to most + 1 ids */
    const volatile int *stop;          /* nonzero: AH_ESTOP; may be null */
};

/* Reads all documents of `count` paths. AH_EINPUT names file, line and token, or says how much memory is there when it
 * takes more than half of what is free; AH_ESTOP; as ah__documents_next. */
int ah__corpus_load(struct ah_corpus *out, const char *const *paths, size_t count,
                    const struct ah_corpus_options *options);
/* Zero-initialised is fine. */
void ah__corpus_free(struct ah_corpus *corpus);

/* The id that ends a document: the tokenizer's end of text, else what begins the next one; of bytes the one that no
 * text has: 0. -1: nothing says it. */
int32_t ah__document_end(const struct ah_tokenizer *tokenizer);
/* AH_EINPUT where nothing says it, or it is no id of the model. */
int ah__document_end_check(const struct ah_tokenizer *tokenizer, int64_t vocab_size);
/* The first of count ids that is not below vocab_size is a failure: AH_EINPUT; `where` is the document. */
int ah__ids_check(const int32_t *ids, int64_t count, int64_t vocab_size, const char *where);

#endif
