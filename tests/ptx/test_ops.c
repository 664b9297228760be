/* Every opcode of the table on values whose results are known by hand. */
#include "op_case.h"

#include <math.h>

#define F(x) 0x##x##U
enum { ONE = 0x3F800000, TWO = 0x40000000, HALF = 0x3F000000, MINUS_ONE = (int)0xBF800000 };
#define NAN_BITS 0x7FFFFFFFU
#define DENORMAL 0x00000001U

static const struct op_case cases[] = {
    /* integers */
    {"add.s32 %r0, %r1, %r2;", 0x7FFFFFFF, 1, 0, 0x80000000},
    {"add.s64 %rd0, %rd1, %rd2;", 0xFFFFFFFF, 1, 0, 0x100000000},
    {"add.s16 %rs0, %rs1, %rs2;", 0xFFFF, 2, 0, 1},
    {"sub.s32 %r0, %r1, %r2;", 0, 1, 0, 0xFFFFFFFF},
    {"sub.s64 %rd0, %rd1, 1;", 0, 0, 0, ~0ULL},
    {"neg.s32 %r0, %r1;", 5, 0, 0, 0xFFFFFFFB},
    {"neg.s64 %rd0, %rd1;", 5, 0, 0, (uint64_t)-5},
    {"abs.s32 %r0, %r1;", 0xFFFFFFFB, 0, 0, 5},
    {"mul.lo.s32 %r0, %r1, %r2;", 0x10001, 0x10001, 0, 0x20001},
    {"mul.lo.s64 %rd0, %rd1, %rd2;", 1ULL << 40, 1ULL << 23, 0, 1ULL << 63},
    {"mul.hi.s32 %r0, %r1, %r2;", 0xFFFFFFFF, 2, 0, 0xFFFFFFFF},
    {"mul.hi.u32 %r0, %r1, %r2;", 0xFFFFFFFF, 2, 0, 1},
    {"mul.hi.u64 %rd0, %rd1, %rd2;", ~0ULL, 2, 0, 1},
    {"mul.hi.s64 %rd0, %rd1, %rd2;", ~0ULL, 2, 0, ~0ULL},
    {"mul.hi.u16 %rs0, %rs1, %rs2;", 0xFFFF, 0xFFFF, 0, 0xFFFE},
    {"mul.wide.s32 %rd0, %r1, %r2;", 0xFFFFFFFF, 3, 0, (uint64_t)-3},
    {"mul.wide.u32 %rd0, %r1, %r2;", 0xFFFFFFFF, 3, 0, 0x2FFFFFFFD},
    {"mul.wide.u16 %r0, %rs1, %rs2;", 0xFFFF, 0xFFFF, 0, 0xFFFE0001},
    {"mul.wide.s16 %r0, %rs1, %rs2;", 0xFFFF, 0xFFFF, 0, 1},
    {"mad.lo.s32 %r0, %r1, %r2, %r3;", 7, 6, 5, 47},
    {"mad.lo.s64 %rd0, %rd1, %rd2, %rd3;", 1ULL << 33, 2, 5, (1ULL << 34) + 5},
    {"mad.wide.u32 %rd0, %r1, %r2, %rd3;", 0xFFFFFFFF, 2, 1ULL << 40, 0x1FFFFFFFE + (1ULL << 40)},
    {"div.s32 %r0, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0xFFFFFFFD},
    {"div.u32 %r0, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0x7FFFFFFC},
    {"div.s64 %rd0, %rd1, %rd2;", (uint64_t)-7, 2, 0, (uint64_t)-3},
    {"rem.s32 %r0, %r1, %r2;", 0xFFFFFFF9, 2, 0, 0xFFFFFFFF},
    {"rem.u32 %r0, %r1, %r2;", 17, 5, 0, 2},
    {"min.s32 %r0, %r1, %r2;", 0xFFFFFFFF, 1, 0, 0xFFFFFFFF},
    {"min.u32 %r0, %r1, %r2;", 0xFFFFFFFF, 1, 0, 1},
    {"max.s32 %r0, %r1, %r2;", 0xFFFFFFFF, 1, 0, 1},
    {"max.u32 %r0, %r1, %r2;", 0xFFFFFFFF, 1, 0, 0xFFFFFFFF},
    {"and.b32 %r0, %r1, %r2;", 12, 10, 0, 8},
    {"or.b32 %r0, %r1, %r2;", 12, 10, 0, 14},
    {"xor.b32 %r0, %r1, %r2;", 12, 10, 0, 6},
    {"not.b32 %r0, %r1;", 12, 0, 0, 0xFFFFFFF3},
    {"and.b16 %rs0, %rs1, %rs2;", 0xFF0F, 0x0FFF, 0, 0x0F0F},
    {"shl.b32 %r0, %r1, %r2;", 3, 31, 0, 0x80000000},
    {"shl.b32 %r0, %r1, %r2;", 3, 32, 0, 0},
    {"shl.b64 %rd0, %rd1, %r2;", 3, 63, 0, 1ULL << 63},
    {"shr.u32 %r0, %r1, %r2;", 0x80000000, 31, 0, 1},
    {"shr.s32 %r0, %r1, %r2;", 0x80000000, 31, 0, 0xFFFFFFFF},
    {"shr.s32 %r0, %r1, %r2;", 0x80000000, 99, 0, 0xFFFFFFFF},
    {"shr.u64 %rd0, %rd1, %r2;", 1ULL << 63, 64, 0, 0},
    {"shr.s64 %rd0, %rd1, %r2;", 1ULL << 63, 63, 0, ~0ULL},
    {"popc.b32 %r0, %r1;", 0xF0F, 0, 0, 8},
    {"clz.b32 %r0, %r1;", 0x00800000, 0, 0, 8},
    {"clz.b32 %r0, %r1;", 0, 0, 0, 32},
    {"bfe.u32 %r0, %r1, %r2, %r3;", 0xABCD1234, 8, 8, 0x12},
    {"bfe.s32 %r0, %r1, %r2, %r3;", 0x0000F234, 12, 4, 0xFFFFFFFF},
    {"bfi.b32 %r0, %r1, %r2, 8, 4;", 0x7, 0xFFFFFFFF, 0, 0xFFFFF7FF},
    {"prmt.b32 %r0, %r1, %r2, %r3;", 0x33221100, 0x77665544, 0x7410, 0x77441100},
    {"prmt.b32 %r0, %r1, %r2, %r3;", 0x00008000, 0, 0x9, 0x000000FF},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0x96;", 12, 10, 9, 15},
    {"lop3.b32 %r0, %r1, %r2, %r3, 0xCA;", 12, 10, 9, 9},
    {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 0x80000000, 1, 33, 3},
    {"shf.r.wrap.b32 %r0, %r1, %r2, %r3;", 0x80000000, 1, 31, 3},
    {"selp.b32 %r0, %r1, %r2, %p3;", 5, 6, 1, 5},
    {"selp.b64 %rd0, %rd1, %rd2, %p3;", 5, 6, 0, 6},
    {"mov.u32 %r0, 0x12;", 0, 0, 0, 0x12},
    {"mov.b64 %rd0, {%r1, %r2};", 1, 2, 0, 0x200000001},
    {"mov.b64 {%r9, %r0}, %rd1;", 0x700000005, 0, 0, 7},
    {"mov.b32 {%rs0, %rs8}, %r1;", 0x70005, 0, 0, 5},
    {"cvta.shared.u64 %rd2, %rd1;cvta.to.shared.u64 %rd0, %rd2;", 77, 0, 0, 77},
    /* comparisons */
    {"setp.lt.s32 %p0, %r1, %r2;", 0xFFFFFFFF, 0, 0, 1},
    {"setp.lt.u32 %p0, %r1, %r2;", 0xFFFFFFFF, 0, 0, 0},
    {"setp.ge.s64 %p0, %rd1, %rd2;", 5, 5, 0, 1},
    {"setp.ne.s16 %p0, %rs1, %rs2;", 5, 0x10005, 0, 0},
    {"setp.gt.and.s32 %p0, %r1, %r2, %p3;", 2, 1, 0, 0},
    {"setp.gt.or.s32 %p0, %r1, %r2, !%p3;", 1, 2, 0, 1},
    {"setp.eq.f32 %p0, %f1, %f2;", NAN_BITS, NAN_BITS, 0, 0},
    {"setp.equ.f32 %p0, %f1, %f2;", NAN_BITS, NAN_BITS, 0, 1},
    {"setp.ne.f32 %p0, %f1, %f2;", NAN_BITS, ONE, 0, 0},
    {"setp.neu.f32 %p0, %f1, %f2;", NAN_BITS, ONE, 0, 1},
    {"setp.num.f32 %p0, %f1, %f2;", ONE, ONE, 0, 1},
    {"setp.nan.f32 %p0, %f1, %f2;", ONE, NAN_BITS, 0, 1},
    {"setp.ltu.f32 %p0, %f1, %f2;", TWO, ONE, 0, 0},
    {"setp.eq.ftz.f32 %p0, %f1, %f2;", DENORMAL, 0, 0, 1},
    {"setp.eq.f32 %p0, %f1, %f2;", DENORMAL, 0, 0, 0},
    {"and.pred %p0, %p1, %p2;", 1, 0, 0, 0},
    {"or.pred %p0, %p1, %p2;", 1, 0, 0, 1},
    {"xor.pred %p0, %p1, %p2;", 1, 1, 0, 0},
    {"not.pred %p0, %p1;", 1, 0, 0, 0},
    /* fp32: 1 + 2^-24 is a tie, which goes to even; the other ways do not */
    {"add.f32 %f0, %f1, %f2;", ONE, F(33800000), 0, ONE},
    {"add.rn.f32 %f0, %f1, %f2;", ONE, F(33800001), 0, ONE + 1},
    {"add.rp.f32 %f0, %f1, %f2;", ONE, F(33800000), 0, ONE + 1},
    {"add.rm.f32 %f0, %f1, %f2;", ONE, F(B3800000), 0, ONE - 1},
    {"add.rz.f32 %f0, %f1, %f2;", (uint32_t)MINUS_ONE, F(33800000), 0, 0xBF7FFFFF},
    {"add.sat.f32 %f0, %f1, %f2;", ONE, ONE, 0, ONE},
    {"sub.f32 %f0, %f1, %f2;", ONE, HALF, 0, HALF},
    {"mul.f32 %f0, %f1, %f2;", F(00800000), HALF, 0, 0x00400000},
    {"mul.ftz.f32 %f0, %f1, %f2;", F(00800000), HALF, 0, 0},
    {"mul.ftz.f32 %f0, %f1, %f2;", F(80800000), HALF, 0, 0x80000000},
    {"mul.f32 %f0, %f1, %f2;", 0x7F800000, 0, 0, NAN_BITS},
    /* (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46: one rounding */
    {"fma.rn.f32 %f0, %f1, %f1, %f2;", ONE + 1, F(BF800002), 0, 0x28800000},
    {"fma.rm.f32 %f0, %f1, %f2, %f3;", ONE, ONE, F(B3800000), ONE - 1},
    {"fma.rn.ftz.sat.f32 %f0, %f1, %f2, %f3;", TWO, TWO, ONE, ONE},
    {"div.rn.f32 %f0, %f1, %f2;", ONE, F(40400000), 0, 0x3EAAAAAB},
    {"div.full.f32 %f0, %f1, %f2;", ONE, TWO, 0, HALF},
    {"rcp.rn.f32 %f0, %f1;", F(40400000), 0, 0, 0x3EAAAAAB},
    {"rcp.approx.ftz.f32 %f0, %f1;", TWO, 0, 0, HALF},
    {"sqrt.rn.f32 %f0, %f1;", TWO, 0, 0, 0x3FB504F3},
    {"sqrt.approx.f32 %f0, %f1;", F(40800000), 0, 0, TWO},
    {"rsqrt.approx.f32 %f0, %f1;", F(40800000), 0, 0, HALF},
    {"ex2.approx.ftz.f32 %f0, %f1;", (uint32_t)MINUS_ONE, 0, 0, HALF},
    {"ex2.approx.ftz.f32 %f0, %f1;", 0xFF800000, 0, 0, 0},
    {"lg2.approx.f32 %f0, %f1;", HALF, 0, 0, (uint32_t)MINUS_ONE},
    {"sin.approx.f32 %f0, %f1;", 0, 0, 0, 0},
    {"cos.approx.f32 %f0, %f1;", 0, 0, 0, ONE},
    {"tanh.approx.f32 %f0, %f1;", 0x7F800000, 0, 0, ONE},
    {"neg.ftz.f32 %f0, %f1;", DENORMAL, 0, 0, 0x80000000},
    {"abs.f32 %f0, %f1;", (uint32_t)MINUS_ONE, 0, 0, ONE},
    {"min.f32 %f0, %f1, %f2;", NAN_BITS, ONE, 0, ONE},
    {"max.NaN.f32 %f0, %f1, %f2;", NAN_BITS, ONE, 0, NAN_BITS},
    {"max.f32 %f0, %f1, %f2;", 0x80000000, 0, 0, 0},
    {"min.f32 %f0, %f1, %f2;", 0, 0x80000000, 0, 0x80000000},
    {"copysign.f32 %f0, %f1, %f2;", 0x80000000, ONE, 0, (uint32_t)MINUS_ONE},
    /* fp64 */
    {"add.rn.f64 %fd0, %fd1, %fd2;", 0x3FF0000000000000, 0x3CA0000000000000, 0, 0x3FF0000000000000},
    {"sub.rn.f64 %fd0, %fd1, %fd2;", 0x3FF0000000000000, 0x3FE0000000000000, 0, 0x3FE0000000000000},
    {"mul.rn.f64 %fd0, %fd1, %fd2;", 0x4000000000000000, 0x3FE0000000000000, 0, 0x3FF0000000000000},
    {"fma.rn.f64 %fd0, %fd1, %fd1, %fd2;", 0x3FF0000000000001, 0xBFF0000000000002, 0, 0x3970000000000000},
    {"div.rn.f64 %fd0, %fd1, %fd2;", 0x3FF0000000000000, 0x4008000000000000, 0, 0x3FD5555555555555},
    {"rcp.rn.f64 %fd0, %fd1;", 0x4008000000000000, 0, 0, 0x3FD5555555555555},
    {"rcp.approx.ftz.f64 %fd0, %fd1;", 0x4000000000000000, 0, 0, 0x3FE0000000000000},
    {"rcp.approx.ftz.f64 %fd0, %fd1;", 0x800FFFFF00000000, 0, 0, 0xFFF0000000000000}, /* a denormal is zero */
    {"rcp.approx.ftz.f64 %fd0, %fd1;", 0x7FE8000000000000, 0, 0, 0},
    {"rcp.approx.ftz.f64 %fd0, %fd1;", 0x7FF0000100000000, 0, 0, 0x7FFFFFFF00000000},
    {"sqrt.rn.f64 %fd0, %fd1;", 0x4010000000000000, 0, 0, 0x4000000000000000},
    {"neg.f64 %fd0, %fd1;", 0, 0, 0, 0x8000000000000000},
    {"abs.f64 %fd0, %fd1;", 0xBFF0000000000000, 0, 0, 0x3FF0000000000000},
    {"max.f64 %fd0, %fd1, %fd2;", 0x7FF8000000000000, 0x3FF0000000000000, 0, 0x3FF0000000000000},
    {"min.f64 %fd0, %fd1, %fd2;", 0x4000000000000000, 0x3FF0000000000000, 0, 0x3FF0000000000000},
    {"copysign.f64 %fd0, %fd1, %fd2;", 0x8000000000000000, 0x3FF0000000000000, 0, 0xBFF0000000000000},
    {"setp.lt.f64 %p0, %fd1, %fd2;", 0x3FF0000000000000, 0x4000000000000000, 0, 1},
    /* conversions: 2.5 to even, -2.5 each way, what is out of range */
    {"cvt.rni.s32.f32 %r0, %f1;", 0x40200000, 0, 0, 2},
    {"cvt.rzi.s32.f32 %r0, %f1;", 0xC0200000, 0, 0, 0xFFFFFFFE},
    {"cvt.rmi.s32.f32 %r0, %f1;", 0xC0200000, 0, 0, 0xFFFFFFFD},
    {"cvt.rpi.s32.f32 %r0, %f1;", 0xC0200000, 0, 0, 0xFFFFFFFE},
    {"cvt.rni.f32.f32 %f0, %f1;", 0x40200000, 0, 0, TWO},
    {"cvt.rzi.s32.f32 %r0, %f1;", 0x7F800000, 0, 0, 0x7FFFFFFF},
    {"cvt.rzi.u32.f32 %r0, %f1;", (uint32_t)MINUS_ONE, 0, 0, 0},
    {"cvt.rzi.s32.f32 %r0, %f1;", NAN_BITS, 0, 0, 0},
    {"cvt.rzi.s64.f32 %rd0, %f1;", NAN_BITS, 0, 0, 1ULL << 63},
    {"cvt.rn.f32.s32 %f0, %r1;", 0x01000001, 0, 0, 0x4B800000},
    {"cvt.rp.f32.s32 %f0, %r1;", 0x01000001, 0, 0, 0x4B800001},
    {"cvt.rn.f32.u64 %f0, %rd1;", ~0ULL, 0, 0, 0x5F800000},
    {"cvt.rn.f64.s64 %fd0, %rd1;", (uint64_t)-1, 0, 0, 0xBFF0000000000000},
    {"cvt.f64.f32 %fd0, %f1;", (uint32_t)MINUS_ONE, 0, 0, 0xBFF0000000000000},
    {"cvt.rn.f32.f64 %f0, %fd1;", 0x3FF0000010000000, 0, 0, ONE},
    {"cvt.ftz.f64.f32 %fd0, %f1;", DENORMAL, 0, 0, 0},
    {"cvt.sat.f32.f32 %f0, %f1;", TWO, 0, 0, ONE},
    {"cvt.s64.s32 %rd0, %r1;", 0xFFFFFFFF, 0, 0, ~0ULL},
    {"cvt.u64.u32 %rd0, %r1;", 0xFFFFFFFF, 0, 0, 0xFFFFFFFF},
    {"cvt.u32.u16 %r0, %rs1;", 0x1FFFF, 0, 0, 0xFFFF},
    {"cvt.s32.s8 %r0, %r1;", 0x80, 0, 0, 0xFFFFFF80},
    {"cvt.u16.u32 %rs0, %r1;", 0x12345678, 0, 0, 0x5678},
    {"cvt.rn.bf16.f32 %rs0, %f1;", 0x3F808000, 0, 0, 0x3F80},
    {"cvt.rn.bf16.f32 %rs0, %f1;", 0x3F818000, 0, 0, 0x3F82},
    {"cvt.rn.bf16.f32 %rs0, %f1;", 0x7F800001, 0, 0, 0x7FFF},
    {"cvt.rn.bf16x2.f32 %r0, %f1, %f2;", ONE, TWO, 0, 0x3F804000},
    {"cvt.f32.f16 %f0, %rs1;", 0x3C00, 0, 0, ONE},
    {"cvt.f32.f16 %f0, %rs1;", 0x0001, 0, 0, 0x33800000},
    {"cvt.f32.bf16 %f0, %rs1;", 0x3F80, 0, 0, ONE},
    /* memory and control */
    {"st.local.v2.u32 [own+8], {%r1, %r2};ld.local.u32 %r0, [own+12];", 5, 6, 0, 6},
    {"st.shared.u16 [fixed], %rs1;ld.shared.s16 %r0, [fixed];", 0x8000, 0, 0, 0xFFFF8000},
    {"mov.u64 %rd5, fixed;cvta.shared.u64 %rd5, %rd5;st.u32 [%rd5+4], %r1;ld.shared.u32 %r0, [fixed+4];", 9, 0, 0, 9},
    {"mov.u64 %rd5, own;cvta.local.u64 %rd5, %rd5;st.u32 [%rd5+4], %r1;ld.local.u32 %r0, [own+4];", 9, 0, 0, 9},
    {"mov.u32 %r0, 1;bra.uni L;mov.u32 %r0, 2;\nL:", 0, 0, 0, 1},
    {"mov.u32 %r0, 1;@%p1 bra L;mov.u32 %r0, 2;\nL:", 1, 0, 0, 1},
    {"mov.u32 %r0, 1;@!%p1 mov.u32 %r0, 2;", 1, 0, 0, 1},
    {"{ .reg .b32 %r5; .reg .b32 alone; mov.u32 alone, 3; mov.u32 %r5, alone; add.s32 %r0, %r5, 1; }", 0, 0, 0, 4},
};

static void results_are_those_known_by_hand(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        op_check(&cases[i]);
}

/* The result of an instruction with one operand, or two. */
static float approximated(const char *line, float x, float y, enum ptx_approximate end)
{
    char lines[256];
    float result;
    struct kernel_shape shape = {1, 1, 0, 0, end};
    memcpy(kernel_memory, &x, sizeof x);
    memcpy(kernel_memory + 1, &y, sizeof y);
    snprintf(lines, sizeof lines,
             "ld.global.f32 %%f1, [%%rd1];ld.global.f32 %%f2, [%%rd1+8];%s;st.global.f32 [%%rd1], %%f0;", line);
    assert_string_equal(kernel_run(lines, &shape), "");
    memcpy(&result, kernel_memory, sizeof result);
    return result;
}

/* Both ends of an approximation are as far from the exact result as the ISA has it; results are rounded besides. */
static void approximations_have_two_ends(void **state)
{
    static const double near_one = 1.00390625, pi = 3.14159265358979323846;
    const struct {
        const char *line;
        double x, y, exact, error;
    } rows[] = {
        {"ex2.approx.ftz.f32 %f0, %f1", 1.5, 0, 2.8284271247461903, 2 * 0x1p-22},
        {"rcp.approx.ftz.f32 %f0, %f1", 1.5, 0, 0.66666666666666663, 0x1p-24},
        {"rsqrt.approx.f32 %f0, %f1", 1.5, 0, 0.81649658092772603, 0.81649658092772603 * exp2(-22.9)},
        {"sqrt.approx.f32 %f0, %f1", 1.5, 0, 1.2247448713915889, 1.2247448713915889 * 0x1p-23},
        {"div.approx.f32 %f0, %f1, %f2", 1, 3, 1 / 3.0, 2 * 0x1p-25},
        {"div.full.f32 %f0, %f1, %f2", 1, 3, 1 / 3.0, 2 * 0x1p-25},
        {"lg2.approx.f32 %f0, %f1", 3, 0, 1.5849625007211561, 1.5849625007211561 * 0x1p-22},
        {"lg2.approx.f32 %f0, %f1", near_one, 0, log2(near_one), 0x1p-22}, /* absolute: a relative one is far less */
        {"tanh.approx.f32 %f0, %f1", 1.5, 0, 0.9051482536448664, 0.9051482536448664 * 0x1p-11},
        {"sin.approx.f32 %f0, %f1", 1.5, 0, 0.99749498660405445, exp2(-20.5)},
        {"cos.approx.f32 %f0, %f1", 100, 0, cos(100), exp2(-14.7)},
        {"sin.approx.f32 %f0, %f1", 3 * pi, 0, sin((double)(float)(3 * pi)), exp2(-14.7)},
    };
    for (size_t i = 0; i < AH_LENGTH(rows); i++)
        for (int which = PTX_EXACT; which <= PTX_HIGH; which++) {
            double error = which == PTX_EXACT ? 0 : which == PTX_LOW ? -rows[i].error : rows[i].error;
            float found = approximated(rows[i].line, (float)rows[i].x, (float)rows[i].y, (enum ptx_approximate)which);
            /* places are counted from the rounded result, whose binade may be the wider one */
            if (!(fabs((double)found - rows[i].exact - error) <= 0x1p-23 * fabs(rows[i].exact) + fabs(error) / 256))
                fail_msg("%s, %d: found %.9g, expected %.9g and %.3g", rows[i].line, which, (double)found,
                         rows[i].exact, error);
        }
}

/* Quotients by what is above 2^126: the ISA says zero, or no number where the dividend is infinite. */
static void quotients_end_at_large_denominators(void **state)
{
    static const char line[] = "div.approx.f32 %f0, %f1, %f2";
    assert_true(approximated(line, 0x1p100F, 0x1p126F, PTX_EXACT) == 0x1p-26F);
    assert_true(approximated(line, 0x1p100F, 0x1.8p126F, PTX_EXACT) == 0);
    assert_true(signbit(approximated(line, -1, 0x1.8p126F, PTX_EXACT)));
    assert_true(isnan(approximated(line, INFINITY, 0x1.8p126F, PTX_EXACT)));
    assert_true(approximated(line, 3, INFINITY, PTX_EXACT) == 0);
    assert_true(approximated("div.full.f32 %f0, %f1, %f2", 0x1p100F, 0x1.8p126F, PTX_EXACT) > 0);
}

/* Names of opcodes whose cases are in test_warps.c. */
static void every_opcode_has_a_case(void **state)
{
    static const char *const elsewhere[] = {"bar", "barrier", "shfl", "vote", "mma", "ret", "exit", "trap"};
    for (size_t i = 0; ptx_op_at(i); i++) {
        const char *name = ptx_op_at(i)->name;
        bool found = false;
        char with_dot[32];
        snprintf(with_dot, sizeof with_dot, "%s.", name);
        for (size_t j = 0; j < AH_LENGTH(elsewhere); j++)
            found |= strcmp(name, elsewhere[j]) == 0;
        for (size_t j = 0; j < AH_LENGTH(cases); j++)
            found |= strstr(cases[j].line, with_dot) != NULL;
        if (!found)
            fail_msg("no case for %s", name);
    }
}

static void what_is_unknown_is_refused_by_line(void **state)
{
    static const char *const lines[][2] = {
        {"mad.lo.s32.cc %r0, %r1, %r2, %r3;", "unknown modifier cc"},
        {"mma.sync.aligned.m16n8k8 %r0;", "unknown modifier m16n8k8"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0, %f1}, {%r0, %r0}, {%r0, %r0}, {%f0, %f1};",
         "2 values of a matrix, expected 4"},
        {"atom.global.add.u32 %r0, [%rd1], 1;", "unknown modifier add"},
        {"fma.f32 %f0, %f1, %f2, %f3;", "fma.f32: unknown modifiers or type"},
        {"popc.s32 %r0, %r1;", "popc.s32: unknown modifiers or type"},
        {"frobnicate.b32 %r0, %r1;", "frobnicate.b32: unknown opcode"},
        {"add.s32 %r0, %r1, %r99;", "unknown name %r99"},
        {"ld.global.v4.f32 {%f0, %f1}, [%rd1];", "2 values, expected 4"},
        {"bra L;", "there is no label L"},
        {".reg .b33 %x;", "registers of the unknown type .b33"},
    };
    for (size_t i = 0; i < AH_LENGTH(lines); i++) {
        struct kernel_shape shape = {1, 1, 0, 0, PTX_EXACT};
        const char *said = kernel_run(lines[i][0], &shape);
        if (!strstr(said, lines[i][1]) || strncmp(said, "test:17: ", 9) != 0)
            fail_msg("%s: found \"%s\", expected \"test:17: ...%s\"", lines[i][0], said, lines[i][1]);
    }
}

AH_TEST_CASES("ptx/ops", results_are_those_known_by_hand, approximations_have_two_ends,
              quotients_end_at_large_denominators, every_opcode_has_a_case, what_is_unknown_is_refused_by_line)
