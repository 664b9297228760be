/* The crc32 of zlib, with which scripts say what they do not store. */
#ifndef AH_TESTS_GOLDEN_CRC_H
#define AH_TESTS_GOLDEN_CRC_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t crc_add(uint32_t value, const void *data, size_t length)
{
    static uint32_t table[256];
    for (uint32_t i = 0; i < 256 && !table[1]; i++)
        for (uint32_t row = 0; row < 256; row++) {
            table[row] = row;
            for (int bit = 0; bit < 8; bit++)
                table[row] = table[row] >> 1 ^ (table[row] & 1 ? 0xedb88320u : 0);
        }
    value = ~value;
    for (const unsigned char *at = data, *end = at + length; at < end; at++)
        value = table[(value ^ *at) & 255] ^ value >> 8;
    return ~value;
}

#endif
