#include "tokenizer/normalize.h"

#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "tokenizer/utf8.h"

/* ---- Unicode's normal forms -------------------------------------------------------------------------------------- */

/* Returns true for common characters that normal form C never changes and never joins with the character before. Text
 * of such characters alone is not normalized. */
static bool is_settled(uint32_t code, bool composed)
{
    static const uint32_t ranges[][2] = {{0xa0, 0x2ff},    {0x388, 0x482},    {0x48a, 0x58f},   {0x2002, 0x20cf},
                                         {0x2100, 0x2125}, {0x3041, 0x3096},  {0x30a1, 0x30fa}, {0x4e00, 0x9fff},
                                         {0xac00, 0xd7a3}, {0x1f300, 0x1faff}};
    if (code < 0x80)
        return true;
    for (size_t i = 0; i < AH_LENGTH(ranges) && composed; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return true;
    return false;
}

/* Finds the next part that may change: from the last settled character before one that is not settled, to the next
 * settled one. Both *start and *end are `length` if there is none. */
static void next_unsettled(size_t *start, size_t *end, const char *text, size_t length, size_t from, bool composed)
{
    size_t last = from, at = from, bytes;
    for (; at < length; at += bytes) {
        bytes = ah__utf8_bytes(text[at]);
        if (!is_settled(ah__utf8_code(text + at, bytes), composed))
            break;
        last = at;
    }
    *start = at < length ? last : length;
    for (; at < length; at += bytes) {
        bytes = ah__utf8_bytes(text[at]);
        if (is_settled(ah__utf8_code(text + at, bytes), composed))
            break;
    }
    *end = at;
}

static int codes_add(struct ah_buf *to, const int32_t *codes, int64_t count)
{
    char bytes[4];
    for (int64_t i = 0; i < count; i++)
        ah__buf_add(to, bytes, ah__utf8_put(bytes, (uint32_t)codes[i]));
    return to->status;
}

static int form_add(struct ah_buf *to, const char *text, size_t length, int options)
{
    enum { GROWTH = 18 }; /* most codes that one character becomes */
    int32_t few[256], *codes = few;
    utf8proc_ssize_t room = AH_LENGTH(few), count;
    if (length * GROWTH > AH_LENGTH(few)) {
        count = utf8proc_decompose((const unsigned char *)text, (utf8proc_ssize_t)length, NULL, 0,
                                   (utf8proc_option_t)options);
        room = count > 0 ? count : 1;
        AH_TRY(ah__new(&codes, (size_t)room, sizeof *codes));
    }
    count = utf8proc_decompose((const unsigned char *)text, (utf8proc_ssize_t)length, codes, room,
                               (utf8proc_option_t)options);
    if (count > 0)
        count = utf8proc_normalize_utf32(codes, count, (utf8proc_option_t)options);
    int status =
        count < 0 ? ah__fail(AH_EINTERNAL, "utf8proc: %s", utf8proc_errmsg(count)) : codes_add(to, codes, count);
    if (codes != few)
        ah__free(codes);
    return status;
}

/* Appends the text in a normal form. *changed false: appends nothing, since the text is normal already. */
static int form_apply(bool *changed, struct ah_buf *to, const char *text, size_t length, enum ah_normal_kind kind)
{
    static const int options[] = {
        [AH_NORMAL_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
        [AH_NORMAL_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
        [AH_NORMAL_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
        [AH_NORMAL_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
    };
    size_t done = 0, start, end;
    next_unsettled(&start, &end, text, length, 0, kind == AH_NORMAL_NFC);
    *changed = start < length;
    while (start < length) {
        ah__buf_add(to, text + done, start - done);
        AH_TRY(form_add(to, text + start, end - start, options[kind]));
        done = end;
        next_unsettled(&start, &end, text, length, done, kind == AH_NORMAL_NFC);
    }
    if (*changed)
        ah__buf_add(to, text + done, length - done);
    return to->status;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int replace_apply(bool *changed, struct ah_buf *to, const char *text, size_t length,
                         const struct ah_normal_step *step, size_t most)
{
    size_t from_length = strlen(step->from), to_length = strlen(step->to), done = 0;
    const char *found;
    *changed = false;
    while ((found = memmem(text + done, length - done, step->from, from_length))) {
        size_t at = (size_t)(found - text);
        ah__buf_add(to, text + done, at - done);
        ah__buf_add(to, step->to, to_length);
        if (to->length > most)
            return ah__fail(AH_EINPUT,
                            "the tokenizer's normalizer makes over %zu bytes of one text, expected at most that", most);
        done = at + from_length;
        *changed = true;
    }
    if (*changed)
        ah__buf_add(to, text + done, length - done);
    return to->status;
}

static int step_apply(bool *changed, struct ah_buf *to, const char *text, size_t length,
                      const struct ah_normal_step *step, size_t most)
{
    if (step->kind == AH_NORMAL_REPLACE)
        return replace_apply(changed, to, text, length, step, most);
    if (step->kind != AH_NORMAL_PREPEND)
        return form_apply(changed, to, text, length, step->kind);
    *changed = length > 0;
    if (*changed) {
        ah__buf_add(to, step->to, strlen(step->to));
        ah__buf_add(to, text, length);
    }
    return to->status;
}

/* Returns the most bytes that normalizing may produce. Unicode's normal forms need at most 18 times the length;
 * replacements may need any. */
static size_t most_of(size_t length)
{
    enum { GROWTH = 64, ANYWAY = 64 << 10 };
    static const size_t most = (size_t)1 << 29;
    return length < (most - ANYWAY) / GROWTH ? GROWTH * length + ANYWAY : most;
}

int ah__normalize(const char **text, size_t *length, struct ah_buf buffers[2], const struct ah_normalizer *normalizer)
{
    struct ah_buf *to = &buffers[0];
    size_t most = most_of(*length);
    for (int i = 0; i < normalizer->count; i++) {
        bool changed;
        to->length = 0;
        AH_TRY(step_apply(&changed, to, *text, *length, &normalizer->steps[i], most));
        if (!changed)
            continue;
        *text = to->text ? to->text : "";
        *length = to->length;
        to = to == &buffers[0] ? &buffers[1] : &buffers[0];
    }
    return AH_OK;
}
