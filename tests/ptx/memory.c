/* Loads and stores: finds where an address lies, refuses what is misaligned, outside or a hazard, moves the bytes. */
#include "inside.h"

#include <string.h>

/* Where `bytes` at an address of a lane lie on the processor, and in which space. */
struct place {
    char *at;
    enum ptx_space space;
    uint64_t offset; /* within shared, local or parameter memory */
};

static const char *const space_names[] = {"generic", "global", "shared", "local", "parameter", "constant"};

static _Noreturn void outside(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane, uint64_t address,
                              unsigned bytes, enum ptx_space space)
{
    ptx_stop(warp->run, in, "thread %u accesses %u bytes outside %s memory, at 0x%llx", warp->index * WARP + lane,
             bytes, space_names[space], (unsigned long long)address);
}

static bool within(uint64_t offset, unsigned bytes, uint64_t size)
{
    return offset <= size && bytes <= size - offset;
}

static inline struct place shared_place(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane,
                                        uint64_t address, unsigned bytes)
{
    struct ptx_run *run = warp->run;
    size_t fixed = run->entry->shared_bytes, behind = (fixed + 15) / 16 * 16;
    uint64_t offset = address >= DYNAMIC_SHARED ? address - DYNAMIC_SHARED + behind : address;
    if (!within(offset, bytes, address >= DYNAMIC_SHARED ? run->shared_bytes : fixed))
        outside(warp, in, lane, address, bytes, SHARED);
    return (struct place){run->shared + offset, SHARED, offset};
}

static inline struct place global_place(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane,
                                        uint64_t address, unsigned bytes)
{
    struct ptx_run *run = warp->run;
    const struct ptx_module *m = run->entry->module;
    if (address < run->from || address + bytes > run->to) {
        uint64_t from = (uint64_t)(uintptr_t)m->globals, to = from + m->globals_used;
        bool own = address >= from && address < to;
        if (own) {
            run->from = from;
            run->to = to;
        } else if (!run->launch->memory->extent(address, &run->from, &run->to))
            run->from = run->to = 0;
        if (address < run->from || address + bytes > run->to)
            outside(warp, in, lane, address, bytes, GLOBAL);
    }
    return (struct place){(char *)(uintptr_t)address, GLOBAL, address};
}

static inline struct place place_of(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane, uint64_t address,
                                    unsigned bytes)
{
    struct ptx_run *run = warp->run;
    const struct ptx_entry *e = run->entry;
    enum ptx_space space = in->space;
    if (space == GENERIC && address >> 60 == 1)
        return shared_place(warp, in, lane, address - SHARED_WINDOW, bytes);
    if (space == GENERIC && address >> 60 == 2) {
        space = LOCAL;
        address -= LOCAL_WINDOW;
    }
    if (space == SHARED)
        return shared_place(warp, in, lane, address, bytes);
    if (space == LOCAL || space == PARAM) {
        if (!within(address, bytes, space == LOCAL ? e->local_bytes : e->param_bytes))
            outside(warp, in, lane, address, bytes, space);
        char *from = space == PARAM ? run->param : run->local + (warp->index * WARP + lane) * e->local_bytes;
        return (struct place){from + address, space, address};
    }
    return global_place(warp, in, lane, address, bytes);
}

static inline struct place access_check(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane,
                                        uint64_t address, unsigned bytes)
{
    if (address & (bytes - 1))
        ptx_stop(warp->run, in, "thread %u accesses %u bytes at the address 0x%llx, which is no multiple of them",
                 warp->index * WARP + lane, bytes, (unsigned long long)address);
    return place_of(warp, in, lane, address, bytes);
}

/* ---- values of 1, 2, 4 or 8 bytes in memory */

static inline uint64_t value_read(const char *at, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return *(const unsigned char *)at;
    case 2:
        return *(const uint16_t *)(const void *)at;
    case 4:
        return *(const uint32_t *)(const void *)at;
    default:
        return *(const uint64_t *)(const void *)at;
    }
}

static inline void value_write(char *at, uint64_t value, unsigned bytes)
{
    switch (bytes) {
    case 1:
        *(unsigned char *)at = (unsigned char)value;
        break;
    case 2:
        *(uint16_t *)(void *)at = (uint16_t)value;
        break;
    case 4:
        *(uint32_t *)(void *)at = (uint32_t)value;
        break;
    default:
        *(uint64_t *)(void *)at = value;
    }
}

/* ---- hazards */

static void trace_access(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane, const struct place *place,
                         unsigned bytes, const char *written)
{
    bool shared = place->space == SHARED;
    unsigned log2 = warp->run->entry->granule[shared];
    struct ptx_trace *t = shared ? &warp->run->shared_trace[place->offset >> log2] : ptx_trace_at(place->offset, log2);
    for (unsigned i = 0; i < bytes; i += 1U << log2, t++) {
        if (written)
            ptx_trace_write(warp, in, t, lane, shared,
                            value_read(place->at + i, 1U << log2) == value_read(written + i, 1U << log2));
        else
            ptx_trace_read(warp, in, t, lane, shared);
    }
}

/* Local memory is a thread's own, so all that matters is whether it was written. */
static void local_access(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane, const struct place *place,
                         unsigned bytes, bool writes)
{
    struct ptx_run *run = warp->run;
    unsigned char *known = run->local_written + (place->at - run->local);
    if (writes)
        memset(known, 1, bytes);
    else if (memchr(known, 0, bytes))
        ptx_stop(run, in, "thread %u reads local memory that it has not written", warp->index * WARP + lane);
}

static void access_note(struct ptx_warp *warp, const struct ptx_instr *in, unsigned lane, const struct place *place,
                        unsigned bytes, const char *written)
{
    if (place->space == LOCAL)
        local_access(warp, in, lane, place, bytes, written != NULL);
    else if (place->space != PARAM)
        trace_access(warp, in, lane, place, bytes, written);
}

/* ---- instructions */

static uint64_t sign_extended(enum ptx_type type, uint64_t bits)
{
    return type == S8    ? (uint64_t)(int64_t)(int8_t)bits
           : type == S16 ? (uint64_t)(int64_t)(int16_t)bits
           : type == S32 ? (uint64_t)(int64_t)(int32_t)bits
                         : bits;
}

void ptx_load(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t mask)
{
    const uint64_t *address = ptx_source(warp, in, in->address, mask);
    unsigned each = ptx_type_bytes(in->type), bytes = each * (unsigned)in->results;
    for (unsigned lane = 0; lane < WARP; lane++) {
        if (!(mask >> lane & 1))
            continue;
        struct place place = access_check(warp, in, lane, address[lane] + (uint64_t)in->offset, bytes);
        access_note(warp, in, lane, &place, bytes, NULL);
        for (int i = 0; i < in->results; i++)
            warp->reg[(size_t)in->result[i] * WARP + lane] =
                sign_extended(in->type, value_read(place.at + (unsigned)i * each, each));
    }
    for (int i = 0; i < in->results; i++)
        warp->defined[in->result[i]] |= mask;
}

void ptx_store(struct ptx_warp *warp, const struct ptx_instr *in, uint32_t mask)
{
    const uint64_t *address = ptx_source(warp, in, in->address, mask), *value[VECTOR_MOST];
    unsigned each = ptx_type_bytes(in->type), bytes = each * (unsigned)in->sources;
    for (int i = 0; i < in->sources; i++)
        value[i] = ptx_source(warp, in, in->source[i], mask);
    for (unsigned lane = 0; lane < WARP; lane++) {
        _Alignas(8) char written[VECTOR_MOST * 8];
        if (!(mask >> lane & 1))
            continue;
        struct place place = access_check(warp, in, lane, address[lane] + (uint64_t)in->offset, bytes);
        if (place.space == PARAM)
            ptx_stop(warp->run, in, "a store to parameter memory");
        for (int i = 0; i < in->sources; i++)
            value_write(written + (unsigned)i * each, value[i][lane], each);
        access_note(warp, in, lane, &place, bytes, written);
        memcpy(place.at, written, bytes);
    }
}
