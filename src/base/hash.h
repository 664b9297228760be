/* 64-bit content hashes (XXH3) for signatures and checksums, and counter-based random numbers.
 * The same seed and counter give the same number on every machine and thread count. */
#ifndef AH_BASE_HASH_H
#define AH_BASE_HASH_H

#include "base/status.h"

uint64_t ah__hash(const void *data, size_t length, uint64_t seed);
uint64_t ah__hash_text(const char *text, uint64_t seed);
uint64_t ah__hash_int(uint64_t value, uint64_t seed);

/* Uniform 64 bits at position `counter` of stream `seed` (splitmix64). */
uint64_t ah__random_bits(uint64_t seed, uint64_t counter);
/* Uniform in [0, 1) with 53 bits. */
double ah__random_uniform(uint64_t seed, uint64_t counter);
/* Standard normal (Box-Muller). */
double ah__random_normal(uint64_t seed, uint64_t counter);

#endif
