/* The meaning of JSON records: a text, a prompt and its completion, a conversation, token ids. Takes a record's text,
 * gives a document. Each form is one row of the table in forms.c: the keys that identify it, and its reader. The table
 * of forms_keys.c has the known keys; other keys are not parsed, whatever they hold. */
#ifndef AH_DATA_FORMS_H
#define AH_DATA_FORMS_H

#include "base/buf.h"
#include "base/json.h"
#include "data/records.h"

/* Formats: id and word. */
#define AH_DATA_FORMAT_TABLE(X)                                                                                        \
    X(AUTO, "auto")                   /* by the file's content */                                                      \
    X(TEXT, "text")                   /* the file itself */                                                            \
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
/* Finds a format by its word; null is auto. "openai" and "sharegpt" are other words for messages and conversations,
 * "bytes" is another for text (source/model_tokenizer.h has its other meaning). AH_EINPUT lists the words. */
int ah__data_format_parse(enum ah_data_format *out, const char *word);

enum ah_document_kind {
    AH_DOCUMENT_TEXT,
    AH_DOCUMENT_PAIR, /* prompt and completion */
    AH_DOCUMENT_CHAT, /* messages */
    AH_DOCUMENT_IDS,
};

/* A member of a record that its form does not read, as JSON text; "true" for a known key that has no meaning in this
 * record. */
struct ah_form_extra {
    const char *key; /* [key_length], without quotes */
    size_t key_length;
    const char *value;
    size_t value_length;
};

/* A document: one record, or (a piece of) a file of text. All of it is valid until the next one is read. */
struct ah_document {
    enum ah_document_kind kind;
    enum ah_data_format form; /* form of the record; TEXT: a file */
    /* TEXT: the text; PAIR: the prompt; not terminated. CHAT: null, or the prompt for a model without a chat template,
     * in the layout that is published with the form. */
    const char *text;
    size_t length;
    const char *completion; /* PAIR, and a CHAT with text; else null */
    size_t completion_length;
    const cJSON *messages;              /* CHAT: [{"role": .., "content": .., ..}, ..]; data sets have empty ones */
    const cJSON *tools;                 /* CHAT: as in the record, or null */
    const cJSON *variables;             /* CHAT: an object for the template, or null */
    bool generation;                    /* CHAT: the record asks chat --render for a generation prompt */
    const char *bad;                    /* the key that marks the answer as bad (not learned); null: not marked */
    const struct ah_form_extra *extras; /* [extra_count] */
    size_t extra_count;
    size_t given;        /* CHAT: number of messages that are the prompt and not learned; 0: roles decide */
    const int32_t *ids;  /* IDS: [id_count] */
    const bool *learned; /* IDS: [id_count] */
    size_t id_count;
    bool whole; /* false: a piece of a document that goes on with the next */
    bool alone; /* this one file of text is all the data */
};

/* Memory that a document points into. Zero-initialise before the first one. */
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

/* Reads the last record into a document, in the store's memory. `format`: one of the forms, or AUTO or JSONL for the
 * first row of the table whose keys the record has. AH_EINPUT names file, line, key, found and expected; AH_ENOMEM. */
int ah__form_read(struct ah_document *out, struct ah_form_store *store, struct ah_records *records,
                  enum ah_data_format format);

/* Returns true if a value, as JSON text, can say anything to learn or to mark: text, true or false. */
bool ah__form_says(const char *value, size_t length);
/* Returns true if a key, as in the text, identifies a form. */
bool ah__form_has_key(const char *key, size_t length);

#endif
