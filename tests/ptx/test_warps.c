/* Warps and blocks: lanes that part and meet, shuffles, votes, barriers; and every hazard, with what it says. */
#include "kernel.h"

/* Each thread's result goes to word [block * threads + thread]. */
#define STORE(reg)                                                                                                     \
    "mov.u32 %r30, %ctaid.x;mov.u32 %r31, %ntid.x;mad.lo.s32 %r32, %r30, %r31, %r1;"                                   \
    "mul.wide.u32 %rd20, %r32, 8;add.s64 %rd20, %rd1, %rd20;cvt.u64.u32 %rd21, " reg ";st.global.u64 [%rd20], %rd21;"

static void clean_run(const char *lines, unsigned blocks, unsigned threads, size_t shared_bytes)
{
    uint64_t first[KERNEL_WORDS];
    for (uint64_t seed = 0; seed < 5; seed++) {
        struct kernel_shape shape = {blocks, threads, shared_bytes, seed * 77, PTX_EXACT};
        memset(kernel_memory, 0, sizeof kernel_memory);
        const char *said = kernel_run(lines, &shape);
        if (said[0])
            fail_msg("%s", said);
        if (seed == 0)
            memcpy(first, kernel_memory, sizeof first);
        assert_memory_equal(first, kernel_memory, sizeof first);
    }
}

/* The word of x and x + 16 in bf16. */
#define MATRIX_WORD(x)                                                                                                 \
    "cvt.rn.f32.u32 %f1, " x ";add.s32 %r20, " x ", 16;cvt.rn.f32.u32 %f2, %r20;mov.b32 %r20, %f1;mov.b32 %r21, %f2;"  \
    "prmt.b32 " x ", %r20, %r21, 0x7632;"

/* ---- lanes */

static void lanes_loop_as_often_as_each_wants(void **state)
{
    clean_run("mov.u32 %r2, 0;mov.u32 %r3, 0;\n"
              "L: add.s32 %r2, %r2, %r3;add.s32 %r3, %r3, 1;setp.le.u32 %p1, %r3, %r1;@%p1 bra L;\n" STORE("%r2"),
              1, 40, 0);
    for (uint64_t i = 0; i < 40; i++)
        assert_int_equal(kernel_memory[i], i * (i + 1) / 2);
}

/* Those with an even number add 100 in one branch, the others 200; then all shuffle with all. */
static void lanes_meet_behind_a_branch(void **state)
{
    clean_run("and.b32 %r2, %r1, 1;setp.eq.s32 %p1, %r2, 0;@%p1 bra EVEN;add.s32 %r3, %r1, 200;bra.uni BOTH;\n"
              "EVEN: add.s32 %r3, %r1, 100;\nBOTH: shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;\n" STORE("%r4"),
              1, 32, 0);
    for (uint64_t i = 0; i < 32; i++)
        assert_int_equal(kernel_memory[i], (i ^ 1) + (i & 1 ? 100 : 200));
}

static void shuffles_name_other_lanes(void **state)
{
    static const struct {
        const char *line;
        int step, from, to, width; /* of the lanes [from, to) of each segment */
    } rows[] = {{"shfl.sync.up.b32 %r4|%p1, %r1, 3, 0, -1;", -3, 3, 32, 32},
                {"shfl.sync.down.b32 %r4|%p1, %r1, 3, 31, -1;", 3, 0, 29, 32},
                {"shfl.sync.down.b32 %r4|%p1, %r1, 3, 6175, -1;", 3, 0, 5, 8}};
    for (size_t row = 0; row < AH_LENGTH(rows); row++) {
        char lines[1024];
        snprintf(lines, sizeof lines, "%s selp.u32 %%r5, 1000, 0, %%p1;add.s32 %%r4, %%r4, %%r5;\n%s", rows[row].line,
                 STORE("%r4"));
        clean_run(lines, 1, 32, 0);
        for (int i = 0; i < 32; i++) {
            int within = i % rows[row].width;
            bool moved = within >= rows[row].from && within < rows[row].to;
            assert_int_equal(kernel_memory[i], moved ? i + rows[row].step + 1000 : i);
        }
    }
    clean_run("shfl.sync.idx.b32 %r4, %r1, 7, 31, -1;\n" STORE("%r4"), 1, 32, 0);
    assert_int_equal(kernel_memory[20], 7);
}

/* Halves of a warp vote for themselves. */
static void votes_count_the_lanes_of_their_mask(void **state)
{
    clean_run("setp.lt.u32 %p1, %r1, 16;setp.lt.u32 %p2, %r1, 20;@%p1 bra LOW;"
              "vote.sync.ballot.b32 %r4, %p2, 0xFFFF0000;bra.uni END;\n"
              "LOW: vote.sync.all.pred %p3, %p2, 0xFFFF;not.pred %p5, %p2;vote.sync.any.pred %p4, %p5, 0xFFFF;"
              "selp.u32 %r4, 1, 0, %p3;selp.u32 %r5, 2, 0, %p4;or.b32 %r4, %r4, %r5;\nEND:\n" STORE("%r4"),
              1, 32, 0);
    assert_int_equal(kernel_memory[0], 1);
    assert_int_equal(kernel_memory[31], 0xF0000);
}

static void lanes_that_end_are_not_waited_for(void **state)
{
    clean_run("setp.gt.u32 %p1, %r1, 7;@%p1 exit;shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\n" STORE("%r4"), 1, 32, 0);
    assert_int_equal(kernel_memory[7], 6);
    assert_int_equal(kernel_memory[8], 0);
}

/* a[row][term] = row + term * 16, b[term][col] = 1 where term = 2 * col, 2 where term = 2 * col + 1, else 0. So sum
 * [row][col] = 3 * row + 16 * (2 * col + 2 * (2 * col + 1)) = 3 * row + 96 * col + 32, plus what was there: 1000.
 * Numbers of up to 255 are exact in bf16. */
static void a_warp_multiplies_matrices(void **state)
{
    clean_run(/* groups and lanes within them */
              "shr.u32 %r2, %r1, 2;and.b32 %r3, %r1, 3;"
              /* a: words of terms 2t and 2t + 1 from row g: g + 32t, g + 32t + 16 */
              "shl.b32 %r4, %r3, 5;add.s32 %r4, %r4, %r2;add.s32 %r5, %r4, 8;add.s32 %r6, %r4, 128;add.s32 %r7, %r4, "
              "136;" MATRIX_WORD("%r4") MATRIX_WORD("%r5") MATRIX_WORD("%r6") MATRIX_WORD("%r7")
              /* b: 1 and 2 where 2t, or 2t + 8, is 2g */
              "mov.u32 %r8, 0x40003F80;setp.eq.s32 %p1, %r3, %r2;selp.u32 %r9, %r8, 0, %p1;"
              "add.s32 %r10, %r3, 4;setp.eq.s32 %p1, %r10, %r2;selp.u32 %r10, %r8, 0, %p1;"
              "mov.b32 %f1, 0x447A0000;mov.b32 %f2, %f1;mov.b32 %f3, %f1;mov.b32 %f4, %f1;\n"
              "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r4, %r5, %r6, %r7}, "
              "{%r9, %r10}, {%f1, %f2, %f3, %f4};\n"
              "mul.wide.u32 %rd2, %r1, 16;add.s64 %rd2, %rd1, %rd2;st.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};",
              1, 32, 0);
    const float *sum = (const float *)kernel_memory;
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++)
            assert_int_equal((int)sum[l * 4 + i], 1032 + 3 * (l / 4 + i / 2 * 8) + 96 * (l % 4 * 2 + i % 2));
}

/* ---- blocks */

#define SLOT "shl.b32 %r5, %r1, 2;mov.u32 %r6, fixed;add.s32 %r6, %r6, %r5;"
/* The neighbour's word, around 64 threads. */
#define NEIGHBOUR                                                                                                      \
    "add.s32 %r7, %r1, 1;and.b32 %r7, %r7, 63;shl.b32 %r7, %r7, 2;mov.u32 %r8, fixed;add.s32 %r8, %r8, %r7;"

static void barriers_order_shared_memory(void **state)
{
    clean_run(SLOT NEIGHBOUR "st.shared.u32 [%r6], %r1;bar.sync 0;ld.shared.u32 %r9, [%r8];bar.sync 0;"
                             "st.shared.u32 [%r6], %r9;bar.sync 0;ld.shared.u32 %r9, [%r8];\n" STORE("%r9"),
              3, 64, 0);
    assert_int_equal(kernel_memory[64], 2);
    assert_int_equal(kernel_memory[127], 1);
}

static void dynamic_shared_memory_lies_behind(void **state)
{
    clean_run("shl.b32 %r5, %r1, 2;mov.u32 %r6, dynamic;add.s32 %r6, %r6, %r5;st.shared.u32 [%r6], %r1;"
              "mov.u32 %r7, 5;st.shared.u32 [fixed+252], %r7;ld.shared.u32 %r9, [%r6];\n" STORE("%r9"),
              1, 1, 4);
    clean_run("shl.b32 %r5, %r1, 2;mov.u32 %r6, dynamic;add.s32 %r6, %r6, %r5;st.shared.u32 [%r6], %r1;"
              "bar.sync 0;ld.shared.u32 %r9, [%r6];\n" STORE("%r9"),
              2, 64, 256);
    assert_int_equal(kernel_memory[127], 63);
}

static void warps_may_synchronize_alone(void **state)
{
    clean_run(SLOT "xor.b32 %r7, %r5, 4;mov.u32 %r8, fixed;add.s32 %r8, %r8, %r7;st.shared.u32 [%r6], %r1;"
                   "bar.warp.sync -1;ld.shared.u32 %r9, [%r8];\n" STORE("%r9"),
              1, 64, 0);
    assert_int_equal(kernel_memory[33], 32);
}

/* ---- hazards */

struct hazard {
    const char *lines, *says;
    unsigned blocks, threads;
    size_t shared_bytes;
};

static void hazards_check(const struct hazard *hazards, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            struct kernel_shape shape = {hazards[i].blocks, hazards[i].threads, hazards[i].shared_bytes, seed,
                                         PTX_EXACT};
            memset(kernel_memory, 0, sizeof kernel_memory);
            const char *said = kernel_run(hazards[i].lines, &shape);
            if (!strstr(said, hazards[i].says))
                fail_msg("%s\nfound \"%s\", expected \"%s\"", hazards[i].lines, said, hazards[i].says);
        }
}

static void races_are_found_whatever_the_order(void **state)
{
    static const struct hazard hazards[] = {
        {SLOT NEIGHBOUR "st.shared.u32 [%r6], %r1;bar.sync 0;ld.shared.u32 %r9, [%r8];st.shared.u32 [%r6], %r9;",
         "a race on shared memory", 1, 64, 0},
        {SLOT NEIGHBOUR "mov.u32 %r9, 5;setp.eq.s32 %p1, %r1, 0;@%p1 st.shared.u32 [fixed], %r9;bar.sync 0;"
                        "ld.shared.u32 %r9, [fixed];@%p1 st.shared.u32 [fixed], %r1;",
         "has read", 1, 64, 0},
        {"st.shared.u32 [fixed], %r1;", "what thread", 1, 64, 0},
        {SLOT "xor.b32 %r7, %r5, 4;mov.u32 %r8, fixed;add.s32 %r8, %r8, %r7;st.shared.u32 [%r6], %r1;"
              "ld.shared.u32 %r9, [%r8];",
         "a race on shared memory: thread 0 reads what thread 1 has written", 1, 32, 0},
        {SLOT "xor.b32 %r7, %r5, 4;mov.u32 %r8, fixed;add.s32 %r8, %r8, %r7;st.shared.u32 [%r6], %r1;"
              "bar.warp.sync -1;ld.shared.u32 %r9, [%r8];st.shared.u32 [%r6], %r9;",
         "overwrites what thread", 1, 32, 0},
        {"mov.u32 %r2, %ctaid.x;st.global.u32 [%rd1], %r2;", "of another block", 2, 1, 0},
        {"ld.global.u32 %r3, [%rd1];mov.u32 %r2, %ctaid.x;add.s32 %r2, %r2, 1;setp.eq.s32 %p1, %r2, 1;"
         "@%p1 st.global.u32 [%rd1], %r2;",
         "of another block has", 2, 1, 0},
        {"st.global.u32 [%rd1], %r1;ld.global.nc.u32 %r2, [%rd1];", "reads as constant", 1, 1, 0},
    };
    hazards_check(hazards, AH_LENGTH(hazards));
}

static void a_value_written_twice_is_no_race(void **state)
{
    clean_run("mov.u32 %r2, 5;st.global.u32 [%rd1], %r2;", 2, 64, 0);
}

static void what_was_not_written_is_not_read(void **state)
{
    static const struct hazard hazards[] = {
        {"add.s32 %r3, %r2, 1;", "thread 0 uses a register that it has not written", 1, 32, 0},
        {"setp.gt.u32 %p1, %r1, 3;@%p1 mov.u32 %r2, 1;mov.u32 %r3, %r2;" STORE("%r3"), "thread 0 uses a register", 1,
         32, 0},
        {"ld.shared.u32 %r2, [fixed];", "reads shared memory that nobody has written", 1, 1, 0},
        {"ld.local.u32 %r2, [own];", "reads local memory that it has not written", 1, 1, 0},
        {"setp.eq.s32 %p1, %r1, 5;mov.u32 %r2, 0;@%p1 st.shared.u32 [fixed], %r2;bar.sync 0;ld.shared.u32 %r2, "
         "[fixed+4];",
         "nobody has written", 1, 32, 0},
        {"setp.lt.u32 %p1, %r1, 16;@%p1 bra L;shfl.sync.bfly.b32 %r4, %r1, 16, 31, 0xFFFF0000;\n"
         "add.s32 %r4, %r4, 1;\nL:",
         "uses a register", 1, 32, 0},
    };
    hazards_check(hazards, AH_LENGTH(hazards));
}

static void addresses_are_aligned_and_inside(void **state)
{
    static const struct hazard hazards[] = {
        {"ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd1+8];", "is no multiple of them", 1, 1, 0},
        {"ld.global.u32 %r2, [%rd1+32768];", "4 bytes outside global memory", 1, 1, 0},
        {"ld.global.u32 %r2, [%rd1+-4];", "4 bytes outside global memory", 1, 1, 0},
        {"mov.u32 %r2, 1;st.shared.u32 [fixed+256], %r2;", "outside shared memory", 1, 1, 0},
        {"mov.u32 %r2, 1;st.shared.u32 [dynamic+16], %r2;", "outside shared memory", 1, 1, 16},
        {"ld.local.u64 %rd2, [own+64];", "outside local memory", 1, 1, 0},
        {"mov.u64 %rd2, 0;ld.global.u32 %r2, [%rd2];", "outside global memory", 1, 1, 0},
    };
    hazards_check(hazards, AH_LENGTH(hazards));
}

#define MULTIPLY                                                                                                       \
    "mov.b32 %r2, 0;mov.b32 %f1, 0;mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r2, "   \
    "%r2, %r2, %r2}, {%r2, %r2}, {%f1, %f1, %f1, %f1};"

static void lanes_that_never_meet_are_named(void **state)
{
    static const struct hazard hazards[] = {
        {"setp.lt.u32 %p1, %r1, 16;@%p1 bra L;shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;bra.uni M;\n"
         "L: shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\nM:",
         "diverged", 1, 32, 0},
        {"setp.lt.u32 %p1, %r1, 16;@%p1 bra L;bar.sync 0;\nL: bar.sync 0;", "diverged", 1, 32, 0},
        {"setp.lt.u32 %p1, %r1, 32;@%p1 bra L;bar.sync 0;\nL: bar.sync 0;", "warps wait at this barrier and at", 1, 64,
         0},
        {"setp.lt.u32 %p1, %r1, 32;@%p1 exit;bar.sync 0;", "32 threads wait at the barrier, 32 have ended", 1, 64, 0},
        {"shfl.sync.bfly.b32 %r4, %r1, 1, 31, 0xFFFF;", "the mask 0000ffff does not name thread 16", 1, 32, 0},
        {"trap;", "a trap", 1, 1, 0},
        {MULTIPLY, "lanes ffff0000 have ended", 1, 16, 0},
        {"setp.lt.u32 %p1, %r1, 16;@%p1 bra L;" MULTIPLY "bra.uni M;\nL: " MULTIPLY "\nM:", "diverged", 1, 32, 0},
    };
    hazards_check(hazards, AH_LENGTH(hazards));
}

AH_TEST_CASES("ptx/warps", lanes_loop_as_often_as_each_wants, lanes_meet_behind_a_branch, shuffles_name_other_lanes,
              votes_count_the_lanes_of_their_mask, lanes_that_end_are_not_waited_for, a_warp_multiplies_matrices,
              barriers_order_shared_memory, dynamic_shared_memory_lies_behind, warps_may_synchronize_alone,
              races_are_found_whatever_the_order, a_value_written_twice_is_no_race, what_was_not_written_is_not_read,
              addresses_are_aligned_and_inside, lanes_that_never_meet_are_named)
