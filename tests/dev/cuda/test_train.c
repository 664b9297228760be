/* Whole trainings on the CUDA device, on the emulated GPU: within a budget, and taken up again on another device. */
#include "emulated.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "train/tiny.h"

enum { LONG_STEPS = 20 };

static void use_emulated(void)
{
    emulated_begin();
    emulation_reset();
}

static void use_nothing(void)
{
    emulated_end();
}

struct losses {
    double of[LONG_STEPS + 1]; /* of each step, from 1 */
    char device[32];
};

static int on_step(const struct ah_step *step, void *context)
{
    ((struct losses *)context)->of[step->step] = step->loss;
    return 0;
}

static int on_open(const struct ah_trainer *trainer, void *context)
{
    struct ah_device device;
    ah_trainer_device(trainer, &device);
    snprintf(((struct losses *)context)->device, 32, "%s", device.name);
    return AH_OK;
}

/* As for the CPU, but for what a GPU has not: a profile is measured. */
static struct ah_train_options on(const struct place *place, const char *device, const char *dtype,
                                  struct losses *losses)
{
    struct ah_train_options options = options_of(place);
    bool gpu = strcmp(device, "cpu") != 0;
    options.device = device;
    options.dtype = dtype;
    options.steps = LONG_STEPS;
    options.profile_path = NULL;
    options.dev.threads = gpu ? 0 : 1;
    options.context = losses;
    return options;
}

static void nearly(const struct losses *found, const struct losses *expected, double bound)
{
    for (int i = 1; i <= LONG_STEPS; i++)
        if (!(fabs(found->of[i] - expected->of[i]) <= bound * expected->of[i]))
            fail_msg("step %d: loss %.9g, the CPU device's %.9g", i, found->of[i], expected->of[i]);
}

/* In three quarters of what resident takes. The losses are the CPU device's but for rounding. */
static void trains_within_a_budget(const char *dtype, double bound)
{
    struct place place;
    struct losses cpu = {.device = ""}, cuda = {.device = ""};
    struct ah_train_result result;
    place_init(&place);
    struct ah_train_options options = on(&place, "cpu", dtype, &cpu);
    options.out_dir = NULL;
    assert_ok(train_watched(&result, &options, on_open, on_step));
    int64_t resident_bytes = result.device_peak_bytes_used;
    use_emulated();
    options = on(&place, "cuda", dtype, &cuda);
    options.plan = "auto";
    options.budget.device_bytes = resident_bytes * 3 / 4;
    assert_ok(train_watched(&result, &options, on_open, on_step));
    use_nothing();
    assert_string_equal(result.device, "cuda:0");
    assert_string_equal(cuda.device, "cuda:0");
    assert_int_equal(result.steps_done, LONG_STEPS);
    assert_true(result.plan.switches.offload_optimizer > 0 || result.plan.switches.checkpoint > 0);
    assert_int_equal(result.device_peak_bytes_used, result.device_peak_bytes_predicted);
    assert_int_equal(result.host_peak_bytes_used, result.host_peak_bytes_predicted);
    assert_true(result.device_peak_bytes_used <= options.budget.device_bytes);
    assert_true(result.clip == 1);
    nearly(&cuda, &cpu, bound);
    emulated_assert_clean();
}

static void trains_within_a_budget_in_fp32(void **state)
{
    trains_within_a_budget("fp32", 1e-4);
}

static void trains_within_a_budget_in_bf16(void **state)
{
    trains_within_a_budget("bf16", 3e-2);
}

static int stop_after(const struct ah_step *step, void *context)
{
    return step->step == STEPS / 2;
}

/* Half on one device, half on the other; both ways. The same as either alone, but for rounding. */
static void goes_on_from_the_other_device(void **state)
{
    static const char *const devices[] = {"cpu", "cuda"};
    struct place place;
    struct ah_train_result result;
    double loss[2];
    use_emulated();
    for (int first = 0; first < 2; first++) {
        struct losses losses = {.device = ""};
        place_init(&place);
        struct ah_train_options options = on(&place, devices[first], "fp32", &losses);
        options.steps = STEPS;
        assert_ok(train_watched(&result, &options, NULL, stop_after));
        assert_in_range(result.steps_done, STEPS / 2, STEPS - 2); /* what was under way is finished */
        options = on(&place, devices[!first], "fp32", &losses);
        options.model_path = options.data_path = NULL;
        options.out_dir = NULL;
        options.resume_dir = place.out;
        options.batch = options.seq = options.steps = options.warmup_steps = AH_UNSET;
        options.lr = NAN;
        options.dtype = NULL;
        assert_ok(ah_train(&result, &options));
        assert_int_equal(result.steps_done, STEPS);
        loss[first] = result.final_loss;
    }
    use_nothing();
    assert_true(fabs(loss[0] - loss[1]) <= 1e-4 * loss[0]);
    emulated_assert_clean();
}

/* Without a limit the GPU's memory is one. */
static int take_budget(const struct ah_trainer *trainer, void *context)
{
    struct ah_plan plan;
    struct ah_budget budget;
    ah_trainer_plan(trainer, &plan, &budget);
    *(int64_t *)context = budget.device_bytes;
    return AH_EINPUT; /* enough seen */
}

static void the_gpus_memory_is_the_budget(void **state)
{
    struct place place;
    struct ah_train_result result;
    struct ah_dev *dev;
    struct ah_device device;
    struct losses losses;
    int64_t budget = 0;
    if (getenv("AH_TEST_GPU")) /* the memory of a real one is what it is */
        skip();
    place_init(&place);
    use_emulated();
    assert_ok(ah_dev_open(&dev, "cuda", NULL));
    ah_dev_get(&device, dev);
    ah_dev_close(dev);
    struct ah_train_options options = on(&place, "auto", "fp32", &losses);
    options.context = &budget;
    assert_int_equal(train_watched(&result, &options, take_budget, NULL), AH_EINPUT);
    use_nothing();
    assert_int_equal(budget, device.free_bytes);
    emulated_assert_clean();
}

AH_TEST_CASES("dev/cuda/train", trains_within_a_budget_in_fp32, trains_within_a_budget_in_bf16,
              goes_on_from_the_other_device, the_gpus_memory_is_the_budget)
