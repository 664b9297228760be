/* Reads documents one after the other from files of text, folders of them, JSON (data/records.h, data/forms.h) and
 * pipes, also packed by gzip or zstd. Takes paths, gives documents; holds one document, or a piece of a long one. Knows
 * no tokens.
 *
 * A file of text is one document. JSON has one document in each record. A folder means all files in it and in its
 * folders, in order of their paths; names that begin with a dot are left out. "-" is the standard input. */
#ifndef AH_DATA_DOCUMENTS_H
#define AH_DATA_DOCUMENTS_H

#include "data/forms.h"

struct ah_documents;

/* Opens files and folders to be read in this order. `format` is not one of a token file. AH_EINPUT: a path is missing,
 * a folder is empty; AH_ENOMEM. */
int ah__documents_open(struct ah_documents **out, const char *const *paths, size_t count, enum ah_data_format format);
/* Null is fine. */
void ah__documents_close(struct ah_documents *documents);
/* Gives the next document, valid until the next call; *more is false after the last one. AH_EINPUT names file, line and
 * what was found instead of text: a token file, binary data, JSON of another kind, examples beside plain documents;
 * AH_ECORRUPT: damaged packed data; AH_EIO; AH_ENOMEM. */
int ah__documents_next(bool *more, struct ah_document *out, struct ah_documents *documents);
/* Returns the place of the last document: "FILE", "FILE: line 7". Valid until the next call. */
const char *ah__documents_where(struct ah_documents *documents);
/* Returns the hash of names within folders, order and every byte of all files; known after the last document. */
uint64_t ah__documents_signature(const struct ah_documents *documents);
/* Returns the bytes of the files read so far, packed as they are. */
int64_t ah__documents_bytes(const struct ah_documents *documents);

/* Returns true if a file of this name is a table whose first line names a key of records: "id,prompt,completion". It is
 * refused unless the user asks for text. */
bool ah__documents_are_table(const char *path, const char *text, size_t length);
/* Checks that a file with this start is text. AH_EINPUT: one line that says what it is and `expected`. */
int ah__documents_check_text(const char *path, const void *start, size_t length, const char *expected);

#endif
