/* A second source of what opcodes give: operands and results of ZLUDA's tests (ptx/src/test/spirv_run, which run on
 * NVIDIA's GPUs, too), in kernels of our own. README.md says how many of its kernels were compared. */
#include "op_case.h"

#define ONE 0x3F800000U
#define NONE 0x7FC00000U /* Rust's NaN */
#define PI_HALF 0x3FC90FDBU

static const struct op_case cases[] = {
    {"mul.lo.u64 %rd0, %rd1, 2;", 1, 0, 0, 2},
    {"mul.hi.u64 %rd0, %rd1, 2;", ~0ULL, 0, 0, 1},
    {"add.u64 %rd0, %rd1, 1;", 1, 0, 0, 2},
    {"add.u64 %rd0, %rd1, 1;st.global.u64 [%rd30], %rd0;exit;", 1, 0, 0, 2},
    {"setp.lt.u64 %p0, %rd1, %rd2;", 10, 11, 0, 1},
    {"setp.lt.u64 %p4, %rd1, %rd2;not.pred %p4, %p4;@%p4 mov.u64 %rd0, 1;@!%p4 mov.u64 %rd0, 2;", 10, 11, 0, 2},
    {"setp.gt.ftz.f32 %p4, %f1, %f2;selp.f32 %f0, %f1, %f2, %p4;", NONE, ONE, 0, ONE},
    {"setp.leu.ftz.f32 %p4, %f1, %f2;selp.f32 %f0, %f1, %f2, %p4;", ONE, NONE, 0, ONE},
    {"setp.ne.u32 %p4, %r3, 0;setp.lt.and.u32 %p0, %r1, %r2, !%p4;", 1, 2, 0, 1},
    {"setp.nan.f32 %p0, %f1, %f2;", 0x3F000000, NONE, 0, 1},
    {"setp.nan.f32 %p0, %f1, %f2;", NONE, 0x3F000000, 0, 1},
    {"setp.nan.f32 %p0, %f1, %f2;", NONE, NONE, 0, 1},
    {"setp.nan.f32 %p0, %f1, %f2;", 0x3F000000, 0x3F000000, 0, 0},
    {"setp.num.f32 %p0, %f1, %f2;", 0x3F000000, NONE, 0, 0},
    {"setp.num.f32 %p0, %f1, %f2;", NONE, 0x3F000000, 0, 0},
    {"setp.num.f32 %p0, %f1, %f2;", NONE, NONE, 0, 0},
    {"setp.num.f32 %p0, %f1, %f2;", 0x3F000000, 0x3F000000, 0, 1},
    {"not.b64 %rd0, %rd1;", 0, 0, 0, ~0ULL},
    {"shl.b64 %rd0, %rd1, 2;", 11, 0, 0, 44},
    {"mad.lo.s32 %r0, %r1, %r2, %r3;", 2, 3, 4, 10},
    {"mad.wide.s32 %rd0, %r1, %r2, %rd3;", 0xFFFFFFFF, 3, 0x500000004, 21474836481},
    {"mul.wide.s32 %rd0, %r1, %r2;", 0x1000000, 0x1000000, 0, 0x1000000000000},
    {"mov.b32 %r0, {0x5678, %rs1};", 0x1234, 0, 0, 0x12345678},
    {"shr.s32 %r0, %r1, 1;", 0xFFFFFFFE, 0, 0, 0xFFFFFFFF},
    {"shr.s16 %rs0, %rs1, 16;", 0x8000, 0, 0, 0xFFFF},
    {"or.b64 %rd0, %rd1, %rd2;", 1, 2, 0, 3},
    {"and.b32 %r0, %r1, %r2;", 6, 3, 0, 2},
    {"xor.b32 %r0, %r1, %r2;", 0x521A400D, 0xE69B0C23, 0, 0xB4814C2E},
    {"sub.u64 %rd0, %rd1, 1;", 2, 0, 0, 1},
    {"min.s32 %r0, %r1, %r2;", 555, 444, 0, 444},
    {"max.s32 %r0, %r1, %r2;", 555, 444, 0, 555},
    {"rem.s32 %r0, %r1, %r2;", 21692, 13, 0, 8},
    {"abs.s32 %r0, %r1;", 0x80000000, 0, 0, 0x80000000},
    {"neg.s32 %r0, %r1;", 181, 0, 0, (uint32_t)-181},
    {"mul.lo.s32 %r0, %r1, -1;", (uint32_t)-101, 0, 0, 101},
    {"selp.u16 %rs0, %rs1, %rs2, 0;", 100, 200, 0, 200},
    {"selp.u16 %rs0, %rs1, %rs2, 1;", 100, 200, 0, 100},
    {"clz.b32 %r0, %r1;", 0x052D13AB, 0, 0, 5},
    {"popc.b32 %r0, %r1;", 0xBC92498A, 0, 0, 14},
    {"popc.b64 %r0, %rd1;", 0x99427D688BCB5258, 0, 0, 30},
    {"bfe.u32 %r0, %r1, %r2, %r3;", 0xF8C122A0, 16, 8, 0xC1},
    {"bfi.b32 %r0, %r1, %r2, %r3, 2;", 2, 5, 0, 6},
    {"prmt.b32 %r0, %r1, %r2, %r3;", 0x70C507D6, 0x6FBD4B5C, 30212, 0x6FBDD65C},
    {"prmt.b32 %r0, %r1, %r2, 0x0A08;", 0x0100FE80, 0, 0, 0x800080FF},
    {"shf.l.wrap.b32 %r0, %r1, %r2, %r3;", 0x12345678, 0x9ABCDEF0, 44, 0xCDEF0123},
    {"shf.r.wrap.b32 %r0, %r1, %r2, %r3;", 0x12345678, 0x9ABCDEF0, 44, 0xEF012345},
    {"fma.rn.f32 %f0, %f1, %f2, %f3;", 0x40000000, 0x40400000, 0x40A00000, 0x41300000},
    {"mul.ftz.f32 %f0, %f1, %f2;", 0x80400000, 0x3F000000, 0, 0x80000000},
    {"mul.f32 %f0, %f1, %f2;", 0x80400000, 0x3F000000, 0, 0x80200000},
    {"mul.f32 %f0, %f1, 0f3F000000;", 0x41200000, 0, 0, 0x40A00000},
    {"div.rn.ftz.f32 %f0, %f1, %f2;", 0x16A2028D, 0x5E89F6AE, 0, 0},
    {"div.rn.f32 %f0, %f1, %f2;", 0x16A2028D, 0x5E89F6AE, 0, 0x26},
    {"div.approx.f32 %f0, %f1, %f2;", ONE, 0x40000000, 0, 0x3F000000},
    {"rcp.approx.f32 %f0, %f1;", 0x40000000, 0, 0, 0x3F000000},
    {"rcp.rz.f64 %fd0, %fd1;", 0x4000000000000000, 0, 0, 0x3FE0000000000000},
    {"sqrt.approx.f32 %f0, %f1;", 0x3E800000, 0, 0, 0x3F000000},
    {"sqrt.rn.ftz.f32 %f0, %f1;", 1, 0, 0, 0},
    {"sin.approx.f32 %f0, %f1;", PI_HALF, 0, 0, ONE},
    {"cos.approx.f32 %f0, %f1;", PI_HALF + 0x800000, 0, 0, 0xBF800000},
    {"lg2.approx.f32 %f0, %f1;", 0x44000000, 0, 0, 0x41100000},
    {"ex2.approx.f32 %f0, %f1;", 0x41200000, 0, 0, 0x44800000},
    {"tanh.approx.f32 %f0, %f1;", 0x7F800000, 0, 0, ONE},
    {"copysign.f32 %f0, %f1, %f2;", 0x0BDA2A2C, 0xE31A8FD7, 0, 0x631A8FD7},
    {"cvt.rni.f32.f32 %f0, %f1;", 0x41180000, 0, 0, 0x41200000},
    {"cvt.rni.f32.f32 %f0, %f1;", 0x41280000, 0, 0, 0x41200000},
    {"cvt.rzi.f32.f32 %f0, %f1;", 0xC15CCCCD, 0, 0, 0xC1500000},
    {"cvt.rzi.f32.f32 %f0, %f1;", 0x414E6666, 0, 0, 0x41400000},
    {"cvt.rpi.ftz.s32.f32 %r0, %f1;", 0xC15CCCCD, 0, 0, (uint32_t)-13},
    {"cvt.rpi.ftz.s32.f32 %r0, %f1;", 0x414E6666, 0, 0, 13},
    {"cvt.rni.u16.f32 %rs0, %f1;", 0x477FFF80, 0, 0, 65535},
    {"cvt.rn.bf16x2.f32 %r0, %f1, %f2;", 0x3ED00000, 0x414E6666, 0, 0x3ED0414E},
    {"setp.eq.u32 %p4, %r1, 1;selp.u32 %r4, 1, 0, %p4;cvt.rn.f32.u32 %f4, %r4;cvt.rn.bf16.f32 %rs0, %f4;", 1, 0, 0,
     0x3F80},
    {"cvt.s64.s32 %rd0, %r1;", 0xFFFFFFFF, 0, 0, ~0ULL},
    {"cvt.s32.s16 %r0, %rs1;", 0xFFFF, 0, 0, 0xFFFFFFFF},
    {"cvt.ftz.f64.f32 %fd0, %f1;", 0x3E000000, 0, 0, 0x3FC0000000000000},
    {"st.shared.u64 [dynamic], %rd1;ld.shared.u64 %rd0, [dynamic];", 127, 0, 0, 127},
    {"mov.u32 %r9, fixed;st.shared.u64 [%r9], %rd1;ld.shared.u64 %rd0, [%r9+0];", 513, 0, 0, 513},
    {"ld.global.v2.u32 {%r8, %r9}, [%rd30+16];add.u32 %r0, %r8, %r9;", 0, 0x400000003, 0, 7},
    {"mov.u32 %r9, %ntid.x;add.u32 %r0, %r1, %r9;", 3, 0, 0, 4},
};

static void opcodes_give_what_they_give_elsewhere(void **state)
{
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        op_check(&cases[i]);
}

/* ---- two warps: each thread stores %r0 */

static uint64_t up(uint64_t i)
{
    return i % 32 < 3 ? i + 1000 : i - 3;
}
static uint64_t down(uint64_t i)
{
    return i % 32 > 28 ? i + 1000 : i + 3;
}
static uint64_t across(uint64_t i)
{
    return i ^ 3;
}
static uint64_t twelve(uint64_t i)
{
    return i / 32 * 32 + 12;
}
static uint64_t up_by_31(uint64_t i)
{
    return i % 32 < 31 ? i + 1000 : i - 31;
}
static uint64_t down_by_63(uint64_t i)
{
    return i % 32 ? i + 1000 : i + 31;
}
static uint64_t last(uint64_t i)
{
    return i / 32 * 32 + 31;
}
/* Segments of 4, 4, 8 and 16 lanes. */
static uint64_t four_shuffles(uint64_t i)
{
    uint64_t a = i % 4 < 3 ? i : i - 3, b = i % 4 ? i : i + 3;
    return a + b + (i ^ 3) + (i / 16 * 16 + 3);
}
static uint64_t not_first(uint64_t i)
{
    return i % 32 != 0;
}
static uint64_t from_34(uint64_t i)
{
    return i < 32 ? 0 : 0xFFFFFFFC;
}

#define SHUFFLE(line) line "@!%p1 add.u32 %r0, %r0, 1000;"

static void warps_give_what_they_give_elsewhere(void **state)
{
    static const struct {
        const char *lines;
        uint64_t (*expected)(uint64_t thread);
    } rows[] = {
        {SHUFFLE("shfl.sync.up.b32 %r0|%p1, %r1, 3, 0, -1;"), up},
        {SHUFFLE("shfl.sync.down.b32 %r0|%p1, %r1, 3, 31, -1;"), down},
        {SHUFFLE("shfl.sync.bfly.b32 %r0|%p1, %r1, 3, 31, -1;"), across},
        {SHUFFLE("shfl.sync.idx.b32 %r0|%p1, %r1, 12, 31, -1;"), twelve},
        {SHUFFLE("mov.u32 %r2, 31;shfl.sync.up.b32 %r0|%p1, %r1, %r2, 0, -1;"), up_by_31},
        {SHUFFLE("mov.u32 %r2, 63;shfl.sync.down.b32 %r0|%p1, %r1, %r2, 31, -1;"), down_by_63},
        {SHUFFLE("mov.u32 %r2, 63;shfl.sync.idx.b32 %r0|%p1, %r1, %r2, 31, -1;"), last},
        {"shfl.sync.up.b32 %r2, %r1, 3, 7168, -1;shfl.sync.down.b32 %r3, %r1, 3, 7199, -1;add.u32 %r0, %r2, %r3;"
         "shfl.sync.bfly.b32 %r2, %r1, 3, 6175, -1;add.u32 %r0, %r0, %r2;"
         "shfl.sync.idx.b32 %r2, %r1, 3, 4127, -1;add.u32 %r0, %r0, %r2;",
         four_shuffles},
        {"mov.u32 %r2, %laneid;setp.ne.u32 %p1, %r2, 0;mov.u32 %r3, 0;setp.ne.u32 %p2, %r3, 0;"
         "@%p1 vote.sync.all.pred %p2, %p1, 0xFFFFFFFE;selp.u32 %r0, 1, 0, %p2;",
         not_first},
        {"setp.ge.u32 %p1, %r1, 34;vote.sync.ballot.b32 %r0, %p1, 0xFFFFFFFF;", from_34},
    };
    for (size_t row = 0; row < AH_LENGTH(rows); row++) {
        char lines[1024];
        struct kernel_shape shape = {1, 64, 0, 5, PTX_EXACT};
        snprintf(lines, sizeof lines,
                 "%s\nmul.wide.u32 %%rd2, %%r1, 4;add.s64 %%rd2, %%rd1, %%rd2;st.global.u32 [%%rd2], %%r0;",
                 rows[row].lines);
        assert_string_equal(kernel_run(lines, &shape), "");
        for (uint64_t i = 0; i < 64; i++)
            if (((const uint32_t *)kernel_memory)[i] != rows[row].expected(i))
                fail_msg("%s: thread %d has %u, expected %u", rows[row].lines, (int)i,
                         (unsigned)((const uint32_t *)kernel_memory)[i], (unsigned)rows[row].expected(i));
    }
}

/* The first lane ends and never votes; the mask names it all the same. */
static void lanes_that_have_ended_are_not_waited_for(void **state)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct kernel_shape shape = {1, 64, 0, seed, PTX_EXACT};
        memset(kernel_memory, 0, sizeof kernel_memory);
        assert_string_equal(
            kernel_run("mov.u32 %r2, %laneid;setp.eq.u32 %p1, %r2, 0;setp.ne.u32 %p3, %r2, 0;@%p1 bra END;"
                       "vote.sync.all.pred %p2, %p3, -1;selp.u32 %r0, 1, 0, %p2;"
                       "mul.wide.u32 %rd2, %r1, 4;add.s64 %rd2, %rd1, %rd2;st.global.u32 [%rd2], %r0;\nEND:",
                       &shape),
            "");
        for (uint64_t i = 0; i < 64; i++)
            assert_int_equal(((const uint32_t *)kernel_memory)[i], not_first(i));
    }
}

AH_TEST_CASES("ptx/elsewhere", opcodes_give_what_they_give_elsewhere, warps_give_what_they_give_elsewhere,
              lanes_that_have_ended_are_not_waited_for)
