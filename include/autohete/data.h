/* Preparing data: documents made into a file of tokens once, so that trainings read them from disk. */
#ifndef AUTOHETE_DATA_H
#define AUTOHETE_DATA_H

#include "autohete/base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ah_data_options {
    const char *model_path;    /* whose tokenizer and vocabulary: JSON, or a folder with config.json */
    const char *const *inputs; /* files of text or JSON ({"text": ..}) and folders of them, packed or not; "-" */
    size_t input_count;
    const char *format;       /* "auto" (default), "text", "jsonl", "documents" */
    const char *out;          /* the token file; one that is there is replaced when the new one is complete */
    uint64_t seed;            /* of the documents' order; default 1 */
    double val_share;         /* of the tokens, whole documents at the end, for validation: 0 to 0.5; default 0.1 */
    const volatile int *stop; /* nonzero: AH_ESTOP, nothing is written; may be null */
    const char *eos;          /* token that ends a text, or its id; null: as the tokenizer's files say */
};

/* Defaults; null pointers. To be called before any field is set. */
AH_API void ah_data_options_init(struct ah_data_options *options);

struct ah_data_result {
    int64_t documents, val_documents; /* in all; for validation: 0 where there is one document and it was cut */
    int64_t tokens, val_tokens;       /* ends of documents are tokens */
    int64_t bytes_read, bytes_written;
    int64_t params, vocab_size; /* of the model */
    int token_bits;             /* 16 or 32 */
    const char *tokenizer;      /* the name of its kind */
};

/* Writes a token file in llm.c's layout: documents in a shuffled order, each with its end behind it (what the tokenizer
 * says; a zero byte of byte-level tokens), and in what llm.c leaves free of the header the part for validation, the
 * tokenizer and a checksum, which trainings look at. Takes 16 bytes of memory for each document, and a temporary file
 * beside `out` as large as it. AH_EINPUT: bad options or input, pairs of prompt and completion (which trainings read
 * themselves); AH_ECORRUPT; AH_EIO; AH_ENOMEM. */
AH_API int ah_data_prepare(struct ah_data_result *result, const struct ah_data_options *options);

#ifdef __cplusplus
}
#endif
#endif
