/* What the CUDA device does for tasks on its compute lane is, bit for bit, what its host lane does. */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "dev/host/codes.h"

enum { FLOATS = 1 << 20, ROOM = 150000 };

/* The same memory on both sides: what is given is copied to the device, what comes out is copied back beside it. */
struct rig {
    struct ah_dev *dev;
    float *device, *host, *found;
};

static struct rig rig_open(void)
{
    struct rig rig;
    emulation_reset();
    assert_ok(emulated_open(&rig.dev, &(struct ah_dev_options){.host_threads = 2}));
    assert_ok(rig.dev->ops->device_memory(rig.dev, FLOATS * 4, (char **)&rig.device));
    assert_ok(rig.dev->ops->host_memory(rig.dev, FLOATS * 4, (char **)&rig.host));
    assert_ok(rig.dev->ops->host_memory(rig.dev, FLOATS * 4, (char **)&rig.found));
    return rig;
}

static void rig_close(struct rig *rig)
{
    ah_dev_close(rig->dev);
    emulated_assert_clean();
}

static void copy(const struct rig *rig, enum ah_lane lane, void *to, const void *from)
{
    struct ah_work work = {.lane = lane, .tasks = 1, .task = {{.type = AH_TASK_COPY}}};
    work.task[0].as.copy.to = to;
    work.task[0].as.copy.from = from;
    work.task[0].as.copy.bytes = FLOATS * 4;
    assert_ok(ah__dev_run(rig->dev, &work, NULL));
}

/* Where the device has what lies at `host`; null stays null. */
static void *there(const struct rig *rig, const void *host)
{
    return host ? (char *)rig->device + ((const char *)host - (const char *)rig->host) : NULL;
}

static bool is_nan_bf16(uint16_t bits)
{
    return (bits & 0x7fff) > 0x7f80;
}

/* As one float, or as two bf16 numbers. Not-a-number is one value: which of its bits a processor gives
 * is its own affair. */
static bool same(const float *a, const float *b)
{
    uint16_t x[2], y[2];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return (isnan(*a) && isnan(*b)) || ((x[0] == y[0] || (is_nan_bf16(x[0]) && is_nan_bf16(y[0]))) &&
                                        (x[1] == y[1] || (is_nan_bf16(x[1]) && is_nan_bf16(y[1]))));
}

/* Runs the two, the first on the compute lane, and looks at that many floats. */
static void both_of(const struct rig *rig, const struct ah_task *on_device, const struct ah_task *on_host, int floats)
{
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {*on_device}};
    copy(rig, AH_LANE_H2D, rig->device, rig->host);
    assert_ok(ah__dev_run(rig->dev, &work, NULL));
    copy(rig, AH_LANE_D2H, rig->found, rig->device);
    work = (struct ah_work){.lane = AH_LANE_HOST, .tasks = 1, .task = {*on_host}};
    assert_ok(ah__dev_run(rig->dev, &work, NULL));
    for (int i = 0; i < floats; i++)
        if (!same(&rig->found[i], &rig->host[i]))
            fail_msg("float %d: found %.9g (%a), expected %.9g (%a)", i, (double)rig->found[i], (double)rig->found[i],
                     (double)rig->host[i], (double)rig->host[i]);
}

/* Looks at everything there is. */
static void both(const struct rig *rig, const struct ah_task *on_device, const struct ah_task *on_host)
{
    both_of(rig, on_device, on_host, FLOATS);
}

/* Ordinary numbers, and now and then one of those with which arithmetic has trouble. */
static float value(uint64_t seed, int index, bool odd)
{
    static const float strange[] = {0.0F,     -0.0F,         1e-40F, -3e-39F, 1.17549435e-38F, 3.4e38F, -3.4e38F,
                                    INFINITY, -INFINITY,     NAN,    1.0F,    -1.0F,           1e-20F,  1.17549449e-38F,
                                    65504.0F, 3.38953139e38F};
    uint64_t bits = ah__random_bits(seed, (uint64_t)index);
    if (odd && bits % 7 == 0)
        return strange[bits / 7 % AH_LENGTH(strange)];
    return (float)ah__random_normal(seed + 1, (uint64_t)index);
}

/* The numbers are made once; a seed says from where on. */
static void fill(const struct rig *rig, uint64_t seed, bool odd)
{
    enum { MORE = 4096 };
    static float pool[2][FLOATS + MORE];
    for (int i = 0; i < FLOATS + MORE && pool[0][1] == 0; i += 1)
        for (int j = 0; j < 2; j++)
            pool[j][FLOATS + MORE - 1 - i] = value(7, i, j == 1);
    memcpy(rig->host, pool[odd] + seed * 37 % MORE, FLOATS * 4);
}

/* ---- Adam */

struct adam_case {
    int64_t count, decayed;
    int skew;                                          /* elements by which everything is off a vector's alignment */
    bool bf16, rest, apart, odd, short_moments, coded; /* coded: whole groups, nothing off alignment */
    float scale;                                       /* 0: none is given */
};

/* Any codes; scales of all sizes, now and then none. */
static void codes_fill(uint8_t *groups, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < ah__state_bytes(AH_U8, count); i++)
        groups[i] = (uint8_t)ah__random_bits(seed, (uint64_t)i);
    for (int64_t i = 0; i < count / AH_CODE8_GROUP; i++) {
        float scale = i % 5 == 4 ? 0 : (float)pow(10, -6 * ah__random_uniform(seed, (uint64_t)i));
        memcpy(groups + i * AH_CODE8_BYTES + AH_CODE8_GROUP, &scale, sizeof scale);
    }
}

/* Laid out one after the other: p, m, v, their new places, the gradient, the rest and its new place, the scale. */
static void adam_check(const struct rig *rig, const struct adam_case *c, uint64_t seed)
{
    struct ah_task task = {.type = AH_TASK_ADAM}, on_device;
    float *at = rig->host + c->skew;
    fill(rig, seed, c->odd);
    for (int i = 0; i < ROOM && c->odd; i++) /* second moments are squares */
        at[2 * ROOM + i] = fabsf(at[2 * ROOM + i]);
    uint16_t *halves = (uint16_t *)(void *)(at + ROOM);
    for (int i = 0; i < 4 * ROOM && c->short_moments; i++)
        halves[i] = 0x3000 + (uint16_t)ah__random_bits(seed, (uint64_t)i) % 0x1000;
    for (int which = 1; which < 3 && c->coded; which++)
        codes_fill((uint8_t *)(void *)(at + which * ROOM), c->count, seed + (uint64_t)which);
    task.as.adam.p = at;
    task.as.adam.m = at + ROOM;
    task.as.adam.v = at + 2 * ROOM;
    if (c->apart) {
        task.as.adam.to_p = at + 3 * ROOM / 2;
        task.as.adam.to_m = at + 5 * ROOM / 2;
        task.as.adam.to_v = at + 3 * ROOM;
    }
    task.as.adam.g = (char *)(rig->host + 4 * ROOM) + c->skew * (c->bf16 ? 2 : 4);
    task.as.adam.rest = c->rest ? (uint16_t *)(void *)(rig->host + 5 * ROOM) + c->skew : NULL;
    task.as.adam.to_rest = c->rest && c->apart ? (uint16_t *)task.as.adam.rest + ROOM : NULL;
    task.as.adam.dtype = c->bf16 ? AH_BF16 : AH_F32;
    task.as.adam.count = c->count;
    task.as.adam.decayed = c->decayed;
    task.as.adam.adam = (struct ah_adam){.9F, .1F, .95F, .05F, 1e-8F, .9999F, 1e-3F, 1.7F, 99};
    task.as.adam.first = 12345;
    task.as.adam.moment_dtype = c->coded ? AH_U8 : c->short_moments ? AH_BF16 : AH_F32;
    if (c->scale != 0) {
        rig->host[6 * ROOM] = c->scale;
        task.as.adam.scale = rig->host + 6 * ROOM;
    }
    on_device = task;
    on_device.as.adam.p = there(rig, task.as.adam.p);
    on_device.as.adam.m = there(rig, task.as.adam.m);
    on_device.as.adam.v = there(rig, task.as.adam.v);
    on_device.as.adam.to_p = there(rig, task.as.adam.to_p);
    on_device.as.adam.to_m = there(rig, task.as.adam.to_m);
    on_device.as.adam.to_v = there(rig, task.as.adam.to_v);
    on_device.as.adam.g = there(rig, task.as.adam.g);
    on_device.as.adam.rest = there(rig, task.as.adam.rest);
    on_device.as.adam.to_rest = there(rig, task.as.adam.to_rest);
    on_device.as.adam.scale = there(rig, task.as.adam.scale);
    both(rig, &on_device, &task);
}

static void adam_is_the_hosts(void **state)
{
    struct rig rig = rig_open();
    int step = ah_test_samples() ? 7 : 1;
    for (int n = 0; n <= 40; n += step) {
        uint64_t seed = (uint64_t)n + 100;
        struct adam_case c = {
            .count = n, .decayed = n / 2, .bf16 = n % 2, .rest = n % 6 > 1 && n % 2, .odd = n % 4 == 1};
        c.short_moments = n % 8 > 4; /* not odd: their bits are other numbers, negative ones among the squares */
        adam_check(&rig, &c, seed);
        c.skew = 1 + n % 3;
        c.scale = .37F;
        adam_check(&rig, &c, seed + 1);
    }
    const struct adam_case cases[] = {
        {.count = 5000, .decayed = 2049, .bf16 = true, .rest = true, .odd = true, .scale = 1},
        {.count = 5000, .decayed = 5000, .odd = true, .scale = .001F},
        {.count = 70001, .decayed = 65537, .apart = true, .scale = .5F},
        {.count = 70001, .decayed = 65537, .bf16 = true, .rest = true, .apart = true, .scale = .5F},
        {.count = 4099, .skew = 3, .bf16 = true, .rest = true, .apart = true},
        {.count = 4099, .bf16 = true, .rest = true, .scale = NAN},
        {.count = 4097, .skew = 2, .bf16 = true, .rest = true, .scale = NAN},
        {.count = 1000, .scale = NAN},
        {.count = 5001, .decayed = 999, .short_moments = true, .scale = .5F},
        {.count = 70001, .bf16 = true, .rest = true, .short_moments = true, .apart = true},
        {.count = 4099, .skew = 1, .bf16 = true, .rest = true, .short_moments = true, .scale = NAN},
        {.count = 5001, .decayed = 999, .bf16 = true, .short_moments = true, .scale = .5F},
        {.count = 4098, .skew = 3, .bf16 = true, .apart = true},
        {.count = 4099, .bf16 = true, .short_moments = true, .scale = NAN},
        {.count = 256, .coded = true},
        {.count = 5120, .decayed = 1024, .coded = true, .scale = .5F},
        {.count = 5120, .decayed = 1024, .coded = true, .odd = true, .bf16 = true, .rest = true},
        {.count = 69888, .decayed = 65792, .bf16 = true, .rest = true, .coded = true, .apart = true},
        {.count = 4352, .bf16 = true, .coded = true, .scale = .5F},
        {.count = 4352, .bf16 = true, .rest = true, .coded = true, .scale = NAN},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        adam_check(&rig, &cases[i], 1000 + i);
    rig_close(&rig);
}

/* The host refuses it; a kernel cannot, and leaves the states as they were where they go. */
static void a_skipped_step_into_memory_apart_copies(void **state)
{
    enum { COUNT = 1003 };
    struct rig rig = rig_open();
    struct ah_work work = {.lane = AH_LANE_COMPUTE, .tasks = 1, .task = {{.type = AH_TASK_ADAM}}};
    struct ah_task *task = &work.task[0];
    fill(&rig, 5, false);
    rig.host[7 * COUNT] = NAN;
    task->as.adam.p = rig.device;
    task->as.adam.m = rig.device + COUNT;
    task->as.adam.v = rig.device + 2 * COUNT;
    task->as.adam.to_p = rig.device + 3 * COUNT;
    task->as.adam.to_m = rig.device + 4 * COUNT;
    task->as.adam.to_v = rig.device + 5 * COUNT;
    task->as.adam.g = rig.device + 6 * COUNT;
    task->as.adam.scale = rig.device + 7 * COUNT;
    task->as.adam.count = COUNT;
    copy(&rig, AH_LANE_H2D, rig.device, rig.host);
    assert_ok(ah__dev_run(rig.dev, &work, NULL));
    copy(&rig, AH_LANE_D2H, rig.found, rig.device);
    assert_memory_equal(rig.found + 3 * COUNT, rig.host, 3 * COUNT * 4);
    rig_close(&rig);
}

/* ---- casts */

struct cast_case {
    int64_t count;
    enum ah_dtype to, from;
    bool in_place;
    int zeros, skew;
};

static void cast_check(const struct rig *rig, const struct cast_case *c, uint64_t seed)
{
    static struct ah_range zeros[100];
    struct ah_task task = {.type = AH_TASK_CAST}, on_device;
    fill(rig, seed, true);
    for (int i = 0; i < c->zeros; i++) {
        zeros[i].from = c->count * i / c->zeros;
        zeros[i].to = zeros[i].from + i % 3 < c->count ? zeros[i].from + i % 3 : c->count;
    }
    char *from = (char *)rig->host + c->skew * (c->from == AH_BF16 ? 2 : 4);
    task.as.cast.from = from;
    task.as.cast.to = c->in_place ? from : (char *)(rig->host + FLOATS / 2) + c->skew * (c->to == AH_BF16 ? 2 : 4);
    task.as.cast.to_dtype = c->to;
    task.as.cast.from_dtype = c->from;
    task.as.cast.count = c->count;
    task.as.cast.zeros = zeros;
    task.as.cast.zero_count = c->zeros;
    on_device = task;
    on_device.as.cast.from = there(rig, task.as.cast.from);
    on_device.as.cast.to = there(rig, task.as.cast.to);
    both(rig, &on_device, &task);
}

static void casts_are_the_hosts(void **state)
{
    struct rig rig = rig_open();
    int step = ah_test_samples() ? 5 : 1;
    for (int n = 0; n <= 33; n += step)
        for (int way = 0; way < 4; way++)
            cast_check(
                &rig,
                &(struct cast_case){n, way % 2 ? AH_F32 : AH_BF16, way / 2 ? AH_F32 : AH_BF16, false, n / 4, n % 3},
                (uint64_t)n);
    const struct cast_case cases[] = {
        {.count = 1, .to = AH_BF16, .in_place = true},
        {.count = 100, .to = AH_BF16, .in_place = true, .zeros = 3},
        {.count = 16383, .to = AH_BF16, .in_place = true},
        {.count = 16384, .to = AH_BF16, .in_place = true, .skew = 1},
        {.count = 16385, .to = AH_BF16, .in_place = true},
        {.count = 140001, .to = AH_BF16, .in_place = true, .zeros = 100},
        {.count = 70000, .to = AH_BF16, .zeros = 65},
        {.count = 70001, .to = AH_F32, .from = AH_BF16, .zeros = 64},
    };
    for (size_t i = 0; i < AH_LENGTH(cases); i++)
        cast_check(&rig, &cases[i], 77 + i);
    rig_close(&rig);
}

/* ---- codes */

static void codes_expand_as_on_the_host(void **state)
{
    enum { BLOCKS = 70, CODES = 0, WIDE = 100000 };
    struct rig rig = rig_open();
    for (int bf16 = 0; bf16 < 2; bf16++)
        for (int codes = AH_CODES_INT8; codes < AH_CODES_COUNT; codes++)
            for (int blocks = 1; blocks <= BLOCKS; blocks += 23) {
                struct ah_task task = {.type = AH_TASK_EXPAND}, on_device;
                float values[AH_CODES_BLOCK];
                fill(&rig, (uint64_t)blocks, false);
                for (int b = 0; b < blocks; b++) {
                    for (int i = 0; i < AH_CODES_BLOCK; i++)
                        values[i] = (float)ah__random_normal(8, (uint64_t)(b * AH_CODES_BLOCK + i)) * (b % 5 ? 1 : 0);
                    ah__codes_narrow((char *)(rig.host + CODES) +
                                         ah__codes_bytes((enum ah_codes)codes, AH_CODES_BLOCK) * b,
                                     values, AH_CODES_BLOCK, (enum ah_codes)codes);
                }
                task.as.expand.from = rig.host + CODES;
                task.as.expand.to = rig.host + WIDE;
                task.as.expand.to_dtype = bf16 ? AH_BF16 : AH_F32;
                task.as.expand.codes = (enum ah_codes)codes;
                task.as.expand.count = (int64_t)blocks * AH_CODES_BLOCK;
                on_device = task;
                on_device.as.expand.from = there(&rig, task.as.expand.from);
                on_device.as.expand.to = there(&rig, task.as.expand.to);
                both(&rig, &on_device, &task);
            }
    rig_close(&rig);
}

/* ---- norms and what clips by them */

static void sqnorm_check(const struct rig *rig, int64_t count, bool bf16, bool odd, int skew)
{
    struct ah_task task = {.type = AH_TASK_SQNORM}, on_device;
    double found;
    fill(rig, (uint64_t)(count * 2 + bf16), odd);
    task.as.sqnorm.g = (char *)rig->host + skew * (bf16 ? 2 : 4);
    task.as.sqnorm.dtype = bf16 ? AH_BF16 : AH_F32;
    task.as.sqnorm.count = count;
    task.as.sqnorm.out = (double *)(void *)(rig->host + FLOATS - 2);
    on_device = task;
    on_device.as.sqnorm.g = there(rig, task.as.sqnorm.g);
    on_device.as.sqnorm.out = there(rig, task.as.sqnorm.out);
    both_of(rig, &on_device, &task, FLOATS - 2);
    memcpy(&found, rig->found + FLOATS - 2, sizeof found);
    if (found != *task.as.sqnorm.out && !(isnan(found) && isnan(*task.as.sqnorm.out)))
        fail_msg("%lld squares: found %a, expected %a", (long long)count, found, *task.as.sqnorm.out);
}

static void norms_are_the_hosts(void **state)
{
    struct rig rig = rig_open();
    int step = ah_test_samples() ? 11 : 1;
    for (int n = 0; n <= 70; n += step) {
        sqnorm_check(&rig, n, n % 2, false, n % 4);
        sqnorm_check(&rig, 500 + n, n % 2 == 0, n % 5 == 0, 0);
    }
    const int64_t counts[] = {65535, 65536, 65537, 65536 * 3 + 531, 65536 * 9 + 17, 1000000};
    for (size_t i = 0; i < AH_LENGTH(counts); i++)
        for (int bf16 = 0; bf16 < 2; bf16++)
            sqnorm_check(&rig, counts[i], bf16, false, 0);
    rig_close(&rig);
}

static void clip_factors_are_the_hosts(void **state)
{
    struct rig rig = rig_open();
    static const double given[][3] = {{1, 4, 9},      {0, 0, 0},   {1e300, 1e300, 1}, {.3, .2, .1},
                                      {1e-300, 0, 0}, {NAN, 1, 1}, {INFINITY, 1, 1}};
    for (size_t i = 0; i < AH_LENGTH(given); i++)
        for (int count = 0; count <= 3; count++) {
            struct ah_task task = {.type = AH_TASK_CLIP}, on_device;
            memset(rig.host, 0, FLOATS * 4);
            memcpy(rig.host, given[i], sizeof given[i]);
            task.as.clip.squares = (double *)(void *)rig.host;
            task.as.clip.count = count;
            task.as.clip.limit = .7;
            task.as.clip.scale = rig.host + 100;
            on_device = task;
            on_device.as.clip.squares = there(&rig, task.as.clip.squares);
            on_device.as.clip.scale = there(&rig, task.as.clip.scale);
            both(&rig, &on_device, &task);
        }
    rig_close(&rig);
}

AH_TEST_CASES("dev/cuda/tasks", adam_is_the_hosts, a_skipped_step_into_memory_apart_copies, casts_are_the_hosts,
              codes_expand_as_on_the_host, norms_are_the_hosts, clip_factors_are_the_hosts)
