/* Documents one after the other from files of text, folders of them, JSON (data/records.h, data/forms.h) and pipes, any
 * of them packed by gzip or zstd. Takes paths, gives documents; holds one, or a piece of a long one. Knows no tokens.
 *
 * A file of text is one document. JSON has one in each record. Of a folder all files are read, those in folders within
 * too, in order of their paths; names that begin with a dot are left out. "-" is the standard input. */
#ifndef AH_DATA_DOCUMENTS_H
#define AH_DATA_DOCUMENTS_H

#include "data/forms.h"

struct ah_documents;

/* Opens files and folders to be read in this order. `format` is none of a token file. AH_EINPUT: one is missing, a
 * folder is empty; AH_ENOMEM. */
int ah__documents_open(struct ah_documents **out, const char *const *paths, size_t count, enum ah_data_format format);
/* Null is fine. */
void ah__documents_close(struct ah_documents *documents);
/* The next document, valid until the next call; *more false: there was none left. AH_EINPUT names file, line and what
 * was found where there is no text: a token file, binary data, JSON of another kind, examples beside plain documents;
 * AH_ECORRUPT: damaged packed data; AH_EIO; AH_ENOMEM. */
int ah__documents_next(bool *more, struct ah_document *out, struct ah_documents *documents);
/* Where the document of the last call is: "FILE", "FILE: line 7". Valid until the next call. */
const char *ah__documents_where(struct ah_documents *documents);
/* Of names within folders, order and every byte of all files; known when there is no document left. */
uint64_t ah__documents_signature(const struct ah_documents *documents);
/* Bytes of the files read so far, as they lie. */
int64_t ah__documents_bytes(const struct ah_documents *documents);

/* Whether a file of this name is a table whose first line names a key of records: "id,prompt,completion". Unless it is
 * asked for as text, it is refused. */
bool ah__documents_are_table(const char *path, const char *text, size_t length);
/* Of a file that starts so: AH_EINPUT in one line that says what it is, when it is no text, and `expected`. */
int ah__documents_check_text(const char *path, const void *start, size_t length, const char *expected);

#endif
