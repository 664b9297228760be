#include "dev/host/code8.h"

#include "dev/code8.h"

static const struct ah_code8 tables[2] = {AH_CODE8_UNSIGNED, AH_CODE8_SIGNED};

static void group_narrow(uint8_t *group, const float *values, int64_t count, const struct ah_code8 *table)
{
    uint32_t most = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t magnitude = ah__code8_bits(values[i]) & 0x7fffffffU;
        most = most > magnitude ? most : magnitude;
    }
    uint32_t scale = ah__code8_scale(most);
    bool usable = ah__code8_usable(scale);
    float inverse = usable ? 1.0F / ah__code8_float(scale) : 0;
    for (int64_t i = 0; i < AH_CODE8_GROUP; i++)
        group[i] = ah__code8_of(usable && i < count ? values[i] * inverse : 0, table);
    memcpy(group + AH_CODE8_GROUP, &scale, sizeof scale);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void ah__code8_narrow(uint8_t *groups, const float *values, int64_t count, bool is_signed)
{
    for (int64_t i = 0; i < count; i += AH_CODE8_GROUP)
        group_narrow(groups + i / AH_CODE8_GROUP * AH_CODE8_BYTES, values + i, smaller(count - i, AH_CODE8_GROUP),
                     &tables[is_signed]);
}

void ah__code8_widen(float *values, const uint8_t *groups, int64_t count, bool is_signed)
{
    static const float decades[AH_CODE8_LEVELS] = AH_CODE8_DECADES;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *group = groups + i / AH_CODE8_GROUP * AH_CODE8_BYTES;
        float scale;
        memcpy(&scale, group + AH_CODE8_GROUP, sizeof scale);
        values[i] = ah__code8_value(group[i % AH_CODE8_GROUP], &tables[is_signed], decades) * scale;
    }
}
