/* The known keys of records and of their messages: keys that are read, that mark something as not learned, or that are
 * refused, with the data sets that have them. docs/data.md has this table, row by row; a test compares. Any other key
 * belongs to the chat template, if that reads it, or is noted once by its name. */
#ifndef AH_DATA_FORMS_KEYS_H
#define AH_DATA_FORMS_KEYS_H

#include <stddef.h>

/* Bits for the places where a key is known. */
enum {
    AH_KEYS_MESSAGES = 1,
    AH_KEYS_CONVERSATIONS = 2,
    AH_KEYS_CHATS = 3,
    AH_KEYS_ALPACA = 4,
    AH_KEYS_DOLLY = 8,
    AH_KEYS_ORCA = 16,
    AH_KEYS_INSTRUCTIONS = 28,
    AH_KEYS_PAIRS = 32,
    AH_KEYS_ANSWERS = 63, /* records with answers to learn */
    AH_KEYS_IDS = 64,
    AH_KEYS_DOCUMENTS = 128,
    AH_KEYS_RECORDS = 255,
    AH_KEYS_TURNS = 256, /* messages within a record */
};
enum ah_key_use {
    AH_KEY_READ,
    AH_KEY_MARK,    /* read: marks something that is not learned */
    AH_KEY_REFUSED, /* a record with a value here is refused by the key's name */
    AH_KEY_PASSED,  /* ignored without a note: nothing to learn */
};

struct ah_form_key {
    unsigned where;   /* bits */
    const char *name; /* the place, in the words of docs/data.md */
    const char *key;
    enum ah_key_use use;
    const char *what;   /* meaning of the key */
    const char *source; /* data sets that have it */
};
extern const struct ah_form_key ah__form_keys[];
extern const size_t ah__form_keys_count;

/* Returns the row of a key in these places, or null. */
const struct ah_form_key *ah__form_key_find(unsigned where, const char *key, size_t length);
/* Returns "read", "mark", ... for the documentation. */
const char *ah__form_key_word(enum ah_key_use use);

#endif
