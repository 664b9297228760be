/* Floating-point arithmetic and conversions as PTX defines them: takes values of lanes, gives those of the lanes that a
 * mask names. The environment rounds to nearest and keeps denormals; instructions say what differs. */
#include "ops.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

static const double PI = 3.14159265358979323846;

/* ---- values */

static inline float f32_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static inline double f64_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline uint64_t bits64_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float flushed(const struct ptx_instr *in, float x)
{
    uint32_t bits = (uint32_t)bits_of(x);
    return f32_of(in->ftz && !(bits & 0x7F800000U) ? bits & 0x80000000U : bits);
}

/* An operand, and a result: NaN is one value. */
#define X(operand) flushed(in, f32_of(operand))
static inline uint64_t result_of(const struct ptx_instr *in, float x)
{
    uint64_t bits = x != x ? 0x7FFFFFFFU : bits_of(flushed(in, x));
    return !in->sat ? bits : x != x || x <= 0 ? 0 : bits_of(x > 1 ? 1 : x);
}

/* A function over lanes as EACH makes it, called while the environment rounds as the instruction says. */
#define ROUNDED(name, expression)                                                                                      \
    EACH(name##_lanes, expression)                                                                                     \
    static void name(const struct ptx_instr *in, uint64_t *d, const uint64_t *const *s, uint32_t mask)                 \
    {                                                                                                                  \
        rounded_call(name##_lanes, in, d, s, mask);                                                                    \
    }
static void rounded_call(ptx_lanes *volatile lanes, const struct ptx_instr *in, uint64_t *d, const uint64_t *const *s,
                         uint32_t mask)
{
    static const int ways[] = {[RZ] = FE_TOWARDZERO, [RM] = FE_DOWNWARD, [RP] = FE_UPWARD};
    bool otherwise = in->rounding == RZ || in->rounding == RM || in->rounding == RP;
    if (otherwise)
        fesetround(ways[in->rounding]);
    lanes(in, d, s, mask);
    if (otherwise)
        fesetround(FE_TONEAREST);
}

/* Both widths of an operation. */
#define D(operand) f64_of(operand)
#define WIDTHS(name, single, twofold)                                                                                  \
    ROUNDED(f32_##name, result_of(in, single))                                                                         \
    ROUNDED(f64_##name, bits64_of(twofold))
#define BINARY(name, sign) WIDTHS(name, X(A) sign X(B), D(A) sign D(B))
BINARY(add, +)
BINARY(sub, -)
BINARY(mul, *)
BINARY(div, /)
WIDTHS(rcp, 1 / X(A), 1 / D(A))
WIDTHS(fma, fmaf(X(A), X(B), X(C)), fma(D(A), D(B), D(C)))
WIDTHS(sqrt, sqrtf(X(A)), sqrt(D(A)))

EACH(f32_neg, bits_of(X(A)) ^ 0x80000000U)
EACH(f32_abs, bits_of(X(A)) & 0x7FFFFFFFU)
EACH(f64_neg, A ^ 1ULL << 63)
EACH(f64_abs, A & ~(1ULL << 63))
EACH(f32_copysign, (A & 0x80000000U) | (B & 0x7FFFFFFFU))
EACH(f64_copysign, (A & 1ULL << 63) | (B & ~(1ULL << 63)))

/* -0 is less than +0; a number wins against what is none. */
static double lesser(double a, double b)
{
    return a != a ? b : b != b ? a : a < b || (a == b && signbit(a)) ? a : b;
}
static double greater(double a, double b)
{
    return a != a ? b : b != b ? a : a > b || (a == b && !signbit(a)) ? a : b;
}
static uint64_t chosen(const struct ptx_instr *in, float a, float b, double way)
{
    return (in->modifiers & M_NAN) && (a != a || b != b) ? 0x7FFFFFFFU : result_of(in, (float)way);
}
EACH(f32_min, chosen(in, X(A), X(B), lesser((double)X(A), (double)X(B))))
EACH(f32_max, chosen(in, X(A), X(B), greater((double)X(A), (double)X(B))))
EACH(f64_min, bits64_of(lesser(D(A), D(B))))
EACH(f64_max, bits64_of(greater(D(A), D(B))))

static uint64_t setp_f32(const struct ptx_instr *in, float a, float b, uint64_t with)
{
    return combined(in, compared(in->compare, a < b, a == b, a != a || b != b), with);
}
static uint64_t setp_f64(const struct ptx_instr *in, double a, double b, uint64_t with)
{
    return combined(in, compared(in->compare, a < b, a == b, a != a || b != b), with);
}
EACH(f32_setp, setp_f32(in, X(A), X(B), C))
EACH(f64_setp, setp_f64(in, D(A), D(B), C))

/* ---- approximations: the exact result, or as far beside it as PTX ISA, section 9.7.3, allows */

/* -1, 0 or 1. */
static inline int end_of(const struct ptx_instr *in)
{
    enum ptx_approximate end = in->module->approximate;
    return end == PTX_LOW ? -1 : end == PTX_HIGH;
}

/* `places` units in the last place. Zeros and what is no finite number are exact. */
static uint64_t beside(const struct ptx_instr *in, double exact, int places)
{
    float x = flushed(in, (float)exact), to = end_of(in) < 0 ? -INFINITY : INFINITY;
    for (int i = 0; i < places && end_of(in) && isfinite(x) && x != 0; i++)
        x = nextafterf(x, to);
    return result_of(in, x);
}

/* By a relative, and by an absolute error. */
static uint64_t about(const struct ptx_instr *in, double exact, double error)
{
    return result_of(in, (float)(exact * (1 + end_of(in) * error)));
}
static uint64_t around(const struct ptx_instr *in, double exact, double error)
{
    return result_of(in, (float)(exact + end_of(in) * error));
}

/* Two places from the correctly rounded result; 2^0 is one of the ISA's exact rows. */
EACH(f32_ex2, beside(in, exp2((double)X(A)), X(A) == 0 ? 0 : 2))
EACH(f32_rcp_approx, beside(in, 1 / (double)X(A), 1))
EACH(f32_rsqrt_approx, about(in, 1 / sqrt((double)X(A)), 0x1.126p-23)) /* 2^-22.9 */
EACH(f32_sqrt_approx, about(in, sqrt((double)X(A)), 0x1p-23))
EACH(f32_div_full, beside(in, (double)X(A) / (double)X(B), 2))
EACH(f32_tanh, about(in, tanh((double)X(A)), 0x1p-11))

/* An absolute error from 0.5 to 2, where results are near 0; a relative one elsewhere. */
static uint64_t logarithm(const struct ptx_instr *in, double x)
{
    return x > 0.5 && x < 2 ? around(in, log2(x), 0x1p-22) : about(in, log2(x), 0x1p-22);
}
EACH(f32_lg2, logarithm(in, (double)X(A)))

/* a * (1 / b): behind 2^126 the reciprocal is a denormal, which is zero. */
static uint64_t quotient(const struct ptx_instr *in, double a, double b)
{
    if (fabs(b) > 0x1p126 && !isinf(b))
        return result_of(in, (float)(a * copysign(0, b)));
    return beside(in, a / b, 2);
}
EACH(f32_div_approx, quotient(in, (double)X(A), (double)X(B)))

/* Beyond 100 pi the ISA promises nothing, and neither does this. */
static uint64_t wave(const struct ptx_instr *in, double x, double exact)
{
    return x == 0 ? result_of(in, (float)exact)
                  : around(in, exact, fabs(x) <= 2 * PI ? 0x1.6ap-21 : 0x1.3bp-15); /* 2^-20.5, 2^-14.7 */
}
EACH(f32_sin, wave(in, (double)X(A), sin((double)X(A))))
EACH(f32_cos, wave(in, (double)X(A), cos((double)X(A))))

/* The upper half of a double alone is read and written. The ISA calls it gross and says no error: here one place. */
static double flushed64(double x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysign(0, x) : x;
}
static uint64_t reciprocal_gross(const struct ptx_instr *in, uint64_t a)
{
    double x = flushed64(1 / flushed64(f64_of(a & ~0xFFFFFFFFULL)));
    uint64_t upper = bits64_of(x) >> 32;
    if (x != x)
        return 0x7FFFFFFFULL << 32;
    if (isfinite(x) && x != 0)
        upper += (uint64_t)(int64_t)end_of(in);
    return upper << 32;
}
EACH(f64_rcp_approx, reciprocal_gross(in, A))

/* ---- conversions */

static float f16_value(uint64_t bits)
{
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    float x = exponent == 31 ? (fraction ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(fraction | 1024), (int)exponent - 25)
                             : ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -x : x;
}

static uint64_t bf16_bits(float x, enum ptx_rounding rounding)
{
    uint32_t bits = (uint32_t)bits_of(x);
    if (x != x)
        return 0x7FFF;
    return (rounding == RZ ? bits : bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF;
}

static double rounded(double x, enum ptx_rounding rounding)
{
    return rounding == RZI ? trunc(x) : rounding == RMI ? floor(x) : rounding == RPI ? ceil(x) : nearbyint(x);
}

static bool is_float(enum ptx_type type)
{
    return type == F32 || type == F64 || type == F16 || type == BF16;
}

static bool is_signed(enum ptx_type type)
{
    return type == S8 || type == S16 || type == S32 || type == S64;
}

static double float_value(const struct ptx_instr *in, uint64_t bits)
{
    switch (in->from) {
    case F32:
        return (double)X(bits);
    case F64:
        return f64_of(bits);
    case F16:
        return (double)f16_value(bits);
    default:
        return (double)f32_of(bits << 16 & 0xFFFFFFFFU); /* BF16 */
    }
}

/* To an integer: out of range, the nearest there is. */
static uint64_t whole(const struct ptx_instr *in, double x)
{
    unsigned bits = ptx_type_bytes(in->type) * 8;
    bool with_sign = is_signed(in->type);
    double least = with_sign ? -ldexp(1, (int)bits - 1) : 0, beyond = ldexp(1, (int)bits - (with_sign ? 1 : 0));
    if (x != x)
        return bits == 64 || in->from == F64 ? 1ULL << (bits - 1) : 0;
    x = rounded(x, in->rounding);
    if (x < least)
        x = least;
    if (x >= beyond)
        return with_sign ? (1ULL << (bits - 1)) - 1 : ~0ULL >> (64 - bits);
    return with_sign ? (uint64_t)(int64_t)x : (uint64_t)x;
}

static uint64_t extended(enum ptx_type type, uint64_t bits)
{
    unsigned shift = 64 - ptx_type_bytes(type) * 8;
    return is_signed(type) ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits << shift >> shift;
}

static uint64_t from_float(const struct ptx_instr *in, double x)
{
    switch (in->type) {
    case F32:
        if (in->rounding >= RNI)
            x = rounded(x, in->rounding);
        return result_of(in, (float)x);
    case F64:
        return bits64_of(in->rounding >= RNI ? rounded(x, in->rounding) : x);
    case BF16:
        return bf16_bits((float)x, in->rounding);
    default:
        return whole(in, x);
    }
}

static uint64_t converted(const struct ptx_instr *in, uint64_t bits)
{
    if (is_float(in->from))
        return from_float(in, float_value(in, bits));
    bits = extended(in->from, bits);
    if (in->type == F32)
        return result_of(in, is_signed(in->from) ? (float)(int64_t)bits : (float)bits);
    return bits64_of(is_signed(in->from) ? (double)(int64_t)bits : (double)bits);
}
ROUNDED(cvt_float, converted(in, A))
EACH(cvt_whole, extended(in->type, extended(in->from, A)))
static void cvt(const struct ptx_instr *in, uint64_t *d, const uint64_t *const *s, uint32_t mask)
{
    (is_float(in->type) || is_float(in->from) ? cvt_float : cvt_whole)(in, d, s, mask);
}
EACH(cvt_two, bf16_bits(X(A), in->rounding) << 16 | bf16_bits(X(B), in->rounding))

#define T(t) (1U << (t))
static const struct ptx_op table[] = {
    {"add", LANES, T(F32), 0, M_ROUNDING | M_FTZ | M_SAT, 1, 2, f32_add, 0},
    {"sub", LANES, T(F32), 0, M_ROUNDING | M_FTZ | M_SAT, 1, 2, f32_sub, 0},
    {"mul", LANES, T(F32), 0, M_ROUNDING | M_FTZ | M_SAT, 1, 2, f32_mul, 0},
    {"fma", LANES, T(F32), M_ROUNDING, M_FTZ | M_SAT, 1, 3, f32_fma, 0},
    {"div", LANES, T(F32), M_ROUNDING, M_FTZ, 1, 2, f32_div, 0},
    {"div", LANES, T(F32), M_APPROX, M_FTZ, 1, 2, f32_div_approx, 0},
    {"div", LANES, T(F32), M_FULL, M_FTZ, 1, 2, f32_div_full, 0},
    {"rcp", LANES, T(F32), M_ROUNDING, M_FTZ, 1, 1, f32_rcp, 0},
    {"rcp", LANES, T(F32), M_APPROX, M_FTZ, 1, 1, f32_rcp_approx, 0},
    {"sqrt", LANES, T(F32), M_ROUNDING, M_FTZ, 1, 1, f32_sqrt, 0},
    {"sqrt", LANES, T(F32), M_APPROX, M_FTZ, 1, 1, f32_sqrt_approx, 0},
    {"rsqrt", LANES, T(F32), M_APPROX, M_FTZ, 1, 1, f32_rsqrt_approx, 0},
    {"ex2", LANES, T(F32), M_APPROX, M_FTZ, 1, 1, f32_ex2, 0},
    {"lg2", LANES, T(F32), M_APPROX, M_FTZ, 1, 1, f32_lg2, 0},
    {"sin", LANES, T(F32), M_APPROX, M_FTZ, 1, 1, f32_sin, 0},
    {"cos", LANES, T(F32), M_APPROX, M_FTZ, 1, 1, f32_cos, 0},
    {"tanh", LANES, T(F32), M_APPROX, 0, 1, 1, f32_tanh, 0},
    {"neg", LANES, T(F32), 0, M_FTZ, 1, 1, f32_neg, 0},
    {"abs", LANES, T(F32), 0, M_FTZ, 1, 1, f32_abs, 0},
    {"min", LANES, T(F32), 0, M_FTZ | M_NAN, 1, 2, f32_min, 0},
    {"max", LANES, T(F32), 0, M_FTZ | M_NAN, 1, 2, f32_max, 0},
    {"copysign", LANES, T(F32), 0, 0, 1, 2, f32_copysign, 0},
    {"setp", LANES, T(F32), M_COMPARE, M_COMBINE | M_FTZ, 1, 2, f32_setp, 0},
    {"add", LANES, T(F64), 0, M_ROUNDING, 1, 2, f64_add, 0},
    {"sub", LANES, T(F64), 0, M_ROUNDING, 1, 2, f64_sub, 0},
    {"mul", LANES, T(F64), 0, M_ROUNDING, 1, 2, f64_mul, 0},
    {"fma", LANES, T(F64), M_ROUNDING, 0, 1, 3, f64_fma, 0},
    {"div", LANES, T(F64), M_ROUNDING, 0, 1, 2, f64_div, 0},
    {"rcp", LANES, T(F64), M_ROUNDING, 0, 1, 1, f64_rcp, 0},
    {"rcp", LANES, T(F64), M_APPROX | M_FTZ, 0, 1, 1, f64_rcp_approx, 0},
    {"sqrt", LANES, T(F64), M_ROUNDING, 0, 1, 1, f64_sqrt, 0},
    {"neg", LANES, T(F64), 0, 0, 1, 1, f64_neg, 0},
    {"abs", LANES, T(F64), 0, 0, 1, 1, f64_abs, 0},
    {"min", LANES, T(F64), 0, 0, 1, 2, f64_min, 0},
    {"max", LANES, T(F64), 0, 0, 1, 2, f64_max, 0},
    {"copysign", LANES, T(F64), 0, 0, 1, 2, f64_copysign, 0},
    {"setp", LANES, T(F64), M_COMPARE, M_COMBINE, 1, 2, f64_setp, 0},
    {"cvt", LANES, T(BF16X2), M_ROUNDING, 0, 1, 2, cvt_two, 0},
    {"cvt", LANES, T(F32), 0, M_ROUNDING | M_FTZ | M_SAT, 1, 1, cvt, 0},
    {"cvt", LANES, T(U8) | T(U16) | T(U32) | T(U64) | T(S8) | T(S16) | T(S32) | T(S64) | T(BF16) | T(F64), 0,
     M_ROUNDING | M_FTZ, 1, 1, cvt, 0},
};

const struct ptx_op *ptx_op_floats(size_t *count)
{
    *count = sizeof table / sizeof *table;
    return table;
}
