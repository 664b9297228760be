#include "tokenizer/pretokenize.h"

#include <string.h>

struct flow {
    struct ah_pretokenizer *pre;
    int (*word)(const char *text, size_t length, void *context);
    void *context;
};

/* Runs the steps from `at` on. */
static int step_run(const struct flow *flow, int at, const char *text, size_t length, bool at_start);

/* ---- splits ------------------------------------------------------------------------------------------------------ */

/* A split in progress. A part of the text waits until the next part shows whether both are joined. */
struct split {
    const struct flow *flow;
    int at;
    const char *text;
    bool at_start;
    size_t start, end; /* the waiting part */
    bool waiting;      /* a part waits; it may be empty, and then still separates its neighbours */
    bool matched;      /* the last part matched */
};

static int part_emit(const struct split *split, size_t start, size_t end)
{
    return step_run(split->flow, split->at + 1, split->text + start, end - start, split->at_start && start == 0);
}

static int waiting_emit(struct split *split)
{
    split->waiting = false;
    return split->start < split->end ? part_emit(split, split->start, split->end) : AH_OK;
}

/* Returns true if the part joins the waiting part, which is next to it. */
static bool joins(const struct split *split, enum ah_split_behavior behavior, bool match)
{
    switch (behavior) {
    case AH_SPLIT_MERGED_WITH_PREVIOUS:
        return match && !split->matched;
    case AH_SPLIT_MERGED_WITH_NEXT:
        return !match && split->matched;
    case AH_SPLIT_CONTIGUOUS:
        return match == split->matched;
    case AH_SPLIT_ISOLATED:
    case AH_SPLIT_REMOVED:
        break;
    }
    return false;
}

static int part_take(struct split *split, size_t start, size_t end, bool match)
{
    const struct ah_pre_step *step = &split->flow->pre->steps[split->at];
    match = match != step->invert;
    if (step->behavior == AH_SPLIT_ISOLATED || (step->behavior == AH_SPLIT_REMOVED && !match))
        return part_emit(split, start, end);
    if (step->behavior == AH_SPLIT_REMOVED)
        return AH_OK;
    if (!split->waiting || !joins(split, step->behavior, match)) {
        AH_TRY(waiting_emit(split));
        split->start = start;
    }
    split->waiting = true;
    split->end = end;
    split->matched = match;
    return AH_OK;
}

static size_t char_bytes(const char *text, size_t length, size_t at)
{
    size_t bytes = at < length;
    while (at + bytes < length && (text[at + bytes] & 0xc0) == 0x80)
        bytes++;
    return bytes;
}

static int split_run(const struct flow *flow, int at, const char *text, size_t length, bool at_start)
{
    struct split split = {.flow = flow, .at = at, .text = text, .at_start = at_start};
    size_t done = 0, from = 0;
    bool any = false;
    while (from < length) {
        bool found;
        size_t start = length, end = length;
        AH_TRY(ah__regex_next(&found, &start, &end, flow->pre->steps[at].regex, text, length, from));
        if (!found)
            break;
        if (done < start)
            AH_TRY(part_take(&split, done, start, false));
        if (start < end || end > done || !any) /* an empty match right after a match does not count */
            AH_TRY(part_take(&split, start, end, true));
        any = true;
        done = end;
        from = start < end ? end : end + char_bytes(text, length, end);
    }
    if (done < length)
        AH_TRY(part_take(&split, done, length, false));
    return waiting_emit(&split);
}

/* ---- spaces ------------------------------------------------------------------------------------------------------ */

static int space_run(const struct flow *flow, int at, const char *text, size_t length, bool at_start)
{
    struct ah_buf *scratch = &flow->pre->scratch[at];
    if (text[0] == ' ')
        return step_run(flow, at + 1, text, length, at_start);
    scratch->length = 0;
    ah__buf_add(scratch, " ", 1);
    ah__buf_add(scratch, text, length);
    return scratch->status == AH_OK ? step_run(flow, at + 1, scratch->text, scratch->length, at_start)
                                    : scratch->status;
}

/* Returns the bytes of a space or mark at the place; 0: other text is there. */
static size_t mark_bytes(const struct ah_pre_step *step, const char *text, size_t length)
{
    if (text[0] == ' ')
        return 1;
    if (text[0] != step->mark[0])
        return 0;
    size_t bytes = strlen(step->mark);
    return length >= bytes && memcmp(text, step->mark, bytes) == 0 ? bytes : 0;
}

static int marked_emit(const struct flow *flow, int at, bool at_start)
{
    struct ah_buf *scratch = &flow->pre->scratch[at];
    if (scratch->status != AH_OK || scratch->length == 0)
        return scratch->status;
    return step_run(flow, at + 1, scratch->text, scratch->length, at_start);
}

static int metaspace_run(const struct flow *flow, int at, const char *text, size_t length, bool at_start)
{
    const struct ah_pre_step *step = &flow->pre->steps[at];
    struct ah_buf *scratch = &flow->pre->scratch[at];
    bool prepends = step->scheme == AH_PREPEND_ALWAYS || (step->scheme == AH_PREPEND_FIRST && at_start);
    scratch->length = 0;
    if (prepends && !mark_bytes(step, text, length))
        ah__buf_add(scratch, step->mark, strlen(step->mark));
    for (size_t i = 0, plain; i < length; i += plain) {
        size_t mark = mark_bytes(step, text + i, length - i);
        if (mark && step->split) {
            AH_TRY(marked_emit(flow, at, at_start));
            at_start = at_start && i == 0;
            scratch->length = 0;
        }
        if (mark)
            ah__buf_add(scratch, step->mark, strlen(step->mark));
        i += mark;
        for (plain = 0; i + plain < length && !mark_bytes(step, text + i + plain, length - i - plain);)
            plain++;
        ah__buf_add(scratch, text + i, plain);
    }
    return marked_emit(flow, at, at_start);
}

static int step_run(const struct flow *flow, int at, const char *text, size_t length, bool at_start)
{
    if (length == 0)
        return AH_OK;
    if (at == flow->pre->count)
        return flow->word(text, length, flow->context);
    switch (flow->pre->steps[at].kind) {
    case AH_PRE_SPLIT:
        return split_run(flow, at, text, length, at_start);
    case AH_PRE_SPACE:
        return space_run(flow, at, text, length, at_start);
    case AH_PRE_METASPACE:
        break;
    }
    return metaspace_run(flow, at, text, length, at_start);
}

int ah__pretokenize(struct ah_pretokenizer *pre, const char *text, size_t length, bool at_start,
                    int (*word)(const char *text, size_t length, void *context), void *context)
{
    struct flow flow = {pre, word, context};
    return step_run(&flow, 0, text, length, at_start);
}

void ah__pretokenizer_fini(struct ah_pretokenizer *pre)
{
    for (int i = 0; i < AH_PRE_STEPS; i++) {
        ah__regex_free(pre->steps[i].regex);
        ah__buf_free(&pre->scratch[i]);
    }
    *pre = (struct ah_pretokenizer){0};
}
