/* Preparing data: documents are written as a file of tokens once, so that trainings read them from disk. */
#ifndef AUTOHETE_DATA_H
#define AUTOHETE_DATA_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ah_data_options {
    const char *model_path;    /* model whose tokenizer and vocabulary are used: JSON, a folder with config.json, or
                                * GGUF */
    const char *const *inputs; /* files of text or JSON ({"text": ..}) and folders of them, compressed or not; "-" */
    size_t input_count;
    const char *format;       /* "auto" (default), "text", "bytes", "jsonl", "documents" */
    const char *out;          /* the token file; an old one is replaced when the new one is complete */
    uint64_t seed;            /* seed of the documents' order; default 1 */
    double val_share;         /* share of the tokens for validation, whole documents at the end: 0 to 0.5; default
                               * 0.1 */
    const volatile int *stop; /* nonzero: AH_ESTOP, nothing is written; may be null */
    const char *eos;          /* token that ends a text, or its id; null: as the tokenizer's files say */
};

/* Sets the defaults; pointers are null. Call it before any field is set. */
AH_API void ah_data_options_init(struct ah_data_options *options);

struct ah_data_result {
    int64_t documents, val_documents; /* all documents; those for validation, 0 if the only document was cut */
    int64_t tokens, val_tokens;       /* all tokens, with the ends of documents; those for validation */
    int64_t bytes_read, bytes_written;
    int64_t params, vocab_size; /* parameters and vocabulary size of the model */
    int token_bits;             /* bits of a token in the file: 16 or 32 */
    const char *tokenizer;      /* name of the tokenizer's kind; static */
};

/* Writes a token file in llm.c's layout: documents in a shuffled order, each followed by its end (the tokenizer's
 * token; a zero byte for byte-level tokens). The header's fields that llm.c leaves free have the size of the validation
 * part, the tokenizer and a checksum, which trainings check. Takes 16 bytes of memory for each document, and a
 * temporary file beside `out` of 4 bytes for each token. AH_EINPUT: bad options or input, or pairs of prompt and
 * completion (which trainings read themselves); AH_ESTOP; AH_ECORRUPT; AH_EIO; AH_ENOMEM. */
AH_API int ah_data_prepare(struct ah_data_result *result, const struct ah_data_options *options);

#ifdef __cplusplus
}
#endif
#endif
