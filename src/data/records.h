/* Reads records of JSON one after the other: lines, an array, the array behind "data", or objects of several lines.
 * Takes a file's name, its start and a reader; gives the text of one record, which is an object, and its place. Knows
 * nothing of a record's content. Accepts the JSON that Python's reader does (base/json_python.h). */
#ifndef AH_DATA_RECORDS_H
#define AH_DATA_RECORDS_H

#include "base/json_scan.h"
#include "io/reader.h"

enum ah_records_kind {
    AH_RECORDS_NONE,   /* not JSON, but text */
    AH_RECORDS_LINES,  /* one record on each line; empty lines are skipped */
    AH_RECORDS_VALUES, /* consecutive objects, each of any number of lines */
    AH_RECORDS_ARRAY,
    AH_RECORDS_ALONE, /* one record in memory, without a place in a file */
};

struct ah_records {
    enum ah_records_kind kind;
    size_t start;     /* position of the first record in the file, after a byte-order mark or an array's bracket */
    const char *path; /* for messages; must outlive this structure */
    struct ah_reader *reader;
    int64_t count, line;  /* number of records given; line in which the last one begins, from 1 */
    size_t column;        /* bytes before it in its line */
    int64_t behind;       /* lines that end before the unused text */
    size_t behind_column; /* bytes of the unused text's line before it */
    const char *text;     /* the last record [length], valid until the next */
    size_t length;
    char where[640];
    bool ended;    /* the array was closed */
    bool enclosed; /* the array is a member of an object, whose other members are skipped */
};

/* Returns the kind of a file by its name and its first `length` bytes. A name with .json, .jsonl, .ndjson or .jsonlines
 * (packed too), or `forced`: always records. Else the content decides: an array of objects, {"data": [..]}, or objects
 * on lines. *start as in struct ah_records. An object with a record's key is a record, whatever else it has. */
enum ah_records_kind ah__records_sniff(size_t *start, const char *name, bool forced, const char *text, size_t length,
                                       bool (*is_record_key)(const char *key, size_t length));

/* Begins to read records; the reader is at the file's start. */
void ah__records_begin(struct ah_records *records, enum ah_records_kind kind, size_t start, const char *path,
                       struct ah_reader *reader);
/* Reads the next record; *more is false after the last one. AH_EINPUT names file, line and column of text that is not
 * JSON or not an object; else as ah__reader_want. */
int ah__records_next(bool *more, struct ah_records *records);
/* Returns the place of the last record: "FILE: line 7", "FILE: record 3, line 12". */
const char *ah__records_where(struct ah_records *records);
/* Fails with AH_EINPUT and one line about a fault in the last record. */
int ah__records_fault(struct ah_records *records, const struct ah_json_fault *fault);

#endif
