/* The strings of tests/golden/tokenizer_ids.py, made from the same counter-based random numbers. */
#ifndef AH_TESTS_TOKENIZER_STRINGS_H
#define AH_TESTS_TOKENIZER_STRINGS_H

#include "base/buf.h"

enum { AH_TEST_STRINGS = 10000, AH_TEST_ID_LISTS = 2000, AH_TEST_FULL = 200 };

struct test_strings;

/* Reads tests/golden/tokenizers/strings.json; fails the test where it cannot. */
struct test_strings *test_strings_open(void);
void test_strings_close(struct test_strings *strings);
/* String i < AH_TEST_STRINGS into `to`, which is emptied first. */
void test_string(struct ah_buf *to, const struct test_strings *strings, uint64_t i);
/* Number `counter` of list i of ids: its length - 1 below 30 is number 0. */
uint64_t test_id_draw(uint64_t i, uint64_t counter);

#endif
