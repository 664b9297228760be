/* The table of opcodes, and integer arithmetic: takes values of 32 lanes, gives those of the lanes that a mask names.
 * A value lies in the low bits of its register; what stands above them means nothing. */
#include "ops.h"

#include <stdio.h>
#include <string.h>

/* ---- integers */

#define INTEGERS(name, wide, u, s)                                                                                     \
    EACH(name##_add, (u)(A + B))                                                                                       \
    EACH(name##_sub, (u)(A - B))                                                                                       \
    EACH(name##_mul, (u)((wide)(u)A * (u)B))                                                                           \
    EACH(name##_mad, (u)((wide)(u)A * (u)B + (u)C))                                                                    \
    EACH(name##_and, (u)(A & B))                                                                                       \
    EACH(name##_or, (u)(A | B))                                                                                        \
    EACH(name##_xor, (u)(A ^ B))                                                                                       \
    EACH(name##_not, (u)~A)                                                                                            \
    EACH(name##_neg, (u)(0 - A))                                                                                       \
    EACH(name##_abs, (u)((s)A < 0 ? 0 - A : A))                                                                        \
    EACH(name##_shl, (uint32_t)B >= sizeof(u) * 8 ? 0 : (u)((wide)(u)A << (uint32_t)B))                                \
    EACH(name##_ushr, (uint32_t)B >= sizeof(u) * 8 ? 0 : (u)((u)A >> (uint32_t)B))                                     \
    EACH(name##_sshr, (u)((s)A >> ((uint32_t)B >= sizeof(u) * 8 ? sizeof(u) * 8 - 1 : (uint32_t)B)))                   \
    EACH(name##_umin, (u)A < (u)B ? (u)A : (u)B)                                                                       \
    EACH(name##_umax, (u)A > (u)B ? (u)A : (u)B)                                                                       \
    EACH(name##_smin, (u)((s)A < (s)B ? A : B))                                                                        \
    EACH(name##_smax, (u)((s)A > (s)B ? A : B))                                                                        \
    EACH(name##_udiv, (u)B ? (u)((u)A / (u)B) : (u) ~(u)0)                                                             \
    EACH(name##_urem, (u)B ? (u)((u)A % (u)B) : (u)A)                                                                  \
    EACH(name##_sdiv, (u)((s)B == 0 ? (u) ~(u)0 : (s)B == -1 ? (u)(0 - A) : (u)((s)A / (s)B)))                         \
    EACH(name##_srem, (u)((s)B == 0 ? (u)A : (s)B == -1 ? 0 : (u)((s)A % (s)B)))                                       \
    EACH(name##_usetp, combined(in, compared(in->compare, (u)A < (u)B, (u)A == (u)B, false), C))                       \
    EACH(name##_ssetp, combined(in, compared(in->compare, (s)A < (s)B, (s)A == (s)B, false), C))

INTEGERS(i16, uint32_t, uint16_t, int16_t)
INTEGERS(i32, uint64_t, uint32_t, int32_t)
INTEGERS(i64, uint64_t, uint64_t, int64_t)

__extension__ typedef unsigned __int128 wide_unsigned;
__extension__ typedef __int128 wide_signed;

EACH(u32_hi, (uint32_t)((uint64_t)(uint32_t)A *(uint32_t)B >> 32))
EACH(s32_hi, (uint32_t)((uint64_t)((int64_t)(int32_t)A *(int32_t)B) >> 32))
EACH(u64_hi, (uint64_t)((wide_unsigned)A *B >> 64))
EACH(s64_hi, (uint64_t)((wide_unsigned)((wide_signed)(int64_t)A *(int64_t)B) >> 64))
EACH(u16_hi, (uint32_t)(uint16_t)A *(uint16_t)B >> 16)
EACH(s16_hi, (uint32_t)((int32_t)(int16_t)A *(int16_t)B) >> 16)
EACH(u16_wide, (uint32_t)((uint32_t)(uint16_t)A *(uint16_t)B))
EACH(s16_wide, (uint32_t)((int32_t)(int16_t)A *(int16_t)B))
EACH(u32_wide, (uint64_t)(uint32_t)A *(uint32_t)B)
EACH(s32_wide, (uint64_t)((int64_t)(int32_t)A *(int32_t)B))
EACH(u32_mad_wide, (uint64_t)(uint32_t)A *(uint32_t)B + C)
EACH(s32_mad_wide, (uint64_t)((int64_t)(int32_t)A *(int32_t)B) + C)

EACH(p_and, A &B & 1)
EACH(p_or, (A | B) & 1)
EACH(p_xor, (A ^ B) & 1)
EACH(p_not, ~A & 1)

EACH(b32_popc, (uint64_t)__builtin_popcount((uint32_t)A))
EACH(b64_popc, (uint64_t)__builtin_popcountll(A))
EACH(b32_clz, (uint32_t)A ? (uint64_t)__builtin_clz((uint32_t)A) : 32)
EACH(b64_clz, A ? (uint64_t)__builtin_clzll(A) : 64)
EACH(mov, A)
EACH(selp, C & 1 ? A : B)

static uint64_t bits_extract(uint64_t value, uint64_t at, uint64_t length, bool is_signed)
{
    unsigned from = at & 255, bits = length & 255;
    uint32_t x = from > 31 ? 0 : (uint32_t)value >> from, top;
    if (bits == 0)
        return 0;
    top = (uint32_t)value >> (from + bits - 1 > 31 ? 31 : from + bits - 1) & 1;
    if (bits < 32)
        x &= (1U << bits) - 1;
    unsigned have = from > 31 ? 0 : bits < 32 - from ? bits : 32 - from;
    return is_signed && top && have < 32 ? x | (uint32_t) ~((1ULL << have) - 1) : x;
}
EACH(u32_bfe, bits_extract(A, B, C, false))
EACH(s32_bfe, bits_extract(A, B, C, true))

static uint64_t bits_insert(uint64_t from, uint64_t to, uint64_t at, uint64_t length)
{
    unsigned first = at & 255, bits = length & 255;
    uint64_t mask = first > 31 || bits == 0 ? 0 : (bits > 31 ? 0xFFFFFFFFULL : (1ULL << bits) - 1) << first;
    return (uint32_t)((to & ~mask) | ((first > 31 ? 0 : from << first) & mask));
}
EACH(b32_bfi, bits_insert(A, B, C, LAST))

static uint64_t bytes_permuted(uint64_t a, uint64_t b, uint64_t how)
{
    uint64_t all = (uint32_t)a | (uint64_t)(uint32_t)b << 32, out = 0;
    for (int i = 0; i < 4; i++) {
        uint64_t byte = all >> (how >> i * 4 & 7) * 8 & 255;
        out |= (how >> i * 4 & 8 ? (byte & 128 ? 255 : 0) : byte) << i * 8;
    }
    return out;
}
EACH(b32_prmt, bytes_permuted(A, B, C))

/* Bit (a, b, c) of the table for each bit. */
static uint64_t looked_up(uint32_t a, uint32_t b, uint32_t c, uint64_t table)
{
    uint32_t out = 0;
    for (unsigned i = 0; i < 8; i++)
        if (table >> i & 1)
            out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return out;
}
EACH(b32_lop3, looked_up((uint32_t)A, (uint32_t)B, (uint32_t)C, LAST))

static uint64_t funnel(const struct ptx_instr *in, uint32_t a, uint32_t b, uint32_t by)
{
    uint64_t both = (uint64_t)b << 32 | a;
    by = in->modifiers & M_WRAP ? by & 31 : by;
    return in->left ? (uint32_t)(both << by >> 32) : (uint32_t)(both >> by);
}
EACH(b32_shf, funnel(in, (uint32_t)A, (uint32_t)B, (uint32_t)C))

static uint64_t converted_address(const struct ptx_instr *in, uint64_t address)
{
    uint64_t window = in->space == SHARED ? SHARED_WINDOW : in->space == LOCAL ? LOCAL_WINDOW : 0;
    return in->modifiers & M_TO ? address - window : address + window;
}
EACH(cvta, converted_address(in, A))

/* ---- the table */

#define T(t) (1U << (t))
#define I16 (T(U16) | T(S16))
#define I32 (T(U32) | T(S32))
#define I64 (T(U64) | T(S64))
#define DATA (T(B8) | T(B16) | T(B32) | T(B64) | T(U8) | I16 | I32 | I64 | T(S8) | T(F32) | T(F64))
#define MOVED (T(B16) | T(B32) | T(B64) | I16 | I32 | I64 | T(F32) | T(F64))
/* The same operation for integers of three widths. */
#define SIGNLESS(name, sources, f)                                                                                     \
    {name, LANES, I16, 0, 0, 1, sources, i16_##f, 0}, {name, LANES, I32, 0, 0, 1, sources, i32_##f, 0},                \
    {                                                                                                                  \
        name, LANES, I64, 0, 0, 1, sources, i64_##f, 0                                                                 \
    }
#define BITS(name, sources, f)                                                                                         \
    {name, LANES, T(B16), 0, 0, 1, sources, i16_##f, 0}, {name, LANES, T(B32), 0, 0, 1, sources, i32_##f, 0},          \
    {                                                                                                                  \
        name, LANES, T(B64), 0, 0, 1, sources, i64_##f, 0                                                              \
    }
#define SIGNED(name, needed, allowed, sources, f)                                                                      \
    {name, LANES, T(U16), needed, allowed, 1, sources, i16_u##f, 0},                                                   \
        {name, LANES, T(S16), needed, allowed, 1, sources, i16_s##f, 0},                                               \
        {name, LANES, T(U32), needed, allowed, 1, sources, i32_u##f, 0},                                               \
        {name, LANES, T(S32), needed, allowed, 1, sources, i32_s##f, 0},                                               \
        {name, LANES, T(U64), needed, allowed, 1, sources, i64_u##f, 0},                                               \
    {                                                                                                                  \
        name, LANES, T(S64), needed, allowed, 1, sources, i64_s##f, 0                                                  \
    }
#define S_ONLY(name, f)                                                                                                \
    {name, LANES, T(S16), 0, 0, 1, 1, i16_##f, 0}, {name, LANES, T(S32), 0, 0, 1, 1, i32_##f, 0},                      \
    {                                                                                                                  \
        name, LANES, T(S64), 0, 0, 1, 1, i64_##f, 0                                                                    \
    }

static const struct ptx_op table[] = {
    SIGNLESS("add", 2, add),
    SIGNLESS("sub", 2, sub),
    S_ONLY("neg", neg),
    S_ONLY("abs", abs),
    BITS("and", 2, and),
    BITS("or", 2, or),
    BITS("xor", 2, xor),
    BITS("not", 1, not ),
    BITS("shl", 2, shl),
    SIGNED("shr", 0, 0, 2, shr),
    {"shr", LANES, T(B32), 0, 0, 1, 2, i32_ushr, 0},
    {"shr", LANES, T(B64), 0, 0, 1, 2, i64_ushr, 0},
    SIGNED("min", 0, 0, 2, min),
    SIGNED("max", 0, 0, 2, max),
    SIGNED("div", 0, 0, 2, div),
    SIGNED("rem", 0, 0, 2, rem),
    SIGNED("setp", M_COMPARE, M_COMBINE, 2, setp),
    {"setp", LANES, T(B16), M_COMPARE, M_COMBINE, 1, 2, i16_usetp, 0},
    {"setp", LANES, T(B32), M_COMPARE, M_COMBINE, 1, 2, i32_usetp, 0},
    {"setp", LANES, T(B64), M_COMPARE, M_COMBINE, 1, 2, i64_usetp, 0},
    {"and", LANES, T(PRED), 0, 0, 1, 2, p_and, 0},
    {"or", LANES, T(PRED), 0, 0, 1, 2, p_or, 0},
    {"xor", LANES, T(PRED), 0, 0, 1, 2, p_xor, 0},
    {"not", LANES, T(PRED), 0, 0, 1, 1, p_not, 0},
    {"mul", LANES, I16, M_PART, 0, 1, 2, i16_mul, LO},
    {"mul", LANES, I32, M_PART, 0, 1, 2, i32_mul, LO},
    {"mul", LANES, I64, M_PART, 0, 1, 2, i64_mul, LO},
    {"mul", LANES, T(U16), M_PART, 0, 1, 2, u16_hi, HI},
    {"mul", LANES, T(S16), M_PART, 0, 1, 2, s16_hi, HI},
    {"mul", LANES, T(U32), M_PART, 0, 1, 2, u32_hi, HI},
    {"mul", LANES, T(S32), M_PART, 0, 1, 2, s32_hi, HI},
    {"mul", LANES, T(U64), M_PART, 0, 1, 2, u64_hi, HI},
    {"mul", LANES, T(S64), M_PART, 0, 1, 2, s64_hi, HI},
    {"mul", LANES, T(U16), M_PART, 0, 1, 2, u16_wide, WIDE},
    {"mul", LANES, T(S16), M_PART, 0, 1, 2, s16_wide, WIDE},
    {"mul", LANES, T(U32), M_PART, 0, 1, 2, u32_wide, WIDE},
    {"mul", LANES, T(S32), M_PART, 0, 1, 2, s32_wide, WIDE},
    {"mad", LANES, I16, M_PART, 0, 1, 3, i16_mad, LO},
    {"mad", LANES, I32, M_PART, 0, 1, 3, i32_mad, LO},
    {"mad", LANES, I64, M_PART, 0, 1, 3, i64_mad, LO},
    {"mad", LANES, T(U32), M_PART, 0, 1, 3, u32_mad_wide, WIDE},
    {"mad", LANES, T(S32), M_PART, 0, 1, 3, s32_mad_wide, WIDE},
    {"popc", LANES, T(B32), 0, 0, 1, 1, b32_popc, 0},
    {"popc", LANES, T(B64), 0, 0, 1, 1, b64_popc, 0},
    {"clz", LANES, T(B32), 0, 0, 1, 1, b32_clz, 0},
    {"clz", LANES, T(B64), 0, 0, 1, 1, b64_clz, 0},
    {"bfe", LANES, T(U32), 0, 0, 1, 3, u32_bfe, 0},
    {"bfe", LANES, T(S32), 0, 0, 1, 3, s32_bfe, 0},
    {"bfi", LANES, T(B32), 0, 0, 1, 4, b32_bfi, 0},
    {"prmt", LANES, T(B32), 0, 0, 1, 3, b32_prmt, 0},
    {"lop3", LANES, T(B32), 0, 0, 1, 4, b32_lop3, 0},
    {"shf", LANES, T(B32), M_WRAP | M_DIRECTION, 0, 1, 3, b32_shf, 0},
    {"selp", LANES, MOVED, 0, 0, 1, 3, selp, 0},
    {"mov", COPIES, MOVED | T(PRED), 0, 0, 1, 1, mov, 0},
    {"cvta", LANES, T(U64), M_SPACE, M_TO, 1, 1, cvta, 0},
    {"ld", LOADS, DATA, 0, M_SPACE | M_NC | M_CACHE | M_VECTOR, 1, 1, NULL, 0},
    {"st", STORES, DATA, 0, M_SPACE | M_CACHE | M_VECTOR, 0, 2, NULL, 0},
    {"bra", BRANCHES, 0, 0, M_UNI, 0, 1, NULL, 0},
    {"bar", BARRIER, 0, M_SYNC, M_ALIGNED, 0, 1, NULL, 0},
    {"barrier", BARRIER, 0, M_SYNC | M_ALIGNED, 0, 0, 1, NULL, 0},
    {"bar", EXCHANGES, 0, M_WARP | M_SYNC, 0, 0, 1, NULL, 0},
    {"shfl", EXCHANGES, T(B32), M_SYNC | M_MODE, 0, 1, 4, NULL, 0},
    {"vote", EXCHANGES, T(B32) | T(PRED), M_SYNC | M_MODE, 0, 1, 2, NULL, 0},
    {"mma", MULTIPLIES, T(F32), 0, 0, 1, 3, NULL, 0},
    {"ret", ENDS, 0, 0, M_UNI, 0, 0, NULL, 0},
    {"exit", ENDS, 0, 0, 0, 0, 0, NULL, 0},
    {"trap", TRAPS, 0, 0, 0, 0, 0, NULL, 0},
};

static const struct ptx_op *found_in(const struct ptx_op *rows, size_t count, const struct ptx_instr *in,
                                     const char *name, int type, bool *known)
{
    for (size_t i = 0; i < count; i++) {
        const struct ptx_op *op = &rows[i];
        if (op->name[0] != name[0] || strcmp(op->name, name) != 0)
            continue;
        *known = true;
        bool types = type < 0 ? op->types == 0 : op->types >> type & 1;
        if (types && op->part == (int)in->part && (in->modifiers & op->needed) == op->needed &&
            !(in->modifiers & ~(op->needed | op->allowed)))
            return op;
    }
    return NULL;
}

const struct ptx_op *ptx_op_find(const struct ptx_instr *in, const char *name, int type, bool *known)
{
    size_t count;
    const struct ptx_op *floats = ptx_op_floats(&count);
    *known = false;
    const struct ptx_op *op = found_in(table, sizeof table / sizeof *table, in, name, type, known);
    return op ? op : found_in(floats, count, in, name, type, known);
}

const struct ptx_op *ptx_op_at(size_t i)
{
    size_t own = sizeof table / sizeof *table, count;
    const struct ptx_op *floats = ptx_op_floats(&count);
    return i < own ? &table[i] : i < own + count ? &floats[i - own] : NULL;
}
