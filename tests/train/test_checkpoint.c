/* Checkpoints of a run that was never trained: what goes in comes out, whole or not at all. */
#include "train/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/safetensors.h"
#include "sched/sched.h"
#include "test.h"

enum { PATH_SIZE = 512, LAYERS = 2 };

struct fixture {
    struct ah_model *model;
    struct ah_graph *graph;
    struct ah_partition *partition;
    struct ah_dev *dev;
    struct ah_run *run;
    float *buffer;
};

/* A plan with `offload` blocks' states, and the embedding's, on the host. */
static void fixture_init(struct fixture *f, int offload)
{
    static const struct ah_run_hooks no_hooks;
    struct ah_dev_options options = {.threads = 1};
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/model.json", ah_test_folder());
    const char *text =
        "{\"model_type\": \"gpt2\", \"vocab_size\": 20, \"n_positions\": 4, \"n_embd\": 8, \"n_layer\": 2, "
        "\"n_head\": 2}";
    assert_ok(ah__file_write(path, text, strlen(text)));
    assert_ok(ah_model_load(&f->model, path));
    assert_ok(ah_model_record(&f->graph, f->model, 1, 4, AH_F32));
    assert_ok(ah_partition_new(&f->partition, f->graph, NULL));
    assert_ok(ah_dev_open(&f->dev, "cpu", &options));
    struct ah_plan plan = {.switches = {.layers = LAYERS, .offload_optimizer = offload,
                                        .embedding_on_host = offload > 0, .slots = 3, .refetch_ahead = 1},
                           .policy = "autohete"};
    assert_ok(ah__run_new(&f->run, f->partition, &plan, f->dev, &no_hooks));
    f->buffer = calloc((size_t)ah__checkpoint_buffer(f->partition), sizeof *f->buffer);
}

static void fixture_fini(struct fixture *f)
{
    free(f->buffer);
    ah__run_free(f->run);
    ah_dev_close(f->dev);
    ah_partition_free(f->partition);
    ah_graph_free(f->graph);
    ah_model_free(f->model);
}

static float value_of(int param, int which, int64_t i)
{
    return (float)(param + 1) + 0.25F * (float)which + 1e-3F * (float)i;
}

static void fill(struct fixture *f)
{
    for (int p = 0; p < f->partition->param_count; p++)
        for (int which = AH_RUN_PARAM; which <= AH_RUN_MOMENT2; which++) {
            for (int64_t i = 0; i < ah__shape_count(&f->partition->params[p].shape); i++)
                f->buffer[i] = value_of(p, which, i);
            assert_ok(ah__run_load(f->run, p, (enum ah_run_state)which, f->buffer));
        }
}

/* Adam's moments are zero in a run that has read parameters only. */
static void expect_filled(struct fixture *f, bool moments)
{
    for (int p = 0; p < f->partition->param_count; p++)
        for (int which = AH_RUN_PARAM; which <= AH_RUN_MOMENT2; which++) {
            assert_ok(ah__run_store(f->run, p, (enum ah_run_state)which, f->buffer));
            for (int64_t i = 0; i < ah__shape_count(&f->partition->params[p].shape); i++)
                assert_true(f->buffer[i] == (which && !moments ? 0 : value_of(p, which, i)));
        }
}

static struct ah_checkpoint state_of(int64_t step, char *data_path)
{
    return (struct ah_checkpoint){
        .step = step,
        .loss = 0.1 + 0.2,
        .data_path = data_path,
        .data_tokens = 1234,
        .data_signature = 0xfedcba9876543210,
        .settings = {.batch = 1, .micro_batch = 1,
                     .seq = 4,
                     .seed = UINT64_MAX,
                     .schedule = {AH_DECAY_LINEAR, 0.1, 0.2, 3, 40},
                     .adamw = {0.5, 0.6, 0.7, 0.8}},
    };
}

static void what_goes_in_comes_out(void **state)
{
    (void)state;
    struct fixture device, host, bare;
    char data[] = "/some/data", dir[PATH_SIZE];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    struct ah_checkpoint in = state_of(7, data), out;
    fixture_init(&device, 0);
    fixture_init(&host, LAYERS);
    fixture_init(&bare, 1);
    fill(&device);
    assert_ok(ah__checkpoint_save(dir, &in, device.model, device.partition, device.run, device.buffer));
    assert_ok(ah__checkpoint_open(&out, dir));
    assert_int_equal(out.step, 7);
    assert_true(out.loss == in.loss);
    assert_string_equal(out.data_path, data);
    assert_int_equal(out.data_tokens, in.data_tokens);
    assert_true(out.data_signature == in.data_signature && out.settings.seed == UINT64_MAX);
    assert_true(out.settings.schedule.lr == 0.1 && out.settings.schedule.steps == 40);
    assert_ok(ah__checkpoint_check_model(&out, host.model));
    assert_ok(ah__checkpoint_load(out.folder, host.partition, host.run, true));
    expect_filled(&host, true);
    assert_ok(ah__checkpoint_load(out.folder, bare.partition, bare.run, false));
    expect_filled(&bare, false);
    ah__checkpoint_close(&out);
    fixture_fini(&device);
    fixture_fini(&host);
    fixture_fini(&bare);
}

static void names_are_hugging_faces(void **state)
{
    (void)state;
    static const char *const names[] = {"transformer.wte.weight", "transformer.wpe.weight",
                                        "transformer.h.1.attn.c_attn.weight", "transformer.h.0.mlp.c_proj.bias",
                                        "transformer.ln_f.bias"};
    struct fixture f;
    struct ah_safetensors *file;
    char data[] = "d", dir[PATH_SIZE], path[PATH_SIZE + 32];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    struct ah_checkpoint in = state_of(1, data);
    fixture_init(&f, 0);
    assert_ok(ah__checkpoint_save(dir, &in, f.model, f.partition, f.run, f.buffer));
    assert_ok(ah__safetensors_open(&file, path));
    assert_string_equal(ah__safetensors_meta(file, "format"), "pt");
    for (size_t i = 0; i < AH_LENGTH(names); i++)
        if (!ah__safetensors_find(file, names[i]))
            fail_msg("%s is missing", names[i]);
    ah__safetensors_close(file);
    fixture_fini(&f);
}

static void infinity_is_not_saved(void **state)
{
    (void)state;
    static const enum ah_run_state places[] = {AH_RUN_PARAM, AH_RUN_MOMENT1, AH_RUN_MOMENT2};
    struct fixture f;
    char data[] = "d", dir[PATH_SIZE];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    struct ah_checkpoint good = state_of(1, data), bad = state_of(2, data), found;
    fixture_init(&f, 0);
    fill(&f);
    assert_ok(ah__checkpoint_save(dir, &good, f.model, f.partition, f.run, f.buffer));
    for (size_t i = 0; i < AH_LENGTH(places); i++) {
        fill(&f);
        int last = f.partition->param_count - 1;
        assert_ok(ah__run_store(f.run, last, places[i], f.buffer));
        f.buffer[3] = i == 1 ? NAN : INFINITY;
        assert_ok(ah__run_load(f.run, last, places[i], f.buffer));
        assert_fails(ah__checkpoint_save(dir, &bad, f.model, f.partition, f.run, f.buffer), AH_ENUMERIC, "[3] is ");
        assert_ok(ah__checkpoint_open(&found, dir));
        assert_int_equal(found.step, 1);
        ah__checkpoint_close(&found);
    }
    fixture_fini(&f);
}

/* A folder that is whole by its checksums, but not by what it says. */
static void wrong_state(void **state)
{
    (void)state;
    struct fixture f;
    char data[] = "d", dir[PATH_SIZE], path[PATH_SIZE + 32];
    snprintf(dir, sizeof dir, "%s", ah_test_folder());
    snprintf(path, sizeof path, "%s/state.json", dir);
    struct ah_checkpoint in = state_of(1, data), out = {.step = 77};
    in.settings.batch = -5;
    fixture_init(&f, 0);
    assert_ok(ah__checkpoint_save(dir, &in, f.model, f.partition, f.run, f.buffer));
    assert_fails(ah__checkpoint_open(&out, dir), AH_EINPUT, "state.json: key 'batch': found -5");
    assert_int_equal(out.step, 77);
    assert_fails(ah__checkpoint_open(&out, ah_test_folder()), AH_EINPUT, "");
    fixture_fini(&f);
}

AH_TEST_SUITE("train/checkpoint", cmocka_unit_test(what_goes_in_comes_out), cmocka_unit_test(names_are_hugging_faces),
              cmocka_unit_test(infinity_is_not_saved), cmocka_unit_test(wrong_state))
