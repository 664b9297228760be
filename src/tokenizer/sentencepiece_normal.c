#include "tokenizer/sentencepiece_normal.h"

#include <string.h>

#include "base/alloc.h"
#include "tokenizer/utf8.h"

/* Most bytes that a rule replaces, which bounds the time at one place. */
enum { RULE_BYTES = 1024 };

/* ---- the double array -------------------------------------------------------------------------------------------- */

static uint32_t little_endian(const char *bytes)
{
    const unsigned char *at = (const unsigned char *)bytes;
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Returns the offset of a unit. Its bits: the lowest byte is the label; bit 8 says that the unit at the offset is a
 * value; bits 10 to 30 are the offset in units or, if bit 9 is set, in 256 units; bit 31 marks a value. */
static size_t unit_offset(uint32_t unit)
{
    return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* Returns the bytes of the longest replaced text with which this text begins; 0: no rule applies. *value: place of its
 * replacement in `texts`. */
static size_t rule_find(size_t *value, const struct ah_sentencepiece_normalizer *normalizer, const char *text,
                        size_t length)
{
    const uint32_t *units = normalizer->units;
    size_t longest = 0, at = normalizer->unit_count ? unit_offset(units[0]) : 0;
    for (size_t i = 0; i < length && i < RULE_BYTES && normalizer->unit_count; i++) {
        at ^= (unsigned char)text[i];
        if (at >= normalizer->unit_count || (units[at] & (1u << 31 | 0xff)) != (unsigned char)text[i])
            break;
        bool ends = units[at] >> 8 & 1;
        at ^= unit_offset(units[at]);
        if (!ends)
            continue;
        if (at >= normalizer->unit_count)
            break;
        *value = units[at] & 0x7fffffff;
        longest = i + 1;
    }
    return longest;
}

/* Reads the rules: the array's length in bytes, the array, and the texts. */
static int rules_read(struct ah_sentencepiece_normalizer *normalizer, const struct ah_sentencepiece_text *rules,
                      const char *path)
{
    enum { UNIT = sizeof(uint32_t) };
    if (!rules->length)
        return AH_OK;
    size_t bytes = rules->length > UNIT ? little_endian(rules->text) : 0, behind = rules->length - UNIT;
    if (bytes < UNIT || bytes % UNIT || bytes >= behind || rules->text[rules->length - 1])
        return ah__fail(AH_EINPUT,
                        "%s: key 'normalizer_spec.precompiled_charsmap': found %zu bytes that are no compiled rules",
                        path, rules->length);
    normalizer->texts_length = behind - bytes;
    normalizer->unit_count = bytes / UNIT;
    AH_TRY(ah__new(&normalizer->units, normalizer->unit_count, UNIT));
    AH_TRY(ah__new(&normalizer->texts, normalizer->texts_length, 1));
    for (size_t i = 0; i < normalizer->unit_count; i++)
        normalizer->units[i] = little_endian(rules->text + UNIT * (i + 1));
    memcpy(normalizer->texts, rules->text + UNIT + bytes, normalizer->texts_length);
    return AH_OK;
}

int ah__sentencepiece_normalizer_init(struct ah_sentencepiece_normalizer *normalizer,
                                      const struct ah_sentencepiece_model *model, const struct ah_piece_index *kept,
                                      const char *path)
{
    *normalizer = (struct ah_sentencepiece_normalizer){
        .adds_space = model->adds_space,
        .space_behind = model->space_behind,
        .removes_spaces = model->removes_spaces,
        .escapes_spaces = model->escapes_spaces,
        .kept = kept,
    };
    return rules_read(normalizer, &model->rules, path);
}

void ah__sentencepiece_normalizer_fini(struct ah_sentencepiece_normalizer *normalizer)
{
    ah__free(normalizer->units);
    ah__free(normalizer->texts);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

struct part {
    const char *text; /* replacement of the first `taken` bytes */
    size_t length, taken;
};

static struct part part_next(const struct ah_sentencepiece_normalizer *normalizer, const char *text, size_t length)
{
    size_t value = 0, kept = ah__piece_longest(normalizer->kept, text, length);
    if (kept)
        return (struct part){text, kept, kept};
    size_t taken = rule_find(&value, normalizer, text, length);
    if (taken && value < normalizer->texts_length)
        return (struct part){normalizer->texts + value, strlen(normalizer->texts + value), taken};
    taken = ah__utf8_bytes(*text);
    return (struct part){text, taken, taken};
}

static const char *space_of(const struct ah_sentencepiece_normalizer *normalizer)
{
    return normalizer->escapes_spaces ? AH_SPACE_MARK : " ";
}

static void part_add(struct ah_buf *to, const struct ah_sentencepiece_normalizer *normalizer, const struct part *part)
{
    size_t done = 0;
    for (size_t i = 0; i < part->length && normalizer->escapes_spaces; i++) {
        if (part->text[i] != ' ')
            continue;
        ah__buf_add(to, part->text + done, i - done);
        ah__buf_add(to, AH_SPACE_MARK, strlen(AH_SPACE_MARK));
        done = i + 1;
    }
    ah__buf_add(to, part->text + done, part->length - done);
}

static size_t spaces_before(const struct ah_sentencepiece_normalizer *normalizer, const char *text, size_t length)
{
    size_t at = 0;
    while (at < length && normalizer->removes_spaces) {
        struct part part = part_next(normalizer, text + at, length - at);
        if (part.length != 1 || part.text[0] != ' ')
            break;
        at += part.taken;
    }
    return at;
}

static void spaces_behind_drop(struct ah_buf *to, const struct ah_sentencepiece_normalizer *normalizer, size_t start)
{
    const char *space = space_of(normalizer);
    size_t bytes = strlen(space);
    while (normalizer->removes_spaces && to->length - start >= bytes &&
           memcmp(to->text + to->length - bytes, space, bytes) == 0)
        to->length -= bytes;
}

static int parts_add(struct ah_buf *to, const struct ah_sentencepiece_normalizer *normalizer, const char *text,
                     size_t length, size_t most)
{
    bool behind_space = normalizer->removes_spaces;
    for (size_t at = 0; at < length && to->status == AH_OK;) {
        struct part part = part_next(normalizer, text + at, length - at);
        at += part.taken;
        while (behind_space && part.length && part.text[0] == ' ') {
            part.text++;
            part.length--;
        }
        if (part.length)
            behind_space = normalizer->removes_spaces && part.text[part.length - 1] == ' ';
        part_add(to, normalizer, &part);
        if (to->length > most)
            return ah__fail(AH_EINPUT,
                            "the tokenizer's normalizer makes over %zu bytes of one text, expected at most that", most);
    }
    return to->status;
}

int ah__sentencepiece_normalize(struct ah_buf *to, const struct ah_sentencepiece_normalizer *normalizer,
                                const char *text, size_t length, bool adds)
{
    enum { GROWTH = 64, ANYWAY = 64 << 10 };
    size_t skipped = spaces_before(normalizer, text, length), start = to->length;
    const char *space = space_of(normalizer);
    bool before = adds && normalizer->adds_space && !normalizer->space_behind;
    bool behind = adds && normalizer->adds_space && normalizer->space_behind;
    if (skipped == length)
        return AH_OK;
    if (before)
        ah__buf_add(to, space, strlen(space));
    AH_TRY(parts_add(to, normalizer, text + skipped, length - skipped, start + GROWTH * length + ANYWAY));
    spaces_behind_drop(to, normalizer, start);
    if (behind)
        ah__buf_add(to, space, strlen(space));
    AH_TRY(to->status);
    if (to->text && !ah__utf8_good(to->text + start, to->length - start))
        return ah__fail(AH_EINPUT, "the tokenizer's normalizer makes text that is no UTF-8");
    return AH_OK;
}
