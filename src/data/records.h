/* Records of JSON, one after the other: lines, an array, the array behind "data", or objects that have lines of their
 * own. Takes a file's name, its start and a reader; gives the text of one record, which is an object, and where it is.
 * Knows not what is in a record. JSON is what Python's reader takes (base/json_python.h). */
#ifndef AH_DATA_RECORDS_H
#define AH_DATA_RECORDS_H

#include "base/json_scan.h"
#include "io/reader.h"

enum ah_records_kind {
    AH_RECORDS_NONE,   /* no JSON but text */
    AH_RECORDS_LINES,  /* a record each; empty lines are none */
    AH_RECORDS_VALUES, /* objects that follow one another, each of any number of lines */
    AH_RECORDS_ARRAY,
    AH_RECORDS_ALONE, /* one that is there already, without a file's place */
};

struct ah_records {
    enum ah_records_kind kind;
    size_t start;     /* of the first record in the file, behind a byte-order mark or an array's bracket */
    const char *path; /* for messages; must outlive this */
    struct ah_reader *reader;
    int64_t count, line;  /* records given; the line in which the last one begins, from 1 */
    size_t column;        /* bytes before it in that line */
    int64_t behind;       /* lines that ended before what is not given yet */
    size_t behind_column; /* and bytes of its line */
    const char *text;     /* the last one [length], valid until the next */
    size_t length;
    char where[640];
    bool ended;    /* the array was closed */
    bool enclosed; /* the array is a member of an object, whose other members are passed over */
};

/* What a file is whose first `length` bytes are these: by its name, .json, .jsonl, .ndjson or .jsonlines (packed too),
 * or when it is `forced`, records always; by its content else: an array of objects, {"data": [..]}, or objects on
 * lines. *start as in struct ah_records. An object with a record's key is a record, whatever else it has. */
enum ah_records_kind ah__records_sniff(size_t *start, const char *name, bool forced, const char *text, size_t length,
                                       bool (*is_record_key)(const char *key, size_t length));

/* Begins with a reader whose file stands at its start. */
void ah__records_begin(struct ah_records *records, enum ah_records_kind kind, size_t start, const char *path,
                       struct ah_reader *reader);
/* The next one; *more false: there was none left. AH_EINPUT names file, line and column of what is no JSON or no
 * object; as ah__reader_want. */
int ah__records_next(bool *more, struct ah_records *records);
/* Where the last one is: "FILE: line 7", "FILE: record 3, line 12". */
const char *ah__records_where(struct ah_records *records);
/* The line about a fault in the last record. AH_EINPUT. */
int ah__records_fault(struct ah_records *records, const struct ah_json_fault *fault);

#endif
