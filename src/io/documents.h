/* Documents one after the other from files of text, folders of them and JSON lines, any of them packed by gzip or zstd.
 * Takes paths, gives text; holds one document, or a piece of a long one. Knows no tokens.
 *
 * A file of text is one document. JSON lines (.jsonl, .ndjson, or a first line that is an object with such keys) have
 * one on each line: {"text": ..}, or {"prompt": .., "completion": ..}; other keys are left alone. Of a folder all files
 * are read, those in folders within too, in order of their paths; names that begin with a dot are left out. */
#ifndef AH_IO_DOCUMENTS_H
#define AH_IO_DOCUMENTS_H

#include "base/status.h"

/* id, the word for it */
#define AH_DATA_FORMAT_TABLE(X)                                                                                        \
    X(AUTO, "auto") /* by what is in the file */                                                                       \
    X(TEXT, "text")                                                                                                    \
    X(JSONL, "jsonl")                                                                                                  \
    X(LLMC, "llmc")       /* a token file of llm.c */                                                                  \
    X(NANOGPT, "nanogpt") /* 16-bit tokens and nothing else */
enum ah_data_format {
#define AH_DATA_FORMAT_ENUM(id, word) AH_DATA_##id,
    AH_DATA_FORMAT_TABLE(AH_DATA_FORMAT_ENUM)
#undef AH_DATA_FORMAT_ENUM
        AH_DATA_FORMAT_COUNT
};
extern const char *const ah__data_format_words[AH_DATA_FORMAT_COUNT];
/* Null is auto. AH_EINPUT lists the words. */
int ah__data_format_parse(enum ah_data_format *out, const char *word);

struct ah_document {
    const char *text; /* or the prompt; not terminated */
    size_t length;
    const char *completion; /* null: a document that is no pair */
    size_t completion_length;
    bool whole; /* false: a piece of a document that goes on with the next */
    bool alone; /* of the one file of text that all the documents are */
};

struct ah_documents;

/* Opens files and folders to be read in this order. `format` is AUTO, TEXT or JSONL. AH_EINPUT: one is missing, a
 * folder is empty; AH_ENOMEM. */
int ah__documents_open(struct ah_documents **out, const char *const *paths, size_t count, enum ah_data_format format);
/* Null is fine. */
void ah__documents_close(struct ah_documents *documents);
/* The next document, valid until the next call; *more false: there was none left. AH_EINPUT names file, line and what
 * was found where there is no text: a token file, binary data, JSON of another kind, pairs beside plain documents;
 * AH_ECORRUPT: damaged packed data; AH_EIO; AH_ENOMEM. */
int ah__documents_next(bool *more, struct ah_document *out, struct ah_documents *documents);
/* Where the document of the last call is: "FILE", "FILE: line 7". Valid until the next call. */
const char *ah__documents_where(struct ah_documents *documents);
/* Of names within folders, order and every byte of all files; known when there is no document left. */
uint64_t ah__documents_signature(const struct ah_documents *documents);
/* Bytes of the files read so far, as they lie. */
int64_t ah__documents_bytes(const struct ah_documents *documents);

/* Whether a file of this name and start (its first bytes, unpacked) has JSON lines. AH_ENOMEM. */
int ah__documents_are_jsonl(bool *out, const char *name, const char *start, size_t length);
/* What a file that starts so is when it is no text: a few words, or null. With AH_ZERO_BYTE, *at is its place. */
#define AH_ZERO_BYTE "a zero byte"
const char *ah__documents_not_text(size_t *at, const void *start, size_t length);

#endif
