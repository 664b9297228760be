/* What records of JSON mean: a text, a prompt and its completion, a conversation, token ids. Takes a record's text,
 * gives a document. Each form is one row of the table in forms.c: the keys that tell it, and how it is read. Which keys
 * are known is the table of forms_keys.c; others are left as they stand, whatever they hold. */
#ifndef AH_DATA_FORMS_H
#define AH_DATA_FORMS_H

#include "base/buf.h"
#include "base/json.h"
#include "data/records.h"

/* id, the word for it */
#define AH_DATA_FORMAT_TABLE(X)                                                                                        \
    X(AUTO, "auto")                   /* by what is in the file */                                                     \
    X(TEXT, "text")                   /* the file as it lies */                                                        \
    X(JSONL, "jsonl")                 /* records of JSON, of any form below */                                         \
    X(DOCUMENTS, "documents")         /* text */                                                                       \
    X(PAIRS, "pairs")                 /* prompt and completion (or response), texts or lists of messages */            \
    X(MESSAGES, "messages")           /* a list of role and content, as OpenAI's */                                    \
    X(CONVERSATIONS, "conversations") /* (or conversation) a list of from and value, as ShareGPT's */                  \
    X(ALPACA, "alpaca")               /* instruction, input, output; system, history */                                \
    X(DOLLY, "dolly")                 /* instruction, context, response */                                             \
    X(ORCA, "orca")                   /* system_prompt, question (or query), response (or answer) */                   \
    X(IDS, "ids")                     /* input_ids, labels, attention_mask */                                          \
    X(LLMC, "llmc")                   /* a token file of llm.c */                                                      \
    X(NANOGPT, "nanogpt")             /* 16-bit tokens and nothing else */
enum ah_data_format {
#define AH_DATA_FORMAT_ENUM(id, word) AH_DATA_##id,
    AH_DATA_FORMAT_TABLE(AH_DATA_FORMAT_ENUM)
#undef AH_DATA_FORMAT_ENUM
        AH_DATA_FORMAT_COUNT
};
extern const char *const ah__data_format_words[AH_DATA_FORMAT_COUNT];
/* Null is auto. "openai" and "sharegpt" are other words for messages and conversations,
 * "bytes" one for text (source/model_tokenizer.h has what else it says). AH_EINPUT lists the words. */
int ah__data_format_parse(enum ah_data_format *out, const char *word);

enum ah_document_kind {
    AH_DOCUMENT_TEXT,
    AH_DOCUMENT_PAIR, /* prompt and completion */
    AH_DOCUMENT_CHAT, /* messages */
    AH_DOCUMENT_IDS,
};

/* A member of a record that its form does not know, as it stands in the text; "true" where a known one has no place in
 * this record. */
struct ah_form_extra {
    const char *key; /* [key_length], without quotes */
    size_t key_length;
    const char *value;
    size_t value_length;
};

/* One record, or (a piece of) a file of text. All of it is valid until the next one is read. */
struct ah_document {
    enum ah_document_kind kind;
    enum ah_data_format form; /* of the record; TEXT: of a file */
    const char *text;         /* TEXT, PAIR: or the prompt; not terminated. Of a CHAT: null, or how it is laid out for a
                               * model without a chat template, which is published with the form */
    size_t length;
    const char *completion; /* PAIR, and a CHAT with text; else null */
    size_t completion_length;
    const cJSON *messages;              /* CHAT: [{"role": .., "content": .., ..}, ..]; data sets have empty ones */
    const cJSON *tools;                 /* CHAT: as they stand there, or null */
    const cJSON *variables;             /* CHAT: an object for the template, or null */
    bool generation;                    /* CHAT: the record asks chat --render for a generation prompt */
    const char *bad;                    /* the key that calls the answer a bad one, which is not learned; null: none */
    const struct ah_form_extra *extras; /* [extra_count] */
    size_t extra_count;
    size_t given;        /* CHAT: so many messages are the prompt, none of which is learned; 0: roles decide */
    const int32_t *ids;  /* IDS: [id_count] */
    const bool *learned; /* IDS: [id_count] */
    size_t id_count;
    bool whole; /* false: a piece of a document that goes on with the next */
    bool alone; /* of the one file of text that all the documents are */
};

/* Memory that a document points into. Zero-initialised before the first. */
struct ah_form_store {
    cJSON *tree, *messages;
    struct ah_buf layout;
    int32_t *ids;
    bool *learned;
    size_t id_room, learned_room;
    struct ah_form_extra *extras;
    size_t extra_room;
};
void ah__form_store_free(struct ah_form_store *store);

/* The document of the last record, in the store's memory. `format`: one of the forms, or AUTO or JSONL, which is the
 * first row of the table whose keys the record has. AH_EINPUT names file, line, key, found and expected; AH_ENOMEM. */
int ah__form_read(struct ah_document *out, struct ah_form_store *store, struct ah_records *records,
                  enum ah_data_format format);

/* Whether a value, as it stands in the text, has anything to learn or to mark: text, true or false. */
bool ah__form_says(const char *value, size_t length);
/* Whether a key, as it stands in the text, tells a form. */
bool ah__form_has_key(const char *key, size_t length);

#endif
