/* Moments in 8 bits: the code against the rule it is published by, in double, and Adam on it in every instruction
 * set. */
#include "dev/cpu/cases.h"
#include "dev/cpu/kernels.h"
#include "dev/host/states.h"

#include <math.h>
#include <stdlib.h>

enum { GROUP = AH_CODE8_GROUP, GROUPS = 300, ELEMENTS = GROUP * GROUPS, CODES = 256 };

/* ---- the code ---------------------------------------------------------------------------------------------------- */

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Level by level as published, then in order. */
static void published(double values[CODES], bool is_signed)
{
    int count = 0;
    for (int level = 0; level < 7; level++) {
        int n = is_signed ? 1 << level : 2 << level;
        for (int j = 0; j < n; j++) {
            double value = pow(10, level - 6) * (0.1 + 0.9 * (j + 0.5) / n);
            values[count++] = value;
            if (is_signed)
                values[count++] = -value;
        }
    }
    values[count++] = 0;
    values[count++] = 1;
    assert_int_equal(count, CODES);
    qsort(values, CODES, sizeof *values, ascending);
}

static void codes_stand_for_what_is_published(void **state)
{
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        double want[CODES];
        uint8_t group[AH_CODE8_BYTES];
        float found[CODES], scale = 1;
        published(want, is_signed);
        for (int i = 0; i < CODES; i++)
            group[i] = (uint8_t)i;
        memcpy(group + GROUP, &scale, sizeof scale);
        ah__state_format(AH_U8)->widen(found, group, CODES, is_signed);
        for (int i = 0; i < CODES; i++)
            if (!(fabs((double)found[i] - want[i]) <= 2.5e-7 * fabs(want[i])))
                fail_msg("code %d: %.9g, expected %.9g", i, (double)found[i], want[i]);
    }
}

/* A group whose largest value is 1, so that values are fractions of the scale. */
static void group_of_fractions(float values[GROUP], uint64_t seed, bool is_signed)
{
    for (int i = 0; i < GROUP; i++) {
        double size = pow(10, -8 * ah__random_uniform(seed, (uint64_t)i));
        values[i] = (float)(is_signed && ah__random_bits(seed + 1, (uint64_t)i) % 2 ? -size : size);
    }
    values[seed % GROUP] = is_signed && seed % 3 == 0 ? -1 : 1;
}

/* The nearest code, but where a value lies within 1e-4 of a step of the middle between two. */
static void check_nearest(uint8_t code, double value, const double values[CODES], bool is_signed)
{
    int nearest = 0;
    for (int i = 1; i < CODES; i++)
        if (fabs(values[i] - value) < fabs(values[nearest] - value))
            nearest = i;
    if (!is_signed && value > 0 && nearest == 0)
        nearest = 1;
    if (code == nearest)
        return;
    double step = fabs(values[code] - values[nearest]);
    double excess = fabs(values[code] - value) - fabs(values[nearest] - value);
    if (abs(code - nearest) != 1 || !(excess <= 2e-4 * step))
        fail_msg("%.9g: code %d, expected %d", value, code, nearest);
}

static void values_become_the_nearest_code(void **state)
{
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        double values[CODES];
        published(values, is_signed);
        for (uint64_t seed = 0; seed < 400; seed++) {
            float given[GROUP], scale;
            uint8_t group[AH_CODE8_BYTES];
            group_of_fractions(given, seed, is_signed);
            ah__state_format(AH_U8)->narrow(group, given, GROUP, is_signed);
            memcpy(&scale, group + GROUP, sizeof scale);
            assert_true(scale == 1);
            for (int i = 0; i < GROUP; i++)
                check_nearest(group[i], (double)given[i], values, is_signed);
        }
    }
}

/* What lies exactly between two is one of them; just beside it there is no doubt. */
static void rounding_is_at_the_middle(void **state)
{
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        double values[CODES];
        published(values, is_signed);
        for (int i = is_signed ? 127 : 1; i + 1 < CODES; i++) {
            double middle = (values[i] + values[i + 1]) / 2, step = values[i + 1] - values[i];
            const float given[] = {1, (float)(middle - 1e-4 * step), (float)(middle + 1e-4 * step)};
            uint8_t group[AH_CODE8_BYTES];
            ah__state_format(AH_U8)->narrow(group, given, 3, is_signed);
            if (group[1] != i || group[2] != i + 1)
                fail_msg("beside %.9g: codes %d and %d, expected %d and %d", middle, group[1], group[2], i, i + 1);
        }
    }
}

/* Zero stays zero; a second moment that is not is not; too small a group is zero; what is not finite shows. */
static void extremes(void **state)
{
    const float none[3] = {0, -0.0F, 0}, tiny[3] = {1e-39F, 0, 1e-40F}, small[3] = {1, 1e-30F, 0},
                wrong[3] = {1, NAN, 2}, endless[3] = {1, INFINITY, 2};
    uint8_t group[AH_CODE8_BYTES];
    float found[3];
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        ah__state_format(AH_U8)->narrow(group, none, 3, is_signed);
        ah__state_format(AH_U8)->widen(found, group, 3, is_signed);
        assert_true(found[0] == 0 && found[1] == 0 && found[2] == 0 && group[3] == (is_signed ? 127 : 0));
        ah__state_format(AH_U8)->narrow(group, tiny, 3, is_signed);
        ah__state_format(AH_U8)->widen(found, group, 3, is_signed);
        assert_true(found[0] == 0 && found[1] == 0 && found[2] == 0);
        ah__state_format(AH_U8)->narrow(group, small, 3, is_signed);
        ah__state_format(AH_U8)->widen(found, group, 3, is_signed);
        assert_true(found[0] == 1 && found[2] == 0);
        assert_true(is_signed ? found[1] == 0 : found[1] > 3e-7F && found[1] < 4e-7F);
        ah__state_format(AH_U8)->narrow(group, wrong, 3, is_signed);
        ah__state_format(AH_U8)->widen(found, group, 3, is_signed);
        assert_true(isnan(found[0]) && isnan(found[1]) && isnan(found[2]));
        ah__state_format(AH_U8)->narrow(group, endless, 3, is_signed);
        ah__state_format(AH_U8)->widen(found, group, 3, is_signed);
        assert_true(isnan(found[0]) && isnan(found[1]));
    }
}

/* ---- Adam on it -------------------------------------------------------------------------------------------------- */

struct coded {
    float p[ELEMENTS], g[ELEMENTS];
    uint8_t m[GROUPS * AH_CODE8_BYTES], v[GROUPS * AH_CODE8_BYTES];
};

static void coded_fill(struct coded *s, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    for (int i = 0; i < ELEMENTS; i++) {
        double size = pow(10, -4 * ah__random_uniform(seed + 2, (uint64_t)i));
        s->p[i] = (float)ah__random_normal(seed, (uint64_t)i);
        s->g[i] = i / GROUP % 7 == 3 ? 0 : (float)(size * ah__random_normal(seed + 1, (uint64_t)i));
    }
}

static struct ah_task coded_task(struct coded *s, int from, int to)
{
    struct ah_task task = {.type = AH_TASK_ADAM};
    int at = from / GROUP * AH_CODE8_BYTES;
    task.as.adam.p = s->p + from;
    task.as.adam.m = s->m + at;
    task.as.adam.v = s->v + at;
    task.as.adam.g = s->g + from;
    task.as.adam.moment_dtype = AH_U8;
    task.as.adam.count = to - from;
    int decayed = ELEMENTS / 2 / GROUP * GROUP - from;
    task.as.adam.decayed = decayed < 0 ? 0 : decayed < to - from ? decayed : to - from;
    task.as.adam.adam = (struct ah_adam){0.9F, 0.1F, 0.95F, 0.05F, 1e-8F, 0.999F, 3e-3F, 1.5F, 0};
    return task;
}

/* By the rule of dev.h on what codes stand for; then each group to codes by itself. */
static void coded_step_expected(struct coded *s, const struct ah_adam *a)
{
    for (int group = 0; group < GROUPS; group++) {
        float m[GROUP], v[GROUP];
        ah__state_format(AH_U8)->widen(m, s->m + group * AH_CODE8_BYTES, GROUP, true);
        ah__state_format(AH_U8)->widen(v, s->v + group * AH_CODE8_BYTES, GROUP, false);
        for (int i = 0; i < GROUP; i++) {
            int at = group * GROUP + i;
            m[i] = fmaf(a->beta1, m[i], a->one_minus_beta1 * s->g[at]);
            v[i] = fmaf(a->beta2, v[i], a->one_minus_beta2 * s->g[at] * s->g[at]);
            float kept = at < ELEMENTS / 2 / GROUP * GROUP ? s->p[at] * a->decay_factor : s->p[at];
            s->p[at] = fmaf(-a->step_size, m[i] / (sqrtf(v[i]) * a->inv_sqrt_bias2 + a->eps), kept);
        }
        ah__state_format(AH_U8)->narrow(s->m + group * AH_CODE8_BYTES, m, GROUP, true);
        ah__state_format(AH_U8)->narrow(s->v + group * AH_CODE8_BYTES, v, GROUP, false);
    }
}

/* Ten steps, the last in pieces: the moments that an update divides by are those before they were rounded. */
static void ten_steps_are_as_written(void **state)
{
    static struct coded found[AH_ISA_COUNT], want;
    struct test_pool p = pool_begin(2);
    static const char *const isas[AH_ISA_COUNT] = {"avx512", "avx2", "plain"};
    const int cuts[] = {0, GROUP, 4 * GROUP, 5 * GROUP, ELEMENTS};
    coded_fill(&want, 31);
    for (int isa = 0; isa < AH_ISA_COUNT; isa++)
        found[isa] = want;
    for (int step = 0; step < 10; step++) {
        struct ah_task task = coded_task(&want, 0, ELEMENTS);
        for (int i = 0; i < ELEMENTS; i++)
            want.g[i] = (float)ah__random_normal(40 + (uint64_t)step, (uint64_t)i) * want.g[i];
        for (int isa = 0; isa < AH_ISA_COUNT; isa++) {
            memcpy(found[isa].g, want.g, sizeof want.g);
            ah__host_isa_force(isas[isa]);
            for (size_t i = step == 9 ? 0 : AH_LENGTH(cuts) - 2; i + 1 < AH_LENGTH(cuts); i++) {
                struct ah_task piece = coded_task(&found[isa], step == 9 ? cuts[i] : 0, cuts[i + 1]);
                assert_ok(ah__host_adam(p.pool, &piece));
            }
        }
        ah__host_isa_force(NULL);
        coded_step_expected(&want, &task.as.adam.adam);
    }
    for (int isa = 0; isa < AH_ISA_COUNT; isa++) {
        assert_memory_equal(found[isa].m, want.m, sizeof want.m);
        assert_memory_equal(found[isa].v, want.v, sizeof want.v);
        assert_memory_equal(found[isa].p, want.p, sizeof want.p);
    }
    pool_end(&p);
}

static void parts_of_groups_are_refused(void **state)
{
    static struct coded s;
    struct test_pool p = pool_begin(1);
    struct ah_task task = coded_task(&s, 0, GROUP);
    task.as.adam.count = GROUP - 1;
    assert_fails(ah__host_adam(p.pool, &task), AH_EDEVICE, "255 elements, 256 of them decayed, expected groups of 256");
    pool_end(&p);
}

AH_TEST_CASES("dev/host/code8", codes_stand_for_what_is_published, values_become_the_nearest_code,
              rounding_is_at_the_middle, extremes, ten_steps_are_as_written, parts_of_groups_are_refused)
