#include "base/hash.h"

#include <math.h>
#include <string.h>
#include <xxhash.h>

uint64_t ah__hash(const void *data, size_t length, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, length, seed);
}

uint64_t ah__hash_text(const char *text, uint64_t seed)
{
    return ah__hash(text, strlen(text), seed);
}

uint64_t ah__hash_int(uint64_t value, uint64_t seed)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> (8 * i));
    return ah__hash(bytes, sizeof bytes, seed);
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The seed is mixed first: streams of neighbouring seeds must not be shifted copies of one another. */
uint64_t ah__random_bits(uint64_t seed, uint64_t counter)
{
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    return mix(mix(seed + golden) + (counter + 1) * golden);
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

double ah__random_uniform(uint64_t seed, uint64_t counter)
{
    return unit(ah__random_bits(seed, counter));
}

double ah__random_normal(uint64_t seed, uint64_t counter)
{
    const double two_pi = 6.283185307179586476925;
    double radius = sqrt(-2.0 * log(1.0 - unit(ah__random_bits(seed, 2 * counter))));
    return radius * cos(two_pi * unit(ah__random_bits(seed, 2 * counter + 1)));
}
