/* Runs a warp. Lanes at the same instruction form a group. The group at the lowest instruction runs until it meets
 * another one: compilers lay a path's end behind its branches, so lanes join there. shfl.sync, vote.sync and
 * bar.warp.sync wait for the lanes that they name and no others, as the ISA has it since sm_70; so no order of groups
 * can change what they give, and lanes that cannot meet are an error instead of a value. */
#include "inside.h"

#include <string.h>

static const uint64_t zeros[WARP];

const uint64_t *ptx_source(const struct ptx_warp *warp, const struct ptx_instr *in, int value, uint32_t mask)
{
    int registers = warp->run->entry->registers;
    if (value >= registers)
        return warp->run->constant + (size_t)(value - registers) * WARP;
    if (mask & ~warp->defined[value])
        ptx_stop(warp->run, in, "thread %u uses a register that it has not written",
                 warp->index * WARP + (unsigned)__builtin_ctz(mask & ~warp->defined[value]));
    return warp->reg + (size_t)value * WARP;
}

static uint64_t *result(struct ptx_warp *warp, int value, uint32_t mask)
{
    warp->defined[value] |= mask;
    return warp->reg + (size_t)value * WARP;
}

/* Lanes whose value is true. */
static uint32_t votes(const uint64_t *value, uint32_t mask)
{
    uint32_t out = 0;
    for (int l = 0; l < WARP; l++)
        out |= (uint32_t)(value[l] & 1) << l;
    return out & mask;
}

/* ---- groups */

static struct ptx_group *group_add(struct ptx_warp *warp, uint32_t lanes, int pc, enum ptx_state state)
{
    struct ptx_group *group = &warp->group[warp->groups++];
    *group = (struct ptx_group){lanes, pc, state};
    return group;
}

/* Groups at the same instruction become one, which tries it again; those without lanes are dropped. */
static void groups_join(struct ptx_warp *warp)
{
    int kept = 0;
    for (int i = 0; i < warp->groups; i++) {
        struct ptx_group group = warp->group[i];
        int j = 0;
        while (j < kept && warp->group[j].pc != group.pc)
            j++;
        if (!group.lanes)
            continue;
        if (j < kept) {
            warp->group[j].lanes |= group.lanes;
            warp->group[j].state = RUNS;
        } else
            warp->group[kept++] = group;
    }
    warp->groups = kept;
}

static struct ptx_group *group_lowest(struct ptx_warp *warp)
{
    struct ptx_group *lowest = NULL;
    for (int i = 0; i < warp->groups; i++)
        if (warp->group[i].state == RUNS && (!lowest || warp->group[i].pc < lowest->pc))
            lowest = &warp->group[i];
    return lowest;
}

/* The next instruction at which a group is that it would meet. */
static int meeting(const struct ptx_warp *warp, const struct ptx_group *group)
{
    int at = warp->run->entry->instrs;
    for (int i = 0; i < warp->groups; i++)
        if (warp->group[i].pc > group->pc && warp->group[i].pc < at)
            at = warp->group[i].pc;
    return at;
}

/* ---- instructions that are not of each lane alone */

/* A copy of what was never written is no use of it. */
static void copy_run(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t mask)
{
    int from = in->source[0], registers = warp->run->entry->registers, to = in->result[0];
    uint32_t known = from < registers ? warp->defined[from] : (uint32_t)FULL;
    const uint64_t *s[] = {ptx_source(warp, in, from, mask & known), zeros, zeros, zeros};
    in->op->lanes(in, warp->reg + (size_t)to * WARP, s, mask);
    warp->defined[to] = (warp->defined[to] & ~mask) | (known & mask);
}

/* mov between one wide value and the narrow ones that it is made of, the lowest first. */
static void pack_run(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t mask)
{
    int parts = in->results > in->sources ? in->results : in->sources;
    unsigned bits = ptx_type_bytes(in->type) * 8 / (unsigned)parts;
    uint64_t low = ~0ULL >> (64 - bits);
    uint64_t packed[WARP] = {0};
    if (in->sources == 1)
        memcpy(packed, ptx_source(warp, in, in->source[0], mask), sizeof packed);
    for (int i = 0; i < parts && in->sources > 1; i++) {
        const uint64_t *s = ptx_source(warp, in, in->source[i], mask);
        for (int l = 0; l < WARP; l++)
            packed[l] |= (s[l] & low) << (unsigned)i * bits;
    }
    for (int i = 0; i < in->results; i++) {
        uint64_t *d = result(warp, in->result[i], mask);
        for (int l = 0; l < WARP; l++)
            if (mask >> l & 1)
                d[l] = in->results == 1 ? packed[l] : packed[l] >> (unsigned)i * bits & low;
    }
}

static unsigned lane_asked(enum ptx_mode mode, unsigned lane, unsigned b, unsigned c, bool *inside)
{
    unsigned segment = c >> 8 & 31, clamp = c & 31, highest = (lane & segment) | (clamp & ~segment);
    unsigned from = mode == UP     ? lane - (b & 31)
                    : mode == DOWN ? lane + (b & 31)
                    : mode == BFLY ? lane ^ (b & 31)
                                   : (lane & segment) | (b & 31 & ~segment);
    *inside = mode == UP ? (int)from >= (int)highest : from <= highest;
    return *inside ? from : lane;
}

static void shuffle_run(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t lanes)
{
    const uint64_t *a = ptx_source(warp, in, in->source[0], lanes), *b = ptx_source(warp, in, in->source[1], lanes);
    const uint64_t *c = ptx_source(warp, in, in->source[2], lanes);
    uint64_t got[WARP];
    uint32_t known = 0, insides = 0;
    for (unsigned l = 0; l < WARP; l++) {
        bool inside;
        unsigned from = lane_asked(in->mode, l, (unsigned)b[l], (unsigned)c[l], &inside);
        got[l] = (uint32_t)a[from % WARP];
        known |= (lanes >> from % WARP & 1) << l;
        insides |= (uint32_t)inside << l;
    }
    uint64_t *d = result(warp, in->result[0], 0);
    warp->defined[in->result[0]] = (warp->defined[in->result[0]] & ~lanes) | (known & lanes);
    for (int l = 0; l < WARP; l++) {
        if (lanes >> l & 1)
            d[l] = got[l];
        if (lanes >> l & 1 && in->also >= 0)
            result(warp, in->also, lanes)[l] = insides >> l & 1;
    }
}

static void vote_run(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t lanes)
{
    uint32_t yes = votes(ptx_source(warp, in, in->source[0], lanes), lanes);
    uint64_t said = in->mode == BALLOT ? yes : in->mode == ALL ? yes == lanes : yes != 0;
    uint64_t *d = result(warp, in->result[0], lanes);
    for (int l = 0; l < WARP; l++)
        if (lanes >> l & 1)
            d[l] = said;
}

/* Waits until all lanes of the mask that have not ended are here. */
static void exchange_run(struct ptx_warp *warp, struct ptx_group *group, const struct ptx_instr *in)
{
    const uint64_t *masks = ptx_source(warp, in, in->source[in->sources - 1], group->lanes);
    uint32_t mask = (uint32_t)masks[__builtin_ctz(group->lanes)];
    for (int l = 0; l < WARP; l++)
        if (group->lanes >> l & 1 && (uint32_t)masks[l] != mask)
            ptx_stop(warp->run, in, "thread %u gives the mask %08x, others %08x", warp->index * WARP + (unsigned)l,
                     (unsigned)masks[l], (unsigned)mask);
    if (group->lanes & ~mask)
        ptx_stop(warp->run, in, "the mask %08x does not name thread %u", (unsigned)mask,
                 warp->index * WARP + (unsigned)__builtin_ctz(group->lanes & ~mask));
    if (mask & warp->live & ~group->lanes) {
        group->state = WAITS_WARP;
        return;
    }
    if (!in->op->results)
        ptx_trace_sync(warp, group->lanes);
    else if (in->sources == 4)
        shuffle_run(warp, in, group->lanes);
    else
        vote_run(warp, in, group->lanes);
    group->pc++;
}

/* All lanes multiply together: none may have ended. */
static void multiply_run(struct ptx_warp *warp, struct ptx_group *group, const struct ptx_instr *in)
{
    if (warp->live != (uint32_t)FULL)
        ptx_stop(warp->run, in, "a warp multiplies whose lanes %08x have ended", (unsigned)~warp->live);
    if (group->lanes != (uint32_t)FULL) {
        group->state = WAITS_WARP;
        return;
    }
    ptx_multiply(warp, in);
    group->pc++;
}

/* ---- one instruction of a group */

static void lanes_run(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t mask)
{
    const uint64_t *s[VECTOR_MOST] = {zeros, zeros, zeros, zeros};
    for (int i = 0; i < in->sources; i++)
        s[i] = ptx_source(warp, in, in->source[i], mask);
    in->op->lanes(in, result(warp, in->result[0], mask), s, mask);
}

/* Those of `lanes` go on at `pc`, the others of the group behind the instruction. */
static void part(struct ptx_warp *warp, struct ptx_group *group, uint32_t lanes, int pc)
{
    uint32_t others = group->lanes & ~lanes;
    group->lanes = lanes;
    if (others)
        group_add(warp, others, group->pc + 1, RUNS);
    group->pc = pc;
}

static void group_step(struct ptx_warp *warp, struct ptx_group *group)
{
    const struct ptx_instr *in = &warp->run->entry->instr[group->pc];
    uint32_t mask = group->lanes;
    if (in->guard >= 0)
        mask = votes(ptx_source(warp, in, in->guard, mask), mask) ^ (in->guard_not ? mask : 0);
    warp->run->entry->executed[group->pc] |= mask != 0;
    if (!mask) {
        group->pc++;
        return;
    }
    switch (in->kind) {
    case LANES:
        lanes_run(warp, in, mask);
        break;
    case COPIES:
        copy_run(warp, in, mask);
        break;
    case PACKS:
        pack_run(warp, in, mask);
        break;
    case LOADS:
        ptx_load(warp, in, mask);
        break;
    case STORES:
        ptx_store(warp, in, mask);
        break;
    case BRANCHES:
        part(warp, group, mask, in->target);
        return;
    case BARRIER:
        part(warp, group, mask, group->pc);
        group->state = WAITS_BLOCK;
        return;
    case EXCHANGES:
        part(warp, group, mask, group->pc);
        exchange_run(warp, group, in);
        return;
    case MULTIPLIES:
        part(warp, group, mask, group->pc);
        multiply_run(warp, group, in);
        return;
    case ENDS:
        warp->live &= ~mask;
        group->lanes &= ~mask;
        for (int i = 0; i < warp->groups; i++) /* others may have waited for these lanes */
            if (warp->group[i].state == WAITS_WARP)
                warp->group[i].state = RUNS;
        break;
    case TRAPS:
        ptx_stop(warp->run, in, "a trap");
    }
    group->pc++;
}

static void diverged(struct ptx_warp *warp)
{
    const struct ptx_group *waits = &warp->group[0], *other = &warp->group[warp->groups > 1];
    char text[256];
    ptx_stop(warp->run, &warp->run->entry->instr[waits->pc],
             "warp %u diverged: lanes %08x wait here, lanes %08x at %s; %08x have ended", warp->index,
             (unsigned)waits->lanes, (unsigned)other->lanes, ptx_where(text, &warp->run->entry->instr[other->pc]),
             (unsigned)~warp->live);
}

void ptx_warp_run(struct ptx_warp *warp)
{
    for (;;) {
        groups_join(warp);
        struct ptx_group *group = group_lowest(warp);
        if (!group)
            break;
        int limit = meeting(warp, group), groups = warp->groups;
        do
            group_step(warp, group);
        while (group->state == RUNS && group->lanes && warp->groups == groups &&
               (groups == 1 || (group->pc < limit && warp->run->entry->instr[group->pc].kind != BRANCHES)));
        if (group->state == RUNS && groups > 1 && group->lanes && warp->groups == groups && group->pc < limit)
            group_step(warp, group); /* the branch, behind which groups are looked at anew */
    }
    for (int i = 0; i < warp->groups; i++)
        if (warp->groups > 1 || warp->group[i].state == WAITS_WARP)
            diverged(warp);
}
