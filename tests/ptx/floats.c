/* Floating-point arithmetic and conversions as PTX defines them: takes values of lanes, gives those of the lanes that a
 * mask names. The environment rounds to nearest and keeps denormals; instructions say what differs. */
#include "ops.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

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
    return in->ftz && !(bits_of(x) & 0x7F800000U) ? f32_of(bits_of(x) & 0x80000000U) : x;
}

/* An operand, and a result: NaN is one value. */
#define X(operand) flushed(in, f32_of(operand))
static inline uint64_t result_of(const struct ptx_instr *in, float x)
{
    if (x != x)
        return in->sat ? 0 : 0x7FFFFFFFU;
    x = flushed(in, x);
    return bits_of(!in->sat ? x : x <= 0 ? 0 : x > 1 ? 1 : x);
}

static inline uint64_t result64_of(double x)
{
    return bits64_of(x);
}

/* Rounds as the instruction says while an expression is computed. */
#define ROUNDED(type, expression)                                                                                      \
    static const int ways[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};                                   \
    if (in->rounding == RN)                                                                                            \
        return expression;                                                                                             \
    fesetround(ways[in->rounding & 3]);                                                                                \
    volatile type result = expression;                                                                                 \
    fesetround(FE_TONEAREST);                                                                                          \
    return result

static float add_f32(const struct ptx_instr *in, volatile float a, float b)
{
    ROUNDED(float, a + b);
}
static float mul_f32(const struct ptx_instr *in, volatile float a, float b)
{
    ROUNDED(float, a *b);
}
static float div_f32(const struct ptx_instr *in, volatile float a, float b)
{
    ROUNDED(float, a / b);
}
static float sqrt_f32(const struct ptx_instr *in, volatile float a)
{
    ROUNDED(float, sqrtf(a));
}
static float fma_f32(const struct ptx_instr *in, volatile float a, float b, float c)
{
    ROUNDED(float, fmaf(a, b, c));
}
static double add_f64(const struct ptx_instr *in, volatile double a, double b)
{
    ROUNDED(double, a + b);
}
static double mul_f64(const struct ptx_instr *in, volatile double a, double b)
{
    ROUNDED(double, a *b);
}
static double div_f64(const struct ptx_instr *in, volatile double a, double b)
{
    ROUNDED(double, a / b);
}
static double sqrt_f64(const struct ptx_instr *in, volatile double a)
{
    ROUNDED(double, sqrt(a));
}
static double fma_f64(const struct ptx_instr *in, volatile double a, double b, double c)
{
    ROUNDED(double, fma(a, b, c));
}

EACH(f32_add, result_of(in, add_f32(in, X(A), X(B))))
EACH(f32_sub, result_of(in, add_f32(in, X(A), -X(B))))
EACH(f32_mul, result_of(in, mul_f32(in, X(A), X(B))))
EACH(f32_div, result_of(in, div_f32(in, X(A), X(B))))
EACH(f32_fma, result_of(in, fma_f32(in, X(A), X(B), X(C))))
EACH(f32_sqrt, result_of(in, sqrt_f32(in, X(A))))
EACH(f32_rcp, result_of(in, div_f32(in, 1, X(A))))
EACH(f64_add, result64_of(add_f64(in, f64_of(A), f64_of(B))))
EACH(f64_sub, result64_of(add_f64(in, f64_of(A), -f64_of(B))))
EACH(f64_mul, result64_of(mul_f64(in, f64_of(A), f64_of(B))))
EACH(f64_div, result64_of(div_f64(in, f64_of(A), f64_of(B))))
EACH(f64_fma, result64_of(fma_f64(in, f64_of(A), f64_of(B), f64_of(C))))
EACH(f64_sqrt, result64_of(sqrt_f64(in, f64_of(A))))
EACH(f64_rcp, result64_of(div_f64(in, 1, f64_of(A))))

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
EACH(f64_min, bits64_of(lesser(f64_of(A), f64_of(B))))
EACH(f64_max, bits64_of(greater(f64_of(A), f64_of(B))))

static uint64_t setp_f32(const struct ptx_instr *in, float a, float b, uint64_t with)
{
    return combined(in, compared(in->compare, a < b, a == b, a != a || b != b), with);
}
static uint64_t setp_f64(const struct ptx_instr *in, double a, double b, uint64_t with)
{
    return combined(in, compared(in->compare, a < b, a == b, a != a || b != b), with);
}
EACH(f32_setp, setp_f32(in, X(A), X(B), C))
EACH(f64_setp, setp_f64(in, f64_of(A), f64_of(B), C))

/* ---- approximations: the exact result, or that far beside it as the ISA allows */

/* `places` units in the last place. Zeros and what is no finite number are exact. */
static uint64_t beside(const struct ptx_instr *in, double exact, int places)
{
    float x = flushed(in, (float)exact), to = in->module->approximate == PTX_LOW ? -INFINITY : INFINITY;
    for (int i = 0; i < places && in->module->approximate != PTX_EXACT && isfinite(x) && x != 0; i++)
        x = nextafterf(x, to);
    return result_of(in, x);
}

/* By a relative error. */
static uint64_t about(const struct ptx_instr *in, double exact, double error)
{
    enum ptx_approximate end = in->module->approximate;
    return result_of(in, (float)(exact * (1 + (end == PTX_EXACT ? 0 : end == PTX_LOW ? -error : error))));
}

/* Exact powers of two come out of ex2 for whole numbers on every GPU; the ISA grants 2 places all the same. */
EACH(f32_ex2, beside(in, exp2((double)X(A)), A << 1 & 0xFFFFFFFFU ? 2 : 0))
EACH(f32_lg2, X(A) == 1 ? 0 : about(in, log2((double)X(A)), 0x1p-22))
EACH(f32_rcp_approx, beside(in, 1 / (double)X(A), 1))
EACH(f32_rsqrt_approx, about(in, 1 / sqrt((double)X(A)), 0x1.12p-23))
EACH(f32_sqrt_approx, about(in, sqrt((double)X(A)), 0x1p-23))

/* The upper half of a double alone is read and written. */
static uint64_t reciprocal_gross(const struct ptx_instr *in, uint64_t a)
{
    double x = 1 / f64_of(a & ~0xFFFFFFFFULL);
    uint64_t upper = bits64_of(x) >> 32;
    if (isfinite(x) && x != 0)
        upper += in->module->approximate == PTX_LOW ? -1ULL : in->module->approximate == PTX_HIGH;
    return upper << 32;
}
EACH(f64_rcp_approx, reciprocal_gross(in, A))
EACH(f32_div_approx, beside(in, (double)X(A) / (double)X(B), 2))
EACH(f32_tanh, about(in, tanh((double)X(A)), 0x1p-11))

static uint64_t wave(const struct ptx_instr *in, double exact)
{
    double error = in->module->approximate == PTX_EXACT ? 0
                   : in->module->approximate == PTX_LOW ? -0x1.6ap-21
                                                        : 0x1.6ap-21;
    return result_of(in, (float)(exact + error));
}
EACH(f32_sin, wave(in, sin((double)X(A))))
EACH(f32_cos, wave(in, cos((double)X(A))))

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

static float whole_to_float(const struct ptx_instr *in, uint64_t bits)
{
    volatile uint64_t x = bits;
    ROUNDED(float, is_signed(in->from) ? (float)(int64_t)x : (float)x);
}

static float narrowed(const struct ptx_instr *in, volatile double x)
{
    ROUNDED(float, (float)x);
}

static uint64_t from_float(const struct ptx_instr *in, double x)
{
    switch (in->type) {
    case F32:
        if (in->rounding >= RNI)
            x = rounded(x, in->rounding);
        return result_of(in, narrowed(in, x));
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
        return result_of(in, whole_to_float(in, bits));
    if (in->type == F64)
        return bits64_of(is_signed(in->from) ? (double)(int64_t)bits : (double)bits);
    return extended(in->type, bits);
}
EACH(cvt, converted(in, A))
EACH(cvt_two, bf16_bits(X(A), in->rounding) << 16 | bf16_bits(X(B), in->rounding))

#define T(t) (1U << (t))
static const struct ptx_op table[] = {
    {"add", LANES, T(F32), 0, M_ROUNDING | M_FTZ | M_SAT, 1, 2, f32_add, 0},
    {"sub", LANES, T(F32), 0, M_ROUNDING | M_FTZ | M_SAT, 1, 2, f32_sub, 0},
    {"mul", LANES, T(F32), 0, M_ROUNDING | M_FTZ | M_SAT, 1, 2, f32_mul, 0},
    {"fma", LANES, T(F32), M_ROUNDING, M_FTZ | M_SAT, 1, 3, f32_fma, 0},
    {"div", LANES, T(F32), M_ROUNDING, M_FTZ, 1, 2, f32_div, 0},
    {"div", LANES, T(F32), M_APPROX, M_FTZ, 1, 2, f32_div_approx, 0},
    {"div", LANES, T(F32), M_FULL, M_FTZ, 1, 2, f32_div_approx, 0},
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
