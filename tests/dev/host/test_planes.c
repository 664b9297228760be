/* Floats in two planes: nothing is lost, and an update of the planes is the update of the float. */
#include "dev/code8.h"
#include "dev/cpu/cases.h"
#include "dev/host/isa.h"
#include "dev/planes.h"

#include <math.h>
#include <stdlib.h>

enum { COUNT = 2048, ODD = 1003, DENSE = 1 << 20, STEPS = 3 };

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The distance to the BF16 number is at most half of one in its last place, and where it is that the number is the
 * larger in magnitude. A number beyond the largest stands for the next power of two, as in rounding. */
static void check_nearest(uint32_t bits, uint16_t upper)
{
    double value = (double)float_of(bits), near = (double)float_of((uint32_t)upper << 16);
    double unit = ldexp(1, (int)fmax(-126, ilogb(value == 0 ? 1e-300 : value)) - 7);
    near = isinf(near) ? copysign(0x1p128, near) : near;
    bool tie = fabs(value - near) == unit / 2;
    if (!(fabs(value - near) <= unit / 2) || (tie && fabs(near) < fabs(value)))
        fail_msg("%08x, %.9g: rounded to %.9g", bits, value, near);
}

static void check_value(uint32_t bits)
{
    float value = float_of(bits);
    uint32_t kept = ah__plane_bits(bits);
    uint16_t upper = ah__plane_upper(kept), rest = (uint16_t)kept;
    uint32_t joined = ah__planes_joined(upper, rest);
    bool nan = (bits & 0x7fffffff) > 0x7f800000;
    if (nan && (joined != 0x7fc00000 || upper != 0x7fc0))
        fail_msg("%08x is a NaN: %04x, with its rest %08x", bits, upper, joined);
    if (!nan && joined != bits)
        fail_msg("%08x comes back as %08x", bits, joined);
    if (!nan && !isinf(value))
        check_nearest(bits, upper);
    else if (!nan)
        assert_int_equal(upper, bits >> 16);
}

/* All upper halves with lower ones around what decides, and others. */
static void every_value_comes_back(void **state)
{
    static const uint32_t lower[] = {0, 1, 0x3fff, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xc000, 0xfffe, 0xffff};
    uint32_t others = ah_test_soaks() ? 0x10000 : 16;
    for (uint32_t high = 0; high < 0x10000; high++) {
        for (size_t i = 0; i < AH_LENGTH(lower); i++)
            check_value(high << 16 | lower[i]);
        for (uint32_t i = 0; i < others; i++)
            check_value(high << 16 | (others == 0x10000 ? i : ah__random_bits(high, i) & 0xffff));
    }
    assert_int_equal(ah__plane_upper(0x7f7fffff), 0x7f80); /* the largest float: infinity, and yet not lost */
    assert_int_equal(ah__plane_upper(0x3f808000), 0x3f81); /* ties */
    assert_int_equal(ah__plane_upper(0x3f818000), 0x3f82);
    assert_int_equal(ah__plane_upper(0xbf808000), 0xbf81);
}

/* ---- Adam -------------------------------------------------------------------------------------------------------- */

struct master {
    float p[COUNT], g[COUNT], m[COUNT], v[COUNT]; /* moments in any format */
};

struct planes {
    uint16_t p[COUNT], rest[COUNT], g[COUNT];
    float m[COUNT], v[COUNT];
};

static void planes_split(uint16_t *upper, uint16_t *rest, const float *values, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t bits = ah__plane_bits(bits_of(values[i]));
        upper[i] = ah__plane_upper(bits);
        rest[i] = (uint16_t)bits;
    }
}

static void states_fill(struct master *master, struct planes *planes, enum ah_dtype moments)
{
    memset(master, 0, sizeof *master);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)ah__random_bits(3, (uint64_t)i);
        master->p[i] = i % 7 ? (float)ah__random_normal(1, (uint64_t)i) : float_of(bits);
        master->g[i] = float_of(bits_of((float)ah__random_normal(2, (uint64_t)i)) & 0xffff0000);
        master->v[i] = master->m[i] = moments == AH_F32 ? (float)fabs(ah__random_normal(4, (uint64_t)i)) : 0;
        planes->g[i] = (uint16_t)(bits_of(master->g[i]) >> 16);
    }
    planes_split(planes->p, planes->rest, master->p, COUNT);
    memcpy(planes->m, master->m, sizeof planes->m);
    memcpy(planes->v, master->v, sizeof planes->v);
}

static struct ah_task task_of(void *p, void *g, void *m, void *v, enum ah_dtype moments)
{
    struct ah_task task = {.type = AH_TASK_ADAM};
    int64_t count = moments == AH_U8 ? COUNT : ODD;
    task.as.adam.p = p;
    task.as.adam.g = g;
    task.as.adam.m = m;
    task.as.adam.v = v;
    task.as.adam.moment_dtype = moments;
    task.as.adam.count = count;
    task.as.adam.decayed = count / 2 / AH_CODE8_GROUP * AH_CODE8_GROUP;
    task.as.adam.adam = (struct ah_adam){0.9F, 0.1F, 0.95F, 0.05F, 1e-8F, 0.999F, 3e-3F, 1.5F, 7};
    task.as.adam.first = 1000;
    return task;
}

/* Some steps of both, the last of the planes into places apart. */
static void check_updates(struct ah_pool *pool, enum ah_dtype moments)
{
    static struct master master;
    static struct planes planes, apart;
    states_fill(&master, &planes, moments);
    for (int step = 0; step < STEPS; step++) {
        struct ah_task whole = task_of(master.p, master.g, master.m, master.v, moments);
        struct ah_task split = task_of(planes.p, planes.g, planes.m, planes.v, moments);
        split.as.adam.dtype = AH_BF16;
        split.as.adam.rest = planes.rest;
        if (step == STEPS - 1) {
            apart = planes;
            split.as.adam.to_p = apart.p;
            split.as.adam.to_rest = apart.rest;
            split.as.adam.to_m = apart.m;
            split.as.adam.to_v = apart.v;
        }
        assert_ok(ah__host_adam(pool, &whole));
        assert_ok(ah__host_adam(pool, &split));
    }
    for (int i = 0; i < COUNT; i++) {
        uint32_t want = ah__plane_bits(bits_of(master.p[i])), found = ah__planes_joined(apart.p[i], apart.rest[i]);
        if (found != want || apart.p[i] != ah__plane_upper(want))
            fail_msg("moments in %s, element %d: %08x, above %04x, expected %08x", ah__dtype_name(moments), i, found,
                     apart.p[i], want);
    }
    assert_memory_equal(apart.m, master.m, sizeof master.m);
    assert_memory_equal(apart.v, master.v, sizeof master.v);
}

/* Under every instruction set and format of the moments. */
static void updates_are_those_of_the_float(void **state)
{
    static const char *const isas[AH_ISA_COUNT] = {"avx512", "avx2", "plain"};
    struct test_pool p = pool_begin(2);
    for (int isa = 0; isa < AH_ISA_COUNT; isa++) {
        ah__host_isa_force(isas[isa]);
        check_updates(p.pool, AH_F32);
        check_updates(p.pool, AH_BF16);
        check_updates(p.pool, AH_U8);
    }
    ah__host_isa_force(NULL);
    pool_end(&p);
}

/* A number as arithmetic on the pool leaves it: denormals are zero there. */
static uint32_t flushed(uint32_t bits)
{
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

/* An update that changes nothing takes any bits apart and together: only a NaN may become another. */
static void any_bits_pass_an_update(void **state)
{
    static const char *const isas[AH_ISA_COUNT] = {"avx512", "avx2", "plain"};
    struct test_pool p = pool_begin(2);
    uint16_t *upper = calloc(3 * (size_t)DENSE, sizeof *upper), *rest = upper + DENSE;
    float *moments = calloc(2 * (size_t)DENSE, sizeof *moments);
    assert_true(upper && moments);
    for (int isa = 0; isa < AH_ISA_COUNT; isa++) {
        struct ah_task task = task_of(upper, upper + 2 * (int64_t)DENSE, moments, moments + DENSE, AH_F32);
        task.as.adam.dtype = AH_BF16;
        task.as.adam.rest = rest;
        task.as.adam.count = DENSE;
        task.as.adam.adam.step_size = 0;
        task.as.adam.adam.decay_factor = 1;
        for (uint32_t i = 0; i < DENSE; i++) {
            uint32_t bits = ah__plane_bits(i * 4093);
            upper[i] = ah__plane_upper(bits);
            rest[i] = (uint16_t)bits;
        }
        ah__host_isa_force(isas[isa]);
        assert_ok(ah__host_adam(p.pool, &task));
        for (uint32_t i = 0; i < DENSE; i++) {
            uint32_t bits = flushed(ah__plane_bits(i * 4093)), found = ah__planes_joined(upper[i], rest[i]);
            if (found != bits || upper[i] != ah__plane_upper(bits))
                fail_msg("%s: %08x became %08x, above %04x", isas[isa], bits, found, upper[i]);
        }
    }
    ah__host_isa_force(NULL);
    free(upper), free(moments);
    pool_end(&p);
}

AH_TEST_CASES("dev/host/planes", every_value_comes_back, updates_are_those_of_the_float, any_bits_pass_an_update)
