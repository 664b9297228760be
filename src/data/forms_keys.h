/* The keys of records and of their messages that are known: what is read, what marks something that is not learned,
 * what is refused, and whose data have them. docs/data.md has this table, row by row; a test compares. Any other key is
 * the chat template's, where that reads it, or is noted once by its name. */
#ifndef AH_DATA_FORMS_KEYS_H
#define AH_DATA_FORMS_KEYS_H

#include <stddef.h>

/* Bits: where a key is known. */
enum {
    AH_KEYS_MESSAGES = 1,
    AH_KEYS_CONVERSATIONS = 2,
    AH_KEYS_CHATS = 3,
    AH_KEYS_ALPACA = 4,
    AH_KEYS_DOLLY = 8,
    AH_KEYS_ORCA = 16,
    AH_KEYS_INSTRUCTIONS = 28,
    AH_KEYS_PAIRS = 32,
    AH_KEYS_ANSWERS = 63, /* what has answers to learn */
    AH_KEYS_IDS = 64,
    AH_KEYS_DOCUMENTS = 128,
    AH_KEYS_RECORDS = 255,
    AH_KEYS_TURNS = 256, /* of a message within a record */
};
enum ah_key_use {
    AH_KEY_READ,
    AH_KEY_MARK,    /* read: says what is not learned */
    AH_KEY_REFUSED, /* a record that has something there is refused by the key's name */
    AH_KEY_PASSED,  /* nothing to learn: not noted */
};

struct ah_form_key {
    unsigned where;   /* bits */
    const char *name; /* as docs/data.md says where */
    const char *key;
    enum ah_key_use use;
    const char *what;   /* it means */
    const char *source; /* whose data have it */
};
extern const struct ah_form_key ah__form_keys[];
extern const size_t ah__form_keys_count;

/* Null: not known there. */
const struct ah_form_key *ah__form_key_find(unsigned where, const char *key, size_t length);
/* "read", "mark", ... for the documentation. */
const char *ah__form_key_word(enum ah_key_use use);

#endif
