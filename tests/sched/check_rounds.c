/* What rounds add to the rules, and what is held by one at a time. */
#include "sched/checker.h"

#include <stdlib.h>

void hold_add(struct hold *holds, size_t *count, const struct ah_span *from, const struct ah_span *to, int buffer)
{
    if (!from || !to)
        return;
    assert_true(buffer >= 0);
    holds[(*count)++] = (struct hold){buffer, from->start_ns, to->end_ns};
}

static int by_buffer_and_time(const void *left, const void *right)
{
    const struct hold *a = left, *b = right;
    if (a->buffer != b->buffer)
        return a->buffer - b->buffer;
    return (a->from > b->from) - (a->from < b->from);
}

void check_holds(struct hold *holds, size_t count, int buffers)
{
    qsort(holds, count, sizeof *holds, by_buffer_and_time);
    for (size_t i = 0; i < count; i++) {
        assert_in_range(holds[i].buffer, 0, buffers - 1);
        if (i > 0 && holds[i].buffer == holds[i - 1].buffer && holds[i].from < holds[i - 1].to)
            fail_msg("buffer %d is taken at %lld while held until %lld", holds[i].buffer, (long long)holds[i].from,
                     (long long)holds[i - 1].to);
    }
}

/* Which micro-batches a round has: all of an iteration's in order, none twice. */
void check_shares(const struct checker *c, int64_t k)
{
    const struct ah_span *before = begins(c, k) ? NULL : get(c, k - 1, 1, AH_ITEM_FORWARD);
    for (int g = 0; g <= c->config->switches.layers + 1 && c->of_iteration > 1; g++)
        for (int kind = AH_ITEM_FORWARD; kind <= AH_ITEM_BACKWARD; kind++) {
            const struct ah_span *span = get(c, k, g, (enum ah_item_kind)kind);
            bool backward = kind == AH_ITEM_BACKWARD;
            if (backward && is_frozen(c->config, g))
                continue;
            if (g == 0 && backward && is_late(c)) {
                assert_true(!span || (ends(c, k) && span->item.micro_batches == 0 && !span->item.adds));
                continue;
            }
            int end = span->item.first_micro_batch + span->item.micro_batches;
            assert_true(span->item.micro_batches > 0);
            assert_int_equal(span->item.first_micro_batch,
                             before ? before->item.first_micro_batch + before->item.micro_batches : 0);
            assert_true(ends(c, k) ? end == c->config->micro_batches : end < c->config->micro_batches);
            assert_true(span->item.adds == !begins(c, k) && span->item.unfinished == (backward && !ends(c, k)));
        }
}

/* Sums of blocks leave after each backward but an iteration's last, and are back before the next one. */
void check_sums(const struct checker *c, int64_t k)
{
    for (int g = 0; g <= c->config->switches.layers + 1; g++) {
        bool block = g > c->config->switches.frozen_blocks && g <= c->config->switches.layers &&
                     c->config->sums_blocks && c->of_iteration > 1 && !sum_stays(c, g);
        const struct ah_span *out = get(c, k, g, AH_ITEM_SUMS_OUT), *in = get(c, k, g, AH_ITEM_SUMS_IN);
        assert_true((out != NULL) == (block && !ends(c, k)));
        assert_true((in != NULL) == (block && !begins(c, k)));
        if (out)
            after_span(out, get(c, k, g, AH_ITEM_BACKWARD), "sums out after their backward");
        if (!in)
            continue;
        after_span(in, get(c, k - 1, g, AH_ITEM_SUMS_OUT), "sums in after they left");
        after(c, k, g, AH_ITEM_BACKWARD, in, "its sums");
    }
}

/* A place has one block's sum from its coming, or its first backward, until it has left or is a gradient. */
void check_sum_places(const struct checker *c)
{
    struct hold *holds = calloc((size_t)(c->rounds * c->config->switches.layers), sizeof *holds);
    size_t count = 0;
    for (int64_t k = 0; k < c->rounds && c->of_iteration > 1 && c->config->sums_blocks; k++)
        for (int g = c->config->switches.frozen_blocks + 1; g <= c->config->switches.layers; g++) {
            const struct ah_span *backward = get(c, k, g, AH_ITEM_BACKWARD);
            const struct ah_span *in = get(c, k, g, AH_ITEM_SUMS_IN), *out = get(c, k, g, AH_ITEM_SUMS_OUT);
            if (sum_stays(c, g)) {
                assert_int_equal(backward->item.sum, -1);
                continue;
            }
            assert_true((!in || in->item.sum == backward->item.sum) && (!out || out->item.sum == backward->item.sum));
            assert_in_range(backward->item.sum, 0, AH_SUM_PLACES - 1);
            hold_add(holds, &count, in ? in : backward, out ? out : backward, backward->item.sum);
        }
    check_holds(holds, count, AH_SUM_PLACES);
    free(holds);
}
